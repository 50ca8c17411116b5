"""Ways to pick a chain that learn nothing, behind the interface that every model has."""

from collections.abc import Callable

from rechain.scoring.bm25 import BM25
from rechain.scoring.lexical import Lexical
from rechain.scoring.model import Model
from rechain.scoring.random import Random

BASELINES: dict[str, Callable[[], Model]] = {"random": Random, "lexical": Lexical, "bm25": BM25}

__all__ = ["BASELINES", "BM25", "Lexical", "Model", "Random"]
