"""A recovered chain, drawn for people: passages in order, links and answer highlighted."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from rechain.schema import VERDICTS, Chain, Question, Recovered
from rechain.system.log import printable
from rechain.text.highlights import ANSWER, CLAIM, QUESTION, Highlighter, link_role
from rechain.text.passage_views import PassageView

_LINK_STYLES = ("bold black on cyan", "bold black on magenta", "bold black on yellow")
_ANSWER_STYLE = "bold black on green"
# Longer lines of text are hard to read, however wide the terminal is.
_WIDTH = 100


def show(question: Question, recovered: Recovered, console: Console) -> None:
    """Print a question with the verdict and its best chain, or why it has none."""
    heading = Text.assemble((printable(question.question), "bold"), "  ")
    heading.append(f" {printable(question.answer)} ", _ANSWER_STYLE)
    if recovered.verdict is not None:
        heading.append(f"  {VERDICTS[recovered.verdict]}", "italic")
    if recovered.chains:
        body = Group(heading, *_steps(question, recovered.chains[0], recovered))
    else:
        body = Group(heading, Text(printable(recovered.error.message) if recovered.error else "no chain", "red"))
    # As Text, so that brackets of an id or a title are not taken for rich's markup.
    console.print(Panel(body, title=Text(printable(question.id)), title_align="left"), width=min(console.width, _WIDTH))


def _steps(question: Question, chain: Chain, recovered: Recovered) -> Iterator[RenderableType]:
    """Yield every passage in a frame, its mentions highlighted, and between two of them their link."""
    passages = {passage.id: passage for passage in question.passages}
    highlighter = Highlighter.of_chain(question, chain, recovered.claims)
    styles = {QUESTION: "underline", CLAIM: "italic", ANSWER: _ANSWER_STYLE}
    links = chain.links_in_order
    styles |= {link_role(number): _LINK_STYLES[number % 3] for number in range(len(chain.links))}
    for number, name in enumerate(chain.passages):
        body = Text(printable(passages[name].text, keep_lines=True))
        title = Text(printable(f"{number + 1}. {passages[name].title or name}"))
        for mark in highlighter.marks(PassageView(passages[name])):
            body.stylize(styles[mark.role], mark.start, mark.end)
        yield Panel(body, title=title, title_align="left", border_style="dim")
        if number < len(links):
            link = links[number]
            reason = f"  {link.kind}, weight {link.weight:.1f}"
            yield Text.assemble("   ↓ ", (f" {printable(link.entity)} ", _LINK_STYLES[number % 3]), (reason, "dim"))
