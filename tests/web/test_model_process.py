"""A model in a process of its own: the same chains, errors that reach who asks, and a process that may die."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from rechain.errors import QuestionError, RechainError
from rechain.formats.datasets import Entry
from rechain.recoverer import NoConfidenceError, Recoverer, RecovererConfig
from rechain.schema import Question
from rechain.scoring.results import Options
from rechain.web.service import NICENESS, ProcessRecoverer

Towns = Callable[..., list[Question]]


@pytest.fixture(scope="module")
def recoverer() -> ProcessRecoverer:
    return ProcessRecoverer(RecovererConfig("lexical"))


def children() -> list[int]:
    """Return the processes below this one."""
    parents = {
        int(path.name): int((path / "stat").read_text().rpartition(")")[2].split()[1])
        for path in Path("/proc").iterdir()
        if path.name.isdecimal() and (path / "stat").exists()
    }
    below, new = set[int](), {os.getpid()}
    while new := {one for one, parent in parents.items() if parent in new}:
        below |= new
    return sorted(below)


def test_chains_are_those_of_the_recoverer(recoverer: ProcessRecoverer, towns: Towns) -> None:
    contents = [*towns(3), QuestionError("bad_field", "odd.")]
    batch = [(Entry("", str(n), one), Options(top=n + 1, explain=True)) for n, one in enumerate(contents)]
    assert recoverer.recover_together(batch) == Recoverer("lexical").recover_together(batch)


def test_errors_reach_who_asks(recoverer: ProcessRecoverer, towns: Towns) -> None:
    with pytest.raises(NoConfidenceError):
        recoverer.recover_together([(Entry("", "1", towns(1)[0]), Options(min_confidence=0.5))])
    with pytest.raises(RechainError, match="no model"):
        ProcessRecoverer(RecovererConfig("there is no model of this name"))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
def test_a_process_that_dies_is_started_anew_and_stands_back(towns: Towns) -> None:
    before = set(children())
    mine = ProcessRecoverer(RecovererConfig("lexical"))
    (model,) = (one for one in children() if one not in before and os.getpriority(os.PRIO_PROCESS, one) >= NICENESS)
    os.kill(model, signal.SIGKILL)
    (recovered,) = mine.recover_together([(Entry("", "town-0", towns(1)[0]), Options())])
    assert recovered.id == "town-0"
    assert recovered.chains
