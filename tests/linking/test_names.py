"""Names and rare words that passages share."""

import pytest

from rechain.linking.entities import Entity
from rechain.linking.matching import find_holders
from rechain.linking.names import find_phrases, find_words, name_weight, pairs_of
from rechain.linking.weights import BONUS, DEFAULT_MIN_WEIGHT
from rechain.schema import Passage
from rechain.text.passages import PassageView
from rechain.text.rarity import MAX_PHRASE_IDF, idf


def views(*texts: str) -> list[PassageView]:
    return [PassageView(Passage(id=str(number), text=text)) for number, text in enumerate(texts)]


def pairs(*texts: str) -> list[str]:
    return pairs_of(views(*texts), DEFAULT_MIN_WEIGHT)


def phrases(*texts: str) -> list[Entity]:
    read = views(*texts)
    wanted = pairs_of(read, DEFAULT_MIN_WEIGHT)
    return list(find_phrases(read, wanted, find_holders(wanted, read)))


def shared_words(*texts: str) -> list[Entity]:
    read = views(*texts)
    words = {word for view in read for word in view.vocabulary}
    return list(
        find_words(read, {w: [n for n, v in enumerate(read) if w in v.vocabulary] for w in words}, DEFAULT_MIN_WEIGHT)
    )


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
    (entity,) = phrases("by Anton Quillfeather", "ANTON QUILLFEATHER died", "the anton quillfeather")
    assert (entity.name, entity.kind, entity.holders) == (" anton quillfeather ", "name", [0, 1])


def test_a_pair_of_one_passage_links_nothing() -> None:
    assert phrases("by Anton Quillfeather", "by Anton", "by Quillfeather") == []


def test_the_rarest_word_of_a_name_counts_in_full_and_the_others_by_half() -> None:
    high, low = sorted((idf("anton"), idf("river")), reverse=True)
    assert name_weight(["river", "anton"]) == pytest.approx(BONUS["name"] + min(high + low / 2, MAX_PHRASE_IDF))
    assert name_weight(["xqzvorn", "xqzvarn"]) == BONUS["name"] + MAX_PHRASE_IDF


def test_a_rare_word_that_both_capitalise_is_a_name() -> None:
    (entity,) = shared_words("Old Quillfeather", "a Quillfeather")
    assert (entity.name, entity.kind, entity.holders) == (" quillfeather ", "name", [0, 1])
    assert entity.weight == BONUS["name"] + idf("quillfeather")


def test_a_rare_word_that_one_does_not_capitalise_is_a_mere_word() -> None:
    kinds = {e.kind: e for e in shared_words("a quillfeather", "one Quillfeather", "no Quillfeather")}
    assert kinds["name"].holders == [1, 2]
    assert kinds["word"].holders == [0, 1, 2]
    assert kinds["word"].weight == BONUS["word"] + idf("quillfeather")


def test_a_number_alone_is_no_name() -> None:
    assert shared_words("in 31415", "of 31415") == []
