"""rechain demo: the chains of the example questions that come with the package."""

from importlib.resources import as_file, files
from typing import Annotated

import typer

from rechain.errors import RechainError


def demo(
    model: Annotated[str, typer.Option(help="The model: lexical, bm25 or random.")] = "lexical",
    only: Annotated[list[str] | None, typer.Option("--id", help="Only this question; may be repeated.")] = None,
) -> None:
    """Recover the chains of example questions, general and biomedical.

    Example: rechain demo --id d01
    """
    from rich.console import Console

    from rechain.cli.display import show
    from rechain.datasets import read_questions
    from rechain.recovery import Recoverer

    recoverer, console = Recoverer(model), Console()
    with as_file(files("rechain").joinpath("data/demo.jsonl")) as path:
        questions = {question.id: question for question in read_questions(path)}
    for name in only or questions:
        if name not in questions:
            raise RechainError(f"there is no example '{name}'; the examples are {', '.join(questions)}.")
        show(questions[name], recoverer.recover(questions[name]), console)
