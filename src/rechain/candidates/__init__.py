"""C, the candidate chains of a question."""

from rechain.candidates.search import Candidate, Candidates, find_candidates, find_of_any_length
from rechain.candidates.settings import CandidateSettings

__all__ = ["Candidate", "CandidateSettings", "Candidates", "find_candidates", "find_of_any_length"]
