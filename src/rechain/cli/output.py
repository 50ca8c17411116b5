"""Where the records that a command makes go: a file that is not replaced unasked, or standard output."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer

from rechain.errors import RechainError

Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Where the records go, a line each; else standard output."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output file if there is one.")]


def check_output(out: Path | None, overwrite: bool, *inputs: Path | None) -> None:
    """Raise an error where the output file exists and should not be replaced, or is one of the inputs."""
    if out is None or not out.exists():
        return
    if not overwrite:
        raise RechainError(f"{out} exists; name another file, or replace it with --overwrite.")
    if any(path is not None and path.exists() and out.samefile(path) for path in inputs):
        raise RechainError(f"{out} is what is read; name another file for the output.")


@contextmanager
def output_to(path: Path | None) -> Iterator[TextIO]:
    """Open the output file for writing, or yield standard output."""
    if path is None:
        yield sys.stdout
        return
    with path.open("w", encoding="utf-8", newline="\n") as file:
        yield file
