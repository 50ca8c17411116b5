"""Filters in addresses: read, refused in one sentence, and written back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rechain.formats.datasets.formats import describe
from rechain.web.filters import PageFilters
from rechain.web.pages import ListQuery


def read(values: dict[str, str]) -> PageFilters:
    return PageFilters.model_validate(values)


def test_values_are_read_without_blanks_around_them() -> None:
    assert read({"text": " who ", "tenth": " 9 ", "other": "x"}) == PageFilters(text="who", tenth=9)
    assert [ListQuery.model_validate(one).page for one in ({}, {"page": ""}, {"page": " 3 "})] == [1, 1, 3]


@pytest.mark.parametrize("blank", ["", " "])
def test_blanks_do_not_count(blank: str) -> None:
    names = ("text", "min_confidence", "max_confidence", "judgement", "kind", "found", "order", "source")
    assert read(dict.fromkeys(names, blank)) == read({}) == PageFilters()


_ORDERS = (
    "order: input should be 'file', 'id', 'question', 'answer', 'chain', 'verdict', 'least confident', "
    "'most confident', 'judgement', 'type' or 'hops'"
)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("min_confidence", "2", "min_confidence: input should be less than or equal to 1"),
        ("max_confidence", "-0.1", "max_confidence: input should be greater than or equal to 0"),
        ("min_confidence", "nan", "min_confidence: input should be less than or equal to 1"),
        (
            "min_confidence",
            "x" * 99,
            "min_confidence: input should be a valid number, unable to parse string as a number",
        ),
        ("judgement", "maybe", "judgement[0]: input should be 'right' or 'wrong'"),
        ("found", "maybe", "found: input should be a valid boolean, unable to interpret input"),
        ("order", "random", _ORDERS),
        ("tenth", "10", "tenth[0]: input should be less than or equal to 9"),
        ("hops", "0", "hops[0]: input should be greater than or equal to 1"),
        ("text", "x" * 301, "text has 301 characters; the most are 300"),
    ],
)
def test_mistakes(name: str, value: str, message: str) -> None:
    with pytest.raises(ValidationError) as error:
        read({name: value})
    assert describe(error.value)[1] == message


_SHARES = st.none() | st.floats(min_value=0, max_value=1)


@given(
    st.builds(
        PageFilters,
        text=st.text(max_size=100).map(str.strip),
        min_confidence=_SHARES,
        max_confidence=_SHARES,
        judgement=st.sampled_from([(), ("right",), ("wrong", "right")]),
        kind=st.sampled_from([(), "name", ("title part", "word")]),
        has_chain=st.sampled_from([None, True, False]),
        tenth=st.none() | st.integers(0, 9),
        type=st.none() | st.text("ab ?&=é", min_size=1, max_size=9).filter(str.strip),
        hops=st.none() | st.integers(1, 9),
        scope=st.sampled_from(["questions", "passages"]),
        order=st.sampled_from(["file", "least confident", "most confident", "type"]),
        reverse=st.booleans(),
        source=st.integers(1, 9),
    )
)
def test_filters_that_are_written_are_read_back(filters: PageFilters) -> None:
    written = {name: value if isinstance(value, tuple) else str(value) for name, value in filters.address.items()}
    assert read(written) == filters


def test_defaults_are_not_written() -> None:
    assert PageFilters().address == ListQuery(page=7).address == {}
    assert PageFilters(min_confidence=0.0, has_chain=False).address == {"min_confidence": 0.0, "found": "no"}


def test_another_source_keeps_the_filter_but_for_confidence_that_it_lacks() -> None:
    filters = PageFilters(text="who", tenth=3, min_confidence=0.2, judgement="wrong", order="most confident")
    kept = {"text": "who", "judgement": ("wrong",), "source": 2}
    assert filters.of_source(2, has_confidence=False) == kept
    confident = {"tenth": (3,), "min_confidence": 0.2, "order": "most confident"}
    assert filters.of_source(2, has_confidence=True) == {**kept, **confident}


@pytest.mark.parametrize("value", ["0", "-1", "x", "1.5", "²", "٣", "9" * 10, "1e3"])
def test_what_is_no_number(value: str) -> None:
    with pytest.raises(ValidationError) as error:
        ListQuery.model_validate({"page": value})
    assert describe(error.value)[1].startswith("page: input should be ")
