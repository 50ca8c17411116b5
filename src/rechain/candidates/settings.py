"""How candidate chains are sought: every setting in one place."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import isfinite

from rechain.errors import RechainError
from rechain.linking import EXTRA_LINKERS, LINKERS
from rechain.linking.spacy_names import DEFAULT_MODEL
from rechain.linking.weights import DEFAULT_MIN_WEIGHT

DEFAULT_HOPS = 2
LENGTHS = (2, 3, 4)
"""passages in a chain, where the model chooses"""
DEFAULT_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class CandidateSettings:
    """How C is built."""

    hops: int | None = None
    """passages in a chain; None: as the question says, or 2"""
    link_types: Sequence[str] | None = None
    """the kinds of the links, one each; None: as the question says; empty: any"""
    min_weight: float = DEFAULT_MIN_WEIGHT
    """links of less weight than this do not count"""
    limit: int = DEFAULT_LIMIT
    """the most chains of a question, best first by link weight"""
    linkers: Collection[str] = LINKERS
    """which linkers are used"""
    spacy_model: str = DEFAULT_MODEL
    """the model of the linker `spacy`, where that is used"""

    def __post_init__(self) -> None:
        """Say which setting is wrong."""
        if self.hops is not None and not 2 <= self.hops <= 8:
            raise RechainError(f"a chain has 2 to 8 passages, not {self.hops}.")
        if self.limit < 1:
            raise RechainError(f"the limit should be at least 1, not {self.limit}.")
        if not isfinite(self.min_weight):
            raise RechainError(f"the least weight of a link should be a number, not {self.min_weight}.")
        known = LINKERS | EXTRA_LINKERS
        if unknown := frozenset(self.linkers) - known:
            raise RechainError(f"there is no linker '{min(unknown)}'; the linkers are {', '.join(sorted(known))}.")
