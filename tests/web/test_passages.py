"""What is shown of passages: their names and places, what matters in them, and a chain in one line."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.recoverer import Recoverer
from rechain.schema import Chain, Link, Mention, Passage, Question
from rechain.text.highlights import Mark
from rechain.text.passage_views import PassageView
from rechain.web.passages import (
    NO_NAME,
    Names,
    Place,
    StripView,
    _without_fragments,
    beginnings,
    excerpt,
    marked,
    place_of,
    roles_of_step,
    short,
    snippet,
    strip_of,
    telling_sentences,
    whole_words,
)

ABSTRACT = "CaV1.2 is not Ca(v)1.2 nor CaV1.2; DHP blocks it."


def question() -> Question:
    mentions = [
        Mention(entity="gene:CACNA1C", start=0, end=6),
        Mention(entity="gene:CACNA1C", start=14, end=22),
        Mention(entity="gene:CACNA1C", start=27, end=33),
        Mention(entity="drug:dhp", start=35, end=38),
    ]
    other = [Mention(entity="gene:CACNA1C", start=0, end=8)]
    return Question(
        id="q",
        question="What blocks it?",
        answer="DHP",
        passages=[
            Passage(id="1", title=" A title ", text=ABSTRACT, mentions=mentions),
            Passage(id="2", text="Ca(v)1.2 stands here in a text that is rather long for a name.", mentions=other),
        ],
    )


def test_a_passage_without_a_title_is_called_by_its_first_words() -> None:
    names = Names(question())
    called = ["A title", "“Ca(v)1.2 stands here in a text that is…”", "gone"]
    assert [names.passage(name) for name in ("1", "2", "gone")] == called


def test_an_entity_is_called_as_it_is_most_often_written() -> None:
    names = Names(question())
    assert names.entity("gene:CACNA1C", ["1"]) == "CaV1.2"
    assert names.entity("gene:CACNA1C", ["2"]) == "Ca(v)1.2"
    assert names.entity("gene:CACNA1C") == "Ca(v)1.2", "two of each: the longer"
    assert names.entity("drug:dhp", ["2"]) == "DHP", "it stands elsewhere"
    nowhere = ["drug:MESH:C038806", "Marie Curie", "odd:"]
    assert [names.entity(name) for name in nowhere] == ["MESH:C038806", "Marie Curie", "odd:"], "without its type"


def test_a_link_is_called_as_the_passages_that_it_links_have_it() -> None:
    link = Link(entity="gene:CACNA1C", kind="mention", weight=9.0, mentions=((0, 6), (0, 8)))
    assert Names(question()).link(Chain(passages=["1", "2"], links=[link], score=1.0), 0) == "Ca(v)1.2"


def test_a_long_text_is_cut_after_a_word() -> None:
    assert short("one two\nthree", 13) == "one two three"
    assert short("one two three", 12) == "one two…"
    assert short("unbroken" * 5, 10) == "unbrokenu…"


def line(strip: StripView) -> str:
    """The strip as it is read; what is brief in brackets."""
    return " > ".join(f"[{stop.number}]" if stop.is_brief else stop.name for stop in strip.stops)


def test_a_chain_reads_from_the_questions_name_to_the_answer(bridge_question: Question) -> None:
    best = Recoverer("lexical").recover(bridge_question)[0]
    strip = strip_of(bridge_question, best)
    assert [stop.kind for stop in strip.stops] == ["question", "passage", "link", "passage", "answer"]
    assert line(strip) == "Zorilla > [1] > Anton Quillfeather > [2] > Prague", "titles that say nothing new are brief"


def test_long_abstracts_are_read_by_the_names_of_their_entities() -> None:
    sentence = "A study of what happens to channels when a drug comes near them, in mice."
    spans = {"amlodipine": "drug:DB00381", "Ca(v)1.2": "gene:CACNA1C"}
    text = f"{sentence} amlodipine closes Ca(v)1.2."
    mentions = [
        Mention(entity=entity, start=text.index(name), end=text.index(name) + len(name))
        for name, entity in spans.items()
    ]
    question = Question(
        id="q",
        question="interacts_with amlodipine?",
        answer="Ca(v)1.3",
        question_entities=["drug:DB00381"],
        answer_entity="gene:CACNA1D",
        passages=[
            Passage(id="15880143", title=sentence, text=text, mentions=mentions),
            Passage(id="19029287", title=f"More: {sentence}", text=text, mentions=mentions),
        ],
    )
    link = Link(entity="gene:CACNA1C", kind="mention", weight=9.0, mentions=(None, None))
    strip = strip_of(question, Chain(passages=["15880143", "19029287"], links=[link], score=1.0))
    assert line(strip) == "amlodipine > [1] > Ca(v)1.2 > [2] > Ca(v)1.3"
    assert strip.stops[1].name == sentence, "which is there for whoever points at it"


def test_passages_side_by_side_have_no_links(bridge_question: Question) -> None:
    link = Link(entity="x", kind="name", weight=1.0, mentions=(None, None))
    chain = Chain(shape="parallel", passages=["opera", "other"], links=[link], score=1.0)
    assert line(strip_of(bridge_question, chain)) == f"{NO_NAME} > Zorilla > Weather > Prague"


def test_a_chain_of_passages_that_are_not_there(bridge_question: Question) -> None:
    question = bridge_question.model_copy(update={"answer": " "})
    assert line(strip_of(question, Chain(passages=["gone"], links=[], score=1.0))) == f"{NO_NAME} > [1] > no answer"


@pytest.mark.parametrize(
    ("asked", "title", "text", "name"),
    [
        ("Who directed Ed Wood (film)?", "Ed Wood (film)", "It is a film.", "Ed Wood"),
        ("Where was the father of Kasimir Underbrook born?", "", "He met Kasimir Underbrook.", "Kasimir Underbrook"),
        ("Where was the father of Kasimir Underbrook born?", "", "Kasimir was here.", "Kasimir"),
        ("who is it", "", "It is he.", NO_NAME),
    ],
)
def test_the_name_in_the_question_is_the_title_or_its_rarest_words(
    asked: str, title: str, text: str, name: str
) -> None:
    question = Question(id="q", question=asked, answer="x", passages=[Passage(id="p", title=title, text=text)])
    assert strip_of(question, Chain(passages=["p"], links=[], score=1.0)).stops[0].name == name


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
    place = place_of(Passage.model_validate(FIELDS | {"page": "iv"}))
    assert place is not None and place.page is None


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


FILLER = "Nothing of note was written down by the clerks of the town in that year. "
TEXT = f"{FILLER * 3}Ada met Bob. {FILLER * 2}Ada wrote to Carl about Bob. {FILLER * 3}Dora never came."
VIEW = PassageView(Passage(id="p", text=TEXT))


def mark(word: str, role: str, nth: int = 0) -> Mark:
    start = -1
    for _ in range(nth + 1):
        start = TEXT.index(word, start + 1)
    return Mark(start, start + len(word), role)


def words(spans: list[tuple[int, int]]) -> list[str]:
    return [TEXT[start:end].strip() for start, end in spans]


def test_one_sentence_that_holds_all_is_enough() -> None:
    marks = [mark("Ada", "question"), mark("Ada", "question", 1), mark("Carl", "link 1"), mark("Bob", "link 1")]
    assert words(telling_sentences(VIEW, marks, ["question", "link 1"])) == ["Ada met Bob."]
    more = [*marks, mark("Bob", "link 1", 1)]
    assert words(telling_sentences(VIEW, more, ["question", "link 1"])) == ["Ada wrote to Carl about Bob."]


def test_else_there_is_a_sentence_for_each_in_their_order() -> None:
    marks = [mark("Dora", "link 1"), mark("Bob", "answer")]
    assert words(telling_sentences(VIEW, marks, ["link 1", "answer"])) == ["Ada met Bob.", "Dora never came."]
    assert words(telling_sentences(VIEW, marks, ["link 1"])) == ["Dora never came."], "what does not matter is left out"


def test_where_nothing_is_held_the_first_sentence_stands_for_the_text() -> None:
    assert words(telling_sentences(VIEW, [], ["answer"])) == [FILLER.strip()]


def test_an_excerpt_has_its_marks() -> None:
    shown = excerpt(VIEW, [mark("Bob", "answer"), mark("Carl", "link 1")], ["answer"])
    assert shown is not None
    assert [[piece for piece in sentence if piece.roles] for sentence in shown] == [[("Bob", ("answer",))]]


def test_a_short_text_is_shown_whole() -> None:
    assert excerpt(PassageView(Passage(id="p", text="Ada met Bob. It rained.")), [], ["answer"]) is None


def test_a_long_sentence_loses_what_is_far_from_all_that_matters() -> None:
    text = f"{'so it went on and ' * 30}Ada met Bob{' and so it went on' * 30}."
    start = text.index("Ada")
    shown = excerpt(PassageView(Passage(id="p", text=text)), [Mark(start, start + 3, "answer")], ["answer"])
    assert shown is not None
    line = "".join(piece.text for piece in shown[0])
    assert "Ada met Bob" in line and len(line) < 260
    assert not line.startswith(" ") and text[text.index(line) - 1] == " ", "it begins with a whole word"


def test_what_matters_depends_on_the_place_in_the_chain() -> None:
    assert roles_of_step(0, [(0, 1), (1, 2)]) == ["question", "link 1", "claim"]
    assert roles_of_step(1, [(0, 1), (1, 2)]) == ["link 1", "link 2", "claim"]
    assert roles_of_step(2, [(0, 1), (1, 2)]) == ["link 2", "answer", "claim"]
    assert roles_of_step(1, []) == ["question", "answer", "claim"], "side by side"


@given(
    st.text(alphabet="ab. \n", min_size=1, max_size=1500).filter(str.strip),
    st.lists(st.tuples(st.integers(0, 1499), st.integers(1, 40), st.sampled_from(["answer", "link 1", "claim"]))),
)
def test_every_role_that_matters_is_in_the_excerpt_and_nothing_is_invented(
    text: str, places: list[tuple[int, int, str]]
) -> None:
    marks = sorted(Mark(start, min(start + size, len(text)), role) for start, size, role in places if start < len(text))
    shown = excerpt(PassageView(Passage(id="p", text=text)), marks, ["answer", "link 1"])
    if shown is None:
        return
    sentences = ["".join(piece.text for piece in sentence) for sentence in shown]
    assert all(sentence in text for sentence in sentences)
    held = {role for sentence in shown for piece in sentence for role in piece.roles}
    visible = {mark.role for mark in marks if text[mark.start : mark.end].strip()} & {"answer", "link 1"}
    assert visible <= held


def test_a_snippet_of_a_long_text_is_short_and_shows_the_words() -> None:
    text = f"{'Nothing here. ' * 200}The Zorilla clock struck{' and more' * 200}"
    pieces = snippet(text, whole_words(text, ["clock", "zorilla"]))
    shown = "".join(piece.text for piece in pieces)
    assert shown.startswith("… ") and shown.endswith(" …")
    assert len(shown) <= 310
    assert [piece.text for piece in pieces if piece.roles] == ["Zorilla", "clock"]


def test_a_snippet_of_a_short_text_is_the_text() -> None:
    text = "短い 東京都の話"
    assert "".join(piece.text for piece in snippet(text, whole_words(text, ["東京"]))) == text


def test_words_that_begin_so_are_marked_whole() -> None:
    text = "Dvořák’s dances, danced by C++ dvorakians"
    pieces = marked(text, beginnings(text, ["dvorak", "dance", "c++"]))
    assert [piece.text for piece in pieces if piece.roles] == ["Dvořák", "dances", "danced", "C++", "dvorakians"]


@given(st.text(max_size=60), st.lists(st.text("abcé漢 ", min_size=1, max_size=3), max_size=4))
def test_marking_leaves_the_text_as_it_is(text: str, words: list[str]) -> None:
    assert "".join(piece.text for piece in marked(text, beginnings(text, words))) == text


def test_an_excerpt_does_not_begin_with_an_initial() -> None:
    text = "Nothing matters here at all. J. K. Quill was born in Prague in the year of the flood. " * 6
    view = PassageView(Passage(id="1", text=text))
    assert all(end - start > 12 for start, end in telling_sentences(view, [], []))
    assert _without_fragments([(0, 3), (3, 30), (30, 60)]) == [(0, 30), (30, 60)]
