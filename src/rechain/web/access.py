"""Who may ask: those who know the token, and browsers that have signed in with it; guessing it is slow.

A right token that is let in at once tells whoever guesses as much as any answer could. So tokens are compared at a
bounded rate for the whole process, and only those who have shown the right one before are spared the wait.
"""

import asyncio
from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest
from math import ceil
from secrets import token_urlsafe
from time import monotonic
from typing import Any

_FREE = 10
"""wrong tokens that are answered at once: people mistype, and programs try a few times"""
_SECONDS_EACH = 0.2
"""then tokens are compared one after another, five a second: a million common words take more than two days"""
_LONGEST_WAIT = 5.0
"""seconds for which a token may wait to be compared; with five a second no more than 25 connections ever wait"""
_REMEMBERED = 1000
"""hosts that have shown the token, and wrong tokens, that are remembered"""


class TooManyGuessesError(Exception):
    """So many wrong tokens were sent that this one is not looked at."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"too many wrong tokens were sent; try again in {retry_after} s.")
        self.retry_after = retry_after


class Access:
    """Decides who is let in."""

    def __init__(self, token: str, clock: Callable[[], float] = monotonic) -> None:
        self._token = token
        self._clock = clock
        self.session = token_urlsafe(32)
        """what browsers hold that have signed in: nobody can guess it, so that it is compared at once"""
        self._free_from = clock() - _FREE * _SECONDS_EACH
        """when the next token may be compared; it lies in the past as long as few were wrong"""
        self._known: dict[str, None] = {}
        self._wrong: dict[bytes, None] = {}

    def is_session(self, cookie: str | None) -> bool:
        """Return whether a browser has signed in since the server was started."""
        return cookie is not None and _are_equal(cookie, self.session)

    async def knows(self, host: str, claim: str) -> bool:
        """Return whether a claim is the token, after its turn; raises TooManyGuessesError where that would take long.

        A host that has shown the token is not kept waiting, until a wrong one comes from there.
        """
        digest = sha256(claim.encode()).digest()
        if digest in self._wrong:  # a program with an old token may repeat it for ever: that guesses nothing
            return False
        is_known = host in self._known
        self._known.pop(host, None)
        if not is_known or not _are_equal(claim, self._token):
            await asyncio.sleep(self._take_turn())
            if not _are_equal(claim, self._token):
                _remember(self._wrong, digest)
                return False
            self._free_from -= _SECONDS_EACH  # a right token is no guess
        _remember(self._known, host)
        return True

    def _take_turn(self) -> float:
        """Return the seconds until a token may be compared."""
        now = self._clock()
        turn = max(self._free_from, now - _FREE * _SECONDS_EACH)
        if turn - now > _LONGEST_WAIT:
            raise TooManyGuessesError(ceil(turn - now))
        self._free_from = turn + _SECONDS_EACH
        return max(turn - now, 0.0)


def _remember(memory: dict[Any, None], key: Any) -> None:
    memory[key] = None
    if len(memory) > _REMEMBERED:
        del memory[next(iter(memory))]


def _are_equal(claim: str, secret: str) -> bool:
    """Return whether two texts are equal; how long that takes does not betray how much of them is."""
    return compare_digest(claim.encode(), secret.encode())
