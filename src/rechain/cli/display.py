"""A recovered chain, drawn for people: passages in order, links and answer highlighted."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from rechain.passages import PassageView
from rechain.schema import Chain, Link, Passage, Question, Recovered
from rechain.text import Span, phrase

_LINK_STYLES = ("bold black on cyan", "bold black on magenta", "bold black on yellow")
_ANSWER_STYLE = "bold black on green"
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
    for number, name in enumerate(chain.passages):
        body = _highlighted(passages[name], question, chain, number)
        yield Panel(
            body, title=Text(f"{number + 1}. {passages[name].title or name}"), title_align="left", border_style="dim"
        )
        if number < len(chain.links):
            link = chain.links[number]
            yield Text.assemble("   ↓ ", (f" {link.entity} ", _LINK_STYLES[number % 3]), (f"  {_why(link)}", "dim"))


def _why(link: Link) -> str:
    return f"{link.kind}, weight {link.weight:.1f}"


def _highlighted(passage: Passage, question: Question, chain: Chain, number: int) -> Text:
    """Return a passage's text with the links that join it, and in the last passage the answer."""
    text = Text(passage.text)
    for side, link in ((1, number - 1), (0, number)):
        if 0 <= link < len(chain.links) and (span := chain.links[link].mentions[side]):
            text.stylize(_LINK_STYLES[link % 3], *span)
    if number == len(chain.passages) - 1 and (span := _answer_span(passage, question)):
        text.stylize(_ANSWER_STYLE, *span)
    return text


def _answer_span(passage: Passage, question: Question) -> Span | None:
    view = PassageView(passage)
    if question.answer_entity and (mentions := view.mentions(question.answer_entity)):
        return mentions[0]
    for answer in (question.answer, *question.answer_aliases):
        words = phrase(answer)
        at = view.text.find(words) if words else None
        if at is not None:
            return view.text.span(at, words.count(" ") - 1)
    return None
