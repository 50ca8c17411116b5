"""Numbers as they are written: in digits with either language's separators, and in English, German, Chinese words."""

import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

_LONGEST = 40
"""digits: a longer row of digits is a code, not a number; it also bounds the time that reckoning takes"""
UNSPACED = "\u2e80"
"""from here on characters are mostly those of scripts that are written without blanks"""
DASHES = "–—−~～-"
BLOB = re.compile(rf"\d+(?:[.,:/'’\u00a0\u202f{DASHES}]\d+)*")
"""digits and what joins them: a number, a date, a time, a range or a code"""
_GROUPED = re.compile(r"(\d{1,3})([.,'’\u00a0\u202f])(\d{3}(?:\2\d{3})*)(?:([.,])(\d+))?")
_PLAIN = re.compile(r"(\d+)(?:[.,](\d+))?")
_SPACED = re.compile(r"[1-9]\d{0,2}(?: \d{3})+(?:[.,]\d{1,2})?(?![\d.,:/]*\d)", re.ASCII)
_FRACTION = re.compile(r"([1-9])/([2-9])", re.ASCII)
_VULGAR = {"½": Decimal("0.5"), "¼": Decimal("0.25"), "¾": Decimal("0.75")}

_ONES_EN = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_ONES_EN += " seventeen eighteen nineteen"
_TENS_EN = "twenty thirty forty fifty sixty seventy eighty ninety"
SCALES = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12,
    "millions": 10**6, "billions": 10**9, "tausend": 10**3, "millionen": 10**6, "mio": 10**6, "milliarde": 10**9,
    "milliarden": 10**9, "mrd": 10**9, "billionen": 10**12, "dutzend": 12, "bn": 10**9, "mn": 10**6,
    "百": 10**2, "千": 10**3, "万": 10**4, "百万": 10**6, "千万": 10**7, "亿": 10**8, "萬": 10**4, "億": 10**8,
}  # fmt: skip
_SCALE = re.compile(
    rf"[\s\u00a0-]?({'|'.join(sorted(filter(str.isascii, SCALES), key=len, reverse=True))})(?!\w)\.?"
    r"|\s?(百万|千万|[百千万亿萬億])",
    re.IGNORECASE,
)
_SHORT_SCALE = re.compile(r"([kKmM])(?!\w)|([bB])(?!\w)")
ENGLISH = f"(?:{'|'.join((_ONES_EN + ' ' + _TENS_EN).split())}|hundred|thousand|million|billion|trillion)"
# At most 20 words: the longest number that one writes in words has fewer, and a longer row is no number.
_RUN_EN = re.compile(
    rf"an?\s+dozen(?!\w)|(?:{ENGLISH}|an?(?=\s+(?:hundred|thousand|million|billion)\b))"
    rf"(?:(?:[ \u00a0-]|\s+and\s+){ENGLISH}){{0,20}}(?!\w)",
    re.IGNORECASE,
)
_DIGIT_EN, _TEEN_EN = ("|".join(_ONES_EN.split()[first:end]) for first, end in ((1, 10), (10, 20)))
_TWO_DIGITS_EN = rf"{_TEEN_EN}|(?:{_TENS_EN.replace(' ', '|')})(?:[ -](?:{_DIGIT_EN}))?"
# "nineteen ninety-eight", "twenty ten", "nineteen oh five"; but "eleven twenty-minute calls" are none.
_YEAR_EN = re.compile(
    rf"(?!ten)({_TEEN_EN}|twenty)[ -](?:oh?[ -]({_DIGIT_EN})|({_TWO_DIGITS_EN}))(?!\w|-|[ \u00a0]{ENGLISH}\b)",
    re.IGNORECASE,
)
_RUN_WORD = re.compile(r"\w+")
_ONES_DE = "null eins zwei zwo drei vier fünf fuenf sechs sieben acht neun zehn elf zwölf zwoelf sech sieb"
_TENS_DE = "zwanzig dreißig dreissig vierzig fünfzig fuenfzig sechzig siebzig achtzig neunzig"
GERMAN = f"(?:{'|'.join((_TENS_DE + ' ' + _ONES_DE).split())}|ein|hundert|tausend|und)"
# At most 16 parts: "neunhundertneunundneunzigtausendneunhundertneunundneunzig" has 13.
_RUN_DE = re.compile(rf"(?!und|ein(?!und|hundert|tausend)){GERMAN}{{1,16}}(?!\w)", re.IGNORECASE)
_HALF_EN = re.compile(r"(?:\s+and\s+a\s+half|-and-a-half)(?!\w)", re.IGNORECASE)
_HALF_DE = re.compile(rf"(?:anderthalb|({GERMAN}{{1,4}}?)einhalb)(?!\w)", re.IGNORECASE)
DIGITS_ZH = "零〇一二两兩三四五六七八九"
_VALUES_ZH = dict(zip(DIGITS_ZH, (0, 0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9), strict=True))
_POWERS_ZH = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
CHINESE = f"{DIGITS_ZH}十百千万萬亿億"
_RUN_ZH = re.compile(rf"[{CHINESE}]{{1,30}}(?:点[{DIGITS_ZH}]{{1,20}})?")


