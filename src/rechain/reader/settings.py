"""Every setting of the chain reader in one place."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Self

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

TO_NEXT, FROM_BEFORE, FIRST_END, LAST_END = range(1, 5)
"""what a token of a chain is marked as: the link to the next passage, the link from the one before, or an end of the
chain that the data names"""
TEXT_MARKS = 5
"""the kinds of marks in chains, with 0 for none"""


@dataclass(frozen=True)
class ReaderSettings(Settings):
    """How the chain reader is built, trained and used."""

    max_tokens: Annotated[int, Limits(least=16)] = 272
    """tokens of a chain that are read, question and all; longer passages are read in windows"""
    passage_tokens: Annotated[int, Limits(least=16)] = 160
    """tokens that the Reasoner reads of a question and one passage"""
    judge_tokens: Annotated[int, Limits(least=32)] = 128
    """tokens that the judge reads of a question, its answer and the passages that may support it"""
    judge_layers: Count = 6
    """layers of the encoder whose states the judge reads, from the first; 0, or more than there are: all. It reads a
    text of every question, and half of a deep encoder is enough for it"""
    most_chains: Positive = 8
    """chains of a question that are worth reading at most, the best by cheap evidence"""

    epochs: Positive = 3
    """times that a reader sees every question"""
    batch_size: Positive = 32
    """questions in a step"""
    learning_rate: Rate = 1.5e-4
    """of the encoder"""
    head_learning_rate: Rate = 1e-3
    """of new parameters: marks and heads"""
    evidence_learning_rate: Rate = 1e-3
    """of the weights of evidence"""
    warm_up_share: Share = 0.06
    """share of the steps in which the learning rates grow"""
    weight_decay: NotNegative = 0.01
    """of the encoder"""
    clip: AboveZero = 1.0
    """the greatest norm of a gradient"""
    dropout: Share = 0.1
    """of the heads"""
    evidence_pull: NotNegative = 0.01
    """how strongly the weights of evidence are pulled to the prior"""
    ranker_weight: Weight = 1.25
    """weight of the Ranker's logit relative to cheap evidence, in training and in recovery"""
    reasoner_weight: Weight = 0.4
    """weight of the Reasoner's log-probability of the link, in training and in recovery"""
    wrong_answers: Positive = 4
    """wrong answers of a question at most from which the judge learns"""
    judge_weight: NotNegative = 0.3
    """weight of the judge's loss relative to those of Ranker, evidence and Reasoner; with more the judge is no better
    and the Ranker worse (docs/measured/default_model.md)"""
    margin: Rate = 5.0
    """chains whose evidence is less than the best one's by more than this are not read in recovery; with 5, accuracy is
    almost that of reading all, and on HotpotQA a quarter are read (docs/measured/default_model.md)"""
    temperature: Annotated[float, Limits(least=1e-6)] = 2.0
    """the divisor of scores before they become confidences"""
    unlike: PartShare = 0.0
    """cosine of two sentences with different meanings, by the encoder's mean states: the zero of similarity"""
    held_out: PartShare = 0.1
    """share of the questions on which the agreement is measured, to stop early and keep the best weights"""
    patience: Positive = 2
    """epochs without a better agreement after which training stops"""
    checkpoint_steps: Positive = 200
    """a checkpoint is written after this many steps, and after every epoch"""
    seed: Seed = 0
    """of weights, order and dropout"""

    @classmethod
    def recorded(cls, values: Mapping[str, Any], where: str) -> Self:
        """Return the settings that a model was saved with, without those of training that no longer exist."""
        if isinstance(values, Mapping):
            names = {field.name for field in fields(cls)}
            values = {name: value for name, value in values.items() if name in names}
        return cls.of(values, where)
