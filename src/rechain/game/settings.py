"""Every setting of a game in one place; config files, flags and docs are made from it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from rechain.errors import RechainError

DATA_SETS = ("hotpotqa", "drughop", "medhop")
"""those for which the package has settings"""

_GREATEST_SIZE = 100_000
_GREATEST_RATE = 1e30  # a step of it is still a number

DECODING = frozenset(("reasoner_weight", "link_weight", "lexical_weight"))
"""the settings that count only after training"""

Row = Literal["independent", "conditional", "cooperative"]


@dataclass(frozen=True)
class GameSettings:
    """How Ranker and Reasoner are built, trained and used."""

    row: Row = "cooperative"
    """independent: one MatchLSTM scores all passages; conditional: each passage given those selected before;
    cooperative: the same with the Reasoner"""
    direction: Literal["tail to head", "head to tail"] = "tail to head"
    """which passage of two is selected first"""

    hidden: int = 100
    """units of a GRU in each direction"""
    dropout: float = 0.2
    """share of the inputs and states that are dropped in training"""
    exact_match: bool = True
    """whether the networks see which words stand in question, titles and selected passages alike"""
    mark_answer: bool = False
    """whether the networks see where the answer stands; the paper uses it for C alone"""
    train_vectors: bool = False
    """whether word vectors are trained or frozen"""
    max_tokens: int = 200
    """words of a passage that are read"""

    evidence: Literal["none", "links", "lexical"] = "lexical"
    """what weighs the chains of C: none, as in the paper; the weight of their links; the lexical rule's score"""
    sharpness: float = 0.35
    """how much less chains of less evidence weigh: exp(sharpness x difference)"""
    head_reward: Literal["set", "path"] = "path"
    """of two passages, whether the second is rewarded if any chain has it (equation 2) or one that has the first too"""
    gradient: Literal["reinforce", "exact", "likelihood"] = "exact"
    """of the reward: sampled as in the paper; exact, over all selections; exact, of its logarithm"""
    samples: int = 4
    """chains drawn for each question, for reinforce"""
    baseline: Literal["leave-one-out", "moving"] = "leave-one-out"
    """what is subtracted from a sampled reward"""
    entropy: float = 0.01
    """weight of the policy's entropy, which keeps it from settling too early"""
    bonus: float = 0.5
    """r, what the Ranker earns more when its passage holds the entity that the Reasoner named"""

    warm_up_epochs: int = 1
    """epochs of pseudo questions, where there are any"""
    pretrain_epochs: int = 6
    """epochs of distant supervision before the game"""
    game_epochs: int = 6
    """epochs of the game: a Reasoner step and a Ranker step in turn"""
    batch_size: int = 32
    """questions in a step"""
    warm_up_batch_size: int = 64
    """pseudo questions in a step"""
    learning_rate: float = 1e-3
    """of the warm-up, the pretraining and the Reasoner"""
    game_learning_rate: float = 2e-4
    """of the Ranker in the game"""
    clip: float = 5.0
    """the greatest norm of a gradient"""
    held_out: float = 0.1
    """share of the questions on which the reward is measured, to stop early and keep the best"""
    patience: int = 3
    """epochs of the pretraining or the game without a better reward after which it stops"""
    seed: int = 0
    """of weights, order, dropout and sampling"""
    precision: Literal["float32", "bfloat16"] = "float32"
    """of the networks' arithmetic on a GPU; a CPU computes in float32"""
    checkpoint_steps: int = 200
    """a checkpoint is written after so many steps, and after every epoch"""

    reasoner_weight: float = 1.0
    """of the Reasoner's log-probability in a chain's score"""
    link_weight: float = 0.0
    """of the links' weight in a chain's score"""
    lexical_weight: float = 0.0
    """of the lexical rule's score in a chain's score"""

    def __post_init__(self) -> None:
        """Say which setting is wrong."""
        kinds = get_type_hints(type(self))
        for field in fields(self):
            _check(field.name, getattr(self, field.name), kinds[field.name])
        for name in ("hidden", "max_tokens", "batch_size", "warm_up_batch_size", "samples", "patience"):
            _demand(1 <= getattr(self, name) <= _GREATEST_SIZE, name, f"should be from 1 to {_GREATEST_SIZE:,}")
        _demand(self.checkpoint_steps >= 1, "checkpoint_steps", "should be at least 1")
        for name in ("warm_up_epochs", "pretrain_epochs", "game_epochs", "bonus", "sharpness", "entropy", "seed"):
            _demand(getattr(self, name) >= 0, name, "should not be negative")
        for name in ("learning_rate", "game_learning_rate"):
            _demand(0 <= getattr(self, name) <= _GREATEST_RATE, name, f"should be from 0 to {_GREATEST_RATE:g}")
        _demand(0 <= self.dropout < 1, "dropout", "should be 0 or more and less than 1")
        _demand(0 <= self.held_out < 1, "held_out", "should be 0 or more and less than 1")
        _demand(self.clip > 0, "clip", "should be more than 0")
        _demand(self.seed < 2**63, "seed", "should be less than 2 to the power of 63")
        is_alone = self.gradient == "reinforce" and self.baseline == "leave-one-out" and self.samples < 2
        _demand(not is_alone, "samples", "should be at least 2 for the baseline leave-one-out")

    @classmethod
    def read(cls, path: Path, **changes: Any) -> "GameSettings":
        """Read settings from a TOML file; what it does not name stays as it is by default."""
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            known = ", ".join(DATA_SETS)
            raise RechainError(f"{path} cannot be read: {error.strerror}; known by name are {known}.") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise RechainError(f"{path} is not a TOML file: {error}.") from error
        return cls.of(values, str(path), **changes)

    @classmethod
    def for_data(cls, name: str, **changes: Any) -> "GameSettings":
        """Return the settings for a known data set."""
        with as_file(files("rechain").joinpath(f"data/settings/{name}.toml")) as path:
            return cls.read(path, **changes)

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str, **changes: Any) -> "GameSettings":
        """Return settings from their names and values."""
        known = {field.name for field in fields(cls)}
        if not isinstance(values, Mapping):
            raise RechainError(f"{where}: the settings should be names with values.")
        if unknown := sorted((values.keys() | changes.keys()) - known):
            raise RechainError(
                f"{where}: there is no setting '{unknown[0]}'; the settings are {', '.join(sorted(known))}."
            )
        try:
            return cls(**{**values, **changes})
        except RechainError as error:
            raise RechainError(f"{where}: {error}") from error

    def but(self, **changes: Any) -> "GameSettings":
        """Return the settings with some changes."""
        return replace(self, **changes)


def _check(name: str, value: Any, kind: Any) -> None:
    if choices := get_args(kind):
        _demand(value in choices, name, f"should be one of {', '.join(choices)}")
    elif kind is float:
        _demand(isinstance(value, int | float) and not isinstance(value, bool), name, "should be a number")
        _demand(abs(value) < float("inf"), name, "should be finite")
    else:
        _demand(type(value) is kind, name, {int: "should be a whole number", bool: "should be true or false"}[kind])


def _demand(holds: bool, name: str, what: str) -> None:
    if not holds:
        raise RechainError(f"the setting {name} {what}.")
