"""Names of passages and entities: titles and texts, never bare identifiers where there is anything better."""

from rechain.schema import Chain, Link, Mention, Passage, Question
from rechain.web.names import Names, passage_name, short

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
