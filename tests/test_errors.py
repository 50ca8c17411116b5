"""Errors that go from one process to another."""

import pickle

import pytest

from rechain.errors import InputError, MissingExtraError, QuestionError, RechainError
from rechain.recoverer import NoConfidenceError
from rechain.schema import Problem


@pytest.mark.parametrize(
    "error",
    [
        RechainError("one sentence."),
        InputError("a file is empty."),
        QuestionError("no_link", "file, line 3: no link."),
        MissingExtraError("Reading Parquet", "parquet"),
        NoConfidenceError("none can be demanded."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_that_was_pickled_says_the_same(error: RechainError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_a_question_error_that_was_pickled_keeps_its_code() -> None:
    again = pickle.loads(pickle.dumps(QuestionError("no_link", "no link")))
    assert (again.code, Problem.of(again)) == ("no_link", Problem(code="no_link", message="no link"))


def test_a_missing_extra_is_named_once_though_the_error_was_pickled_twice() -> None:
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(MissingExtraError("Reading Parquet", "parquet")))))
    assert str(again) == "Reading Parquet needs an extra that is not installed: pip install 'rechain[parquet]'."
