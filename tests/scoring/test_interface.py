"""What tells kinds of models apart, and how shares become confidences."""

from collections.abc import Callable

import pytest

from rechain.scoring import BASELINES
from rechain.scoring.interface import ALONE, JOINTLY, BatchModel, Calibration


def test_a_model_that_scores_many_questions_together_is_told_from_others(
    batch_fake: Callable[[], BatchModel],
) -> None:
    assert isinstance(batch_fake(), BatchModel)
    assert not any(isinstance(model(), BatchModel) for model in BASELINES.values())


def test_a_share_by_hand() -> None:
    # log-odds of 0.8 are log 4; half of them and 0 more are the odds of 2 to 1
    assert Calibration(0.5, 0.0).confidence(0.8) == pytest.approx(2 / 3)


@pytest.mark.parametrize("calibration", [ALONE, JOINTLY])
def test_shares_become_confidences_in_their_order(calibration: Calibration) -> None:
    confidences = list(map(calibration.confidence, [0.0, 1e-9, 0.1, 0.5, 0.9, 1.0]))
    assert confidences == sorted(confidences)
    assert all(0 < confidence < 1 for confidence in confidences)
