"""A text as a row of items: its words in the singular, and its values whatever their wording."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from rechain.system.caches import BoundedCache
from rechain.text.languages import singular
from rechain.text.values import Item
from rechain.text.values.amounts import AmountReader
from rechain.text.values.dates import MONTHS, read_date, read_day_of_month, read_digits_as_date, read_time
from rechain.text.values.numerals import BLOB, CHINESE, DASHES, ENGLISH, GERMAN, UNSPACED, ascii_digits, chinese_number
from rechain.text.values.units import CURRENCIES, UNITS, counted_unit
from rechain.text.words import Text, fold

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


_KEPT: BoundedCache[tuple[str, tuple[Item, ...]]] = BoundedCache(100_000, lambda kept: len(kept[0]))
"""what was read last, 100,000 characters and some five megabytes: matching and verdicts read the same passages, and in
a log most questions have passages of questions before them"""


def read_items(text: str) -> tuple[Item, ...]:
    """Return the words and values of a text, from left to right."""
    return _KEPT.get(text, lambda: (text, tuple(_read(text))))[1]


def _read(text: str) -> list[Item]:
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


_ORDINALS = """
    first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
    sixteenth seventeenth eighteenth nineteenth
    """.split()  # noqa: SIM905 - easier to read than a list
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_TENTHS = [f"{tens[:-1]}ieth" for tens in _TENS]
_ORDINALS_DE = "erst zweit dritt viert fünft sechst siebt acht neunt zehnt elft zwölft".split()  # noqa: SIM905
_INFLECTIONS_DE = ("e", "en", "er", "es", "em")
_ORDINAL = re.compile(
    rf"(?:({'|'.join(_TENS)})[\s-])?({'|'.join(_ORDINALS)})(?!\w)|({'|'.join(_TENTHS)})(?!\w)"
    rf"|(\d{{1,6}})(?:st|nd|rd|th)(?!\w)|({'|'.join(_ORDINALS_DE)})e[nrsm]?(?!\w)"
    rf"|第\s?(\d{{1,6}}|[{CHINESE}]{{1,6}})",
    re.IGNORECASE,
)
_PER = re.compile(r"(?:\bper|/)\s?$", re.IGNORECASE)
_DIGITS_BEFORE = re.compile(r"\d[.,:/'’\u00a0\u202f]$")
_WEEKDAY_ZH = re.compile("(?:星期|周|週|礼拜)$")

_CHINESE_STARTS = frozenset(f"{CHINESE}第半上下早晚凌中½¼¾")
_NUMBER_WORDS = re.compile(rf"{ENGLISH}|(?!und|ein\b)(?:{fold(GERMAN)}){{1,16}}|anderthalb|\w{{1,20}}einhalb")
_ARTICLES = frozenset(["a", "an", "ein", "eine", "einen", "einem", "einer", "eines"])
_PARTS = ["half", "quarter", "halbe", "halben", "halber", "halbes", "viertelstunde"]
_STARTS = _ARTICLES.union(
    map(fold, (*_ORDINALS, *_TENTHS, *(stem + ending for stem in _ORDINALS_DE for ending in _INFLECTIONS_DE))),
    map(fold, (*MONTHS, *CURRENCIES, "RMB", "Fr")),
    [*_PARTS, "noon", "midnight", "mitternacht"],
)
_AFTER_ARTICLE = frozenset(["hundred", "thousand", "million", "billion", "dozen", *_PARTS]).union(map(fold, UNITS))


def find_values(read: Text) -> list[Item]:
    """Return the values of a text, from left to right; they do not overlap."""
    words, amounts = read.words, AmountReader(read.original)
    values: list[Item] = []
    end = 0
    for number in [number for number, word in enumerate(words) if _may_start(word)]:
        if words[number] in _ARTICLES and (number + 1 == len(words) or words[number + 1] not in _AFTER_ARTICLE):
            continue
        start = read.places[number][0]
        if start >= end and (value := _read_value(read.original, start, end, amounts)):
            values.append(value)
            end = value.end
    return values


@lru_cache(maxsize=1 << 16)
def _may_start(word: str) -> bool:
    """Return whether a value may start with a folded word."""
    return (
        word[0].isdecimal()
        or word[0] in _CHINESE_STARTS
        or word in _STARTS
        or _NUMBER_WORDS.fullmatch(word) is not None
    )


def _read_value(text: str, at: int, free: int, amounts: AmountReader) -> Item | None:
    """Return the value whose first word is at `at`; nothing before `free` belongs to it."""
    if _is_part_of_a_name(text, at):
        return None
    blob = BLOB.match(text, at)
    item = read_date(text, at) or (blob and read_digits_as_date(blob.group(), at)) or _read_ordinal(text, at)
    if item and not (item.key.startswith("=-") and amounts.unit(item.end)[0]):  # "May 20 %", "March 5 miles"
        return item
    return read_time(text, at) or amounts.read(at, free) or (blob and _read_code(text, blob))


def _is_part_of_a_name(text: str, at: int) -> bool:
    """Return whether a number is part of a name or of other digits: "COVID-19", the 0 of "v2.0", Monday (星期一)."""
    before = text[max(at - 2, 0) : at]
    if not text[at].isdecimal():
        return text[at] in CHINESE and _WEEKDAY_ZH.search(before) is not None
    if len(before) == 2 and before[1] in DASHES:
        return before[0].isalnum() and before[0] < UNSPACED
    return _DIGITS_BEFORE.search(before) is not None


def _read_code(text: str, blob: re.Match[str]) -> Item | None:
    """Return digits that are no number ("3.11.2", a telephone number): a value that is the same only as itself."""
    after = text[blob.end() : blob.end() + 1]
    return None if after.isalpha() and after < UNSPACED else Item(f"={blob.group()}", *blob.span())


def _read_ordinal(text: str, at: int) -> Item | None:
    """Return an ordinal, or the date that it begins ("the first of May")."""
    match = _ORDINAL.match(text, at)
    if not match:
        return None
    tens, one, tenth, digits, german, chinese = match.groups()
    if one and one.casefold() == "second" and _PER.search(text[max(at - 5, 0) : at]):
        return None
    if digits or (chinese and chinese.isdecimal()):
        number = int(digits or chinese)
    elif chinese:
        number = chinese_number(chinese) or 0
    elif german:
        number = _ORDINALS_DE.index(german.casefold()) + 1
    elif tenth:
        number = 10 * _TENTHS.index(tenth.casefold()) + 20
    else:
        number = _ORDINALS.index(one.casefold()) + 1 + (10 * _TENS.index(tens.casefold()) + 20 if tens else 0)
    return read_day_of_month(text, number, at, match.end()) or Item(f"={number}.", at, match.end())
