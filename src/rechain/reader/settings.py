"""Every setting of the chain reader in one place."""

from dataclasses import dataclass, fields
from math import isfinite

from rechain.errors import RechainError


@dataclass(frozen=True)
class ReaderSettings:
    """How the chain reader is built, taught and used."""

    max_tokens: int = 272
    """tokens of a chain that are read, question and all; longer passages are read in windows"""
    most_chains: int = 6
    """chains of a question that are worth reading at most, the best by cheap evidence"""

    teachers: int = 1
    """readers that are taught together, each by what all of them believe; if more than one, they teach the one kept"""
    epochs: int = 3
    """times that a reader sees every question"""
    warm_up_epochs: int = 1
    """times that it sees every pseudo question before, where there are any"""
    batch_size: int = 32
    """questions in a step"""
    learning_rate: float = 1.5e-4
    """of the encoder"""
    head_learning_rate: float = 1e-3
    """of what is new: marks and heads"""
    evidence_learning_rate: float = 1e-3
    """of what evidence weighs"""
    warm_up_share: float = 0.06
    """share of the steps in which the learning rates grow"""
    weight_decay: float = 0.01
    """of the encoder"""
    clip: float = 1.0
    """the greatest norm of a gradient"""
    dropout: float = 0.1
    """of the heads"""
    reestimates: bool = True
    """whether the weights of chains are estimated again with what was learnt (EM), or stay those of the prior"""
    evidence_pull: float = 0.01
    """how strongly what evidence weighs is held to the prior"""
    ranker_weight: float = 0.4
    """what the Ranker's logit weighs beside cheap evidence, in teaching and in recovery"""
    reasoner_weight: float = 0.2
    """what the Reasoner's log-probability of the link weighs beside the others, in teaching and in recovery"""
    margin: float = 5.0
    """chains whose evidence is less than the best one's by more than this are not read in recovery"""
    temperature: float = 1.0
    """what scores are divided by before they become confidences"""
    tokens_at_once: int = 8192
    """tokens that the network reads at a time in recovery"""
    seed: int = 0
    """of weights, order and dropout"""

    def __post_init__(self) -> None:
        """Say which setting is wrong; they may come from a file."""
        for field in fields(self):
            value, kind = getattr(self, field.name), type(field.default)
            if not _is_a(value, kind):
                raise RechainError(f"{field.name} should be {_KINDS[kind]}, not {value!r}.")
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise RechainError(f"{name} should be at least {least}, not {getattr(self, name)!r}.")
        for name in ("warm_up_share", "dropout"):
            if not 0 <= getattr(self, name) <= 1:
                raise RechainError(f"{name} should be between 0 and 1, not {getattr(self, name)!r}.")
        if self.temperature <= 0:
            raise RechainError(f"temperature should be greater than 0, not {self.temperature!r}.")


_KINDS: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false"}
_LEAST = dict.fromkeys(("most_chains", "teachers", "epochs", "batch_size", "tokens_at_once"), 1) | {"max_tokens": 16}


def _is_a(value: object, kind: type) -> bool:
    if kind is bool or isinstance(value, bool):
        return isinstance(value, bool) and kind is bool
    return isinstance(value, int) or (kind is float and isinstance(value, float) and isfinite(value))
