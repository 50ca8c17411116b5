"""Database identifiers in a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.text.identifiers import find_identifiers, identifier


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("DB00072", "drug:DB00072"),
        (" DB00072\n", "drug:DB00072"),
        ("P04637", "protein:P04637"),
        ("Q9Y6K9", "protein:Q9Y6K9"),
        ("A0A024R1R8", "protein:A0A024R1R8"),
        ("___MASK12___", "mask:___MASK12___"),
        ("DB0007", None),
        ("DB000721", None),
        ("db00072", None),
        ("DB00072 and", None),
        ("Prague", None),
        ("", None),
    ],
)
def test_a_text_that_is_one_identifier_has_an_entity_id(text: str, entity: str | None) -> None:
    assert identifier(text) == entity


def test_identifiers_are_found_with_their_offsets() -> None:
    text = "DB00072 binds P04637; (DB00072) not XDB00072 or DB00072x."
    assert find_identifiers(text) == {"drug:DB00072": [(0, 7), (23, 30)], "protein:P04637": [(14, 20)]}


def test_every_kind_begins_an_entity_id() -> None:
    found = find_identifiers("DB00072 P04637 ___MASK1___")
    assert {entity.partition(":")[0] for entity in found} == {"drug", "protein", "mask"}


@given(st.lists(st.sampled_from(["DB00072", "P04637", "___MASK3___", "Q9Y6K9", "é", "東", " ", "-", "x", "(", "1"])))
def test_offsets_cut_out_the_identifier(pieces: list[str]) -> None:
    text = "".join(pieces)
    for entity, spans in find_identifiers(text).items():
        for start, end in spans:
            assert text[start:end] == entity.partition(":")[2]
            assert identifier(text[start:end]) == entity
