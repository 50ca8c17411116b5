"""Where passages stand: only what fits together is a place, whatever fields a collection has."""

from typing import Any

import pytest

from rechain.schema import Passage
from rechain.web.places import Place, place_of

FIELDS: dict[str, Any] = {
    "id": "a/leave.md#2",
    "text": "Some text.",
    "source": "a/leave.md",
    "start": 1_120,
    "end": 1_130,
}


def test_a_place_in_words() -> None:
    place = Place(source="a/leave.md", start=1_120, end=1_480)
    assert place.path("Leave > Parental leave") == "a/leave.md › Leave › Parental leave"
    assert place.path("leave") == place.path("") == "a/leave.md"
    assert place.words == "characters 1,120–1,480"
    assert place.model_copy(update={"page": 3}).words == "page 3, characters 1,120–1,480"


def test_a_passage_of_a_document_has_a_place() -> None:
    assert place_of(Passage.model_validate(FIELDS)) == Place(source="a/leave.md", start=1_120, end=1_130)
    paged = place_of(Passage.model_validate(FIELDS | {"page": 4}))
    assert paged is not None and paged.page == 4


@pytest.mark.parametrize(
    "change",
    [
        {"source": None},
        {"source": ["a"]},
        {"start": "1120"},
        {"start": True, "end": 11},
        {"start": -5, "end": 5},
        {"end": 1_131},
        {"id": "b#2"},
    ],
)
def test_fields_of_a_collection_that_do_not_fit_are_no_place(change: dict[str, Any]) -> None:
    assert place_of(Passage.model_validate(FIELDS | change)) is None


def test_a_page_of_another_kind_does_not_count() -> None:
    place = place_of(Passage.model_validate(FIELDS | {"page": "iv"}))
    assert place is not None and place.page is None
