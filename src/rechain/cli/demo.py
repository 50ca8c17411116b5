"""rechain demo: the chains of the example questions that come with the package."""

from importlib.resources import as_file, files
from typing import Annotated

from typer import Option

from rechain.errors import RechainError


def demo(
    model: Annotated[str, Option(help="The model: default, lexical, bm25 or random.")] = "default",
    only: Annotated[list[str] | None, Option("--id", help="Only this question; may be repeated.")] = None,
) -> None:
    """Recover the chains of example questions, general and biomedical.

    Example: rechain demo --id d01
    """
    from rich.console import Console

    from rechain.cli.display import show
    from rechain.evaluation.gold import read_gold
    from rechain.evaluation.judging import judge
    from rechain.formats.datasets import read_questions
    from rechain.recoverer import Recoverer

    recoverer, console = Recoverer(model), Console()
    with as_file(files("rechain").joinpath("data")) as data:
        questions = {question.id: question for question in read_questions(data / "demo.jsonl")}
        golds = read_gold(data / "demo.gold.jsonl", questions.values())
    names, wrong = only or list(questions), []
    for name in names:
        if name not in questions:
            raise RechainError(f"there is no example '{name}'; the examples are {', '.join(questions)}.")
        recovered = recoverer.recover(questions[name])
        show(questions[name], recovered, console)
        if not judge(recovered.chains[0] if recovered.chains else None, golds[name]).ordered:
            wrong.append(name)
    mistakes = f"; {', '.join(wrong)} went wrong" if wrong else ""
    console.print(f"{len(names) - len(wrong)} of {len(names)} chains are those that people would give{mistakes}.")
