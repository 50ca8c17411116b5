"""Staging: which fold a question is in, and what a prepared folder holds."""

from pathlib import Path

import numpy as np
import pytest

from rechain.errors import RechainError
from rechain.paper.stage import TableQuestions, folds_of, is_prepared, read_index, stage
from rechain.paper.vectors import Vectors
from rechain.schema import Question
from rechain.system.tensors import load_arrays
from rechain.text.candidates import CandidateSettings

SETTINGS = CandidateSettings()


def with_start(question: Question, entity: str) -> Question:
    return question.model_copy(update={"question_entities": [entity]})


def test_folds_are_of_nearly_the_same_size(questions: list[Question]) -> None:
    assert sorted(np.bincount(folds_of(questions, 3))) == [2, 3, 3]
    assert folds_of(questions, 3) == folds_of(questions, 3)


def test_the_fold_of_a_question_does_not_depend_on_the_order(questions: list[Question]) -> None:
    assert folds_of(questions[::-1], 3) == folds_of(questions, 3)[::-1]


def test_questions_that_begin_with_the_same_entity_share_a_fold(questions: list[Question]) -> None:
    started = [with_start(question, f"drug:{number % 3}") for number, question in enumerate(questions)]
    folds = folds_of(started, 2)
    assert folds[:3] == folds[3:6]
    assert folds[:2] == folds[6:]
    assert set(folds) == {0, 1}


def test_a_folder_holds_the_questions_that_have_chains(folder: Path) -> None:
    index = read_index(folder)
    arrays = load_arrays(folder / "questions.safetensors")
    assert index["ids"] == [f"q{number}" for number in range(7)]
    assert index["left_out"] == {"no_link": 1}
    assert (index["folds"], index["has_test"]) == (2, False)
    assert arrays["fold"].tolist() == [0, 0, 1, 0, 1, 0, 1]
    assert np.diff(arrays["chain_start"]).tolist() == [2] * 7


def test_only_vectors_that_are_used_are_kept(folder: Path) -> None:
    table = load_arrays(folder / "vectors.safetensors")["vectors"]
    assert table.tolist() == [[0, 0, 0, 0], [0, 1, 2, 3], [4, 5, 6, 7]]
    assert sorted(set(load_arrays(folder / "questions.safetensors")["vector_row"])) == [0, 1, 2]


def test_test_questions_are_the_first_fold_and_all_others_the_second(
    tmp_path: Path, questions: list[Question], vectors: Vectors
) -> None:
    stage(tmp_path, TableQuestions(questions[3:], questions[:3]), vectors, SETTINGS, folds=5)
    index = read_index(tmp_path)
    assert (index["folds"], index["has_test"]) == (2, True)
    assert load_arrays(tmp_path / "questions.safetensors")["fold"].tolist() == [0, 0, 0, 1, 1, 1, 1]


def test_more_questions_are_in_no_fold_and_move_none(
    tmp_path: Path, questions: list[Question], vectors: Vectors
) -> None:
    stage(tmp_path / "alone", TableQuestions(questions[:5], None), vectors, SETTINGS, folds=2)
    stage(tmp_path / "more", TableQuestions(questions[:5], None, questions[5:]), vectors, SETTINGS, folds=2)
    alone, more = (
        load_arrays(tmp_path / name / "questions.safetensors")["fold"].tolist() for name in ("alone", "more")
    )
    assert more == [*alone, -1, -1]  # the last question has no chain
    assert is_prepared(tmp_path / "more", TableQuestions(questions[:5], None, questions[5:]), 2)
    for others in (TableQuestions(questions[:5], None), TableQuestions(questions, None)):
        with pytest.raises(RechainError, match="prepared for other questions"):
            is_prepared(tmp_path / "more", others, 2)
    with pytest.raises(RechainError, match="no question of --more has a candidate chain"):
        stage(tmp_path / "none", TableQuestions(questions[:5], None, questions[7:]), vectors, SETTINGS, folds=2)


def test_more_questions_may_lack_a_type_but_not_be_those_of_the_table(
    tmp_path: Path, questions: list[Question]
) -> None:
    typed = [question.model_copy(update={"type": "bridge"}) for question in questions[:3]]
    other = [questions[4].model_copy(update={"type": "comparison"}), questions[5]]
    files = {tmp_path / "table": typed, tmp_path / "more": other, tmp_path / "same": typed[:1]}
    read = TableQuestions.read("hotpotqa", tmp_path / "table", None, tmp_path / "more", files.__getitem__)
    assert (read.training, read.more) == (typed, [questions[5]])
    with pytest.raises(RechainError, match=r"same and the table share the question 'q0'; --more needs other"):
        TableQuestions.read("hotpotqa", tmp_path / "table", None, tmp_path / "same", files.__getitem__)


def test_questions_without_any_chain_cannot_be_prepared(
    tmp_path: Path, questions: list[Question], vectors: Vectors
) -> None:
    with pytest.raises(RechainError, match="no question has a candidate chain"):
        stage(tmp_path, TableQuestions(questions[7:], None), vectors, SETTINGS)


@pytest.mark.parametrize(("has_test", "empty"), [(False, 2), (True, 0)])
def test_every_fold_must_have_a_question(
    tmp_path: Path, questions: list[Question], vectors: Vectors, has_test: bool, empty: int
) -> None:
    test = questions[7:] if has_test else None
    with pytest.raises(RechainError, match=f"fold {empty} of "):
        stage(tmp_path, TableQuestions(questions[:2], test), vectors, SETTINGS, folds=3)
    assert not (tmp_path / "index.json").exists()
