"""What a model is, and the models that need no files.

A new one is a module whose class has `score` (`rechain.scoring.interface.Model`), and a line in BASELINES.
"""

from collections.abc import Callable

from rechain.scoring.baselines import BM25, Lexical, Random
from rechain.scoring.interface import Model

BASELINES: dict[str, Callable[[], Model]] = {
    "random": Random,
    "lexical": Lexical,
    "bm25": BM25,
}
"""what `--model NAME` and `Recoverer(NAME)` load; they learn nothing"""

__all__ = ["BASELINES", "BM25", "Lexical", "Model", "Random"]
