"""Recover reasoning chains: the ordered passages that lead from a question to its answer, and what links them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rechain.version import __version__

if TYPE_CHECKING:
    from rechain.candidates import CandidateSettings, find_candidates
    from rechain.datasets import read_questions
    from rechain.errors import RechainError
    from rechain.recovery import Recoverer
    from rechain.schema import Chain, Gold, Link, Mention, Passage, Question, Recovered

_HOME = {
    "CandidateSettings": "candidates",
    "Chain": "schema",
    "Gold": "schema",
    "Link": "schema",
    "Mention": "schema",
    "Passage": "schema",
    "Question": "schema",
    "RechainError": "errors",
    "Recovered": "schema",
    "Recoverer": "recovery",
    "find_candidates": "candidates",
    "read_questions": "datasets",
}

__all__ = [
    "CandidateSettings",
    "Chain",
    "Gold",
    "Link",
    "Mention",
    "Passage",
    "Question",
    "RechainError",
    "Recovered",
    "Recoverer",
    "__version__",
    "find_candidates",
    "read_questions",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Load what is asked for when it is asked for: `import rechain` itself is quick."""
    if name not in _HOME:
        raise AttributeError(f"module 'rechain' has no attribute '{name}'")
    return getattr(import_module(f"rechain.{_HOME[name]}"), name)
