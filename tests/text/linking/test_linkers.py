"""Which passages hold which phrases, by Aho-Corasick, compared with a plain search."""

from hypothesis import given
from hypothesis import strategies as st

from rechain.schema import Passage
from rechain.text.linking.linkers import find_holders
from rechain.text.passage_views import PassageView
from rechain.text.words import phrase


def views(*passages: tuple[str, str]) -> list[PassageView]:
    return [PassageView(Passage(id=str(n), title=title, text=text)) for n, (title, text) in enumerate(passages)]


def test_phrases_are_found_at_whole_words_in_title_or_text() -> None:
    read = views(("Car", "A caravan"), ("", "a van"), ("", "Caravan and car"))
    assert find_holders([" car ", " van ", " caravan ", " bus "], read) == {
        " car ": [0, 2],
        " van ": [1],
        " caravan ": [0, 2],
    }


def test_no_phrase_reaches_from_title_to_text_or_from_one_passage_to_the_next() -> None:
    assert find_holders([" a b ", " b c "], views(("a", "b"), ("c", "x"))) == {}


def test_phrases_that_overlap_are_all_found() -> None:
    wanted = [" a b ", " b c ", " b ", " a b c "]
    assert find_holders(wanted, views(("", "a b c"))) == {name: [0] for name in wanted}


def test_nothing_wanted_gives_nothing() -> None:
    assert find_holders([], views(("", "a b"))) == {}
    assert find_holders([" a "], []) == {}


words = st.lists(st.sampled_from(["a", "b", "ab", "é", "東", "ß", "🎻", "."]), min_size=1, max_size=6).map(" ".join)


@given(st.lists(words, max_size=5), st.lists(st.tuples(words, words), max_size=5))
def test_the_scan_finds_what_a_plain_search_finds(wanted: list[str], passages: list[tuple[str, str]]) -> None:
    phrases = [p for p in map(phrase, wanted) if p]
    read = views(*passages)
    plain = {p: [n for n, view in enumerate(read) if p in view.joined] for p in phrases}
    assert find_holders(phrases, read) == {p: holders for p, holders in plain.items() if holders}