class Numeral(NamedTuple):
    """A number in a text."""

    end: int
    readings: tuple[str, ...]
    """plain decimal notation, likeliest first: "1.500" may be 1500 or 1.500; zeros at the end are kept"""
    scale: int = 1
    """the power of ten written after it, which `readings` include"""

    def times(self, factor: int, end: int) -> "Numeral":
        """Return this number times a power of ten, as "1.5 million" is."""
        with localcontext(prec=2 * _LONGEST):
            return Numeral(end, tuple(plain(Decimal(reading) * factor) for reading in self.readings), factor)


def plain(number: Decimal) -> str:
    """Return a number in decimal notation, without zeros at its ends, to 15 significant digits if it has a fraction."""
    if number.as_tuple().exponent == 0:
        return f"{number:f}"
    with localcontext(prec=2 * _LONGEST):
        if number == number.to_integral_value():
            return f"{number.to_integral_value():f}"
    with localcontext(prec=15):
        return f"{(+number).normalize():f}"


def read_digits(digits: str, german: bool | None) -> tuple[str, ...]:
    """Return the numbers that digits and separators may mean; none if they are not a number.

    `german`: whether the text around is German; None where that is not known, which leaves "1.500" open.
    """
    if len(digits) > _LONGEST:
        return ()
    digits = digits if digits.isascii() else ascii_digits(digits)
    if grouped := _GROUPED.fullmatch(digits):
        return _read_groups(grouped, german)
    if plain_number := _PLAIN.fullmatch(digits):
        whole, fraction = plain_number.groups()
        return (f"{whole}.{fraction}" if fraction else whole,)
    return ()


def ascii_digits(text: str) -> str:
    """Return a text with digits of other scripts in those of ASCII; all else stays."""
    return "".join(str(unicodedata.decimal(character, character)) for character in text)


def _read_groups(match: re.Match[str], german: bool | None) -> tuple[str, ...]:
    first, separator, rest, point, fraction = match.groups()
    if point == separator:
        return ()
    whole = first + "".join(filter(str.isdigit, rest))
    if fraction:
        return (f"{whole}.{fraction}",)
    if separator not in ".," or len(rest) > 3:
        return (whole,)
    if first == "0":
        return (f"0.{rest}",)
    thousands = {True: separator == ".", False: separator == ",", None: None}[german]
    if thousands is None:
        return (whole, f"{first}.{rest}")
    return (whole,) if thousands else (f"{first}.{rest}",)


def read_spaced(text: str, at: int) -> Numeral | None:
    """Return a number whose thousands stand apart ("10 000"); only a unit after it tells that from two numbers."""
    match = _SPACED.match(text, at)
    return Numeral(match.end(), (match.group().replace(" ", "").replace(",", "."),)) if match else None


def read_fraction(blob: re.Match[str]) -> Numeral | None:
    """Return a simple fraction ("1/2"); only a unit after it tells that from a date or a code."""
    match = _FRACTION.fullmatch(blob.group())
    return Numeral(blob.end(), (plain(Decimal(match.group(1)) / Decimal(match.group(2))),)) if match else None


