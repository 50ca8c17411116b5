"""How many files and functions of the package one question passes, command by command: the length of a newcomer's walk.

    python benchmarks/walk.py                   # a table of all walks
    python benchmarks/walk.py recover --files   # one walk: its files in the order in which they are entered
    python benchmarks/walk.py recover --functions

A function counts once, when it is first called; comprehensions, lambdas and what runs at import (bodies of modules and
classes, decorators) do not count. The depth is the greatest number of functions of the package on the stack of one
thread; "to C" counts the frames between the first of them and the search of candidates, without Typer
and Click. Each walk runs in its own process, on the examples that come with the package.
"""

import argparse
import importlib
import json
import pkgutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

PACKAGE = Path(str(files("rechain")))
DEMO = PACKAGE / "data" / "demo.jsonl"
SEARCHES = ("find_evidence", "find_candidates")


class Tracer:
    """Records the functions of the package in the order of their first calls, and the deepest stack."""

    def __init__(self) -> None:
        self.functions: dict[CodeType, str] = {}
        self.clear()
        self._is_ours: dict[CodeType, bool] = {}

    def clear(self) -> None:
        """Forget what was called so far."""
        self.functions.clear()
        self.deepest: list[str] = []
        """the deepest stack, outermost function first"""
        self.to_candidates: list[str] = []
        """the stack at the first search of candidates"""
        self._depths: Counter[int] = Counter()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Take a call into account, as sys.setprofile reports it."""
        code, thread = frame.f_code, threading.get_ident()
        if code not in self._is_ours:
            path = Path(code.co_filename)
            is_function = code.co_flags & CO_OPTIMIZED and not code.co_name.startswith("<")  # not the body of a class
            self._is_ours[code] = bool(is_function) and PACKAGE in path.parents and path.suffix == ".py"
        if not self._is_ours[code] or event not in ("call", "return"):
            return
        self._depths[thread] += 1 if event == "call" else -1
        if event == "call":
            if code not in self.functions:
                self.functions[code] = str(Path(code.co_filename).relative_to(PACKAGE))
            if self._depths[thread] > len(self.deepest):
                self.deepest = self._stack(frame)
            if code.co_name in SEARCHES and not self.to_candidates:
                self.to_candidates = self._stack(frame)

    def _stack(self, frame: FrameType | None) -> list[str]:
        names = []
        while frame is not None:
            if self._is_ours.get(frame.f_code):
                names.append(frame.f_code.co_qualname)
            frame = frame.f_back
        return names[::-1]

    def trace(self, walk: Callable[[Path], None]) -> None:
        """Follow a walk in all threads that it starts."""
        for module in pkgutil.walk_packages([str(PACKAGE)], "rechain."):
            with suppress(ImportError):  # Triton is not everywhere
                importlib.import_module(module.name)
        with tempfile.TemporaryDirectory() as folder:
            threading.setprofile(self)
            sys.setprofile(self)
            try:
                walk(Path(folder))
            finally:
                sys.setprofile(None)
                threading.setprofile(None)


def run(*arguments: object) -> None:
    """Run the command line in this process."""
    from rechain.cli.main import main

    sys.argv = ["rechain", *map(str, arguments)]
    try:
        main()
    except SystemExit as ended:
        if ended.code not in (0, None):
            raise


def one_question(folder: Path) -> Path:
    """Write a file with the first example alone, without its number of hops, so that chains of 2 to 4 compete."""
    path = folder / "question.jsonl"
    question = json.loads(DEMO.read_bytes().splitlines()[0])
    del question["hops"]
    path.write_text(json.dumps(question), encoding="utf-8")
    return path


def recover(folder: Path) -> None:
    """Walk `rechain recover --workers 0` with the default model."""
    run("recover", one_question(folder), "--workers", 0, "--out", folder / "chains.jsonl")


def library(folder: Path) -> None:
    """Walk `Recoverer.recover` with a model that is loaded."""
    from rechain import Recoverer

    question = json.loads(one_question(folder).read_bytes())
    recoverer = Recoverer()
    TRACER.clear()
    recoverer.recover(question)


def train(folder: Path) -> None:
    """Walk `rechain train` of the game."""
    tiny = ("--hops", 2, "--set", "hidden=4", "--set", "pretrain_epochs=1", "--set", "game_epochs=1")
    run("train", DEMO, *tiny, "--out", folder / "run")


def serve(folder: Path) -> None:
    """Walk the page of a question."""
    from starlette.testclient import TestClient

    from rechain.cli import serve as command

    app: list[Any] = []
    original, command._run = command._run, lambda server, *_: app.append(server.config.app)
    chains = folder / "chains.jsonl"
    run("recover", DEMO, "--model", "lexical", "--workers", 0, "--out", chains)
    sys.setprofile(None)
    run("serve", DEMO, "--chains", chains, "--port", 0, "--labels", folder / "labels.sqlite")
    command._run = original
    client = TestClient(app[0], base_url="http://127.0.0.1")
    threading.setprofile(TRACER)
    sys.setprofile(TRACER)
    TRACER.clear()
    assert client.get("/question?id=d01").status_code == 200


def reproduce(folder: Path) -> None:
    """Walk `rechain reproduce` with tiny networks, one seed and no ablations."""
    config = folder / "tiny.toml"
    config.write_text('selects = "passages"\nhidden = 4\npretrain_epochs = 1\ngame_epochs = 1\n')
    data, gold = DEMO, DEMO.with_name("demo.gold.jsonl")
    lines = [line for line in data.read_bytes().splitlines(keepends=True) if json.loads(line)["hops"] == 3]
    questions = folder / "questions.jsonl"
    questions.write_bytes(b"".join(lines))
    tiny = ("--folds", 2, "--seeds", 1, "--no-ablations", "--config", config)
    run("reproduce", "drughop", questions, *tiny, "--gold", gold, "--out", folder / "table")


WALKS: dict[str, Callable[[Path], None]] = {
    "recover": recover,
    "library": library,
    "train": train,
    "serve": serve,
    "reproduce": reproduce,
}
TRACER = Tracer()


def main() -> None:
    """Print one walk, or a table of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walk", choices=WALKS, nargs="?")
    parser.add_argument("--files", action="store_true", help="list the files, in the order in which they are entered")
    parser.add_argument("--functions", action="store_true", help="list the functions as well")
    parser.add_argument("--stack", action="store_true", help="print the deepest stack and that of the search of C")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.walk is None:
        print(f"{'walk':12}{'files':>8}{'functions':>12}{'depth':>8}{'to C':>8}")
        for name in WALKS:
            output = subprocess.run([sys.executable, __file__, name, "--json"], capture_output=True, check=True).stdout
            counts = json.loads(output.splitlines()[-1])
            to_candidates = counts["to_candidates"] or "-"  # a page of stored chains searches nothing
            print(f"{name:12}{counts['files']:8}{counts['functions']:12}{counts['depth']:8}{to_candidates:>8}")
        return
    TRACER.trace(WALKS[options.walk])
    by_file: dict[str, list[str]] = {}
    for code, file in TRACER.functions.items():
        by_file.setdefault(file, []).append(code.co_qualname)
    between = max(len(TRACER.to_candidates) - 2, 0)
    counts = {"files": len(by_file), "functions": len(TRACER.functions), "depth": len(TRACER.deepest)}
    if options.json:
        print(json.dumps({**counts, "to_candidates": between}))
        return
    if options.stack:
        print("deepest:", *TRACER.deepest, "to the search of C:", *TRACER.to_candidates, sep="\n  ")
    for file, functions in by_file.items():
        print(f"{len(functions):4}  {file}")
        for function in functions if options.functions else ():
            print(f"        {function}")
    print(", ".join(f"{number} {name}" for name, number in counts.items()) + f", {between} frames to the search of C")


if __name__ == "__main__":
    main()
