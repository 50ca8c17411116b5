"""Hooks of MkDocs: write the reference of the command line, and include the pages at the root of the repository.

If RECHAIN_REPOSITORY is the address of a real repository (https://github.com/NAME/rechain), links to files outside of
`docs` lead there, and so does an icon on every page. Without it, they are plain text.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
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
_ROOT = Path(__file__).parent.parent
_ROOT_PAGES = {"contribute.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?://|#)([^)]+)\)")
_REPOSITORY = os.environ.get("RECHAIN_REPOSITORY", "").rstrip("/")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the repository's icon, if there is an address; `repo_url` would query GitHub on every page view."""
    if _REPOSITORY:
        config.extra["social"] = [{"icon": "fontawesome/brands/git-alt", "link": _REPOSITORY}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in `docs`."""
    files.append(File.generated(config, _PAGE, content="\n".join(_page())))
    for page, source in _ROOT_PAGES.items():
        text = (_ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_LINK.sub(_site_link, text)))
    return files


def _site_link(match: re.Match[str]) -> str:
    """Return a link of a page at the root as it is on the site."""
    text, target = match.groups()
    if target.startswith("docs/"):
        return f"[{text}]({target.removeprefix('docs/')})"
    return f"[{text}]({_REPOSITORY}/blob/main/{target})" if _REPOSITORY else text


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
