"""Recovery of many questions: in worker processes of this machine, or on a Ray cluster.

What the command line needs before it is known which of the two will run is here and imports nothing heavy.
"""

from enum import StrEnum


class Engine(StrEnum):
    """Where bulk recovery runs."""

    local = "local"
    ray = "ray"


class PartFormat(StrEnum):
    """What the parts of an output folder are."""

    jsonl = "jsonl"
    parquet = "parquet"
