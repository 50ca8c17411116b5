"""Names and titles that are common in a collection, worked by hand."""

from math import log

import pytest

from rechain.errors import QuestionError
from rechain.schema import LinkKind, Passage, Question
from rechain.text.candidates import find_candidates
from rechain.text.collection import PassageCollection
from rechain.text.evidence.search import find_evidence
from rechain.text.linking.content import is_everywhere, less_where_shared
from rechain.text.linking.linkers import Entity


class Counts:
    """A collection of which only counts are known, as an index knows them."""

    stamp = "0" * 16

    def __init__(self, passages: int, count: int) -> None:
        self.passages = passages
        self._count = count

    def count_word(self, word: str) -> int:
        return self._count

    def count_name(self, name: str) -> int:
        return self._count

    def count_title(self, title: str) -> int:
        return self._count

    def count_entity(self, entity: str) -> int:
        return self._count

    def count_line(self, line: str) -> int:
        return self._count


def entity(kind: LinkKind) -> Entity:
    return Entity(" quorvath ", kind, 9.0, (0, 1))


@pytest.mark.parametrize("kind", ["name", "word", "title part", "title"])
def test_what_many_passages_share_is_everywhere_of_parts_more_than_of_entries(kind: LinkKind) -> None:
    for count, of_parts, of_entries in ((40, False, False), (41, True, False), (80, True, False), (81, True, True)):
        assert is_everywhere(entity(kind), Counts(100, count), are_parts=True) is of_parts
        assert is_everywhere(entity(kind), Counts(100, count), are_parts=False) is of_entries


def test_of_a_few_passages_nothing_is_everywhere() -> None:
    assert not is_everywhere(entity("name"), Counts(3, 3), are_parts=False)
    assert not is_everywhere(entity("name"), Counts(5, 5), are_parts=True)


def test_a_title_loses_by_how_many_passages_have_it() -> None:
    weights = [less_where_shared(entity("title"), Counts(100, count)).weight for count in (0, 1, 8)]
    assert weights == pytest.approx([9.0, 9.0, 9.0 - log(8)])


@pytest.mark.parametrize("kind", ["name", "word", "title part", "mention", "identifier"])
def test_other_links_keep_their_weight(kind: LinkKind) -> None:
    assert less_where_shared(entity(kind), Counts(100, 30)) == entity(kind)


@pytest.mark.parametrize("kind", ["mention", "identifier"])
def test_what_the_data_gives_is_never_everywhere(kind: LinkKind) -> None:
    assert not is_everywhere(entity(kind), Counts(100, 100), are_parts=True)


def test_the_name_of_the_organisation_does_not_link_where_its_collection_is_known() -> None:
    passages = [
        Passage(id="a", text="The lodge keeper works for Quorvath."),
        Passage(id="b", text="At Quorvath the fee is 12 krones."),
    ]
    question = Question(id="q", question="What does the keeper pay?", answer="12 krones", passages=passages)
    assert find_candidates(question).chains
    others = [Passage(id=str(number), text=f"Rule {number} of Quorvath.") for number in range(40)]
    collection = PassageCollection({passage.id: passage for passage in (*passages, *others)})
    with pytest.raises(QuestionError, match="no 2 passages are linked"):
        find_candidates(question, collection=collection)
    assert any(chain.shape == "chain" for chain in find_evidence(question).chains)
    assert not any(chain.shape == "chain" for chain in find_evidence(question, collection=collection).chains)
    small = PassageCollection({passage.id: passage for passage in passages})
    assert [chain.weight for chain in find_candidates(question, collection=small).chains] == [
        chain.weight for chain in find_candidates(question).chains
    ]


def test_a_line_that_many_passages_of_the_collection_have_does_not_link() -> None:
    footer = "Quorvath Industries Zurich"
    passages = [
        Passage(id="a", text=f"The pump of the Zeldanor is leaky and loud.\n{footer}"),
        Passage(id="b", text=f"A cup costs 210 francs at the counter.\n{footer}"),
        *(Passage(id=f"other {n}", text=f"Something else number {n}.\n{footer}") for n in range(20)),
    ]
    question = Question(id="q", question="What does a cup cost?", answer="210 francs", passages=passages[:2])
    alone = find_candidates(question.model_copy(update={"passages": [*passages[:2], Passage(id="c", text="Else.")]}))
    assert "Quorvath" in alone.chains[0].links[0].entity
    with pytest.raises(QuestionError, match="no 2 passages are linked"):
        find_candidates(question, collection=PassageCollection({passage.id: passage for passage in passages}))
