"""How good verdicts are: whether they say of an answer what people say of it, and how far to believe them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rechain.evaluation.statistics import Figure, expected_calibration_error, mean_with_interval
from rechain.schema import VERDICTS, Recovered, Verdict


class JudgedAnswer(NamedTuple):
    """The verdict on an answer, None where there is none, its probability, and the right one."""

    verdict: Verdict | None
    probability: float | None
    gold: Verdict

    @classmethod
    def of(cls, recovered: Recovered | None, gold: Verdict) -> "JudgedAnswer":
        """Compare what was recovered, if anything was, with the right verdict."""
        if recovered is None:
            return cls(None, None, gold)
        return cls(recovered.verdict, recovered.verdict_probability, gold)

    @property
    def is_right(self) -> bool:
        """Whether the verdict is the right one."""
        return self.verdict == self.gold


def summarise_verdicts(answers: Sequence[JudgedAnswer]) -> dict[str, Figure]:
    """Return every figure that verdicts allow, by name; nothing for models that give none."""
    if all(answer.verdict is None for answer in answers):
        return {}
    columns: dict[str, list[bool]] = {"verdict accuracy": [answer.is_right for answer in answers]}
    for verdict, words in VERDICTS.items():
        columns[f"verdict accuracy, {words}"] = [answer.is_right for answer in answers if answer.gold == verdict]
    # A doubtful answer that is only "partly" supported is looked at too; the harm is one that passes for supported.
    columns["unsupported flagged"] = [a.verdict != "supported" for a in answers if a.gold == "unsupported"]
    figures = {name: mean_with_interval(values) for name, values in columns.items()}
    return {name: figure for name, figure in figures.items() if figure is not None}


def calibration_error(answers: Iterable[JudgedAnswer]) -> float | None:
    """Return how far the probability of verdicts lies from how often they are right; None without probabilities."""
    return expected_calibration_error((answer.probability, answer.is_right) for answer in answers)
