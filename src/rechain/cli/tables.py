"""How figures are printed: a table for people, JSON for programs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from rechain.system.log import print_records, printable

if TYPE_CHECKING:
    from rechain.evaluation.statistics import Figure

Json = Annotated[bool, Option("--json", help="Print JSON instead of a table.")]

# Of a file or pipe, which has no width.
_WIDTH = 120
# Figures that are numbers; all others are shares.
_COUNTS = ("chains a question", "tails a question")


def plural(count: int, one: str, many: str = "") -> str:
    """Return a count with the name of what is counted, by default with an "s" if there are several."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def print_figures(title: str, figures: Mapping[str, "Figure"]) -> None:
    """Print figures with their intervals and numbers of questions."""
    rows = []
    for name, figure in figures.items():
        value, low, high = (_number(name, number) for number in (figure.value, figure.low, figure.high))
        rows.append((name, value, f"{low} to {high}", str(figure.questions)))
    print_table(title, ("", "", "95 % interval", "questions"), rows)


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column is text, the others are numbers."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(printable(title)), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for number, name in enumerate(header):
        table.add_column(name, justify="right" if number else "left", no_wrap=number > 0)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))  # as Text, so that brackets are not taken for markup
    console = Console()
    console.print(table, width=None if console.is_terminal else _WIDTH)


def print_json(value: Any) -> None:
    """Print a value as JSON; figures and other named tuples are objects with their fields."""
    import orjson

    lines = orjson.dumps(value, default=lambda named: named._asdict(), option=orjson.OPT_INDENT_2)
    print_records(lines.decode() + "\n")


def _number(name: str, value: float) -> str:
    return f"{value:.2f}" if name in _COUNTS else f"{100 * value:.1f} %"
