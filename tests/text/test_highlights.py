"""What is highlighted in a text: every mention, however marks overlap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.recoverer import Recoverer
from rechain.schema import Chain, Claim, HeldAnswer, Link, Mention, Passage, Question
from rechain.text.highlights import Highlighter, Mark, cut
from rechain.text.passage_views import PassageView


def marked(question: Question, chain: Chain | None, passage: Passage) -> set[tuple[str, str]]:
    found = Highlighter.of_chain(question, chain).marks(PassageView(passage))
    return {(passage.text[mark.start : mark.end], mark.role) for mark in found}


def test_links_question_and_answer_are_marked(bridge_question: Question) -> None:
    (chain,) = Recoverer("lexical").recover(bridge_question).chains
    opera, composer, *_ = bridge_question.passages
    assert marked(bridge_question, chain, opera) == {("Zorilla", "question"), ("Anton Quillfeather", "link 1")}
    assert marked(bridge_question, chain, composer) == {("Anton Quillfeather", "link 1"), ("Prague", "answer")}


def test_every_mention_is_marked_whatever_its_case_and_accents() -> None:
    passage = Passage(id="p", text="Dvořák met DVORAK. Dvorak's pupil was no Dvorakian; dvořák.")
    question = Question(id="q", question="who?", answer="Dvořák", passages=[passage])
    marks = Highlighter(question).marks(PassageView(passage))
    assert [passage.text[mark.start : mark.end] for mark in marks] == ["Dvořák", "DVORAK", "Dvorak", "dvořák"]
    assert {mark.role for mark in marks} == {"answer"}


def test_entities_that_the_data_gives_are_marked_by_its_mentions() -> None:
    mentions = [Mention(entity="drug:1", start=0, end=7), Mention(entity="gene:2", start=14, end=17)]
    passage = Passage(id="p", text="Aspirin blocks COX and aspirin.", mentions=mentions)
    passage = passage.model_copy(update={"mentions": [mentions[0], Mention(entity="gene:2", start=15, end=18)]})
    question = Question(
        id="q",
        question="aspirin?",
        answer="x",
        question_entities=["drug:1"],
        answer_entity="gene:9",
        passages=[passage],
    )
    link = Link(entity="gene:2", kind="mention", weight=10.0, mentions=((15, 18), None))
    chain = Chain(passages=["p", "r"], links=[link], score=0.0)
    assert marked(question, chain, passage) == {("Aspirin", "question"), ("COX", "link 1")}


@pytest.mark.parametrize("span", [(5, 900), (-3, 2), (4, 4), (3, 1)])
def test_a_chain_whose_spans_do_not_fit_the_text_marks_nothing_there(span: tuple[int, int]) -> None:
    passage = Passage(id="p", text="Nothing to see.")
    question = Question(id="q", question="what?", answer="none", passages=[passage])
    link = Link(entity="!", kind="name", weight=1.0, mentions=(span, None))
    assert marked(question, Chain(passages=["p", "r"], links=[link], score=0.0), passage) == set()


def test_words_of_the_question_that_follow_one_another_are_one_mark() -> None:
    passage = Passage(id="p", text="The New Quorvath Bridge; Quorvath, too.")
    question = Question(id="q", question="Who built the Quorvath Bridge?", answer="?!", passages=[passage])
    assert [tuple(mark) for mark in Highlighter(question).marks(PassageView(passage))] == [
        (8, 23, "question"),
        (25, 33, "question"),
    ]


def test_a_text_is_cut_where_marks_begin_and_end() -> None:
    pieces = cut("abcdef", [Mark(1, 4, "answer"), Mark(2, 6, "link 1"), Mark(1, 4, "question")])
    assert [(piece.text, piece.roles) for piece in pieces] == [
        ("a", ()),
        ("b", ("answer", "question")),
        ("cd", ("answer", "question", "link 1")),
        ("ef", ("link 1",)),
    ]


spans = st.tuples(st.integers(0, 12), st.integers(1, 6), st.sampled_from(["question", "answer", "link 1"]))


@given(st.text(min_size=20, max_size=30), st.lists(spans, max_size=8))
def test_pieces_are_the_text_and_every_character_has_its_marks(text: str, told: list[tuple[int, int, str]]) -> None:
    marks = {Mark(start, start + length, role) for start, length, role in told}
    pieces = cut(text, marks)
    assert "".join(piece.text for piece in pieces) == text
    roles = [set(piece.roles) for piece in pieces for _ in piece.text]
    assert roles == [{m.role for m in marks if m.start <= n < m.end} for n in range(len(text))]


def test_the_answer_is_marked_where_the_chain_says_and_claims_where_their_sentences_stand() -> None:
    passage = Passage(id="p", text="It costs EUR 120. It rains.")
    question = Question(id="q", question="what?", answer="a hundred and twenty euros", passages=[passage])
    held = HeldAnswer(match="normalised", passage="p", span=(9, 16))
    chain = Chain(shape="single", passages=["p"], links=[], answer=held, score=0.0)
    claims = [
        Claim(text="It costs 120 euros.", verdict="supported", passage="p", span=(0, 17)),
        Claim(text="It is old.", verdict="unsupported"),
        Claim(text="Of another text.", verdict="supported", passage="p", span=(0, 900)),
    ]
    marks = Highlighter.of_chain(question, chain, claims).marks(PassageView(passage))
    assert {(passage.text[mark.start : mark.end], mark.role) for mark in marks} == {
        ("EUR 120", "answer"),
        ("It costs EUR 120.", "claim"),
    }


def test_the_sentence_that_decides_a_yes_is_no_answer_but_a_claim() -> None:
    passage = Passage(id="1", text="The bridge is open at night. It rains.")
    question = Question(id="q", question="Is the bridge open at night?", answer="Yes.", passages=[passage])
    held = HeldAnswer(match="meaning", passage="1", span=(0, 28))
    chain = Chain(shape="single", passages=["1"], links=[], answer=held, score=1.0)
    roles = {mark.role for mark in Highlighter.of_chain(question, chain).marks(PassageView(passage))}
    assert "claim" in roles and "answer" not in roles
