"""Texts as rows of words and values."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rechain.text.words import Text
from rechain.values.normal import NormalText, same, singular


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        ("days", "day"), ("policies", "policy"), ("boxes", "box"), ("classes", "class"), ("matches", "match"),
        ("caches", "cache"), ("wishes", "wish"), ("houses", "house"), ("children", "child"), ("movies", "movie"),
        ("bus", "bus"), ("gas", "gas"), ("glass", "glass"), ("status", "status"), ("analysis", "analysis"),
        ("news", "news"), ("is", "is"), ("was", "was"), ("this", "this"), ("1990s", "1990s"),
        ("branches", "branch"), ("coaches", "coach"), ("richtungen", "richtung"), ("richtlinien", "richtlinie"),
        ("spanien", "spanie"), ("haus", "haus"), ("tagen", "tagen"), ("", ""),
    ],
)  # fmt: skip
def test_words_become_singular_where_a_rule_is_safe(plural: str, one: str) -> None:
    assert singular(plural) == one


def test_a_text_is_a_row_of_words_and_values() -> None:
    text = "Employees get twenty-seven vacation days, i.e. € 1,500 in 2023."
    items = NormalText(text).items
    keys = ["employee", "get", "=27", "vacation", "day", "i", "e", "=1500 EUR", "in", "=2023"]
    assert [item.key for item in items] == keys
    assert [text[item.start : item.end] for item in items][2:5] == ["twenty-seven", "vacation", "days"]


@pytest.mark.parametrize(
    ("passage", "answer", "found"),
    [
        ("Staff get 27 days of leave.", "twenty-seven days", ["27 days"]),
        ("Refunds: 14 May 2023.", "May 14, 2023", ["14 May 2023"]),
        ("Es sind fünf Tage und 5 Tage.", "5 days", ["fünf Tage", "5 Tage"]),
        ("All policies cover a policy", "policy", ["policies", "policy"]),
        ("nothing", "27 days", []),
        ("", "27 days", []),
        ("A month, 27 days or 27 %", "27", ["27 days", "27 %"]),
        ("27 vacation days, 27 employees, 27", "27 days", ["27", "27"]),
        ("27个工作日", "27天", ["27"]),
        ("27 Urlaubstage", "27 days", ["27"]),
        ("27 employees", "27 days", []),
        ("on 14.05.2023", "2023", ["14.05.2023"]),
        ("in 2023", "May 2023", []),
        ("days and a day", "days", ["days", "day"]),
    ],
)
def test_items_of_a_passage_say_what_one_of_an_answer_says(passage: str, answer: str, found: list[str]) -> None:
    (wanted, *_) = NormalText(answer).items
    assert [passage[item.start : item.end] for item in NormalText(passage).items if same(wanted, item)] == found


TEXTS = st.text(alphabet=st.sampled_from("ab1 27,.-€%天一 days May to é😀"), max_size=60)


@settings(max_examples=150)
@given(TEXTS)
def test_every_word_stands_in_one_item(text: str) -> None:
    items = NormalText(text).items
    assert [item.start for item in items] == sorted(item.start for item in items)
    for start, end in Text(text).places:
        assert any(item.start < end and start < item.end for item in items)


@settings(max_examples=60)
@given(TEXTS)
def test_every_item_says_what_it_says_itself(text: str) -> None:
    items = NormalText(text).items
    assert all(map(same, items, NormalText(text).items))
