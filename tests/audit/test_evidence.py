"""What the page shows of an answer: claims marked, sentences highlighted, long texts around what is marked."""

from typing import Any

from rechain.audit.answers import audited
from rechain.audit.evidence import evidence_of
from rechain.datasets.reading import Entry
from rechain.errors import QuestionError
from rechain.schema import Passage, Recovered

HELD = {"text": "It is EUR 180.", "verdict": "supported", "passage": "rates", "span": [0, 23]}


def texts(pieces: Any, role: str) -> list[str]:
    return [piece.text for piece in pieces if role in piece.roles]


def test_claims_are_marked_in_the_answer_and_their_sentences_in_the_passages(answered: Any, chain: Any) -> None:
    free = {"text": "Taxis are free.", "verdict": "unsupported"}
    gone = {"text": "said otherwise", "verdict": "unsupported"}
    answer = answered("partly", answer="It is EUR 180. Taxis are free.", chains=[chain], claims=[HELD, free, gone])
    found = evidence_of(answer)
    assert found is not None
    assert texts(found.answer, "supported") == ["It is EUR 180."]
    assert texts(found.answer, "unsupported") == ["Taxis are free."]
    assert [(step.title, step.link and step.link.entity) for step in found.steps] == [
        ("Travel", "City rates"),
        ("City rates", None),
    ]
    assert "".join(texts(found.steps[1].pieces, "claim")) == "Hotels: Zurich EUR 180."
    assert texts(found.steps[1].pieces, "answer") == ["EUR 180"]
    assert found.others == []


def test_passages_side_by_side_have_no_links_and_other_holders_are_shown(answered: Any, chain: Any) -> None:
    parallel = chain | {"shape": "parallel", "passages": ["leave", "travel"], "answer": None}
    found = evidence_of(answered(chains=[parallel], claims=[HELD]))
    assert found is not None
    assert [(step.title, step.link) for step in found.steps] == [("Leave", None), ("Travel", None)]
    assert [step.title for step in found.others] == ["City rates"]


def test_of_a_long_text_the_part_around_the_answer_is_shown(answered: Any) -> None:
    text = f"{'It rains. ' * 1000}It costs 180. {'It rains. ' * 1000}"
    at = text.index("180")
    held = {"match": "phrase", "passage": "p", "span": [at, at + 3]}
    chain = {"shape": "single", "passages": ["p"], "links": [], "answer": held, "score": 1.0}
    long = answered(passages=[Passage(id="p", text=text)], chains=[chain], answer="a" * 5000)
    found = evidence_of(long)
    assert found is not None
    (step,) = found.steps
    shown = "".join(piece.text for piece in step.pieces)
    assert len(shown) < 2100
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert texts(step.pieces, "answer") == ["180"]
    assert sum(len(piece.text) for piece in found.answer) == 2001


def test_chains_of_other_texts_show_what_there_is(answered: Any, chain: Any) -> None:
    found = evidence_of(answered(chains=[chain | {"passages": ["gone", "rates"]}], claims=[HELD | {"span": [0, 999]}]))
    assert found is not None
    assert [step.title for step in found.steps] == ["City rates"]


def test_a_record_that_could_not_be_read_has_no_evidence() -> None:
    assert evidence_of(audited(Entry("", None, QuestionError("bad_json", "no")), Recovered(chains=[]))) is None
