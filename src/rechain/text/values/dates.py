"""Dates and times of day, as English, German and Chinese write them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from rechain.text.values import Item
from rechain.text.values.numerals import CHINESE, DASHES, DIGITS_ZH, chinese_number

_MONTH_NAMES = (
    "january januar jänner jan", "february februar feb", "march märz maerz mar mär mrz", "april apr", "may mai",
    "june juni jun", "july juli jul", "august aug", "september sept sep", "october oktober oct okt",
    "november nov", "december dezember dec dez",
)  # fmt: skip
MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}
_MONTH = f"(?:{'|'.join(sorted(MONTHS, key=len, reverse=True))})"
_TO = rf"(?:\s?[{DASHES}]\s?|\s+(?:to|until|till|through|bis)\s+|\s?[至到]\s?)"
"""what stands between the ends of a range"""
_RANGE = re.compile(_TO, re.IGNORECASE)
_BETWEEN = re.compile(r"(?:between|zwischen)\s$", re.IGNORECASE)
_BETWEEN_AND = re.compile(r"\s(?:and|und)\s", re.IGNORECASE)
_DAY = r"(3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_YEAR = r"((?:1\d|20)\d\d)(?![\w%]|[.,]\d)"
_DAY_MONTH = re.compile(
    rf"{_DAY}\.?(?:{_TO}{_DAY}\.?)?(?:\s+of)?[\s-]?(?<!\d)\s?({_MONTH})\.?(?!\w)(?:,?[\s-]{_YEAR})?", re.IGNORECASE
)
_OF_MONTH = re.compile(rf"(?:\s+of)?\s({_MONTH})\.?(?!\w)(?:,?\s{_YEAR})?", re.IGNORECASE)
_MONTH_DAY = re.compile(rf"({_MONTH})\.?\s{_DAY}(?:{_TO}{_DAY})?(?![\w%]|[.,:]\d)(?:,?\s{_YEAR})?", re.IGNORECASE)
_MONTH_YEAR = re.compile(rf"({_MONTH})\.?,?\s(?:of\s)?{_YEAR}", re.IGNORECASE)
_ISO = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})")
_NUMERIC = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d\d)")
_NUMERIC_MONTH = re.compile(r"(0[1-9]|1[0-2])/((?:19|20)\d\d)")
_FEW = rf"(\d{{1,2}}|[{CHINESE}]{{1,3}})"
_CHINESE = re.compile(rf"(?:(\d{{4}}|[{DIGITS_ZH}]{{4}})\s?年\s?)?{_FEW}\s?月(?:份|\s?{_FEW}\s?[日号號])?")
_CHINESE_YEAR = re.compile(rf"(\d{{4}}|[{DIGITS_ZH}]{{4}})\s?年(?![间半级])")
_PIVOT = 69
"""years of two digits below it are of this century, as in POSIX"""


def find_to(text: str, start: int, end: int) -> int | None:
    """Return where the other end of a range may begin, one end of which stands from `start` to `end`."""
    match = _RANGE.match(text, end)
    if match is None and _BETWEEN.search(text, max(start - 10, 0), start):
        match = _BETWEEN_AND.match(text, end)
    return match.end() if match else None


def read_date(text: str, at: int) -> Item | None:
    """Return the date that a text names from `at` on, with a month's name or in Chinese; also a range of days."""
    if text[at] in CHINESE:
        return _read_chinese(text, at)
    if text[at].isdecimal():
        match = _DAY_MONTH.match(text, at)
        if match is None:
            return _read_chinese(text, at)
        first, last, month, year = match.groups()
    elif match := _MONTH_DAY.match(text, at):
        month, first, last, year = match.groups()
    elif match := _MONTH_YEAR.match(text, at):
        (month, year), first, last = match.groups(), None, None
    else:
        return None
    if month.islower() and not year:  # "you may 2 times", "march 5 miles"
        return None
    dates = [_checked(year, MONTHS[month.casefold()], day) for day in (first, last) if day or not first]
    return _item([d for d in dates if d], at, match.end(), is_range=bool(last)) if all(dates) else None


