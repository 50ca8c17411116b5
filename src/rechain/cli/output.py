"""Where the records that a command makes go: a file that is not replaced unasked, or standard output."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Self, TextIO

import typer

from rechain.errors import RechainError
from rechain.system.files import replacing

Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Where the records go, a line each; else standard output."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output file if there is one.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the output file where an interrupted run has stopped.")
]


def check_output(out: Path | None, overwrite: bool, *inputs: Path | None, resume: bool | None = None) -> None:
    """Raise an error where the output file exists and should not be replaced, or is one of the inputs.

    `resume` is None where nothing can be resumed.
    """
    if resume and out is None:
        raise RechainError("--resume goes on with an output file; name it with --out FILE.")
    if resume and overwrite:
        raise RechainError("--resume goes on with a file and --overwrite replaces it; choose one of them.")
    if out is None:
        return
    if not out.parent.is_dir():
        raise RechainError(f"{out} cannot be written: there is no folder {out.parent}.")
    if out.is_dir():
        raise RechainError(f"{out} is a folder; name a file for the output.")
    if resume and out.exists() and not out.is_file():
        raise RechainError(f"{out} is no file that one could go on with; leave --resume out.")
    if any(path is not None and path.is_dir() and path.resolve() in out.resolve().parents for path in inputs):
        raise RechainError(f"{out} lies in a folder that is read; name a file elsewhere for the output.")
    if not out.exists():
        return
    if not overwrite and not resume:
        rest = "replace it with --overwrite" + ("" if resume is None else ", or go on with it with --resume")
        raise RechainError(f"{out} exists; name another file, {'' if resume is not None else 'or '}{rest}.")
    if any(path is not None and path.exists() and out.samefile(path) for path in inputs):
        raise RechainError(f"{out} is what is read; name another file for the output.")


def tell_if_unfinished(chains: Path) -> None:
    """Say of a folder of chains whether a run on Ray has not made all of its parts."""
    if (chains / "_rechain.json").exists() and not (chains / "_SUCCESS").exists():
        print(f"{chains} is not finished; `rechain recover` goes on with it with --resume.", file=sys.stderr)


@contextmanager
def output_to(path: Path | None) -> Iterator[TextIO]:
    """Open the output file for writing, which is there when it is whole, or yield standard output."""
    if path is None:
        yield sys.stdout
        return
    with replacing(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="\n")
        yield text
        text.flush()
        text.detach()


class StandardOutput:
    """Takes lines for standard output."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave it open: it is not ours."""

    def write(self, lines: bytes) -> None:
        """Print lines at once."""
        sys.stdout.write(lines.decode())
        sys.stdout.flush()
