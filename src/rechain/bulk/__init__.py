"""Where bulk recovery runs: worker processes of this machine, or a Ray cluster."""

from enum import StrEnum


class Engine(StrEnum):
    """Where bulk recovery runs."""

    local = "local"
    ray = "ray"


class PartFormat(StrEnum):
    """What the parts of an output folder are."""

    jsonl = "jsonl"
    parquet = "parquet"
