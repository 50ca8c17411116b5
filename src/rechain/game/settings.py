"""Every setting of a game in one place; config files, flags and docs are made from it."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

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
    wrong_setting,
)

DATA_SETS = ("hotpotqa", "drughop", "medhop")
"""those for which the package has settings"""

DECODING = frozenset(("reasoner_weight", "link_weight", "lexical_weight"))
"""the settings that count only after training"""

Row = Literal["independent", "conditional", "cooperative"]
_Size = Annotated[int, Limits(least=1, most=100_000)]
"""a slip of the finger is an error in one sentence, rather than a machine without memory"""


@dataclass(frozen=True)
class GameSettings(Settings):
    """How Ranker and Reasoner are built, trained and used."""

    names: ClassVar = DATA_SETS

    row: Row = "cooperative"
    """independent: one MatchLSTM scores all passages; conditional: each passage given those selected before;
    cooperative: the same with the Reasoner"""
    direction: Literal["tail to head", "head to tail"] = "tail to head"
    """which passage of two is selected first"""

    hidden: _Size = 100
    """units of a GRU in each direction"""
    dropout: PartShare = 0.2
    """share of the inputs and states that are dropped in training"""
    exact_match: bool = True
    """whether the networks see which words stand in question, titles and selected passages alike"""
    mark_answer: bool = False
    """whether the networks see where the answer stands; the paper uses it for C alone"""
    train_vectors: bool = False
    """whether word vectors are trained or frozen"""
    max_tokens: _Size = 200
    """words of a passage that are read"""

    evidence: Literal["none", "links", "lexical"] = "lexical"
    """what weighs the chains of C: none, as in the paper; the weight of their links; the lexical rule's score"""
    sharpness: NotNegative = 0.35
    """how much less chains of less evidence weigh: exp(sharpness x difference)"""
    head_reward: Literal["set", "path"] = "path"
    """of two passages, whether the second is rewarded if any chain has it (equation 2) or one that has the first too"""
    gradient: Literal["reinforce", "exact", "likelihood"] = "exact"
    """of the reward: sampled as in the paper; exact, over all selections; exact, of its logarithm"""
    samples: _Size = 4
    """chains drawn for each question, for reinforce"""
    baseline: Literal["leave-one-out", "moving"] = "leave-one-out"
    """what is subtracted from a sampled reward"""
    entropy: NotNegative = 0.01
    """weight of the policy's entropy, which keeps it from settling too early"""
    bonus: NotNegative = 0.5
    """r, what the Ranker earns more when its passage holds the entity that the Reasoner named"""

    warm_up_epochs: Count = 1
    """epochs of pseudo questions, where there are any"""
    pretrain_epochs: Count = 6
    """epochs of distant supervision before the game"""
    game_epochs: Count = 6
    """epochs of the game: a Reasoner step and a Ranker step in turn"""
    batch_size: _Size = 32
    """questions in a step"""
    warm_up_batch_size: _Size = 64
    """pseudo questions in a step"""
    learning_rate: Rate = 1e-3
    """of the warm-up, the pretraining and the Reasoner"""
    game_learning_rate: Rate = 2e-4
    """of the Ranker in the game"""
    clip: AboveZero = 5.0
    """the greatest norm of a gradient"""
    held_out: PartShare = 0.1
    """share of the questions on which the reward is measured, to stop early and keep the best"""
    patience: _Size = 3
    """epochs of the pretraining or the game without a better reward after which it stops"""
    seed: Seed = 0
    """of weights, order, dropout and sampling"""
    precision: Literal["float32", "bfloat16"] = "float32"
    """of the networks' arithmetic on a GPU; a CPU computes in float32"""
    checkpoint_steps: Positive = 200
    """a checkpoint is written after this many steps, and after every epoch"""

    reasoner_weight: float = 1.0
    """of the Reasoner's log-probability in a chain's score"""
    link_weight: float = 0.0
    """of the links' weight in a chain's score"""
    lexical_weight: float = 0.0
    """of the lexical rule's score in a chain's score"""

    def __post_init__(self) -> None:
        """Say which setting is wrong."""
        super().__post_init__()
        if self.gradient == "reinforce" and self.baseline == "leave-one-out" and self.samples < 2:
            raise wrong_setting("samples", self.samples, "at least 2 for the baseline leave-one-out")
