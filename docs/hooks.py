"""What MkDocs calls while it builds the site: write the reference of the command line from the commands themselves."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from rechain.cli.main import app

_PAGE = "reference/cli.md"
_INTRODUCTION = """# Command line

Every command and option, as `rechain COMMAND --help` prints them. [Exit codes](../guide/recover.md#exit-codes) are the
same for all of them.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page of the command line."""
    files.append(File.generated(config, _PAGE, content="\n".join(_page())))
    return files


# typer carries its own copy of click, whose classes the plug-ins for click do not know: hence these few lines.
def _page() -> Iterator[str]:
    yield _INTRODUCTION
    for path, command in _commands("rechain", typer.main.get_command(app)):
        yield from _section(path, command)


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, with its full name."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, subcommand in command.commands.items():
        yield from _commands(f"{path} {name}", subcommand)


def _section(path: str, command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=path)
    text = re.sub(r"^Example: (.+)$", r"Example: `\1`", command.help, flags=re.MULTILINE)
    yield f"## {path}\n\n{text}\n"
    yield f"```text\n{path} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    panels: dict[str, list[Any]] = {}
    for parameter in command.get_params(context):
        default = "Arguments" if parameter.param_type_name == "argument" else "Options"
        panels.setdefault(parameter.rich_help_panel or default, []).append(parameter)
    for panel, parameters in panels.items():
        yield from _table(panel, filter(None, (parameter.get_help_record(context) for parameter in parameters)))


def _table(panel: str, records: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield f"| {panel} | |\n|---|---|"
    for name, text in records:
        yield f"| `{_escape(name)}` | {_escape(text).replace('<', '&lt;').replace('[', '&#91;')} |"
    yield ""


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