def read_words(text: str, at: int, is_german: Callable[[], bool | None]) -> Numeral | None:
    """Return the number that words give, from `at` on."""
    if text[at] in CHINESE:
        return _read_chinese(text, at)
    if match := _YEAR_EN.match(text, at):
        century, *rest = (_spoken(words, "en") for words in match.groups() if words)
        return Numeral(match.end(), (f"{century}{rest[0]:0>2}",))
    if match := _RUN_EN.match(text, at):
        return _read_english(text, match)
    return _read_german(text, at, is_german)


def _read_english(text: str, match: re.Match[str]) -> Numeral | None:
    run = match.group()
    for end in [word.end() for word in _RUN_WORD.finditer(run)][::-1]:  # the longest row of words that is a number
        number = _spoken(run[:end], "en")
        if number is not None:
            end += match.start()
            half = _HALF_EN.match(text, end)
            return Numeral(half.end(), (f"{number}.5",)) if half else Numeral(end, (number,))
    return None


@lru_cache(maxsize=4096)
def _spoken(words: str, language: str) -> str | None:
    """Return the number that words say as a whole."""
    from text_to_num import text2num  # loaded when first needed

    said = " ".join(words.casefold().replace("-", " ").replace("ß", "ss").split())
    said = re.sub(r"^an? ", "one ", said)
    if said == "one dozen":
        return "12"
    try:
        return str(text2num(said, language))
    except (ValueError, OverflowError):
        return None


def _read_german(text: str, at: int, is_german: Callable[[], bool | None]) -> Numeral | None:
    if match := _HALF_DE.match(text, at):
        ones = _spoken(match.group(1).casefold() if match.group(1) else "ein", "de")
        return Numeral(match.end(), (f"{ones}.5",)) if ones is not None else None
    match = _RUN_DE.match(text, at)
    if not match or (match.group().casefold() == "elf" and not is_german()):  # "elf" is an English word, too
        return None
    number = _spoken(match.group(), "de")
    return None if number is None else Numeral(match.end(), (number,))


def _read_chinese(text: str, at: int) -> Numeral | None:
    match = _RUN_ZH.match(text, at)
    if not match:
        return None
    whole, _, fraction = match.group().partition("点")
    number = chinese_number(whole)
    if number is None:
        return None
    digits = "".join(str(_VALUES_ZH[digit]) for digit in fraction)
    return Numeral(match.end(), (f"{number}.{digits}" if digits else str(number),))


def chinese_number(numeral: str) -> int | None:
    """Return the number that Chinese characters write; None if they do not write one."""
    if not any(character in _POWERS_ZH for character in numeral):  # digit by digit, as years are: 二〇二三
        return int("".join(str(_VALUES_ZH[character]) for character in numeral))
    total = section = 0
    digit: int | None = None
    for character in numeral:
        power = _POWERS_ZH.get(character)
        if power is None:
            if digit:
                return None  # two digits in a row
            digit = _VALUES_ZH[character]
            continue
        if power < 10**4:
            section += (1 if digit is None and power == 10 else digit or 0) * power
        else:
            lower = section + (digit or 0)
            total = (total + lower) * power if total < power else total + lower * power
            section = 0
        digit = None
    before = _POWERS_ZH.get(numeral[-2:-1], 0)
    if digit and before > 10:  # 三千五 is short for 三千五百
        digit *= before // 10
    return (total + section + (digit or 0)) or None


def read_scale(text: str, numeral: Numeral, of_money: bool) -> Numeral:
    """Return a number together with the power of ten that follows it ("1.5 million", "120k")."""
    if match := _SCALE.match(text, numeral.end):
        return numeral.times(SCALES[(match.group(1) or match.group(2)).casefold()], match.end())
    if match := _SHORT_SCALE.match(text, numeral.end):
        letter = match.group().casefold()
        if letter == "k" or of_money:  # "5m" alone is five metres, "5b" a house number
            return numeral.times({"k": 10**3, "m": 10**6, "b": 10**9}[letter], match.end())
    return numeral


def read_vulgar(text: str, at: int) -> Numeral | None:
    """Return a fraction of one character ("½")."""
    return Numeral(at + 1, (plain(_VULGAR[text[at]]),)) if at < len(text) and text[at] in _VULGAR else None
