"""What a model is, and the models that need no files.

A new one is a module whose class has `score` (`rechain.scoring.interface.Model`), and a line in BASELINES.
"""

from collections.abc import Callable

from rechain.scoring.interface import BM25, Lexical, Model, Random

BASELINES: dict[str, Callable[[], Model]] = {
    "random": Random,
    "lexical": Lexical,
    "bm25": BM25,
}
"""what `--model NAME` and `Recoverer(NAME)` load; they learn nothing"""

__all__ = ["BASELINES", "BM25", "Lexical", "Model", "Random"]
