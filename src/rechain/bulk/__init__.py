"""Recovery of many questions: in worker processes of this machine, or on a Ray cluster.

What the command line needs before it is known which of the two will run is here and imports nothing heavy.
"""

from enum import StrEnum
from pathlib import Path

MANIFEST = "_rechain.json"
"""in a folder of parts: what they are made of and how"""
FINISHED = "_SUCCESS"
"""in a folder whose parts are all there, as Spark and others have it"""


class Engine(StrEnum):
    """Where bulk recovery runs."""

    local = "local"
    ray = "ray"


class PartFormat(StrEnum):
    """What the parts of an output folder are."""

    jsonl = "jsonl"
    parquet = "parquet"


def is_unfinished(folder: Path) -> bool:
    """Return whether a folder is one of parts, some of which a run on Ray has not made yet."""
    return (folder / MANIFEST).exists() and not (folder / FINISHED).exists()
