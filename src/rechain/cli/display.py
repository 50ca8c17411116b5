"""A recovered chain, drawn for people: passages in order, links and answer highlighted."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from rechain.schema import Chain, Link, Passage, Question, Recovered
from rechain.text.highlights import ANSWER, QUESTION, Highlighter, link_role
from rechain.text.passages import PassageView

_LINK_STYLES = ("bold black on cyan", "bold black on magenta", "bold black on yellow")
_ANSWER_STYLE = "bold black on green"
_QUESTION_STYLE = "underline"
_WIDTH = 100


def show(question: Question, recovered: Recovered, console: Console) -> None:
    """Print a question with its best chain."""
    console.print(render(question, recovered), width=min(console.width, _WIDTH))


def render(question: Question, recovered: Recovered) -> RenderableType:
    """Return a question with its best chain, ready to print."""
    heading = Text.assemble((question.question, "bold"), "  ", (f" {question.answer} ", _ANSWER_STYLE))
    if not recovered.chains:
        reason = recovered.error.message if recovered.error else "no chain"
        return Panel(Group(heading, Text(reason, "red")), title=Text(question.id), title_align="left")
    return Panel(Group(heading, *_steps(question, recovered.chains[0])), title=Text(question.id), title_align="left")


def _steps(question: Question, chain: Chain) -> Iterator[RenderableType]:
    passages = {passage.id: passage for passage in question.passages}
    highlighter = Highlighter.of_chain(question, chain)
    for number, name in enumerate(chain.passages):
        body = _highlighted(passages[name], highlighter, len(chain.links))
        yield Panel(
            body, title=Text(f"{number + 1}. {passages[name].title or name}"), title_align="left", border_style="dim"
        )
        if number < len(chain.links):
            link = chain.links[number]
            yield Text.assemble("   ↓ ", (f" {link.entity} ", _LINK_STYLES[number % 3]), (f"  {_why(link)}", "dim"))


def _why(link: Link) -> str:
    return f"{link.kind}, weight {link.weight:.1f}"


def _highlighted(passage: Passage, highlighter: Highlighter, links: int) -> Text:
    """Return a passage's text with all mentions of the question's entities, the links and the answer."""
    text = Text(passage.text)
    styles = {QUESTION: _QUESTION_STYLE, ANSWER: _ANSWER_STYLE}
    styles |= {link_role(number): _LINK_STYLES[number % 3] for number in range(links)}
    for mark in highlighter.marks(PassageView(passage)):
        text.stylize(styles[mark.role], mark.start, mark.end)
    return text
