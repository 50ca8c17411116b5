from collections.abc import Callable

from rechain.scoring import BASELINES
from rechain.scoring.model import BatchModel


def test_a_model_that_scores_many_questions_together_is_told_from_others(
    batch_fake: Callable[[], BatchModel],
) -> None:
    assert isinstance(batch_fake(), BatchModel)
    assert not any(isinstance(model(), BatchModel) for model in BASELINES.values())
