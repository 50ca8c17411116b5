"""What holds of README and docs as texts: short, narrow, and every file of the project that they name is there."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
import typer

from rechain.cli.main import app

ROOT = Path(__file__).parents[2]
PROJECT = "https://github.com/rechain/rechain"
PAGES = sorted(str(p.relative_to(ROOT)) for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NOW = [page for page in PAGES if page != "CHANGELOG.md"]  # which names what was, too
PACKAGE = ROOT / "src" / "rechain"
ROOMS = sorted(folder.parent.name for folder in PACKAGE.glob("*/__init__.py"))
MOST_WORDS = 900
MOST_COLUMNS = 120


def test_readme_is_short_and_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert len(readme.split()) <= MOST_WORDS
    assert "make demo" in readme
    assert "make test" in readme
    assert not [line for line in readme.splitlines() if len(line) > MOST_COLUMNS]


def test_readme_links_are_absolute() -> None:
    links = re.findall(r"\]\((.*?)\)", (ROOT / "README.md").read_text())
    assert links
    assert all(link.startswith("https://") for link in links)


@pytest.mark.parametrize("page", PAGES)
def test_files_of_the_project_that_a_page_links_to_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    files = re.findall(PROJECT + r"/(?:blob|tree)/main/([^)#\s]+)", text)
    files += re.findall(PROJECT.replace("github.com", "raw.githubusercontent.com") + r"/main/([^)#\s]+)", text)
    assert [file for file in files if not (ROOT / file).exists()] == []


@pytest.mark.parametrize("page", NOW)
def test_files_that_a_page_names_exist(page: str) -> None:
    """Paths such as `src/rechain/schema.py` or `benchmarks/bulk.py`, and `linking/graph` for a module."""
    text = (ROOT / page).read_text()
    paths = re.findall(r"\b(?:src/rechain|benchmarks|tests|docs)/[\w/]+\.(?:py|sh|md|toml|svg|png|jsonl)\b", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    modules = re.findall(rf"`((?:{'|'.join(ROOMS)})/[\w/]*)(?:\.py)?`", text)
    assert [m for m in modules if not (PACKAGE / m).exists() and not (PACKAGE / f"{m}.py").exists()] == []


@pytest.mark.parametrize("page", NOW)
def test_python_names_that_a_page_names_exist(page: str) -> None:
    for name in re.findall(r"`(rechain(?:\.\w+)+)", (ROOT / page).read_text()):
        assert resolve_name(name) is not None, name


@pytest.mark.parametrize("page", NOW)
def test_options_that_a_page_gives_to_a_command_exist(page: str) -> None:
    commands = dict(_commands("rechain", typer.main.get_command(app)))
    text = (ROOT / page).read_text().replace("\\\n", " ")
    for line in re.findall(r"^(?:    |\w+=\w+ )?(rechain [a-z].*)$", text, re.MULTILINE):
        words = line.partition("#")[0].split()
        command = commands.get(" ".join(words[:3])) or commands[" ".join(words[:2])]
        assert {word for word in words if word.startswith("--")} <= command, line


def _commands(path: str, command: Any) -> Iterator[tuple[str, set[str]]]:
    """Yield every command with its options."""
    yield path, {option for parameter in command.params for option in parameter.opts}
    for name, subcommand in getattr(command, "commands", {}).items():
        yield from _commands(f"{path} {name}", subcommand)


def test_pages_that_code_names_exist() -> None:
    code = [*PACKAGE.rglob("*.py"), *ROOT.glob("benchmarks/*")]
    named = {page for file in code if file.is_file() for page in re.findall(r"\bdocs/[\w/]+\.md", file.read_text())}
    assert named
    assert [page for page in named if not (ROOT / page).exists()] == []


def test_project_url_is_that_of_the_metadata() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert urls["Repository"] == PROJECT
    assert f"repository-code: {PROJECT}" in (ROOT / "CITATION.cff").read_text()
