"""The README and the recipes do what they say: every block is run, in order, in a clone with the examples alone.

A block that cannot run here stands after a comment `<!-- not run: why -->`. A `text` block right after one that was run
is what that one prints.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES: list[Any] = ["README.md", "docs/index.md", "docs/guide/audit.md", "docs/guide/documents.md"]
RETRIEVER = "docs/recipes/retriever.md"
GAME = "docs/recipes/change_the_game.md"
PAGES += sorted({str(p.relative_to(ROOT)) for p in ROOT.glob("docs/recipes/*.md")} - {RETRIEVER, GAME})
PAGES += [pytest.param("docs/guide/logs.md", marks=pytest.mark.slow)]  # the tools take long to import
BLOCK = re.compile(r"^(?:<!-- not run: (?P<why>.+?) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```$", re.M | re.S)
HANG_GUARD_S = 600


class Block(NamedTuple):
    """A fenced block of a page, and why it is not run."""

    language: str
    code: str
    why: str | None


def blocks(page: str) -> Iterator[Block]:
    for match in BLOCK.finditer((ROOT / page).read_text()):
        yield Block(match["language"], match["code"], match["why"])


def shell(code: str) -> str:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "-euo", "pipefail", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_GUARD_S)
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def python(code: str, names: dict[str, Any]) -> str:
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(code, "<recipe>", "exec"), names)
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES)
def test_page_does_what_it_says(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src" / "rechain").mkdir(parents=True)
    (tmp_path / "src" / "rechain" / "data").symlink_to(ROOT / "src" / "rechain" / "data")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # a page may add to it
    names: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None
    for language, code, why in blocks(page):
        if language == "text" and printed is not None:
            assert printed == code
        printed = None
        if why is None and language == "sh":
            printed = shell(code)
        if why is None and language == "python":
            printed = python(code, names)


def test_retrievers_are_trained_as_the_recipe_says(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_thread: None
) -> None:
    monkeypatch.setenv("ENCODER", str(tiny_encoder))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    test_page_does_what_it_says(RETRIEVER, tmp_path, monkeypatch)
    assert all((tmp_path / out / "model.safetensors").exists() for out in ("two-steps", "selector"))


@pytest.mark.slow
def test_parts_of_the_game_are_changed_as_the_recipe_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_thread: None
) -> None:
    """On made-up questions: real ones take minutes."""
    questions, vectors = tmp_path / "hotpot.json", tmp_path / "vectors.txt"
    questions.write_text(json.dumps([opera(number) for number in range(100)]))
    vectors.write_text("was 1 0 0\nborn 0 1 0\nopera 0 0 1\n")
    monkeypatch.setenv("HOTPOTQA", str(questions))
    monkeypatch.setenv("VECTORS", str(vectors))
    test_page_does_what_it_says(GAME, tmp_path, monkeypatch)
    report = (tmp_path / "lab" / "report.md").read_text()
    assert "| cooperative, head counts twice, paper |" in report
    assert "| cooperative, gated, paper |" in report
    assert "| cooperative - tail-to-head |" in report


def opera(number: int) -> dict[str, Any]:
    """Return a question in HotpotQA's layout, with a head and a passage that only looks like one."""
    name = f"Quill{number}feather"
    return {
        "_id": f"h{number}",
        "question": f"Where was the composer of opera number {number} born?",
        "answer": "Prague",
        "type": "bridge",
        "supporting_facts": [[f"Opera number {number}", 0], [name, 0]],
        "context": [
            [f"Opera number {number}", [f"An opera by {name}."]],
            ["A rumour", [f"It is said that {name} went away."]],
            [name, [f"{name} was born in Prague."]],
        ],
    }


@pytest.mark.parametrize(("recipe", "name"), [(RETRIEVER, "train_retriever"), (GAME, "change_the_game")])
def test_the_notebook_has_the_blocks_of_the_recipe(recipe: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    written = (ROOT / "examples" / f"{name}.ipynb").read_text(encoding="utf-8")
    made = import_module("notebook").notebook((ROOT / recipe).read_text(encoding="utf-8"))
    assert written == made, f"python docs/notebook.py {recipe} examples/{name}.ipynb"
    sources = ["".join(cell["source"]) for cell in json.loads(written)["cells"] if cell["cell_type"] == "code"]
    run = [block.code.strip() for block in blocks(recipe) if block.language in ("sh", "python")]
    assert [source.removeprefix("%%bash\n") for source in sources] == run


@pytest.mark.parametrize("page", PAGES)
def test_something_of_every_page_is_run(page: str) -> None:
    assert any(block.why is None and block.language in ("sh", "python") for block in blocks(page))
