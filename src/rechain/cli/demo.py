"""rechain demo: the chains of the example questions that come with the package, drawn for people."""

from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Annotated

from typer import Option

from rechain.errors import RechainError
from rechain.system.log import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from rechain.schema import Question, Recovered

_LINK_STYLES = ("bold black on cyan", "bold black on magenta", "bold black on yellow")
_ANSWER_STYLE = "bold black on green"
# Longer lines of text are hard to read, however wide the terminal is.
_WIDTH = 100


def demo(
    model: Annotated[str, Option(help="The model: default, lexical, bm25 or random.")] = "default",
    only: Annotated[list[str] | None, Option("--id", help="Only this question; may be repeated.")] = None,
) -> None:
    """Recover the chains of example questions, general and biomedical.

    Example: rechain demo --id d01
    """
    from rich.console import Console

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


def show(question: "Question", recovered: "Recovered", console: "Console") -> None:
    """Print a question with the verdict and its best chain, passages in order, or why it has none."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    from rechain.schema import VERDICTS
    from rechain.text.highlights import ANSWER, CLAIM, QUESTION, Highlighter, link_role
    from rechain.text.passage_views import PassageView

    heading = Text.assemble((printable(question.question), "bold"), "  ")
    heading.append(f" {printable(question.answer)} ", _ANSWER_STYLE)
    if recovered.verdict is not None:
        heading.append(f"  {VERDICTS[recovered.verdict]}", "italic")
    parts: list[RenderableType] = [heading]
    if recovered.chains:
        chain = recovered.chains[0]
        passages, joined = {passage.id: passage for passage in question.passages}, dict(chain.between)
        numbers = {before: number for number, (before, _) in enumerate(chain.between)}
        highlighter = Highlighter.of_chain(question, chain, recovered.claims)
        styles = {QUESTION: "underline", CLAIM: "italic", ANSWER: _ANSWER_STYLE}
        styles |= {link_role(number): _LINK_STYLES[number % 3] for number in range(len(chain.links))}
        for number, name in enumerate(chain.passages):
            body = Text(printable(passages[name].text, keep_lines=True))
            for mark in highlighter.marks(PassageView(passages[name])):
                body.stylize(styles[mark.role], mark.start, mark.end)
            title = Text(printable(f"{number + 1}. {passages[name].title or name}"))
            parts.append(Panel(body, title=title, title_align="left", border_style="dim"))
            if number in joined:
                link, style = chain.links[numbers[number]], _LINK_STYLES[numbers[number] % 3]
                arrow = "   ↓ " if joined[number] == number + 1 else f"   → {joined[number] + 1}. "
                reason = f"  {link.kind}, weight {link.weight:.1f}"
                parts.append(Text.assemble(arrow, (f" {printable(link.entity)} ", style), (reason, "dim")))
    else:
        parts.append(Text(printable(recovered.error.message) if recovered.error else "no chain", "red"))
    # As Text, so that brackets of an id or a title are not taken for rich's markup.
    frame = Panel(Group(*parts), title=Text(printable(question.id)), title_align="left")
    console.print(frame, width=min(console.width, _WIDTH))
