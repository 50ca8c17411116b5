"""What the tests of the published data sets share: every way in which files hold records, and the check of bad ones."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow
import pyarrow.parquet

from rechain.errors import QuestionError
from rechain.formats.datasets import read_entries
from rechain.schema import Question

Record = dict[str, Any]


def write_array(path: Path, *records: object) -> Path:
    path.write_text(json.dumps(records, indent=5))
    return path


def write_lines(path: Path, *records: object) -> Path:
    path.write_text("".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records))
    return path


def write_parquet(path: Path, *records: object) -> Path:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(records)), path)
    return path


def write_dataset(path: Path, *records: object) -> Path:
    datasets.Dataset.from_list(list(records)).save_to_disk(path)
    return path


LAYOUTS: list[Callable[..., Path]] = [write_array, write_lines, write_parquet, write_dataset]


def check_bad_record(path: Path, good: Record, question: Question, bad: Record, code: str, field: str) -> None:
    """Check that a bad record between two good ones is an error that names its line and field, and harms no other."""
    first, error, last = [entry.content for entry in read_entries(write_lines(path, good, bad, good))]
    assert first == last == question
    assert isinstance(error, QuestionError)
    assert error.code == code
    assert str(error).startswith(f"{path}, line 2: ")
    assert field in str(error).removeprefix(str(path))
