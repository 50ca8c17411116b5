"""Every setting of a game in one place; config files, flags and docs are made from it."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from rechain.preparation.arrays import CLOSENESS, STEP_FEATURES
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

AS_WRITTEN = {
    "entities": "all",
    "mention": "first word",
    "reasoner_epochs": 0,
    "bonus_from": 0,
    "teaching": "batch",
    "reasoner_loss": "shared",
    "bonus_by": "top-1",
    "bonus_is": "factor",
}
"""the Reasoner by the paper's equations and schedule, on every name that is found: as it was before these settings"""

Row = Literal["independent", "conditional", "cooperative"]
_Size = Annotated[int, Limits(least=1, most=100_000)]
"""a slip of the finger is an error in one sentence, rather than a machine without memory"""


@dataclass(frozen=True)
class GameSettings(Settings):
    """How Ranker and Reasoner are built, trained and used."""

    names: ClassVar = DATA_SETS
    before: ClassVar = AS_WRITTEN

    row: Row = "cooperative"
    """independent: one MatchLSTM scores all passages; conditional: each passage given those selected before;
    cooperative: the same with the Reasoner"""
    direction: Literal["tail to head", "head to tail"] = "tail to head"
    """which passage of two is selected first"""

    selects: Literal["passages", "steps"] = "passages"
    """what the Ranker selects: passages, as in the paper; or, where the data names entities, steps: a passage with the
    two entities by which a chain enters and leaves it. The Reasoner then names the entity by which the next step is to
    be entered or left"""
    pairs: Literal["none", "closeness", "rarity"] = "rarity"
    """which numbers tell the networks of the two entities of a step. closeness: sentences that they share, mentions,
    and words between them, but for mentions that overlap. rarity: and how many passages of the collection hold each"""

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

    evidence: Literal["none", "links", "lexical", "rarity", "beliefs"] = "lexical"
    """what weighs the chains of C: none, as in the paper; the weight of their links; the lexical rule's score. Where
    the data names entities also that score and the rarity of entities in the collection; and both with beliefs, which
    the questions that are learned from share about their steps"""
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
    bonus_by: Literal["top-1", "walk"] = "top-1"
    """what earns the bonus. top-1: all of it a passage that holds the Reasoner's likeliest entity (equation 5). walk:
    each passage its chance to be reached from the passage that was read, by an entity that the Reasoner names and then
    any other passage that holds it, in parts of the likeliest passage's chance"""
    bonus_is: Literal["sum", "factor"] = "sum"
    """whether r is added to the reward of a selection or multiplied into it; with hard C both are equation 5, with a
    weighted C a factor adds little to chains of little weight"""
    bonus_from: Count = 1
    """epochs of the game that pass before a bonus is paid"""

    entities: Literal["merged", "all"] = "merged"
    """among what the Reasoner chooses. merged: one entity for one thing, equal and nested names together, without parts
    of names that many passages hold. all: every title, part of a title, name and word by itself"""
    mention: Literal["span", "first word"] = "span"
    """what the score of a mention is: the mean over its words, or that of its first word"""
    reasoner_loss: Literal["shared", "walk"] = "shared"
    """what the Reasoner learns. shared: to name any entity that the next passage holds too (equation 4). walk: to lead
    to the next passage: an entity counts the less, the more other passages hold it"""
    reasoner_epochs: Count = 2
    """epochs after the pretraining in which the Reasoner alone is taught, on what the pretrained Ranker selects"""
    teaching: Literal["half", "batch"] = "half"
    """in the game, whether the Reasoner is taught on one half of a batch and asked about the other, so that it does not
    pay for what it was told a moment ago; or taught on the batch and then asked about it"""
    freezes_reasoner: bool = False
    """whether the Reasoner is never taught: a control, to which the cooperative row is compared"""

    warm_up_epochs: Count = 1
    """epochs of pseudo questions, where there are any"""
    pretrain_epochs: Count = 6
    """epochs of distant supervision before the game, at most"""
    pretrain_by: Literal["likelihood", "reward"] = "likelihood"
    """what the pretraining goes by: the likelihood of C's chains as wholes, or the reward of each selection, by the
    gradient of the game; independent selections are always taught by cross-entropy"""
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
    game_keeps: Literal["best", "last"] = "best"
    """which weights of the game are kept: those of the best reward on held-out questions, which knows no bonus; or the
    last, after all of its epochs"""
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
    """of the lexical rule's score in a chain's score, without what a collection adds to it"""

    @property
    def reading(self) -> tuple[int, bool, Literal["merged", "all"], Literal["passages", "steps"]]:
        """How prepared questions are read: all that `rechain.game.data.Prepared` needs to know."""
        return self.max_tokens, self.mark_answer, self.entities, self.selects

    @property
    def step_features(self) -> int | None:
        """How many numbers of a step the networks see; None where passages are selected."""
        return (
            None
            if self.selects == "passages"
            else {"none": 0, "closeness": CLOSENESS, "rarity": STEP_FEATURES}[self.pairs]
        )

    @property
    def teaches_reasoner(self) -> bool:
        """Whether anybody teaches the Reasoner."""
        return self.row == "cooperative" and not self.freezes_reasoner

    def __post_init__(self) -> None:
        """Say which setting is wrong."""
        super().__post_init__()
        if self.gradient == "reinforce" and self.baseline == "leave-one-out" and self.samples < 2:
            raise wrong_setting("samples", self.samples, "at least 2 for the baseline leave-one-out")
        if self.selects == "steps" and not self.mark_answer:
            raise wrong_setting(
                "mark_answer", self.mark_answer, "true where steps are selected, as a tail is left by it"
            )
