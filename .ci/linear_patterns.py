"""Find patterns that take more than linear time: python .ci/linear_patterns.py

Every pattern that a module of rechain keeps is searched in texts made to be its worst cases: each character that it
can match, and each two of them, repeated; or matched at their beginning, if the module does nothing else with it. A
text four times as long may take four times as long, and not sixteen: a pattern is reported if it takes more than MOST
times as long on one of them, three times in a row.
"""

import importlib
import inspect
import pkgutil
import re
import sys
import time
from collections.abc import Iterator
from itertools import product
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import rechain

SHORT, LONG, MOST = 2_000, 8_000, 8.0
SECONDS = 0.01
"""what a search of the long text takes at least, to be measured"""
CHARACTERS = 6
"""of a pattern that texts are made of"""
PLAIN = "a A0.\n"
"""what texts are made of besides: what a class matches that is not named character by character"""


def patterns() -> Iterator[tuple[str, "re.Pattern[str]", bool]]:
    """Yield every pattern of text that a module keeps, its name, and whether it is sought anywhere in a text."""
    for module in pkgutil.walk_packages(rechain.__path__, "rechain."):
        try:
            loaded = importlib.import_module(module.name)
        except ImportError:
            print(f"{module.name} is left out: an extra is not installed.", file=sys.stderr)
            continue
        source = inspect.getsource(loaded)
        for name, value in vars(loaded).items():
            is_matched = re.search(rf"\b{name}\.(?:full)?match\b", source) is not None
            is_sought = not is_matched or re.search(rf"\b{name}\.(?!(?:full)?match\b)", source) is not None
            yield from ((f"{module.name}.{name}", p, is_sought) for p in _in(value) if isinstance(p.pattern, str))


def _in(value: Any) -> Iterator["re.Pattern[Any]"]:
    """Yield the patterns in a value: itself, or in a tuple, list or dict."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _in(one)
    elif isinstance(value, dict):
        yield from _in(list(value.values()))


def characters(pattern: "re.Pattern[str]") -> list[str]:
    """Return characters that a pattern names, the first of each class or range, and some plain ones."""
    found: dict[str, None] = {}

    def read(node: Any) -> None:
        if isinstance(node, tuple) and len(node) == 2 and node[0] in (op.LITERAL, op.NOT_LITERAL):
            found[chr(node[1])] = None
        elif isinstance(node, tuple) and len(node) == 2 and node[0] is op.RANGE:
            found[chr(node[1][0])] = None
        elif isinstance(node, tuple | list | parser.SubPattern):
            for one in node:
                read(one)

    read(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))
    return [*dict.fromkeys([*PLAIN, *list(found)[:CHARACTERS]])]


def texts(pattern: "re.Pattern[str]") -> Iterator[str]:
    """Yield what is repeated to make the worst cases of a pattern."""
    known = characters(pattern)
    for length in (1, 2):
        yield from map("".join, product(known, repeat=length))


def seconds(pattern: "re.Pattern[str]", is_sought: bool, unit: str, length: int) -> float:
    """Return the CPU time of matching a text of repeated units that ends in something else."""
    text = (unit * (length // len(unit) + 1))[:length] + "\0"
    start = time.process_time()
    if is_sought:
        for _ in pattern.finditer(text):
            pass
    else:
        pattern.match(text)
    return time.process_time() - start


def is_slow(pattern: "re.Pattern[str]", is_sought: bool, unit: str) -> bool:
    """Return whether a pattern takes more than linear time for a text."""
    if seconds(pattern, is_sought, unit, LONG) < SECONDS:
        return False
    times = (tuple(seconds(pattern, is_sought, unit, length) for length in (SHORT, LONG)) for _ in range(3))
    return all(long > MOST * max(short, 1e-4) for short, long in times)


def main() -> None:
    """Report each pattern that is slow, with one text that shows it, and fail if there are any."""
    found = 0
    for name, pattern, is_sought in patterns():
        if unit := next((unit for unit in texts(pattern) if is_slow(pattern, is_sought, unit)), None):
            found += 1
            print(f"{name} takes more than linear time where {unit!r} is repeated: {pattern.pattern:.200}", flush=True)
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
