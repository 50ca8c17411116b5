"""An index of documents on disk, and how it finds the passages among which a question's chain may lie."""

from rechain.retrieval.building import Build, BuildSettings, build_index
from rechain.retrieval.finding import FindSettings, WholeQuestion, fill_questions, find_passages
from rechain.retrieval.index import Index, IndexInfo

__all__ = [
    "Build",
    "BuildSettings",
    "FindSettings",
    "Index",
    "IndexInfo",
    "WholeQuestion",
    "build_index",
    "fill_questions",
    "find_passages",
]
