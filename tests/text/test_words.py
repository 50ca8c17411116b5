"""Words, folding and offsets: the ground that all matching stands on."""

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rechain.text.words import Text, fold, lazy, phrase, strip_suffix

ODD = (
    "aZß ﬁéÅ\u0301\u0323\u030c 1234567890,.'+#_-!\x00\x01\x1c\n\t\u00a0İıςΣǅℂ²½①⒈Ⅷ🎻\u200dΩ"
    "日本語かなｶﾞ\u3099คำ한ᄒ\u1161हिन्दी\u0958שָׁלוֹم\ufe70"
)
texts = st.one_of(st.text(ODD, max_size=30), st.text(max_size=30))


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Prague", "prague"),
        ("Dvořák", "dvorak"),
        ("Dvor\u030ca\u0301k", "dvorak"),
        ("Straße", "strasse"),
        ("ﬁne", "fine"),
        ("İstanbul", "istanbul"),
        ("Σίσυφος", "σισυφοσ"),
        ("Ａ", "a"),
        ("ℂ", "c"),
        ("𝐏𝐫𝐚𝐠𝐮𝐞", "prague"),
    ],
)
def test_fold_removes_case_and_accents(text: str, folded: str) -> None:
    assert fold(text) == folded


@given(texts)
def test_folding_a_folded_text_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text("abcdeéřůßñÅ ", max_size=20))
def test_fold_does_not_depend_on_how_accents_are_written(text: str) -> None:
    assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize(
    ("title", "bare"),
    [
        ("Mercury (planet)", "Mercury"),
        ("Mercury (planet) ", "Mercury"),
        ("(What's the Story) Morning Glory?", "(What's the Story) Morning Glory?"),
        ("Foo (a) (b)", "Foo (a)"),
        ("(planet)", "(planet)"),
        ("Mercury", "Mercury"),
        ("", ""),
    ],
)
def test_strip_suffix_removes_one_bracketed_suffix_but_never_all(title: str, bare: str) -> None:
    assert strip_suffix(title) == bare


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("St. Louis", ["st", "louis"]),
        ("1,234 men", ["1234", "men"]),
        ("1,234,567", ["1234567"]),
        ("In 1990,1991 and 1,23", ["in", "1990", "1991", "and", "1", "23"]),
        ("red,green", ["red", "green"]),
        ("C++ and C#", ["c++", "and", "c#"]),
        ("___MASK7___!", ["___mask7___"]),
        ("O'Brien's", ["o", "brien", "s"]),
        ("東京 Tower", ["東", "京", "tower"]),
        ("Tokyoの東", ["tokyo", "の", "東"]),
        ("cafe\u0301s", ["cafes"]),
        ("a🎻b", ["a", "b"]),
        ("Zü\u00adrich \u00ad \ufeffnow", ["zurich", "now"]),
        ("می\u200cخواهم", ["میخواهم"]),
        ("red\u200bgreen", ["red", "green"]),
        ("a\u00a0b\u2014c", ["a", "b", "c"]),
        ("!!! …", []),
        ("", []),
    ],
)
def test_a_text_is_cut_into_folded_words(text: str, words: list[str]) -> None:
    assert Text(text).words == words


@pytest.mark.parametrize("text", ["ax\u030cb", "é ax\u030cb", "e\u0301 ax\u030cb"])
def test_words_are_not_cut_at_an_accent_that_no_single_character_has(text: str) -> None:
    assert Text(text).words[-1] == "axb"


def test_raw_words_keep_case_and_accents() -> None:
    assert Text("Antonín Dvořák's 1,234 notes").raw_words == ["Antonín", "Dvořák", "s", "1,234", "notes"]


@pytest.mark.parametrize(("text", "joined"), [("St. Louis!", " st louis "), ("A", " a "), ("...", ""), ("", "")])
def test_a_phrase_has_a_blank_on_either_side_of_each_word(text: str, joined: str) -> None:
    assert phrase(text) == joined


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The river, THE sea", ["the", "river", "the", "sea"]),
        ("Dvořák's", ["dvorak", "s"]),
        ("東京都", ["東京", "京都"]),
        ("東京 Tower 2 号", ["tower", "2", "東京"]),  # 号 stands alone
        ("東", []),
        ("", []),
    ],
)
def test_terms_are_words_or_two_characters_of_a_script_without_blanks(text: str, terms: list[str]) -> None:
    assert Text(text).terms == terms


