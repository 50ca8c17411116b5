"""What the tests of the exports share: a question with chains, made and joined."""

from collections.abc import Callable
from typing import Any

import pytest

from rechain.formats.exports.joining import Joined
from rechain.schema import Question, Recovered

Make = Callable[..., Recovered]


def make_recovered(name: str | None, *chains: list[str], confidence: float | None = None, **fields: Any) -> Recovered:
    """Return chains whose links stand nowhere but in titles; fields are those of a chain."""
    made = [
        {
            "passages": passages,
            "links": [
                {"entity": after, "kind": "title", "weight": 9.5, "mentions": [None, None]} for after in passages[1:]
            ],
            "score": 1.5,
            "confidence": confidence,
            **fields,
        }
        for passages in chains
    ]
    error = None if chains else {"code": "no_link", "message": "no link"}
    return Recovered.model_validate({"id": name, "chains": made, "error": error})


@pytest.fixture
def recovered() -> Make:
    """Make chains: `recovered("q1", ["opera", "composer"])`."""
    return make_recovered


@pytest.fixture
def bridge(bridge_question: Question) -> Joined:
    """The question of the opera with its chain; the composer stands in both texts."""
    link = {"entity": "Anton Quillfeather", "kind": "title", "weight": 9.5, "mentions": [[23, 41], [0, 18]]}
    return Joined(bridge_question, make_recovered("q1", ["opera", "composer"], links=[link]), {})
