"""An index of documents on disk, and how it finds the passages among which a question's chain may lie."""

from rechain.index.build import Build, BuildSettings, build_index
from rechain.index.index import Index, IndexInfo
from rechain.index.search import FindSettings, WholeQuestion, fill_questions, find_passages

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
