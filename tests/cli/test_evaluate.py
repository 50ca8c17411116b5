"""rechain evaluate: figures from files, and what is said about bad input."""

import json
import subprocess
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cli.common import HOTPOTQA, RECHAIN, Command, write_lines

from rechain.evaluation.statistics import paired_difference
from rechain.system.provenance import heading, write_provenance

AMBIGUOUS = HOTPOTQA | {"_id": "q2", "answer": "Anton Quillfeather", "type": "comparison"}
CHAIN: dict[str, Any] = {"passages": ["Zorilla", "Anton Quillfeather"], "links": [], "score": 1.0, "confidence": 0.9}
WRONG = CHAIN | {"passages": ["Weather", "Anton Quillfeather"], "confidence": 0.4}


@pytest.fixture
def evaluate(rechain: Command) -> Command:
    """Run `rechain evaluate` in this process."""
    return partial(rechain, "evaluate")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "questions.jsonl", HOTPOTQA, AMBIGUOUS)


@pytest.fixture
def chains(tmp_path: Path) -> Path:
    return write_lines(
        tmp_path / "chains.jsonl",
        {"id": "q1", "chains": [CHAIN], "error": None},
        {"id": "q2", "chains": [WRONG], "error": None},
        {"id": None, "chains": [], "error": {"code": "bad_json", "message": "line 3"}},
        {"id": None, "chains": [], "error": {"code": "bad_json", "message": "line 4"}},
    )


def test_figures_compare_chains_with_gold(evaluate: Command, chains: Path, questions: Path) -> None:
    outcome = evaluate(chains, questions, "--json")
    assert outcome.code == 0
    assert outcome.figures["chain accuracy"] == 0.5
    assert outcome.figures["coverage"] == 1.0
    assert outcome.figures["head recall"] == 1.0


def test_accuracy_at_every_confidence(evaluate: Command, chains: Path, questions: Path) -> None:
    rows = json.loads(evaluate(chains, questions, "--json").out)["accuracy at confidence"]
    kept = {row["min_confidence"]: (row["kept"], row["accuracy"] and row["accuracy"]["value"]) for row in rows}
    assert kept[0.0] == (1.0, 0.5)
    assert kept[0.5] == (0.5, 1.0)
    assert kept[0.95] == (0.0, None)


def test_calibration_is_told(evaluate: Command, chains: Path, questions: Path) -> None:
    outcome = evaluate(chains, questions, "--json")
    assert json.loads(outcome.out)["expected calibration error"] == pytest.approx((0.1 + 0.4) / 2)
    assert (outcome.figures["accuracy, best half"], outcome.figures["accuracy, best three quarters"]) == (1.0, 0.5)
    shown = evaluate(chains, questions).out
    assert "Expected calibration error: 25.0 %." in shown
    assert all(part in shown for part in ("chain accuracy", "50.0 %", "accuracy, best half", "some confidence"))


def test_nothing_is_told_of_calibration_without_confidence(evaluate: Command, questions: Path, tmp_path: Path) -> None:
    chains = write_lines(tmp_path / "chains", {"id": "q1", "chains": [CHAIN | {"confidence": None}]})
    told = json.loads(evaluate(chains, questions, "--json").out)
    assert (told["expected calibration error"], told["accuracy at confidence"]) == (None, [])
    assert not any("best" in name for name in told["figures"])
    shown = evaluate(chains, questions).out
    assert "onfidence" not in shown
    assert "alibration" not in shown


@pytest.mark.parametrize("option", [["--unambiguous"], ["--only", "bridge"]], ids=" ".join)
def test_questions_can_be_left_out(evaluate: Command, chains: Path, questions: Path, option: list[str]) -> None:
    outcome = evaluate(chains, questions, *option, "--json")
    assert outcome.figures["chain accuracy"] == 1.0
    assert json.loads(outcome.out)["figures"]["chain accuracy"]["questions"] == 1


def test_a_question_without_a_chain_counts_as_wrong(evaluate: Command, questions: Path, tmp_path: Path) -> None:
    chains = write_lines(tmp_path / "chains", {"id": "q1", "chains": [CHAIN]}, {"id": "q2", "chains": []})
    figures = evaluate(chains, questions, "--json").figures
    assert (figures["chain accuracy"], figures["coverage"]) == (0.5, 0.5)


def test_a_question_that_the_chains_leave_out_counts_as_wrong(
    evaluate: Command, questions: Path, tmp_path: Path
) -> None:
    chains = write_lines(tmp_path / "chains", {"id": "q1", "chains": [CHAIN]})
    assert evaluate(chains, questions, "--json").figures["coverage"] == 0.5


def test_gold_may_stand_in_a_file_of_its_own(evaluate: Command, chains: Path, questions: Path, tmp_path: Path) -> None:
    gold = write_lines(tmp_path / "gold", {"id": "q2", "chains": [{"passages": WRONG["passages"]}]})
    outcome = evaluate(chains, questions, "--gold", gold, "--json")
    assert json.loads(outcome.out)["figures"]["chain accuracy"]["questions"] == 1
    assert outcome.figures["chain accuracy"] == 1.0


