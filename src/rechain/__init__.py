"""Recover reasoning chains: the ordered passages that lead from a question to its answer, and what links them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rechain.version import __version__ as __version__

# Type checkers read these imports, Python the names below: it loads a module when one of its names is first used, so
# that `import rechain` is quick. `X as X` says that a name is public. A test compares the two.
if TYPE_CHECKING:
    from rechain.errors import RechainError as RechainError
    from rechain.formats.datasets import read_questions as read_questions
    from rechain.index import Index as Index
    from rechain.index import build_index as build_index
    from rechain.recoverer import Recoverer as Recoverer
    from rechain.schema import Chain as Chain
    from rechain.schema import Gold as Gold
    from rechain.schema import Link as Link
    from rechain.schema import Mention as Mention
    from rechain.schema import Passage as Passage
    from rechain.schema import Question as Question
    from rechain.schema import Recovered as Recovered
    from rechain.text.candidates import CandidateSettings as CandidateSettings
    from rechain.text.candidates import find_candidates as find_candidates

_PUBLIC = {
    "text.candidates": ("CandidateSettings", "find_candidates"),
    "formats.datasets": ("read_questions",),
    "errors": ("RechainError",),
    "recoverer": ("Recoverer",),
    "index": ("Index", "build_index"),
    "schema": ("Chain", "Gold", "Link", "Mention", "Passage", "Question", "Recovered"),
    "version": ("__version__",),
}
__all__ = sorted(name for names in _PUBLIC.values() for name in names)


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    for module, names in _PUBLIC.items():
        if name in names:
            return getattr(import_module(f"rechain.{module}"), name)
    raise AttributeError(f"module 'rechain' has no attribute '{name}'")
