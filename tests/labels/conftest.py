"""What the tests of labels share: a question of MedHop's kind, and labels of invented units."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rechain.labels.store import Label, LabelStore
from rechain.labels.units import Unit
from rechain.schema import Passage, Question


@pytest.fixture
def medhop() -> Question:
    """Two candidate chains, drug 1 - protein - protein - drug 2: over passages 0, 1, 2 and over 0, 3, 2."""
    return Question(
        id="MH_1",
        question="interacts_with DB00001?",
        answer="DB00002",
        question_entities=["drug:DB00001"],
        answer_entity="drug:DB00002",
        hops=3,
        link_types=["protein", "protein"],
        passages=[
            Passage(id="0", text="DB00001 binds P12345 and P99999 ."),
            Passage(id="1", text="P12345 activates Q23456 ."),
            Passage(id="2", text="Q23456 is cut by DB00002 ."),
            Passage(id="3", text="P99999 activates Q23456 ."),
        ],
    )


@pytest.fixture
def store(tmp_path: Path) -> LabelStore:
    return LabelStore(tmp_path / "labels.db")


Said = Callable[..., Label]


@pytest.fixture
def said() -> Said:
    """Make a label: `said("anna", "q1", 3, "no")` is of the pair of passage 3."""

    def make(annotator: str, question: str, passage: object, value: str = "yes", **others: object) -> Label:
        unit = Unit(question=question, passages=(str(passage),), entities=("a", "b"))
        return Label.model_validate({"annotator": annotator, "unit": unit, "value": value, **others})

    return make
