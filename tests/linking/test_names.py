"""Names and rare words that passages share."""

import pytest

from rechain.linking import DEFAULT_MIN_WEIGHT
from rechain.linking.linkers import Context, Entity, find_entities
from rechain.linking.names import LINKER, NAME, WORD, name_weight, phrases
from rechain.schema import Passage
from rechain.text.passages import PassageView
from rechain.text.rarity import MAX_PHRASE_IDF, idf


def context(*texts: str) -> Context:
    views = [PassageView(Passage(id=str(number), text=text)) for number, text in enumerate(texts)]
    return Context(views, range(len(views)), DEFAULT_MIN_WEIGHT)


def pairs(text: str) -> list[str]:
    return [phrase for phrase in phrases(context(text)) if phrase.count(" ") == 3]


def found(*texts: str, words: int) -> list[Entity]:
    """What links some texts, of one word or two."""
    return [entity for entity in find_entities([LINKER], context(*texts)) if len(entity.name.split()) == words]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("An opera by Anton Quillfeather.", [" anton quillfeather "]),
        ("by Anton Zorn Quillfeather", [" anton zorn ", " zorn quillfeather "]),
        ("by Anton and Quillfeather", []),
        ("by anton quillfeather", []),
        ("Anton Quillfeather met Anton Quillfeather", [" anton quillfeather "]),
        ("In The end", []),
    ],
)
def test_two_capitalised_words_in_a_row_are_looked_for(text: str, wanted: list[str]) -> None:
    assert pairs(text) == wanted


def test_a_capitalised_pair_links_the_passages_that_hold_it_capitalised() -> None:
    (entity,) = found("by Anton Quillfeather", "ANTON QUILLFEATHER died", "the anton quillfeather", words=2)
    assert (entity.name, entity.kind, entity.holders) == (" anton quillfeather ", "name", [0, 1])


def test_a_pair_of_one_passage_links_nothing() -> None:
    assert found("by Anton Quillfeather", "by Anton", "by Quillfeather", words=2) == []


def test_the_rarest_word_of_a_name_counts_in_full_and_the_others_by_half() -> None:
    high, low = sorted((idf("anton"), idf("river")), reverse=True)
    assert name_weight(["river", "anton"]) == pytest.approx(NAME.bonus + min(high + low / 2, MAX_PHRASE_IDF))
    assert name_weight(["xqzvorn", "xqzvarn"]) == NAME.bonus + MAX_PHRASE_IDF


def test_a_rare_word_that_both_capitalise_is_a_name() -> None:
    (entity,) = found("Old Quillfeather", "a Quillfeather", words=1)
    assert (entity.name, entity.kind, entity.holders) == (" quillfeather ", "name", [0, 1])
    assert entity.weight == NAME.bonus + idf("quillfeather")


def test_a_rare_word_that_one_does_not_capitalise_is_a_mere_word() -> None:
    kinds = {e.kind: e for e in found("a quillfeather", "one Quillfeather", "no Quillfeather", words=1)}
    assert kinds["name"].holders == [1, 2]
    assert kinds["word"].holders == [0, 1, 2]
    assert kinds["word"].weight == WORD.bonus + idf("quillfeather")


def test_a_number_alone_is_no_name() -> None:
    assert found("in 31415", "of 31415", words=1) == []
