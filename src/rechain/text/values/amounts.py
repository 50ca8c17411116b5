"""Amounts: numbers with their units or currencies, and ranges of them."""

import re
from decimal import Decimal
from typing import NamedTuple

from rechain.text.values import Item
from rechain.text.values.dates import find_to
from rechain.text.values.numerals import (
    BLOB,
    CHINESE,
    DASHES,
    UNSPACED,
    Numeral,
    plain,
    read_digits,
    read_fraction,
    read_scale,
    read_spaced,
    read_vulgar,
    read_words,
)
from rechain.text.values.units import CURRENCIES, Unit, find_unit

_SIGNS = "€$£¥￥₹₩"
_DOLLARS = r"(?:US|CA|AU|HK|[AC])?\$"
_CODES = "|".join((*CURRENCIES, "RMB", r"Fr\."))
_SIGN_BEHIND = re.compile(rf"(?<!\w)(?:{_DOLLARS}|[{_SIGNS}])[\s\u00a0]?$")
_CURRENCY_BEFORE = re.compile(rf"({_DOLLARS}|[{_SIGNS}]|{_CODES})[\s\u00a0]?(?=\d)")
_LETTER = r"[^\W\d_\u2e80-\U0010ffff]"  # not of a script without blanks, whose words may follow: "15kg以上"
_END = r"(?![^\W\u2e80-\U0010ffff])"
_UNIT_NAME = re.compile(
    rf"{_LETTER}+(?:/{_LETTER}+|[²³23])?{_END}\.?|°\s?[CF]{_END}|°(?!\w)|[℃℉%％‰]|(?:US\$|[{_SIGNS}])(?!\d)"
)
_TWO_WORDS = re.compile(rf"{_LETTER}+[ \u00a0-]{_LETTER}+{_END}")
_UNSPACED_NAME = re.compile(r"([个個]?)([\u3400-\u9fff]{1,4})")
_BEFORE_UNIT = re.compile(r"[ \u00a0\u202f\t]{1,2}|-|")
_DAYS_ZH = re.compile("日(?=[内以之后後])")  # "30日内"; else 30日 is the 30th
_PERCENT_ZH = "百分之"
_OLD = re.compile(r"[\s-]old(?!\w)|\sof\sage(?!\w)|\salt(?!\w)", re.IGNORECASE)
_YEARS_OLD_DE = re.compile(r"[-\s]?jährige?[nrsm]?(?!\w)", re.IGNORECASE)
_DECADE = re.compile(r"(?:\d\d\d0|(?:the\s|['’])\d0)s$", re.IGNORECASE)
_AND = re.compile(r"\s(?:and|und)\s|\s|")
_MINUTES_ZH = re.compile(rf"(\d{{1,2}}|[{CHINESE}]{{1,3}})分(?!钟|鐘)")
_PARTS = {"hour": "s", "day": "s", "week": "s", "minute": "s", "year": "month", "foot": "m", "lb": "kg"}
"""units after which smaller ones continue an amount ("1 hour 30 minutes"), and the base unit of both"""
_TIMES = "minute|hour|day|week|month|year|decade|fortnight"
_HALF = re.compile(r"half[\s-](?:an?[\s-])?|(?:eine?[rnm]?\s)?halbe[snr]?\s|半[个個]?", re.IGNORECASE)
_QUARTER_HOUR = re.compile(
    r"(?:a\s)?quarter[\s-](?:of\s)?an[\s-]hour(?!\w)|(?:eine[rnm]?\s)?Viertelstunde(?!\w)|一刻[钟鐘]", re.IGNORECASE
)
_ONE_DE = re.compile(r"eine?[nmrs]?\s", re.IGNORECASE)
_A_TIME = re.compile(rf"an?\s({_TIMES})(?!\w)", re.IGNORECASE)
# "a week" is one week after these words or at the beginning; elsewhere it may mean "per week" ("40 hours a week").
_LEADS_TO_ONE = re.compile(
    r"(?:^|[.:;(]\s?|\b(?:within|in|for|after|before|takes?|than|least|most|lasts?|about|approximately|around|nearly"
    r"|under|over|to|only|just|every|is)\s)$",
    re.IGNORECASE,
)
# "one" is no number in "no one", "the one", "one of", "one another".
_NO_NUMBER_AFTER = re.compile(r"\b(?:no|the|this|that|each|any|every|which|another)[\s-]$", re.IGNORECASE)
_NO_NUMBER_BEFORE = re.compile(r"\s(?:of|another|who|can|may|must|should|has|is)\b|['’]s\b|-", re.IGNORECASE)
_TO_ZH = re.compile(rf"[到至][{CHINESE}\d]")
_MEASURE_WORDS = frozenset("个個名位次人台件条张份家种项倍")
_GERMAN_WORDS = re.compile(
    r"\b(?:und|der|das|ist|sind|nicht|für|mit|eine?[nrms]?|bis|Euro|Uhr|pro|beträgt|Prozent|Tage?n?|Millionen|von|zu"
    r"|Mio|Mrd|kostet|im)\b"
)
_ENGLISH_WORDS = re.compile(r"\b(?:the|of|and|is|are|to|for|with|a|an|dollars|euros|days|hours|million)\b")
_AROUND = 300
"""characters on either side of a number that are asked for their language"""
_DASH = re.compile(f"[{DASHES}]")
_OPEN_GROUP = re.compile(r"[.,]\d{3}$")


