"""rechain demo: the questions that come with the package, and how a chain is drawn."""

import io
import subprocess
import sys
from importlib.resources import as_file, files

import pytest
from rich.console import Console
from typer.testing import CliRunner

from rechain.cli.demo import show
from rechain.cli.main import app
from rechain.evaluation.gold import read_gold
from rechain.formats.datasets import read_questions
from rechain.recoverer import Recoverer
from rechain.schema import Chain, Gold, Link, Question, Recovered
from rechain.text.candidates import find_candidates


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    with as_file(files("rechain") / "data/demo.jsonl") as path:
        return list(read_questions(path))


@pytest.fixture(scope="module")
def golds() -> dict[str, Gold]:
    with as_file(files("rechain") / "data/demo.gold.jsonl") as path:
        return dict(read_gold(path, []))


def demo(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["demo", *arguments])
    assert result.exit_code == 0
    return result.output


def test_there_are_questions_of_every_kind(questions: list[Question]) -> None:
    assert len(questions) >= 12
    assert {question.hops for question in questions} == {2, 3}
    assert len({question.id for question in questions}) == len(questions)
    kinds = {question.answer_entity is not None for question in questions}
    assert kinds == {True, False}  # biomedical and general


def test_every_question_has_six_passages_and_three_candidate_chains(questions: list[Question]) -> None:
    for question in questions:
        assert len(question.passages) >= 6, question.id
        assert len(find_candidates(question).chains) >= 3, question.id


def test_every_gold_chain_is_a_candidate(questions: list[Question], golds: dict[str, Gold]) -> None:
    assert golds.keys() == {question.id for question in questions}
    for question in questions:
        candidates = {
            tuple(question.passages[number].id for number in chain.passages)
            for chain in find_candidates(question).chains
        }
        assert any(tuple(chain.passages) in candidates for chain in golds[question.id].chains), question.id


def test_all_questions_are_shown_with_answer_and_links(questions: list[Question]) -> None:
    shown = demo()
    for question in questions:
        assert f"─ {question.id} ─" in shown
        assert question.answer in shown
    assert shown.count("↓") == sum((question.hops or 2) - 1 for question in questions)


def test_one_question_can_be_chosen(questions: list[Question]) -> None:
    shown = demo("--id", questions[1].id)
    assert f"─ {questions[1].id} ─" in shown
    assert f"─ {questions[0].id} ─" not in shown


@pytest.mark.parametrize("arguments", [["--model", "oracle"], ["--id", "oracle"]], ids=" ".join)
def test_an_unknown_model_or_question_gets_one_sentence(arguments: list[str]) -> None:
    command = [sys.executable, "-c", "from rechain.cli.main import main; main()", "demo", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "oracle" in done.stderr
    assert done.stderr.count("\n") == 1


# ---- how a chain is drawn


def shown(question: Question, recovered: Recovered | None = None) -> str:
    console = Console(file=io.StringIO(), width=90, force_terminal=True, color_system="standard")
    show(question, recovered or Recoverer().recover(question), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_link_is_highlighted_in_both_passages_and_the_answer_in_the_last(bridge_question: Question) -> None:
    text = shown(bridge_question)
    assert text.count("\x1b[1;30;46mAnton Quillfeather\x1b[0m") == 1
    assert text.count("\x1b[1;3;30;46mAnton Quillfeather\x1b[0m") == 1  # the sentence with the answer is italic
    assert "\x1b[1;3;30;42mPrague\x1b[0m" in text
    assert text.index("1. Zorilla") < text.index("2. Anton Quillfeather")


def test_a_question_without_a_chain_says_why(bridge_question: Question) -> None:
    text = shown(bridge_question.model_copy(update={"answer": "Vienna"}))
    assert "no passage holds the answer 'Vienna'" in text


def test_brackets_in_titles_are_shown_as_they_are(bridge_question: Question) -> None:
    passages = [p.model_copy(update={"title": f"{p.title} [red]"}) for p in bridge_question.passages]
    assert "Zorilla [red]" in shown(bridge_question.model_copy(update={"passages": passages}))


def test_passages_side_by_side_have_no_link_between_them_and_the_verdict_is_told(bridge_question: Question) -> None:
    link = Link(entity="Prague", kind="name", weight=9.0, mentions=(None, None))
    chain = Chain(shape="parallel", passages=["city", "composer"], links=[link], score=1.0)
    text = shown(bridge_question, Recovered(id="q1", verdict="partly", chains=[chain]))
    assert "partly supported" in text
    assert "↓" not in text
    assert text.index("1. Prague") < text.index("2. Anton Quillfeather")
