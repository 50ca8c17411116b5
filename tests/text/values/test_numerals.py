"""Numbers in digits and in words."""

import cn2an
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rechain.text.values.numerals import chinese_number, read_digits, read_words


@settings(max_examples=200)
@given(st.integers(1, 10**9))
def test_chinese_numbers_are_those_of_cn2an(number: int) -> None:
    assert chinese_number(cn2an.an2cn(number)) == number


@pytest.mark.parametrize(
    ("numeral", "number"),
    [
        ("二〇二三", 2023), ("两千", 2000), ("十五", 15), ("三千五", 3500), ("三千零五", 3005), ("一万五", 15000),
        ("三万二千亿", 32_000 * 10**8), ("一二十", None),
    ],
)  # fmt: skip
def test_chinese_numbers_have_their_short_forms(numeral: str, number: int | None) -> None:
    assert chinese_number(numeral) == number


@pytest.mark.parametrize(
    ("text", "number", "rest"),
    [
        ("twenty-seven days", "27", " days"),
        ("one hundred and five thousand", "105000", ""),
        ("One Thousand Two Hundred", "1200", ""),
        ("one and two", "1", " and two"),
        ("two and a half years", "2.5", " years"),
        ("a hundred", "100", ""),
        ("a dozen eggs", "12", " eggs"),
        ("einundzwanzig", "21", ""),
        ("zweihundertfünfzig Euro", "250", " Euro"),
        ("dreißig", "30", ""),
        ("Zweieinhalb Tage", "2.5", " Tage"),
        ("三点一四", "3.14", ""),
    ],
)
def test_numbers_are_read_as_far_as_they_go(text: str, number: str, rest: str) -> None:
    numeral = read_words(text, 0, lambda: True)
    assert numeral is not None
    assert (numeral.readings, text[numeral.end :]) == ((number,), rest)


@pytest.mark.parametrize("text", ["und", "einer", "oneself", "twentyish", "achtung", "zweifel", "tens"])
def test_words_that_only_begin_like_a_number_are_none(text: str) -> None:
    assert read_words(text, 0, lambda: True) is None


@pytest.mark.parametrize(
    ("digits", "german", "readings"),
    [
        ("1.500", True, ("1500",)), ("1.500", False, ("1.500",)), ("1.500", None, ("1500", "1.500")),
        ("1,500", True, ("1.500",)), ("1,500", False, ("1500",)), ("1,5", None, ("1.5",)), ("1,50", None, ("1.50",)),
        ("1.234.567,8", None, ("1234567.8",)), ("1'000", None, ("1000",)), ("0.125", True, ("0.125",)),
        ("3.11.2", None, ()), ("1,2,3", None, ()), ("1,234,56", None, ()), ("9" * 41, None, ()), ("٢٧", None, ("27",)),
    ],
)  # fmt: skip
def test_digits_are_read_with_their_separators(digits: str, german: bool | None, readings: tuple[str, ...]) -> None:
    assert read_digits(digits, german) == readings