def read_day_of_month(text: str, day: int, start: int, at: int) -> Item | None:
    """Return the date that a day begins which is written in words ("the first of May")."""
    match = _OF_MONTH.match(text, at)
    if not match or match.group(1).islower():
        return None
    key = _checked(match.group(2), MONTHS[match.group(1).casefold()], day)
    return _item([key], start, match.end()) if key else None


def _read_chinese(text: str, at: int) -> Item | None:
    if match := _CHINESE.match(text, at):
        year, month, day = (_number(part) for part in match.groups())
        if (year, day) != (None, None) and (found := _checked(year, month, day)):
            return _item([found], at, match.end())
    elif match := _CHINESE_YEAR.match(text, at):
        return Item(f"={_number(match.group(1))}", at, match.end())
    return None


def read_digits_as_date(blob: str, at: int) -> Item | None:
    """Return the date that digits give: 2023-05-14, 14.05.2023, 05/14/2023 (open where both orders are dates)."""
    end = at + len(blob)
    if match := _ISO.fullmatch(blob):
        year, _, month, day = match.groups()
        return _item_of_readings([_checked(year, month, day)], at, end)
    if match := _NUMERIC_MONTH.fullmatch(blob):
        return _item_of_readings([_checked(match.group(2), match.group(1), None)], at, end)
    if match := _NUMERIC.fullmatch(blob):
        one, separator, two, year = match.groups()
        if len(year) == 2:
            year = f"{'20' if int(year) < _PIVOT else '19'}{year}"
        day_first, month_first = _checked(year, two, one), _checked(year, one, two)
        return _item_of_readings([day_first] if separator == "." else [day_first, month_first], at, end)
    return None


def _number(part: str | None) -> int | None:
    return None if part is None else int(part) if part.isdecimal() else chinese_number(part)


def _checked(year: object, month: object, day: object) -> str | None:
    """Return a date's key, "=2023-05-14" or a part of it; None if the calendar has no such day."""
    numbers = [None if part is None else int(str(part)) for part in (year, month, day)]
    try:
        date(numbers[0] or 2000, numbers[1] or 1, numbers[2] or 1)  # 2000: a leap year
    except ValueError:
        return None
    start = f"={year or ''}-{numbers[1]:02d}"
    return start if numbers[2] is None else f"{start}-{numbers[2]:02d}"


def _implied(key: str) -> Iterable[str]:
    """Yield the keys of what a date says as well: its year, its year and month, its day without the year."""
    year, month, *day = key[1:].split("-")
    if year:
        yield f"={year}"
        if day:
            yield from (f"={year}-{month}", f"=-{month}-{day[0]}")


def _item(keys: list[str], start: int, end: int, is_range: bool = False) -> Item:
    if is_range:
        ends = [implied for key in keys for implied in (key, *_implied(key))]
        return Item(f"{keys[0]}..{keys[-1][1:]}", start, end, implied=tuple(dict.fromkeys(ends)))
    return Item(keys[0], start, end, implied=tuple(_implied(keys[0])))


def _item_of_readings(readings: list[str | None], start: int, end: int) -> Item | None:
    keys = list(dict.fromkeys(filter(None, readings)))
    if not keys:
        return None
    implied = tuple(dict.fromkeys(implied for key in keys for implied in _implied(key)))
    return Item(keys[0], start, end, others=tuple(keys[1:]), implied=implied)


_CLOCK = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)(?::[0-5]\d)?")
_HOUR = re.compile(r"([01]?\d|2[0-4])(?:[:.]([0-5]\d)(?::[0-5]\d)?)?(?![\d:]|[.,]\d)")
_HALF_DAY = re.compile(r"\s?([ap])(?:\.\s?m\.|m(?!\w))", re.IGNORECASE)
_UHR = re.compile(r"\s?Uhr(?:\s([0-5]\d)(?![\w.,]))?(?!\w)|\s?o['’]clock(?!\w)", re.IGNORECASE)
_HOURS_DE = re.compile(r"\s?h(?!\w)")
_CHINESE_TIME = re.compile(
    rf"(上午|早上|凌晨|下午|晚上|中午)?\s?{_FEW}\s?[点點]\s?(?:(半)|整|钟|鐘|{_FEW}\s?分(?!钟)|(?![{DIGITS_ZH}]))"
)
_CHINESE_HOUR = re.compile(r"\s?[点點]")
_NAMED = re.compile(r"(noon|midnight|mitternacht)(?!\w)", re.IGNORECASE)
_HOUR_WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_HOUR_WORD = re.compile(rf"({'|'.join(_HOUR_WORDS)})(?=\s?[ap]\.?m|\s?o['’]clock)", re.IGNORECASE)


