"""Every setting of the chain reader in one place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from rechain.system.settings import (
    AboveZero,
    Count,
    Limits,
    NotNegative,
    PartShare,
    Positive,
    Rate,
    Seed,
    Settings,
    Share,
)

Weight = Annotated[float, Limits(least=-1e6, most=1e6)]
"""of a score; a score times the greatest, by the least temperature, is still a finite number of 32 bits"""


@dataclass(frozen=True)
class ReaderSettings(Settings):
    """How the chain reader is built, trained and used."""

    before: ClassVar = {"judge_layers": 0}

    max_tokens: Annotated[int, Limits(least=16)] = 272
    """tokens of a chain that are read, question and all; longer passages are read in windows"""
    passage_tokens: Annotated[int, Limits(least=16)] = 160
    """tokens that the Reasoner reads of a question and one passage"""
    judge_tokens: Annotated[int, Limits(least=32)] = 128
    """tokens that the judge reads of a question, its answer and the passages that may support it"""
    judge_layers: Count = 6
    """layers of the encoder whose states the judge reads, from the first; 0, or more than there are: all. It reads a
    text of every question, and half of a deep encoder is enough for it"""
    most_chains: Positive = 6
    """chains of a question that are worth reading at most, the best by cheap evidence"""

    teachers: Positive = 1
    """readers that are taught together, each by what all of them believe; if more than one, they teach the one kept"""
    epochs: Positive = 3
    """times that a reader sees every question"""
    warm_up_epochs: Count = 1
    """times that it sees every pseudo question before, where there are any"""
    batch_size: Positive = 32
    """questions in a step"""
    learning_rate: Rate = 1.5e-4
    """of the encoder"""
    head_learning_rate: Rate = 1e-3
    """of what is new: marks and heads"""
    evidence_learning_rate: Rate = 1e-3
    """of what evidence weighs"""
    warm_up_share: Share = 0.06
    """share of the steps in which the learning rates grow"""
    weight_decay: NotNegative = 0.01
    """of the encoder"""
    clip: AboveZero = 1.0
    """the greatest norm of a gradient"""
    dropout: Share = 0.1
    """of the heads"""
    reestimates: bool = True
    """whether the weights of chains are estimated again with what was learnt (EM), or stay those of the prior"""
    evidence_pull: NotNegative = 0.01
    """how strongly what evidence weighs is held to the prior"""
    ranker_weight: Weight = 0.4
    """what the Ranker's logit weighs beside cheap evidence, in teaching and in recovery"""
    reasoner_weight: Weight = 0.2
    """what the Reasoner's log-probability of the link weighs beside the others, in teaching and in recovery"""
    wrong_answers: Positive = 4
    """wrong answers of a question at most from which the judge learns"""
    judge_weight: NotNegative = 0.3
    """what the judge's loss weighs beside those of Ranker, evidence and Reasoner; with more the judge is no better and
    the Ranker worse (docs/measured/default_model.md)"""
    margin: Rate = 2.0
    """chains whose evidence is less than the best one's by more than this are not read in recovery; with 2,
    accuracy is that of reading all, and on HotpotQA a tenth are read (docs/measured/default_model.md)"""
    temperature: Annotated[float, Limits(least=1e-6)] = 1.0
    """what scores are divided by before they become confidences"""
    unlike: PartShare = 0.0
    """cosine of two sentences that say different things, by the encoder's mean states: what likeness begins with"""
    tokens_at_once: Positive = 8192
    """tokens that the network reads at a time in recovery"""
    seed: Seed = 0
    """of weights, order and dropout"""

    @classmethod
    def recorded(cls, values: Mapping[str, Any], where: str) -> Self:
        """Return settings that this version or an earlier one has recorded, when passages had the room of chains."""
        if isinstance(values, Mapping) and "max_tokens" in values:
            values = {"passage_tokens": values["max_tokens"], **values}
        return super().recorded(values, where)
