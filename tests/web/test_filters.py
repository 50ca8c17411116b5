"""Filters as addresses say them: read, refused in one sentence, and written back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.errors import RechainError
from rechain.web.filters import filter_query, read_filter, read_number
from rechain.web.index import Filter


def test_all_of_a_filter_is_read() -> None:
    told = {
        "text": " who ",
        "min_confidence": "0.25",
        "max_confidence": "1",
        "verdict": "wrong",
        "kind": "title part",
        "found": "no",
        "order": "most confident",
        "other": "x",
    }
    assert read_filter(told) == Filter("who", 0.25, 1.0, "wrong", "title part", False, "most confident")


def test_what_is_empty_does_not_count() -> None:
    names = ("text", "min_confidence", "max_confidence", "verdict", "kind", "found", "order")
    assert read_filter(dict.fromkeys(names, "")) == read_filter({}) == Filter()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("min_confidence", "2", "min_confidence should be a number from 0 to 1, not '2'."),
        ("max_confidence", "-0.1", "max_confidence should be a number from 0 to 1, not '-0.1'."),
        ("min_confidence", "nan", "min_confidence should be a number from 0 to 1, not 'nan'."),
        ("min_confidence", "x" * 99, "min_confidence should be a number from 0 to 1, not 'xxxxxxxxxxxxxxxxxxxx'."),
        ("verdict", "maybe", "verdict should be one of right, wrong, not 'maybe'."),
        ("found", "true", "found should be one of yes, no, not 'true'."),
        ("order", "random", "order should be one of file, least confident, most confident, not 'random'."),
    ],
)
def test_mistakes(name: str, value: str, message: str) -> None:
    with pytest.raises(RechainError) as error:
        read_filter({name: value})
    assert str(error.value) == message


_SHARES = st.none() | st.floats(min_value=0, max_value=1)


@given(
    st.builds(
        Filter,
        text=st.text().map(str.strip),
        min_confidence=_SHARES,
        max_confidence=_SHARES,
        verdict=st.sampled_from([None, "right", "wrong"]),
        kind=st.sampled_from([None, "name", "title part"]),
        chain=st.sampled_from([None, True, False]),
        order=st.sampled_from(["file", "least confident", "most confident"]),
    )
)
def test_a_filter_that_is_written_is_read_back(wanted: Filter) -> None:
    assert read_filter({name: str(value) for name, value in filter_query(wanted).items()}) == wanted


def test_what_does_not_count_is_not_written() -> None:
    assert filter_query(Filter()) == {}
    assert filter_query(Filter(min_confidence=0.0, chain=False)) == {"min_confidence": 0.0, "found": "no"}


@pytest.mark.parametrize(("told", "number"), [({}, 7), ({"page": ""}, 7), ({"page": " 3 "}, 3), ({"page": "1"}, 1)])
def test_numbers(told: dict[str, str], number: int) -> None:
    assert read_number(told, "page", 7, least=1) == number


@pytest.mark.parametrize("value", ["0", "-1", "x", "1.5", "²", "٣", "9" * 10, "1e3"])
def test_what_is_no_number(value: str) -> None:
    with pytest.raises(RechainError, match="page should be a number from 1 on, not"):
        read_number({"page": value}, "page", 1, least=1)
