"""rechain audit: a log in, a page and JSON out, and an exit code for CI."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cli.common import Command, write_lines

from rechain.cli import audit as command
from rechain.errors import QuestionError
from rechain.formats.datasets import Entry
from rechain.recoverer import RecovererConfig

QUESTION = {"question": "What is the limit in Zurich?", "answer": "It is EUR 180.", "tag": "travel"}
PASSAGES = [{"id": "rates", "title": "City rates", "text": "Zurich EUR 180."}, {"id": "leave", "text": "27 days."}]
SINGLE = {"shape": "single", "passages": ["rates"], "links": [], "score": 1.0, "confidence": 0.9}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    ids = ("q1", "q2", "q3", "q4")
    return write_lines(tmp_path / "log.jsonl", *({"id": name, **QUESTION, "passages": PASSAGES} for name in ids))


@pytest.fixture
def chains(tmp_path: Path) -> Path:
    return write_lines(
        tmp_path / "chains.jsonl",
        {"id": "q1", "verdict": "supported", "verdict_probability": 0.9, "chains": [SINGLE], "error": None},
        {"id": "q2", "verdict": "unsupported", "verdict_probability": 0.7, "chains": []},
        {"id": None, "chains": [], "error": {"code": "bad_json", "message": "line 3"}},
        {"id": "q4", "verdict": "no_answer", "chains": []},
    )


@pytest.fixture
def audit(rechain: Command, log: Path, chains: Path, tmp_path: Path) -> Command:
    """Run `rechain audit` on the log and its chains."""
    return partial(rechain, "audit", log, "--chains", chains, "--out", tmp_path / "report.html")


def test_a_log_with_its_chains_becomes_a_page(audit: Command, tmp_path: Path) -> None:
    outcome = audit("--json", tmp_path / "report.json", "--serve-url", "http://127.0.0.1:8000")
    assert outcome.code == 0
    assert "4 answers: 1 supported, 0 partly supported, 1 unsupported, 1 no answer given." in outcome.err
    assert "Not judged: 1 bad_json." in outcome.err
    html = (tmp_path / "report.html").read_text()
    assert "50.0 %" in html
    assert "http://127.0.0.1:8000/question?id=q2" in html
    told = json.loads((tmp_path / "report.json").read_text())
    assert [record["id"] for record in told["records"]] == ["q1", "q2", None, "q4"]
    assert told["summary"]["by_tag"] == {"travel": {"supported": 1, "unsupported": 1, "no_answer": 1}}
    assert told["made_by"]["input"]["name"] == "log.jsonl"
    assert (tmp_path / "report.html.provenance").exists()


@pytest.mark.parametrize(("least", "code"), [("0.5", 0), ("0.51", 3), ("0", 0), ("1", 3)])
def test_too_few_supported_answers_have_an_exit_code(audit: Command, tmp_path: Path, least: str, code: int) -> None:
    outcome = audit("--fail-under", least)
    assert outcome.code == code
    demanded = f"1 of 2 answers given are supported: 50.0 %, but {100 * float(least):g} % are demanded."
    assert (demanded in outcome.err) is bool(code)
    assert (tmp_path / "report.html").exists()


def test_nothing_that_could_be_judged_has_the_same(rechain: Command, log: Path, tmp_path: Path) -> None:
    failed = {"id": "q1", "chains": [], "error": {"code": "no_tail", "message": "none"}}
    chains = write_lines(tmp_path / "chains", failed)
    outcome = rechain("audit", log, "--chains", chains, "--out", tmp_path / "r.html")
    assert (outcome.code, "Not one answer could be judged." in outcome.err) == (3, True)
    silent = write_lines(tmp_path / "silent", {"id": "q1", "verdict": "no_answer", "chains": []})
    outcome = rechain("audit", log, "--chains", silent, "--out", tmp_path / "s.html", "--fail-under", "0.1")
    assert (outcome.code, "No answer was given" in outcome.err) == (3, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--serve-url", "127.0.0.1:8000"], "--serve-url should be an address such as http://127.0.0.1:8000"),
        (["--serve-url", "javascript:alert(1)"], "--serve-url should be an address"),
        (["--json", "report.html"], "cannot be both the page and the JSON"),
    ],
    ids=["no scheme", "script", "same file"],
)
def test_mistakes_are_told_before_the_work(
    audit: Command, tmp_path: Path, options: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = audit(*options)
    assert (outcome.code, message in outcome.err) == (2, True)
    assert not (tmp_path / "report.html").exists()


def test_a_page_is_not_replaced_unasked(audit: Command, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("mine")
    assert "exists" in audit().err
    assert (tmp_path / "report.html").read_text() == "mine"
    assert audit("--overwrite").code == 0


def test_without_verdicts_there_is_no_report(rechain: Command, log: Path, tmp_path: Path) -> None:
    old = write_lines(tmp_path / "chains", {"id": "q1", "chains": [SINGLE], "error": None})
    outcome = rechain("audit", log, "--chains", old, "--out", tmp_path / "r.html", "--json", tmp_path / "r.json")
    assert (outcome.code, "gives no verdicts on answers" in outcome.err) == (2, True)
    assert not (tmp_path / "r.html").exists()
    assert not (tmp_path / "r.json").exists()


@pytest.mark.parametrize("few", [2, 1000])
def test_what_is_recovered_goes_with_its_own_question(towns: Any, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_FEW", few)
    questions = towns(70)  # more than two batches
    error = QuestionError("bad_json", "line 71: not JSON.")
    entries = [*(Entry("", one.id, one) for one in questions), Entry("line 71", None, error)]
    config = RecovererConfig("lexical")
    answers = list(command._recovered(config, iter(entries), 0))
    assert [answer.content for answer in answers] == [*questions, error]
    assert [answer.recovered for answer in answers] == list(config.load().recover_many(entries))


def test_chains_of_a_part_of_the_log_are_said_to_be_so(rechain: Command, log: Path, tmp_path: Path) -> None:
    chains = write_lines(tmp_path / "chains", {"id": "q2", "verdict": "supported", "chains": [SINGLE]})
    outcome = rechain("audit", log, "--chains", chains, "--out", tmp_path / "r.html")
    assert "1 answer: 1 supported" in outcome.err
    assert f"warning: {chains} lacks 3 questions of the log; the report is of the others." in outcome.err


def test_chains_of_other_questions_are_refused(rechain: Command, log: Path, tmp_path: Path) -> None:
    chains = write_lines(tmp_path / "chains", {"id": "other", "verdict": "supported", "chains": []})
    outcome = rechain("audit", log, "--chains", chains, "--out", tmp_path / "r.html")
    assert (outcome.code, "does not come next" in outcome.err) == (2, True)
    assert not (tmp_path / "r.html").exists()
