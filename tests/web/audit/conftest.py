"""What the tests of audits share: answers of a handbook, made and judged by hand."""

from collections.abc import Callable
from typing import Any

import pytest

from rechain.schema import Passage, Question, Recovered
from rechain.web.audit_answers import AuditedAnswer

Make = Callable[..., AuditedAnswer]
PASSAGES = [
    Passage(id="rates", title="City rates", text="Hotels: Zurich EUR 180. Oslo EUR 210. Breakfast is included."),
    Passage(id="travel", title="Travel", text="City rates list what hotels may cost. Ask Mara Lind on Mondays."),
    Passage(id="leave", title="Leave", text="You have 27 days of leave."),
]


def make_answer(
    verdict: str | None = "supported",
    probability: float | None = 0.9,
    *,
    question: str = "What is the hotel limit in Zurich?",
    answer: str = "It is EUR 180.",
    passages: list[Passage] = PASSAGES,
    chains: list[dict[str, Any]] | None = None,
    claims: list[dict[str, Any]] | None = None,
    error: dict[str, str] | None = None,
    **fields: Any,
) -> AuditedAnswer:
    """Return an answer; `fields` are those that the log has besides."""
    asked = Question(id="q1", question=question, answer=answer, passages=passages, **fields)
    found = {"id": "q1", "verdict": verdict, "verdict_probability": probability, "claims": claims or []}
    recovered = Recovered.model_validate({**found, "chains": chains or [], "error": error})
    return AuditedAnswer("log, line 1", asked, recovered)


@pytest.fixture(scope="session")
def answered() -> Make:
    """Make an answer: `answered("unsupported", 0.8, answer="It is EUR 210.", tag="travel")`."""
    return make_answer


LINK = {"entity": "City rates", "kind": "title", "weight": 9.0, "mentions": [[0, 10], None]}
CHAIN: dict[str, Any] = {
    "passages": ["travel", "rates"],
    "links": [LINK],
    "answer": {"match": "phrase", "passage": "rates", "span": [15, 22]},
    "score": 1.0,
    "confidence": 0.83,
}
"""from "Travel" to "City rates", which has EUR 180"""


@pytest.fixture(scope="session")
def chain() -> dict[str, Any]:
    """The chain of the answer that is right."""
    return CHAIN