def test_questions_may_come_from_standard_input(chains: Path, questions: Path, tmp_path: Path) -> None:
    gold = write_lines(tmp_path / "gold", {"id": "q1", "chains": [{"passages": CHAIN["passages"]}]})
    command = [*RECHAIN, "evaluate", str(chains), "-", "--gold", str(gold), "--json"]
    done = subprocess.run(command, input=questions.read_bytes(), capture_output=True)
    assert done.returncode == 0
    assert json.loads(done.stdout)["figures"]["chain accuracy"]["value"] == 1.0


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"id": "q3", ', "not valid JSON"),
        ('{"id": "q1", "chains": []}', "'q1'"),
        ('{"id": "q3", "question": "Who?"}', "chains"),
        ('{"id": "q3", "chains": 7}', "chains"),
        ('{"id": "q3", "chains": [{"passages": [7], "links": [], "score": 0}]}', "chains[0].passages[0]"),
        ('{"id": "q3", "chains": [{"passages": [], "links": [], "score": 0}]}', "chains[0].passages"),
        ('{"id": "q3", "chains": [{"passages": ["a"], "links": [], "score": 0, "confidence": 97}]}', "confidence"),
        ("7", ""),
    ],
    ids=["cut", "twice", "a question", "number", "passage number", "no passages", "confidence", "no object"],
)
def test_a_bad_line_of_the_chains_is_named(
    evaluate: Command, questions: Path, tmp_path: Path, line: str, what: str
) -> None:
    chains = write_lines(tmp_path / "chains", {"id": "q1", "chains": [CHAIN]}, line)
    outcome = evaluate(chains, questions)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"rechain: {chains}, line 2: ")
    assert what in outcome.err
    assert outcome.err.count("\n") == 1


def test_the_questions_are_no_chains_file(evaluate: Command, questions: Path, tmp_path: Path) -> None:
    plain = {"id": "q1", "question": "Who?", "answer": "Anton", "passages": [{"id": "p", "text": "Anton."}]}
    outcome = evaluate(write_lines(tmp_path / "plain", plain), questions)
    assert (outcome.code, outcome.out) == (2, "")
    assert "chains" in outcome.err


@pytest.mark.parametrize(
    "gold",
    [
        {"id": "elsewhere", "chains": [{"passages": ["a", "b"]}]},
        {"id": "MH_1", "support": 0, "a": "DB00001", "b": "P12345", "interacts": True},
    ],
    ids=["chains", "pair labels"],
)
def test_gold_for_no_question_gets_one_sentence(
    evaluate: Command, chains: Path, questions: Path, tmp_path: Path, gold: object
) -> None:
    path = write_lines(tmp_path / "gold.jsonl", gold)
    outcome = evaluate(chains, questions, "--gold", path)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert str(path) in outcome.err


def test_questions_without_gold_ask_for_it(evaluate: Command, chains: Path, tmp_path: Path) -> None:
    blind = write_lines(tmp_path / "blind", HOTPOTQA | {"supporting_facts": []})
    outcome = evaluate(chains, blind)
    assert (outcome.code, outcome.out) == (2, "")
    assert "--gold" in outcome.err


def test_bad_questions_are_left_out_and_the_rest_goes_on(evaluate: Command, chains: Path, tmp_path: Path) -> None:
    questions = write_lines(tmp_path / "questions.jsonl", HOTPOTQA, "{", AMBIGUOUS | {"answer": [7]})
    assert evaluate(chains, questions, "--json").figures["chain accuracy"] == 1.0
    strict = evaluate(chains, questions, "--strict")
    assert (strict.code, strict.out) == (2, "")
    assert strict.err.startswith(f"rechain: {questions}, line 2: not valid JSON")


@pytest.mark.parametrize("missing", ["chains", "questions"])
def test_a_missing_file_is_named(
    evaluate: Command, chains: Path, questions: Path, tmp_path: Path, missing: str
) -> None:
    none = tmp_path / "none"
    outcome = evaluate(none if missing == "chains" else chains, none if missing == "questions" else questions)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == f"rechain: {none} cannot be read: No such file or directory.\n"


# ---- two files


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """Two files of chains, questions and gold: of ten questions the first has 0 to 5 right, the second 4 to 8."""

    def chains(right: range) -> Iterable[object]:
        for number in range(10):
            passages = ["a", "b"] if number in right else ["b", "a"]
            yield {"id": f"q{number}", "chains": [{"passages": passages, "links": [LINK], "score": 1.0}]}

    texts = [{"id": "a", "text": "A names B."}, {"id": "b", "text": "B is in Oslo."}]
    kinds = ["bridge"] * 9 + ["comparison"]
    questions = [
        {"id": f"q{number}", "question": "Where?", "answer": "Oslo", "passages": texts, "type": kind}
        for number, kind in enumerate(kinds)
    ]
    gold = [{"id": f"q{number}", "chains": [{"passages": ["a", "b"]}]} for number in range(10)]
    files = {"first": chains(range(6)), "second": chains(range(4, 9)), "questions": questions, "gold": gold}
    first, second, asked, right = (write_lines(tmp_path / name, *records) for name, records in files.items())
    return [first, second, asked, "--gold", right]  # type: ignore[list-item]