class _Amount(NamedTuple):
    """A number and its unit; `units` are all that the unit's name may mean."""

    number: Numeral
    units: tuple[Unit, ...]
    end: int


class AmountReader:
    """Reads the amounts of one text. A method that reads returns None where there is nothing of its kind."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read(self, at: int, free: int) -> Item | None:
        """Return the amount or range whose first word is at `at`; nothing before `free` belongs to it."""
        sign = _SIGN_BEHIND.search(self._text, max(at - 5, free), at) if self._text[at].isdecimal() else None
        start = sign.start() if sign else at
        first = self._amount(start)
        if first is None:
            return None
        last = self._other_end(first, start)
        if last is not None:
            return _range_item(first, last, start)
        minus = start > free and self._is_negative(start)
        return _amount_item(self._compound(first), start - minus, "-" if minus else "")

    def unit(self, at: int) -> tuple[tuple[Unit, ...], int]:
        """Return the units that a name after a number may mean, and where it ends."""
        text = self._text
        start = at + len(_BEFORE_UNIT.match(text, at).group())  # type: ignore[union-attr]  # it matches nothing, too
        if text[start : start + 1] >= UNSPACED:
            units, end = self._unspaced_unit(start)
            return (units, end) if units else ((), at)
        if (match := _TWO_WORDS.match(text, start)) and (units := find_unit(" ".join(re.split(r"\W", match.group())))):
            return units, match.end()
        match = _UNIT_NAME.match(text, start)
        if match is None or _DECADE.search(text, max(match.start() - 6, 0), match.end()):
            return (), at
        for name in (match.group(), match.group().removesuffix(".")):
            if units := find_unit(name):
                return self._with_age(units, match.start() + len(name))
        years = _YEARS_OLD_DE.match(text, at)
        return (find_unit("岁"), years.end()) if years else ((), at)

    def _unspaced_unit(self, at: int) -> tuple[tuple[Unit, ...], int]:
        if self._text[at] in "％":
            return find_unit("%"), at + 1
        if days := _DAYS_ZH.match(self._text, at):
            return find_unit("day"), days.end()
        match = _UNSPACED_NAME.match(self._text, at)
        counter, name = match.groups() if match else ("", "")
        for length in range(len(name), 0, -1):
            units = find_unit(name[:length])
            if units and (counter or name[:length] != "月"):  # 3月 is March
                return units, at + len(counter) + length
        return (), at

    def _with_age(self, units: tuple[Unit, ...], end: int) -> tuple[tuple[Unit, ...], int]:
        """Return a unit, or where it is that of an age ("years old"), which is no period, the unit of ages."""
        old = _OLD.match(self._text, end) if units[0].name == "year" else None
        return (find_unit("岁"), old.end()) if old else (units, end)

    def _is_negative(self, at: int) -> bool:
        before = self._text[max(at - 2, 0) : at]
        return before[-1:] in ("-", "−") and (len(before) == 1 or before[0].isspace() or before[0] in "([")

    def _amount(self, at: int) -> _Amount | None:
        """Return a number with the unit or currency around it."""
        if not self._text[at : at + 1].isdecimal() and (
            amount := self._part(at) or self._one(at) or self._prefixed(at)
        ):
            return amount
        number = self._number(at)
        if number is None:
            return None
        number = self._and_a_half(number, "个半")
        units, end = self.unit(number.end)
        if units:
            number = self._and_a_half(number._replace(end=end), "半")
            return _Amount(number, units, number.end)
        return _Amount(number, (), end) if self._is_number(at, number.end) else None

    def _prefixed(self, at: int) -> _Amount | None:
        """Return a number after its currency, or after the Chinese for "per cent"."""
        if currency := _CURRENCY_BEFORE.match(self._text, at):
            number = self._number(currency.end(), of_money=True)
            return number and _Amount(number, find_unit(currency.group(1)), number.end)
        number = self._number(at + len(_PERCENT_ZH)) if self._text.startswith(_PERCENT_ZH, at) else None
        return number and _Amount(number, find_unit("%"), number.end)

    def _and_a_half(self, number: Numeral, half: str) -> Numeral:
        """Return a number with the half that Chinese puts after it (一个半小时) or after its unit (一年半)."""
        if not (self._text.startswith(half, number.end) and number.readings[0].isdecimal()):
            return number
        return Numeral(number.end + len(half), (f"{number.readings[0]}.5",))

    def _part(self, at: int) -> _Amount | None:
        """Return half of a unit or a quarter of an hour."""
        if match := _QUARTER_HOUR.match(self._text, at):
            return _Amount(Numeral(match.end(), ("0.25",)), find_unit("hour"), match.end())
        match = _HALF.match(self._text, at)
        units, end = self.unit(match.end()) if match else ((), at)
        return _Amount(Numeral(end, ("0.5",)), units, end) if units else None

    def _one(self, at: int) -> _Amount | None:
        """Return one of a unit, with an article: "within a week", "eine Stunde"."""
        if match := _A_TIME.match(self._text, at):
            if not _LEADS_TO_ONE.search(self._text[max(at - 20, 0) : at]):
                return None
            return _Amount(Numeral(match.end(), ("1",)), find_unit(match.group(1)), match.end())
        match = _ONE_DE.match(self._text, at)
        units, end = self.unit(match.end()) if match else ((), at)
        return _Amount(Numeral(end, ("1",)), units, end) if units else None

    def _number(self, at: int, of_money: bool = False) -> Numeral | None:
        """Return a number in digits or in words, with the power of ten after it."""
        text = self._text
        if at >= len(text):
            return None
        number = read_vulgar(text, at) or self._digits(at) or read_words(text, at, lambda: self._is_german(at))
        return number and read_scale(text, number, of_money)

    def _digits(self, at: int) -> Numeral | None:
        text = self._text
        blob = BLOB.match(text, at)
        if blob is None:
            return None
        for number in (read_spaced(text, at), read_fraction(blob)):
            if number and self.unit(number.end)[0]:
                return number
        digits, *others = _DASH.split(blob.group())
        if len(others) > 1 or any(len(other) > 1 and other.startswith("0") for other in others):
            return None  # a telephone number, or a date that is none
        readings = read_digits(digits, self._is_german(at) if _OPEN_GROUP.search(digits) else None)
        if not readings:
            return None
        number = Numeral(at + len(digits), readings)
        vulgar = read_vulgar(text, number.end) if readings[0].isdecimal() else None
        return Numeral(vulgar.end, (readings[0] + vulgar.readings[0].removeprefix("0"),)) if vulgar else number

    def _is_number(self, start: int, end: int) -> bool:
        """Return whether a number without a unit is a value: not in "3D" or "no one", nor a character in a word."""
        text, word = self._text, self._text[start:end]
        after = text[end : end + 1]
        if word.casefold() == "one":
            return not (_NO_NUMBER_AFTER.search(text[max(start - 10, 0) : start]) or _NO_NUMBER_BEFORE.match(text, end))
        if word[0] in CHINESE:
            return len(word) > 1 or (word != "一" and after in _MEASURE_WORDS) or bool(_TO_ZH.match(text, end))
        return not (after.isalnum() and after < UNSPACED) and after != "_"

    def _other_end(self, first: _Amount, at: int) -> _Amount | None:
        """Return what a range reaches to, which begins with an amount."""
        to = find_to(self._text, at, first.end)
        last = None if to is None else self._amount(to)
        if last is None or (first.units and last.units and first.units[0].base != last.units[0].base):
            return None
        return last

    def _compound(self, amount: _Amount) -> _Amount:
        """Return an amount with what follows it in smaller units: "1 hour 30 minutes"."""
        while amount.units and amount.units[0].name in _PARTS and amount.number.readings[0].isdecimal():
            more = self._smaller(amount)
            if more is None:
                break
            larger, smaller = amount.units[0], more.units[0]
            total = Decimal(amount.number.readings[0]) * larger.factor / smaller.factor
            total += Decimal(more.number.readings[0])
            amount = _Amount(Numeral(more.end, (plain(total),)), (smaller,), more.end)
        return amount

    def _smaller(self, amount: _Amount) -> _Amount | None:
        """Return the amount that continues one: of the same kind, and less than one of its unit."""
        larger, gap = amount.units[0], _AND.match(self._text, amount.end)
        if larger.name == "hour" and (minutes := _MINUTES_ZH.match(self._text, amount.end)):
            number = self._number(minutes.start())
            return number and _Amount(number, find_unit("minute"), minutes.end())
        more = self._amount(gap.end()) if gap else None
        if more is None or not more.units or more.units[0].base != larger.base:
            return None
        return more if Decimal(more.number.readings[0]) * more.units[0].factor < larger.factor else None

    def _is_german(self, at: int) -> bool | None:
        """Return whether the text around is German; None if it is neither that nor English."""
        around = self._text[max(at - _AROUND, 0) : at + _AROUND]
        german, english = len(_GERMAN_WORDS.findall(around)), len(_ENGLISH_WORDS.findall(around))
        return None if german == english else german > english


def _converted(number: str, unit: Unit) -> str:
    return plain((Decimal(number) - unit.offset) * unit.factor)


def _amount_item(amount: _Amount, start: int, minus: str) -> Item:
    readings = [minus + reading for reading in amount.number.readings]
    # The digits of a bare number stay as they are: "3.1" and "3.10" may be versions.
    keys = [f"={_converted(reading, unit)} {unit.base}" for unit in amount.units for reading in readings] or [
        f"={reading}" for reading in readings
    ]
    numbers = tuple(plain(Decimal(reading)) for reading in readings)
    units = tuple(unit.name for unit in amount.units)
    return Item(keys[0], start, amount.end, tuple(keys[1:]), numbers=numbers, units=units)


def _range_item(first: _Amount, last: _Amount, start: int) -> Item:
    units = last.units or first.units
    ends = _within_century(first.number, last.number) if not units else last.number.readings
    pairs = list(zip(_scaled_alike(first.number, last.number), ends, strict=False))
    keys = [f"={a}..{b}" for a, b in pairs]
    if units:
        keys = [
            f"={_converted(a, first.units[0] if first.units else unit)}..{_converted(b, unit)} {unit.base}"
            for unit in units
            for a, b in pairs
        ]
    numbers = tuple(f"{plain(Decimal(a))}..{plain(Decimal(b))}" for a, b in pairs)
    return Item(keys[0], start, last.end, tuple(keys[1:]), numbers=numbers, units=tuple(unit.name for unit in units))


def _within_century(first: Numeral, last: Numeral) -> tuple[str, ...]:
    """Return the readings of a range's end, where it is the last two digits of a year ("1914-18")."""
    year, end = first.readings[0], last.readings[0]
    is_short = len(year) == 4 and year.isdecimal() and len(end) == 2 and end.isdecimal() and end > year[2:]
    return (year[:2] + end,) if is_short else last.readings


def _scaled_alike(first: Numeral, last: Numeral) -> tuple[str, ...]:
    """Return the readings of a range's beginning, which may share the end's power of ten: "1-2 million"."""
    shares = first.scale == 1 and Decimal(first.readings[0]) * last.scale <= Decimal(last.readings[0])
    return first.times(last.scale, first.end).readings if shares and last.scale > 1 else first.readings
