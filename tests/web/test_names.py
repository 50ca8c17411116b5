"""Names of passages and entities, and the strip: what leads from question to answer, by names."""

import pytest

from rechain.recoverer import Recoverer
from rechain.schema import Chain, Link, Mention, Passage, Question
from rechain.web.names import NO_NAME, Names, StripView, name_in_question, passage_name, short, strip_of

TEXT = "CaV1.2 is not Ca(v)1.2 nor CaV1.2; DHP blocks it."


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
            Passage(id="1", title=" A title ", text=TEXT, mentions=mentions),
            Passage(id="2", text="Ca(v)1.2 stands here in a text that is rather long for a name.", mentions=other),
        ],
    )


def test_a_passage_without_a_title_is_called_by_its_first_words() -> None:
    names = Names(question())
    assert (names.passage("1"), names.has_title("1")) == ("A title", True)
    assert (names.passage("2"), names.has_title("2")) == ("“Ca(v)1.2 stands here in a text that is…”", False)
    assert (names.passage("gone"), names.has_title("gone")) == ("gone", False)
    assert passage_name(question().passages[0]) == "A title"


def test_an_entity_is_called_as_it_is_most_often_written() -> None:
    names = Names(question())
    assert names.entity("gene:CACNA1C", ["1"]) == "CaV1.2"
    assert names.entity("gene:CACNA1C", ["2"]) == "Ca(v)1.2"
    assert names.entity("gene:CACNA1C") == "Ca(v)1.2", "two of each: the longer"
    assert names.entity("drug:dhp", ["2"]) == "DHP", "it stands elsewhere"


def test_an_entity_that_stands_nowhere_loses_its_type_alone() -> None:
    names = Names(question())
    assert names.entity("drug:MESH:C038806") == "MESH:C038806"
    assert names.entity("Marie Curie") == "Marie Curie"
    assert names.entity("odd:") == "odd:"


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
    question = Question(id="q", question=asked, answer="x", passages=[])
    assert name_in_question(question, Passage(id="p", title=title, text=text)) == name
