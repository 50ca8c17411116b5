"""The list of linkers, and the kinds of links that they make."""

from typing import get_args

from rechain.linking import DEFAULT_LINKERS, KINDS, LINKERS
from rechain.schema import LinkKind


def test_linkers_have_the_names_that_settings_give() -> None:
    assert set(LINKERS) == {"anchors", "identifiers", "titles", "names", "nouns", "runs", "spacy"}
    assert set(LINKERS) - DEFAULT_LINKERS == {"spacy"}


def test_every_kind_of_link_that_files_hold_is_made_and_explained() -> None:
    assert set(KINDS) == set(get_args(LinkKind))
    assert all(kind.meaning for kind in KINDS.values())


def test_linkers_of_one_kind_agree_on_what_it_weighs() -> None:
    assert all(KINDS[kind.name] == kind for linker in LINKERS.values() for kind in linker.kinds)


def test_kinds_are_ranked_title_part_name_word_and_given_entities_above_all() -> None:
    kinds = ["mention", "title", "title part", "name", "word"]
    assert [KINDS[kind].bonus for kind in kinds] == sorted((KINDS[kind].bonus for kind in kinds), reverse=True)
    assert len({KINDS[kind].bonus for kind in kinds}) == 5
    assert KINDS["identifier"].bonus == KINDS["mention"].bonus
