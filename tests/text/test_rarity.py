"""How rare words are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.text.rarity import MAX_PHRASE_IDF, idf, phrase_idf, rarities, words_below
from rechain.text.words import Text

RAREST = idf("qwzxvk")


def test_common_words_have_less_weight_than_rare_ones() -> None:
    assert 0 <= idf("the") < idf("river") < idf("amsterdam") < RAREST


def test_a_word_outside_the_table_is_as_rare_as_the_rarest_in_it() -> None:
    assert idf("qwzxvk") == idf("vkqwzx") == max(idf(word) for word in words_below(100.0))


def test_a_phrase_is_as_rare_as_its_words_together_up_to_a_ceiling() -> None:
    assert phrase_idf(["the", "river"]) == pytest.approx(idf("the") + idf("river"))
    assert phrase_idf(["qwzxvk", "vkqwzx"]) == MAX_PHRASE_IDF
    assert phrase_idf([]) == 0


def test_rarities_are_those_of_the_distinct_folded_words() -> None:
    assert rarities(Text("Ång the ANG!")) == {"ang": idf("ang"), "the": idf("the")}


@given(st.floats(0, 12, allow_nan=False))
def test_words_below_a_bound_are_those_of_less_idf(bound: float) -> None:
    below = words_below(bound)
    assert ("the" in below) == (idf("the") < bound)
    assert ("river" in below) == (idf("river") < bound)
    assert all(idf(word) < bound for word in list(below)[:100])