def test_find_returns_the_first_whole_words() -> None:
    text = Text("The Louisiana of St Louis, the St. Louis")
    assert text.find(" st louis ") == 3
    assert text.find(" the ") == 0
    assert text.find(" louis ") == 4
    assert text.find(" loui ") is None


@pytest.mark.parametrize(
    ("text", "first", "words", "cut"),
    [
        ("Anton Quill lives", 0, 2, "Anton Quill"),
        ("caravan car van car", 1, 1, "car"),
        ("car caravan, van", 2, 1, "van"),
        ("It cost 1,234 crowns", 2, 1, "1,234"),
        ("St. Louis, Mo.", 0, 2, "St. Louis"),
        ("cafe\u0301 Dvor\u030ca\u0301k was", 1, 1, "Dvor\u030ca\u0301k"),
        ("e\u0301 東京都", 2, 2, "京都"),
        ("one", 0, 1, "one"),
    ],
)
def test_span_cuts_words_out_of_the_original_text(text: str, first: int, words: int, cut: str) -> None:
    start, end = Text(text).span(first, words)
    assert text[start:end] == cut


def test_a_word_inside_another_is_not_taken_for_it() -> None:
    assert Text("caravan car").span(1, 1) == (8, 11)


@given(texts)
@example("a ﾞ b")
@example("a \ufe70 b")
@example("\x01")
@example("a\x01b")
def test_words_and_raw_words_stay_aligned(text: str) -> None:
    read = Text(text)
    assert len(read.words) == len(read.raw_words)
    assert [phrase(word).strip() for word in read.raw_words] == read.words


@settings(max_examples=300)
@given(texts)
@example("a\x01b")
@example("e\u0301 x\u030c")
@example("e\u0301 \u0958")
@example("1,234 1,2345 234")
@example("\u3099\u05b8")
@example("0\u30990")
def test_every_span_cuts_out_the_words_it_claims(text: str) -> None:
    read = Text(text)
    end_before = 0
    for number in range(len(read.words)):
        start, end = read.span(number, 1)
        assert end_before <= start < end <= len(text)
        assert Text(text[start:end]).words == [read.words[number]]
        end_before = end
        assert Text(text[start : read.span(number, len(read.words) - number)[1]]).words == read.words[number:]


@given(texts, st.data())
def test_find_finds_every_row_of_words(text: str, data: st.DataObject) -> None:
    read = Text(text)
    first = data.draw(st.integers(0, len(read.words)))
    wanted = read.words[first : first + 3]
    found = read.find(f" {' '.join(wanted)} ")
    if wanted:
        assert found is not None
        assert found <= first
        assert read.words[found : found + len(wanted)] == wanted


@given(st.lists(st.sampled_from(["Ada", "the", "of", "Rome"]), min_size=1, max_size=30), st.data())
def test_a_long_text_is_searched_by_an_index_with_the_same_results(words: list[str], data: st.DataObject) -> None:
    row = data.draw(st.lists(st.sampled_from(["Ada", "the", "of", "Rome", "Paris"]), min_size=1, max_size=4))
    short, long = Text(", ".join(words)), Text(", ".join(words))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rechain.text.words._LONG", 0)
        found = long.find(phrase(" ".join(row)))
        span = None if found is None else long.span(found, len(row))
    assert found == short.find(phrase(" ".join(row)))
    assert span == (None if found is None else short.span(found, len(row)))


@pytest.mark.parametrize(
    "text",
    ["a" + " " * 200_000 + "b)", "a" + "\u0301\u0316" * 100_000, "".join(map(chr, range(0x2000, 0x2E00))) * 60],
    ids=["blanks", "accents", "symbols"],
)
def test_no_text_takes_more_than_its_length(text: str) -> None:
    """Were any expression quadratic, this would take minutes."""
    assert Text(strip_suffix(text)).original


class Counted:
    def __init__(self) -> None:
        self.times = 0

    @lazy
    def value(self) -> int:
        """What it is worth."""
        self.times += 1
        return 42


def test_a_lazy_attribute_is_computed_once_and_only_when_asked_for() -> None:
    counted = Counted()
    assert counted.times == 0
    assert (counted.value, counted.value) == (42, 42)
    assert counted.times == 1


def test_every_instance_has_its_own_value() -> None:
    one, two = Counted(), Counted()
    assert one.value == 42
    assert (one.times, two.times) == (1, 0)


def test_a_lazy_attribute_keeps_its_docstring() -> None:
    assert vars(Counted)["value"].__doc__ == "What it is worth."


def test_asked_of_the_class_it_is_itself_as_a_cached_property_is() -> None:
    assert Counted.value is vars(Counted)["value"]
