"""What the tests of labels share: a store, and labels of invented units."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rechain.labels.store import Label, LabelStore
from rechain.text.label_units import Unit


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


@pytest.fixture
def judged() -> Said:
    """Make a label of an answer: `judged("anna", "q1", "supported", "p1", "p2")` with the chain that was picked."""

    def make(
        annotator: str, question: str, value: str, *passages: str, shape: str | None = None, **others: object
    ) -> Label:
        evidence = [{"passages": passages, "shape": shape}] if passages else []
        fields = {"annotator": annotator, "unit": {"question": question}, "value": value, "evidence": evidence}
        return Label.model_validate(fields | others)

    return make
