"""How surprising it is that two passages share a link: its kind and the rarity of its words.

A weight is a bonus for the kind plus the inverse document frequency (a natural logarithm) of the link's words. The
frequencies come from a fixed table in the package, built by `benchmarks/build_idf.py`, never from the file that is
read: a question's chains do not depend on its neighbours.
"""

import gzip
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from math import log

import orjson

from rechain.schema import LinkKind

BONUS: dict[LinkKind, float] = {
    "mention": 10.0,
    "identifier": 10.0,
    "title": 6.0,
    "title part": 4.0,
    "name": 0.0,
    "word": -1.0,
}
DEFAULT_MIN_WEIGHT = 7.0
MAX_PHRASE_IDF = 12.0


@cache
def _table() -> tuple[dict[str, float], float]:
    """Return the idf of every word in the table, and that of all others, which are rarer."""
    packed = files("rechain").joinpath("data/idf.json.gz").read_bytes()
    table = orjson.loads(gzip.decompress(packed))
    passages = table["passages"]
    idf = {word: log(passages / count) for word, count in table["counts"].items()}
    return idf, log(passages / table["min_count"])


def idf(word: str) -> float:
    """Return the inverse document frequency of a folded word."""
    known, rare = _table()
    return known.get(word, rare)


def phrase_idf(words: Iterable[str]) -> float:
    """Return the rarity of several words together, as if they were independent, up to a ceiling."""
    known, rare = _table()
    return min(sum(known.get(word, rare) for word in words), MAX_PHRASE_IDF)


@cache
def words_below(bound: float) -> frozenset[str]:
    """Return the words of the table whose idf is below a bound."""
    known, _ = _table()
    return frozenset(word for word, value in known.items() if value < bound)
