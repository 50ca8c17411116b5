"""A command of rechain, run in this process as the shell would run it, and what is true of every command."""

import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from campaign import HangError

GOOD, MISTAKE, FAILED = 0, 2, 3
"""done; a mistake, or a file that is damaged or cannot be written; done, but too many questions failed"""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""what would change a terminal; line ends and tabs do not"""


class Outcome(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: bytes
    err: str
    raised: str = ""
    """the traceback of what it did not catch"""

    @property
    def sentence(self) -> str:
        """The last line of standard error, which says what was wrong."""
        return (self.err.strip("\n").splitlines() or [""])[-1]


def run(folder: Path, arguments: Sequence[object], stdin: bytes | None = None, draw: Random | None = None) -> Outcome:
    """Run `rechain` with some arguments in a folder; standard input comes in pieces of random size."""
    main = _main()
    os.chdir(folder)
    (folder / "command.txt").open("a").write(" ".join(["rechain", *map(_quoted, arguments)]) + "\n")
    code, raised = 0, ""
    with _streams(folder) as (out, err), _standard_input(stdin, draw or Random(0)):
        sys.argv = ["rechain", *map(str, arguments)]
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except HangError:
            raise
        except BaseException:
            code, raised = 1, traceback.format_exc()
    return Outcome(code, out.read_bytes(), err.read_text("utf-8", "replace"), raised)


@cache
def _main() -> Callable[[], None]:
    """Return the command line, with what takes most of the time of a small case made quicker: it reads no file."""
    import typer.main

    from rechain.cli.main import main
    from rechain.evaluation import statistics

    typer.main.get_command = cache(typer.main.get_command)  # the options, made anew from all signatures each time
    statistics.RESAMPLES = 20
    return main


def _quoted(argument: object) -> str:
    return repr(str(argument)) if re.search(r"[^\w./=:,-]", str(argument)) else str(argument)


@contextmanager
def _redirected(descriptor: int, target: int) -> Iterator[None]:
    """Let a descriptor lead elsewhere, as a shell does: libraries keep the stream that they once took."""
    before = os.dup(descriptor)
    os.dup2(target, descriptor)
    try:
        yield
    finally:
        os.dup2(before, descriptor)
        os.close(before)


@contextmanager
def _streams(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Let standard output and error go to files."""
    out, err = folder / ".stdout", folder / ".stderr"
    sys.stdout.flush()
    sys.stderr.flush()
    with out.open("wb") as to, err.open("wb") as errors, _redirected(1, to.fileno()), _redirected(2, errors.fileno()):
        try:
            yield out, err
        finally:
            sys.stdout.flush()
            sys.stderr.flush()


@contextmanager
def _standard_input(content: bytes | None, draw: Random) -> Iterator[None]:
    if content is None:
        yield
        return
    reading, writing = os.pipe()
    pieces = list(_pieces(content, draw))

    def feed() -> None:
        with suppress(BrokenPipeError), os.fdopen(writing, "wb", buffering=0) as pipe:
            for piece in pieces:
                pipe.write(piece)

    feeder = threading.Thread(target=feed, daemon=True)
    before = sys.stdin
    with _redirected(0, reading), open(0, encoding="utf-8", closefd=False) as sys.stdin:
        os.close(reading)
        feeder.start()
        try:
            yield
        finally:
            sys.stdin = before
    feeder.join()  # who still writes is told that nobody reads


def _pieces(content: bytes, draw: Random) -> Iterator[bytes]:
    """Cut a content: its start, by which a format is recognised, into the smallest pieces."""
    at = 0
    while at < len(content):
        size = draw.choice((1, 1, 2, 3, 7)) if at < 20 else draw.choice((10, 1000, 100_000))
        yield content[at : at + size]
        at += size


# ---- what is true of every command


def check_end(outcome: Outcome, codes: Sequence[int] = (GOOD, MISTAKE, FAILED)) -> list[str]:
    """Return what is wrong with how a command ended: an unknown code, a traceback, more than one sentence."""
    if outcome.raised:
        return [f"a traceback:\n{short(outcome.raised)}"]
    if "Traceback (most recent call last)" in outcome.err:
        return [f"a traceback on standard error:\n{short(outcome.err)}"]
    failures = []
    if outcome.code not in codes:
        failures.append(f"exit code {outcome.code}: {short(outcome.err)}")
    if outcome.code == MISTAKE and not outcome.err.startswith("Usage: "):  # a mistake in the options themselves
        failures += _check_sentence(outcome)
    if found := _CONTROL.search(outcome.err):
        failures.append(f"a control character {found[0]!r} reaches the terminal: {outcome.err[-300:]!r}")
    if "Warning:" in outcome.err:
        failures.append(f"a warning of a library: {short(outcome.err)}")
    return failures


def _check_sentence(outcome: Outcome) -> list[str]:
    lines = [number for number, line in enumerate(outcome.err.splitlines()) if line.startswith("rechain: ")]
    if len(lines) != 1 or lines[0] != len(outcome.err.splitlines()) - 1:
        return [f"exit code 2 with something else than one sentence at the end: {outcome.err[-600:]!r}"]
    if len(outcome.sentence) > 3000:
        return [f"a sentence of {len(outcome.sentence)} characters: {outcome.sentence[:200]!r}…"]
    return [] if outcome.sentence.endswith((".", "?", "!")) else [f"no sentence: {outcome.sentence[-300:]!r}"]


def short(text: str, most: int = 2500) -> str:
    """Return the end of a text."""
    return text.strip()[-most:]


Visit = Callable[[Any], list[str]]


def serve(folder: Path, arguments: Sequence[object], visit: Visit) -> tuple[Outcome, list[str]]:
    """Run `rechain serve` up to where it would listen; there `visit` makes requests, and its failures are returned."""
    import uvicorn
    from starlette.testclient import TestClient

    failures: list[str] = []

    def answer(self: uvicorn.Server, sockets: Any = None) -> None:
        with TestClient(self.config.app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as client:  # type: ignore[arg-type]
            failures.extend(visit(client))
        for one in sockets or ():
            one.close()

    listen, uvicorn.Server.run = uvicorn.Server.run, answer  # type: ignore[method-assign]
    try:
        return run(folder, ["serve", *arguments, "--port", "0"]), failures
    finally:
        uvicorn.Server.run = listen  # type: ignore[method-assign]
