"""A text as a row of items: its words in the singular, and its values whatever their wording."""

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from rechain.text.words import Text
from rechain.values.finding import find_values
from rechain.values.items import Item, same
from rechain.values.numerals import UNSPACED, ascii_digits
from rechain.values.units import counted_unit

__all__ = ["Item", "NormalText", "same", "singular"]

_IRREGULAR = {
    "children": "child", "men": "man", "women": "woman", "people": "person", "feet": "foot", "teeth": "tooth",
    "mice": "mouse", "geese": "goose", "criteria": "criterion", "phenomena": "phenomenon", "analyses": "analysis",
    "indices": "index", "matrices": "matrix", "vertices": "vertex", "appendices": "appendix", "diagnoses": "diagnosis",
    "hypotheses": "hypothesis", "crises": "crisis", "bases": "base", "knives": "knife", "wives": "wife",
    "shelves": "shelf", "halves": "half", "wolves": "wolf", "calves": "calf",
    "loaves": "loaf", "thieves": "thief", "buses": "bus", "gases": "gas", "viruses": "virus", "bonuses": "bonus",
    "statuses": "status", "campuses": "campus", "menus": "menu", "gurus": "guru", "taxis": "taxi", "skis": "ski",
    "potatoes": "potato", "tomatoes": "tomato", "heroes": "hero", "echoes": "echo", "vetoes": "veto",
    "cargoes": "cargo", "volcanoes": "volcano", "quizzes": "quiz", "areas": "area", "ideas": "idea", "visas": "visa",
    "cameras": "camera", "formulas": "formula", "quotas": "quota", "agendas": "agenda", "schemas": "schema",
    "replicas": "replica", "extras": "extra", "eras": "era", "dramas": "drama", "pizzas": "pizza",
}  # fmt: skip
_NO_PLURAL = frozenset(
    """
    series species news means always perhaps does goes this its his hers ours yours theirs yes thus plus less unless
    versus across besides sometimes afterwards towards lens physics mathematics politics economics athletics diabetes
    headquarters whereas
    """.split()  # noqa: SIM905 - easier to read than a list
)
# Endings whose plural is told from the singular without a dictionary.
_ENDINGS = (
    ("sses", "ss"), ("shes", "sh"), ("tches", "tch"), ("nches", "nch"), ("rches", "rch"), ("eaches", "each"),
    ("oaches", "oach"), ("wiches", "wich"), ("xes", "x"), ("ss", "ss"), ("us", "us"), ("is", "is"),
    ("as", "as"), ("movies", "movie"), ("cookies", "cookie"), ("calories", "calorie"), ("ies", "y"),
    ("s", ""),
)  # fmt: skip
_SHORTEST = 4
"""letters of a word that may be a plural: "gas", "bus" and "its" are none"""
_ENDINGS_DE = (
    ("ungen", "ung"), ("heiten", "heit"), ("keiten", "keit"), ("schaften", "schaft"), ("ionen", "ion"),
    ("itaten", "itat"), ("innen", "in"), ("ien", "ie"),
)  # fmt: skip
_SHORTEST_DE = 7
"""letters: shorter words with these endings are mostly no plurals ("Ferien", "innen")"""
_FUNCTION_WORDS = frozenset(
    """
    a an the and or but of in on at to for from by with per is are was were be as than that which who if when while
    und oder der die das des dem den im am auf zu zum zur von vom mit fur bei bis pro je ist sind war als wenn
    """.split()  # noqa: SIM905 - easier to read than a list
)
_LOOK_AHEAD = 4
"""words after a number among which its unit is sought: "27 fully paid vacation days", 27个工作日 """
_JOINTS = ("", " ", "-", "\u00a0", "°", " °")
_COUNTED_ZH = {"天": "day", "日": "day", "周": "week", "月": "month", "年": "year"}


def singular(word: str) -> str:
    """Return a folded word in the singular where a safe rule gives it, else the word."""
    if len(word) < _SHORTEST or not (word.isascii() and word.isalpha()) or word in _NO_PLURAL:
        return _IRREGULAR.get(word, word)
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("n") and len(word) >= _SHORTEST_DE:
        return next((word.removesuffix(plural) + one for plural, one in _ENDINGS_DE if word.endswith(plural)), word)
    if not word.endswith("s"):
        return word
    return next(word.removesuffix(plural) + one for plural, one in _ENDINGS if word.endswith(plural))


class NormalText:
    """A text as a row of items."""

    def __init__(self, text: str) -> None:
        self.items: list[Item] = _items(text)
        """its words and values, from left to right"""


def _items(text: str) -> list[Item]:
    read = Text(text)
    if not read.words:
        return []
    starts, ends = zip(*read.places, strict=True)
    words = list(map(Item, map(_key, read.words), starts, ends))
    items: list[Item] = []
    after, numbers = 0, []
    for value in find_values(read):
        items += words[after : bisect_left(ends, value.start + 1, after)]
        after = bisect_left(starts, value.end, after)
        if value.numbers and not value.units:
            numbers.append(len(items))
        items.append(value)
    items += words[after:]
    for number in numbers:
        items[number] = items[number]._replace(counted=_counted(text, items[number : number + 1 + _LOOK_AHEAD]))
    return items


@lru_cache(maxsize=1 << 16)
def _key(word: str) -> str:
    return f"={ascii_digits(word)}" if word.isdecimal() else singular(word)


def _counted(text: str, items: Sequence[Item]) -> str:
    """Return what a number counts, the first of `items`: a unit or else the next word; empty if it stands alone."""
    words: list[str] = []
    for item, following in pairwise(items):
        if following.is_value or following.key in _FUNCTION_WORDS or text[item.end : following.start] not in _JOINTS:
            break
        words.append(following.key)
    if words and words[0] >= UNSPACED:
        return next((unit for character, unit in _COUNTED_ZH.items() if character in words), words[0])
    return next(filter(None, map(counted_unit, words)), words[0] if words else "")
