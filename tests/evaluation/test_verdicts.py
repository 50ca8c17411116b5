"""Verdicts on answers compared with those of people, worked by hand."""

import pytest

from rechain.evaluation.verdicts import JudgedAnswer, calibration_error, summarise_verdicts
from rechain.schema import Recovered

ANSWERS = [
    JudgedAnswer("supported", 0.9, "supported"),
    JudgedAnswer("partly", 0.6, "supported"),
    JudgedAnswer("partly", 0.5, "unsupported"),
    JudgedAnswer("unsupported", 0.8, "unsupported"),
    JudgedAnswer(None, None, "no_answer"),
]


def test_figures_over_all_and_by_the_right_verdict() -> None:
    figures = {name: (figure.value, figure.questions) for name, figure in summarise_verdicts(ANSWERS).items()}
    assert figures == {
        "verdict accuracy": (0.4, 5),
        "verdict accuracy, supported": (0.5, 2),
        "verdict accuracy, unsupported": (0.5, 2),
        "verdict accuracy, no answer given": (0.0, 1),
        "unsupported flagged": (1.0, 2),
    }


def test_calibration_is_that_of_the_probability_that_the_verdict_is_right() -> None:
    assert calibration_error(ANSWERS) == pytest.approx((0.1 + 0.6 + 0.5 + 0.2) / 4)


def test_without_verdicts_there_are_no_figures() -> None:
    silent = [JudgedAnswer.of(recovered, "supported") for recovered in (None, Recovered(chains=[]))]
    assert summarise_verdicts(silent) == {}
    assert calibration_error(silent) is None
