"""A model in a process of its own: the same chains, errors that reach who asks, and a process that may die."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.web.models import HANG_S, Stuck

from rechain.errors import QuestionError, RechainError
from rechain.formats.datasets import Entry
from rechain.index import Index, build_index
from rechain.recoverer import NoConfidenceError, Recoverer, RecovererConfig
from rechain.schema import Question
from rechain.scoring.results import Options
from rechain.web import service
from rechain.web.corpus import Corpus
from rechain.web.service import NICENESS, ProcessRecoverer, RecoveryService, TooSlowError

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


def test_a_batch_that_takes_too_long_ends_the_process_and_the_others_are_served(
    towns: Towns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_LEAST_S", 0.5)
    mine = RecoveryService(lambda: ProcessRecoverer(RecovererConfig(Stuck())), most_seconds=HANG_S)
    asked = [mine.ask([Entry("", one.id, one)], Options()) for one in towns(3)]
    assert [asked[number].result(HANG_S)[0].id for number in (0, 2)] == ["town-0", "town-2"]
    with pytest.raises(TooSlowError, match="took longer than 1 s; send less text at once"):
        asked[1].result(HANG_S)
    mine.close()


def test_a_process_that_dies_takes_up_an_index_that_was_built_again(tmp_path: Path) -> None:
    document = tmp_path / "bureau.md"
    document.write_text("The Kinship Bureau is led by Anton Quillfeather, who was born in Prague.")
    build_index([document], tmp_path / "index")
    corpus = Corpus(Index(tmp_path / "index"))
    mine = ProcessRecoverer(RecovererConfig("lexical", corpus=corpus.index))
    before = corpus.index.stamp
    document.write_text("The Kinship Bureau is led by Anton Quillfeather, who was born in Vienna.")
    build_index([document], tmp_path / "index")
    mine._service.close()  # as if it were killed
    assert mine.state == "starting"
    question = Question(id="1", question="Where was the head of the Kinship Bureau born?", answer="Vienna", passages=[])
    (recovered,) = mine.recover_together([(corpus.fill([Entry("", "1", question)])[0], Options())])
    assert recovered.collection == corpus.index.stamp != before
    assert (mine.state, corpus.state) == ("ok", "ok")


def test_a_process_that_cannot_be_started_again_has_failed_until_it_can(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Anton Quillfeather was born in Prague.")
    build_index([tmp_path / "a.md"], tmp_path / "index")
    corpus = Corpus(Index(tmp_path / "index"))
    mine = ProcessRecoverer(RecovererConfig("lexical", corpus=corpus.index))
    (tmp_path / "index").rename(tmp_path / "elsewhere")
    mine._service.close()
    with pytest.raises(RuntimeError, match="cannot be started"):
        mine.recover_together([])
    assert (mine.state, corpus.state) == ("failed", "failed")
    (tmp_path / "elsewhere").rename(tmp_path / "index")
    assert mine.revive()
    assert (mine.state, corpus.state) == ("ok", "ok")


def test_a_process_that_dies_is_started_again_before_anybody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_LOOK_S", 0.01)
    mine = RecoveryService(lambda: ProcessRecoverer(RecovererConfig("lexical")))
    model = mine.recoverer
    assert isinstance(model, ProcessRecoverer)
    mine.start()
    model._service.close()
    end = monotonic() + HANG_S
    while mine.state != "ok" or model.starts == 1:
        assert monotonic() < end
        sleep(0.01)
    mine.close()
