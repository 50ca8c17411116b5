"""The lexical rule, worked by hand."""

from math import log

import pytest

from rechain.candidates import find_candidates
from rechain.linking import KINDS
from rechain.recovery import Recoverer
from rechain.schema import Mention, Passage, Question
from rechain.scoring.lexical import LINK_FACTOR, Lexical
from rechain.scoring.pairs import MENTION_FACTOR
from rechain.text.rarity import idf


def text_question(asked: str, *texts: str) -> Question:
    passages = [Passage(id=str(number), text=text) for number, text in enumerate(texts)]
    return Question(id="q", question=asked, answer="Ostrela", passages=passages)


def test_words_of_the_question_in_either_passage_count_once_by_idf_and_links_by_weight() -> None:
    asked = "Which river, a long river, passes a castle and a bridge?"
    found = find_candidates(text_question(asked, "The river of Quorvath, a river", "Quorvath: river, castle, Ostrela"))
    (score,) = Lexical().score(found)
    shared = ["river", "castle", "a"]
    assert score["question words"] == pytest.approx(sum(map(idf, shared)))
    assert score["links"] == pytest.approx(LINK_FACTOR * (KINDS["name"].bonus + idf("quorvath")))
    assert set(score) == {"question words", "links"}


def test_the_head_that_the_question_speaks_of_is_preferred() -> None:
    texts = "A bridge by Quorvath", "A castle by Quorvath", "Quorvath was born in Ostrela"
    for asked, head in ("Where was the maker of the bridge born?", "0"), ("Where was the castle's maker born?", "1"):
        assert Recoverer("lexical").recover(text_question(asked, *texts)).chains[0].passages == [head, "2"]


def test_a_strong_link_outweighs_a_common_word() -> None:
    passages = [
        Passage(id="weak", text="an old quorvath was there"),
        Passage(id="strong", text="the friend of Brimlad"),
        Passage(id="tail", title="Brimlad", text="a quorvath in Ostrela"),
    ]
    question = Question(id="q", question="Who was there?", answer="Ostrela", passages=passages)
    assert Recoverer("lexical").recover(question).chains[0].passages == ["strong", "tail"]


def passage(name: str, text: str, **entities: str) -> Passage:
    """A passage in which each entity stands wherever its name does."""
    mentions = [
        Mention(entity=f"{kind}:{found}", start=at, end=at + len(found))
        for found, kind in entities.items()
        for at in range(len(text))
        if text.startswith(found, at)
    ]
    return Passage(id=name, text=text, mentions=mentions)


HEAD = passage("head", "A1 binds X1. A1 and X1 again. Then X1.", A1="drug", X1="gene")
FAR = passage("far", "A1 is old. But X1 is new.", A1="drug", X1="gene")
TAIL = passage("tail", "X1 meets Y1. No more.", X1="gene", Y1="gene")


def entity_question(*passages: Passage) -> Question:
    return Question(
        id="q",
        question="A1?",
        answer="Y1",
        answer_entity="gene:Y1",
        question_entities=["drug:A1"],
        link_types=["gene"],
        hops=2,
        passages=list(passages),
    )


def test_entity_pairs_count_by_the_sentences_and_mentions_they_share() -> None:
    found = find_candidates(entity_question(HEAD, TAIL))
    (score,) = Lexical().score(found)
    # head: A1 and X1 share 2 sentences, stand there 2 and 3 times; tail: X1 and Y1 share 1, once each
    assert score["pairs in one sentence"] == pytest.approx(log(2 + 0.1) + log(1 + 0.1))
    assert score["mentions"] == pytest.approx(MENTION_FACTOR * log(2 * 3))


def test_entities_in_one_sentence_are_preferred_to_entities_apart() -> None:
    recovered = Recoverer("lexical", top=2).recover(entity_question(FAR, HEAD, TAIL))
    assert [chain.passages for chain in recovered.chains] == [["head", "tail"], ["far", "tail"]]


def test_entities_that_share_no_sentence_still_have_a_score() -> None:
    (score,) = Lexical().score(find_candidates(entity_question(FAR, TAIL)))
    assert score["pairs in one sentence"] == pytest.approx(log(0.1) + log(1.1))
    assert score["mentions"] == 0.0


def test_identifiers_in_the_text_count_as_entities_do() -> None:
    passages = [
        Passage(id="far", text="DB00001 is old. But P04637 is new."),
        Passage(id="near", text="DB00001 binds P04637."),
        Passage(id="tail", text="P04637 binds DB00072."),
    ]
    question = Question(
        id="q",
        question="DB00001?",
        answer="DB00072",
        answer_entity="drug:DB00072",
        question_entities=["drug:DB00001"],
        link_types=["protein"],
        hops=2,
        passages=passages,
    )
    assert Recoverer("lexical").recover(question).chains[0].passages == ["near", "tail"]
