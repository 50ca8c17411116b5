"""C, the candidate chains of a question."""

from rechain.text.candidates.chain_search import (
    Candidate,
    Candidates,
    CandidateSettings,
    find_candidates,
    find_heads,
    find_links,
    find_of_any_shape,
)

__all__ = [
    "Candidate",
    "CandidateSettings",
    "Candidates",
    "find_candidates",
    "find_heads",
    "find_links",
    "find_of_any_shape",
]
