"""Ways to pick a chain that learn nothing, behind the interface that every model has."""

from collections.abc import Callable

from rechain.baselines.bm25 import BM25
from rechain.baselines.lexical import Lexical
from rechain.baselines.random import Random
from rechain.model import Model

BASELINES: dict[str, Callable[[], Model]] = {"random": Random, "lexical": Lexical, "bm25": BM25}

__all__ = ["BASELINES", "BM25", "Lexical", "Model", "Random"]
