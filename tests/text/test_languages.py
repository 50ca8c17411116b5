"""How rare words are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.text.languages import MAX_PHRASE_IDF, idf, is_foreign, naming_words, phrase_idf, rarities, words_below
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


def test_rarities_are_those_of_terms() -> None:
    assert rarities(Text("東京都")) == {"東京": RAREST, "京都": RAREST}


def test_function_words_of_another_language_are_not_rare_where_there_are_several() -> None:
    found = rarities(Text("Wie lange ist die Probezeit?"))
    assert found == {"wie": 0.5, "ist": 0.5, "die": 0.5, "lange": idf("lange"), "probezeit": RAREST}
    assert rarities(Text("Did Quorvath die?"))["die"] == idf("die") > 0.5  # one alone may be English


@pytest.mark.parametrize(
    ("text", "is_other"),
    [
        ("Was kostet die Kilowattstunde im Tarif?", True),
        ("Wer ist zuständig?", True),
        ("保修期多长?", True),
        ("In which war was the man who was with Allen in it?", False),  # all of them are German words, too
        ("Where does the bin stand in winter?", False),
        ("Who lives there?", False),
    ],
)
def test_function_words_and_scripts_tell_other_languages_from_english(text: str, is_other: bool) -> None:
    assert is_foreign(Text(text)) == is_other


def test_english_words_keep_their_rarity_beside_function_words_of_two_languages() -> None:
    words = "In which war was the man who was with Allen in it?"
    assert rarities(Text(words)) == {word: idf(word) for word in Text(words).words}


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Which river is in Amsterdam?", {"amsterdam"}),
        ("Where is the qwzxvk?", {"qwzxvk"}),
        ("The Great River of the American West?", {"great", "river", "west"}),
        ("Wann ist die Probezeit?", {"probezeit"}),
        ("Πού γεννήθηκε ο συνθέτης της Ζορίλα;", {"ζοριλα"}),
        ("που γεννηθηκε;", {"που", "γεννηθηκε"}),  # without a capital nothing tells names
        ("佐里拉?", {"佐里", "里拉"}),
        ("Is ζορ of Ångström rare?", {"ζορ", "angstrom"}),
    ],
)
def test_names_are_rare_or_capitalised(question: str, names: set[str]) -> None:
    assert naming_words(Text(question)) == names


@given(st.floats(0, 12, allow_nan=False))
def test_words_below_a_bound_are_those_of_less_idf(bound: float) -> None:
    below = words_below(bound)
    assert ("the" in below) == (idf("the") < bound)
    assert ("river" in below) == (idf("river") < bound)
    assert all(idf(word) < bound for word in list(below)[:100])