LINK = {"entity": "B", "kind": "name", "weight": 9.0, "mentions": [[8, 9], [0, 1]]}


def test_two_files_are_compared_pair_by_pair(rechain: Command, two: list[Path]) -> None:
    outcome = rechain("evaluate", *two, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    told = json.loads(outcome.out)
    assert [told[which]["figures"]["chain accuracy"]["value"] for which in ("first", "second")] == [0.6, 0.5]
    compared = told["compared"]["chain accuracy"]
    difference = compared.pop("difference")
    assert compared == {"both": 2, "only_first": 4, "only_second": 3, "neither": 1}
    assert difference == paired_difference(3, 4, 10)._asdict()  # type: ignore[union-attr]
    assert [each["id"] for each in told["differences"]] == ["q0", "q1", "q2", "q3", "q6", "q7", "q8"]
    assert told["differences"][0] == {"id": "q0", "first": True, "second": False}


def test_the_table_of_two_files_has_difference_and_counts(rechain: Command, two: list[Path]) -> None:
    printed = rechain("evaluate", *two).out
    row = next(line for line in printed.splitlines() if "chain accuracy" in line).split()
    assert row[2:7] == ["60.0", "%", "50.0", "%", "-10.0"]
    assert row[-1] == "10"
    assert ["only", "first", "4"] in [line.split() for line in printed.splitlines()]


def test_the_same_questions_can_be_chosen_of_two_files(rechain: Command, two: list[Path]) -> None:
    told = json.loads(rechain("evaluate", *two, "--json", "--only", "bridge", "--unambiguous").out)
    assert sum(value for value in told["compared"]["chain accuracy"].values() if isinstance(value, int)) == 9


def test_differences_go_into_a_file_that_is_not_replaced_unasked(
    rechain: Command, two: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "differences.jsonl"
    assert rechain("evaluate", *two, "--differences", out).code == 0
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()][-1] == "q8"
    refused = rechain("evaluate", *two, "--differences", out)
    assert (refused.code, refused.out) == (2, "")
    assert rechain("evaluate", *two, "--differences", out, "--overwrite").code == 0
    assert rechain("evaluate", *two[1:], "--differences", tmp_path / "new").code == 2
    assert rechain("evaluate", *two, "--differences", two[0], "--overwrite").code == 2


def test_questions_that_one_file_lacks_are_left_out(rechain: Command, two: list[Path]) -> None:
    lines = two[0].read_text().splitlines(keepends=True)
    two[0].write_text("".join(lines[:3]))
    outcome = rechain("evaluate", *two, "--json")
    assert outcome.err == "7 questions are not in both files; they are left out.\n"
    assert json.loads(outcome.out)["compared"]["chain accuracy"]["only_first"] == 3
    two[1].write_text("".join(two[1].read_text().splitlines(keepends=True)[3:]))
    assert "hold the chains of no question in common" in rechain("evaluate", *two).err


@pytest.mark.parametrize("count", [1, 4])
def test_one_or_two_files_of_chains_are_compared(rechain: Command, two: list[Path], count: int) -> None:
    outcome = rechain("evaluate", *[two[0]] * (count - 1), *two[2:])
    assert (outcome.code, outcome.out) == (2, "")
    assert ("Missing argument" if count == 1 else "one or two files of chains") in outcome.err


def test_in_what_the_makers_of_two_files_differ_is_said(rechain: Command, two: list[Path]) -> None:
    for path, top in zip(two[:2], (1, 2), strict=True):
        write_provenance(path, heading("recover", settings={"top": top}), {})
    *_, difference = rechain("evaluate", *two, "--json").err.splitlines()
    assert difference == f"{two[1]} was made with top 2, not 1 as {two[0]}."


def test_verdicts_are_judged_where_gold_has_them(evaluate: Command, questions: Path, tmp_path: Path) -> None:
    supported = {"id": "q1", "verdict": "supported", "verdict_probability": 0.8, "chains": [CHAIN]}
    flagged = {"id": "q2", "verdict": "unsupported", "verdict_probability": 0.9, "chains": []}
    chains = write_lines(tmp_path / "chains", supported, flagged)
    gold = write_lines(
        tmp_path / "gold",
        {"id": "q1", "verdict": "supported", "chains": [{"passages": CHAIN["passages"]}]},
        {"id": "q2", "verdict": "unsupported", "chains": []},
    )
    told = json.loads(evaluate(chains, questions, "--gold", gold, "--json").out)
    assert (
        told["figures"]["chain accuracy"]["questions"] == 1
    )  # no chain can be right where nothing supports the answer
    assert told["verdicts"]["figures"]["verdict accuracy"]["value"] == 1.0
    assert told["verdicts"]["expected calibration error"] == pytest.approx(0.15)
    shown = evaluate(chains, questions, "--gold", gold).out
    assert "unsupported flagged" in shown
    assert "Expected calibration error of verdicts: 15.0 %." in shown
