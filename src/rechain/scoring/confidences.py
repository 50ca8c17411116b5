"""From shares to confidences, where the data names entities: there several chains of a question are often right.

A model divides the probability of a question among its chains, as if no more than one were right, so that the share of
each is too small. Two numbers turn a share into the probability that the chain is right. They were fitted to gold of
DrugHop open; docs/measured/default_model.md and docs/measured/joint.md have the error on folds that took no part in the
fit. They never change which chain is best.
"""

from math import exp, log
from typing import NamedTuple

_LEAST = 1e-4
"""shares nearer to 0 or 1 than this count as this: that of a question's only chain says nothing of how right it is"""


class Calibration(NamedTuple):
    """The confidence of a chain from its share among those of its question."""

    slope: float
    offset: float

    def confidence(self, share: float) -> float:
        """Return the probability that a chain of this share is right."""
        return 1 / (1 + exp(-(self.slope * log_odds(share) + self.offset)))


ALONE = Calibration(0.40, 0.83)
"""of the default model by itself (benchmarks/default_model.py judge)"""
JOINTLY = Calibration(0.34, 0.31)
"""of its chains weighed by what other questions tell (benchmarks/joint.py)"""


def log_odds(share: float) -> float:
    """Return the log-odds of a share."""
    share = min(max(share, _LEAST), 1 - _LEAST)
    return log(share / (1 - share))