@dataclass
class _Time:
    """A time of day as written."""

    hour: int
    minute: int
    end: int
    half: str = ""
    """"a" or "p", where it is said to be before or after noon"""
    is_clock: bool = False
    """whether it is surely a time; an hour alone is one only as an end of a range"""
    is_duration: bool = False
    """whether it may also be a duration"""

    def key(self) -> str:
        hour = self.hour
        if self.half:
            hour = hour % 12 + (12 if self.half == "p" else 0) if hour <= 12 else hour
        return f"=T{hour % 24:02d}:{self.minute:02d}"


def read_time(text: str, at: int) -> Item | None:
    """Return the time of day from `at` on, or from when to when."""
    first = _read_one(text, at)
    if first is None:
        return None
    to = find_to(text, at, first.end)
    last = None if to is None else _read_one(text, to)
    if last is None or not (last.half or last.is_clock):
        return _single(first, at) if first.half or first.is_clock else None
    if not first.half and last.half and first.hour <= 12:  # "2-4 pm", but "9-5 pm" begins before noon
        before = first.hour % 12 < last.hour % 12
        first.half = last.half if before else "a"
    keys = (first.key(), last.key())
    numbers = [] if first.minute or last.minute else [f"{first.hour}..{last.hour}", f"{first.hour}..{last.hour % 12}"]
    return Item(
        f"{keys[0]}..{keys[1][1:]}", at, last.end, implied=keys, numbers=tuple(dict.fromkeys(numbers)), units=("time",)
    )


def _single(time: _Time, at: int) -> Item:
    numbers = () if time.minute else (str(time.hour),)
    # "2:40 h" may also be two hours and forty minutes.
    others = (f"={time.hour * 3600 + time.minute * 60} s",) if time.is_duration else ()
    return Item(time.key(), at, time.end, others, numbers=numbers, units=("time",))


def _read_one(text: str, at: int) -> _Time | None:
    """Return a time of day; also an hour alone, which is one only as an end of a range."""
    is_digit = text[at : at + 1].isdecimal()
    if not is_digit and (match := _NAMED.match(text, at)):
        return _Time(12 if match.group(1).casefold() == "noon" else 0, 0, match.end(), is_clock=True)
    if (match := (_HOUR if is_digit else _HOUR_WORD).match(text, at)) and not _CHINESE_HOUR.match(text, match.end()):
        return _read_clock(text, match)
    match = _CHINESE_TIME.match(text, at)
    if not match:
        return None
    part, hour, half, minute = match.groups()
    hours, minutes = _number(hour), 30 if half else _number(minute) or 0
    if hours is None or hours > 24 or minutes > 59 or match.group() in ("一点", "一點"):  # "a little"
        return None
    return _Time(
        hours, minutes, match.end(), {"下午": "p", "晚上": "p", "中午": "p"}.get(part, "a" if part else ""), True
    )


def _read_clock(text: str, match: re.Match[str]) -> _Time | None:
    written, end = match.group(1), match.end()
    hour = int(written) if written.isdecimal() else _HOUR_WORDS.index(written.casefold()) + 1
    minute = match.group(2) if match.re is _HOUR else None
    if (half := _HALF_DAY.match(text, end)) and hour <= 12:
        return _Time(hour, int(minute or 0), half.end(), half.group(1).casefold())
    if uhr := _UHR.match(text, end):
        return _Time(hour, int(minute or uhr.group(1) or 0), uhr.end(), is_clock=True)
    is_clock = bool(_CLOCK.fullmatch(match.group()))
    hours = _HOURS_DE.match(text, end) if is_clock else None
    return _Time(hour, int(minute or 0), hours.end() if hours else end, is_clock=is_clock, is_duration=bool(hours))
