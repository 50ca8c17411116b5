"""Every setting of the game in one place; config files, flags and the docs are made from it."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from rechain.system.settings import Count, Limits, NotNegative, Rate, Seed, Settings, Share

DATA_SETS = ("hotpotqa", "drughop", "medhop")
"""those for which the package has settings"""
DECODING = frozenset(("reasoner_weight", "lexical_weight"))
"""the settings that count only after training"""
AFTER_PRETRAINING = frozenset(("bonus", "sure_share", "reasoner_epochs", "game_epochs", *DECODING))
"""the settings that change nothing before the pretraining has ended"""

Row = Literal["independent", "head to tail", "tail to head", "cooperative", "as written", "untaught"]
_Size = Annotated[int, Limits(least=1, most=100_000)]
"""so that a typing error is an error in one sentence and does not fill the memory"""

NGRAM_BUCKETS = 4096
"""buckets of hashed n-grams; 0 is none"""

ASKED, ANSWER, BESIDE = 0, 1, 2
"""what is marked of a word: it mentions an entity of the question, of the answer; BESIDE is added to either where the
word stands in a sentence with one"""
MARKS = 4
"""the number of kinds of marks"""

STEP_FEATURES = 5
"""numbers about the two entities of a step: three about how close they are, two about how rare"""
CLOSENESS = 3
"""how many of them are about closeness; these come first"""


@dataclass(frozen=True)
class GameSettings(Settings):
    """How Ranker and Reasoner are built, trained and used."""

    names: ClassVar = DATA_SETS

    row: Row = "cooperative"
    """a row of the paper's tables. independent: one MatchLSTM scores all passages; head to tail, tail to head: each
    passage given those selected before; cooperative: tail to head, with the Reasoner. Two variants of cooperative: as
    written, the Reasoner by the paper's letter (every name is an entity, a mention scores as its first word, and the
    Reasoner begins untrained with the game and is asked about the batch that it has just learned from); untaught, a
    control whose Reasoner stays as it was initialized"""
    selects: Literal["passages", "steps"] = "passages"
    """what the Ranker selects: passages, as in the paper; or, if the data names entities, steps: a passage with the
    two entities by which a chain enters and leaves it. The networks then also see where the entities of the question
    and the answer are mentioned"""
    features: Literal["none", "matches", "closeness", "all"] = "all"
    """what the networks see besides words; each adds to those before. none, as in the paper; matches: which words
    occur in question, titles and selected passages alike; closeness: how close the two entities of a step are in its
    passage; all: also how many passages of the collection mention them"""
    max_tokens: _Size = 200
    """words of a passage that are read"""
    hidden: _Size = 100
    """units of a GRU in each direction"""
    update: Literal["residual", "paper"] = "residual"
    """the query after a selection (equation 1). residual: Q + FFN([Q, m]), with the last layer zero at the start, so
    that the query does not forget the question; paper: FFN([Q, m])"""

    sharpness: NotNegative = 0.35
    """how much less the chains of C count that have less evidence (the lexical rule's score and, if the data names
    entities, their rarity and the beliefs about steps that questions share): exp(sharpness x difference). 0: all count
    alike, as in the paper"""
    gradient: Literal["reinforce", "exact"] = "exact"
    """of the expected reward: sampled, as in the paper; or exact, over all selections"""
    bonus: NotNegative = 0.5
    """r, the extra reward for a passage that contains the entity that the Reasoner predicts (equation 5)"""
    sure_share: Share = 0.3
    """share of a batch on which the Reasoner is taught: the questions about whose best chain in C the Ranker is surest;
    of 0.3, 0.5, 0.7 and 1 the one with the best bonus on held-out questions, without gold"""

    pretrain_by: Literal["default", "steps", "reward", "likelihood"] = "default"
    """what the Ranker learns before the game. steps: at each step, the passages that continue a chain of C, by
    cross-entropy; reward: the reward of each selection, as in the game; likelihood: the chains of C as wholes; default:
    steps where all chains of C count alike, likelihood where they are weighted"""
    pretrain_epochs: Count = 6
    """epochs of the pretraining, at most: it stops early when the reward on held-out questions stops rising"""
    reasoner_epochs: Count = 2
    """epochs after the pretraining in which the Reasoner alone is taught"""
    game_epochs: Count = 6
    """epochs of the game: a Reasoner step and a Ranker step in turn"""
    batch_size: _Size = 32
    """questions in a step"""
    learning_rate: Rate = 1e-3
    """of both players; the Ranker's is lower in the game"""
    seed: Seed = 0
    """of weights, order, dropout and sampling"""
    precision: Literal["float32", "bfloat16"] = "float32"
    """of the networks' arithmetic on a GPU; a CPU computes in float32"""

    reasoner_weight: float = 1.0
    """of the Reasoner's log-probability in a chain's score"""
    lexical_weight: float = 0.0
    """of the lexical rule's score in a chain's score"""

    @property
    def step_features(self) -> int | None:
        """How many numbers of a step the networks see; None if passages are selected."""
        if self.selects == "passages":
            return None
        return {"closeness": CLOSENESS, "all": STEP_FEATURES}.get(self.features, 0)

    @property
    def matches_words(self) -> bool:
        """Whether the networks see exact matches."""
        return self.features != "none"

    @property
    def is_cooperative(self) -> bool:
        """Whether there is a Reasoner that pays a bonus."""
        return self.row in ("cooperative", "as written", "untaught")

    @property
    def teaches_reasoner(self) -> bool:
        """Whether the Reasoner learns."""
        return self.row in ("cooperative", "as written")

    @property
    def is_as_written(self) -> bool:
        """Whether the Reasoner follows the paper's letter."""
        return self.row == "as written"

    @property
    def pretraining(self) -> str:
        """What the Ranker learns before the game."""
        if self.pretrain_by == "default":
            return "steps" if self.is_hard else "likelihood"
        return self.pretrain_by

    @property
    def is_hard(self) -> bool:
        """Whether all chains of C count alike, as in the paper."""
        return self.sharpness == 0
