"""Write what the commands produce, to compare two versions of the code byte by byte.

    PYTHONPATH=OLD/src python benchmarks/outputs.py DATA OUT/old [--quick]
    PYTHONPATH=src python benchmarks/outputs.py DATA OUT/new [--quick]
    diff -rq OUT/old OUT/new

DATA is the folder with hotpotqa, musique, drughop and 2wiki. `--quick` takes a few questions of each. Times, paths and
digests that differ between two runs of the same code are left out. One worker process computes, so that two versions
can be run at the same time.
"""

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "src" / "rechain" / "data"
CHANGING = re.compile(
    r'"(began|ended|made|seal|etag|time|seconds)": ?"[^"]*"'
    r'|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?[^"< ]*'
    r"|&#34;[0-9a-f]{64}&#34;"
)
TINY = ("--set", "hidden=8", "--set", "pretrain_epochs=2", "--set", "game_epochs=2")


def rechain(*arguments: object, standard_input: str = "") -> str:
    """Run a command of the version under test and return what it prints."""
    command = [sys.executable, "-m", "rechain.cli.main", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, input=standard_input, env={**os.environ, "COLUMNS": "100"}
    )
    return f"{done.stdout}\n{done.stderr if done.returncode else ''}exit {done.returncode}\n"


def sample(path: Path, size: int | None, out: Path) -> Path:
    """Write the first questions of a file of JSON or JSON lines."""
    text = gzip.decompress(path.read_bytes()).decode()
    records: list[Any] = json.loads(text) if text.lstrip()[0] == "[" else [json.loads(r) for r in text.splitlines()]
    out.write_text("".join(f"{json.dumps(record)}\n" for record in records[:size]), encoding="utf-8")
    return out


def recover_sets(data: Path, out: Path, work: Path, quick: bool) -> None:
    """Recover chains of public questions with the default model and the lexical rule."""
    few, many = (30, 200) if quick else (None, None)
    sets = {
        "hotpotqa": ("hotpotqa/train_300.json.gz" if quick else "hotpotqa/open.json.gz", few, many, ()),
        "musique": ("musique/train_100.json.gz", few and 12, many and 60, ()),
        "2wiki": ("2wiki/train_500.json.gz", few and 20, many, ()),
        "drughop": ("drughop/open.jsonl.gz", few, many, ("--passages", data / "drughop/passages.jsonl.gz")),
    }
    for name, (file, of_default, of_lexical, options) in sets.items():
        for model, size in (("default", of_default), ("lexical", of_lexical)):
            questions = sample(data / file, size, work / f"{name}.{model}.jsonl")
            chains = out / f"{name}.{model}.jsonl"
            arguments = ("recover", questions, "--model", model, "--workers", 1, "--overwrite", *options)
            rechain(*arguments, "--out", chains, "--top", 3, *(["--explain"] if quick else []))
            if name == "drughop":
                rechain(*arguments, "--out", out / f"{name}.{model}.jointly.jsonl", "--jointly")


def recover_logs(out: Path, work: Path, quick: bool) -> None:
    """Recover chains of our logs, audit them, and search a folder of documents."""
    subprocess.run([sys.executable, ROOT / "benchmarks/logs/build.py", work / "logs"], check=True, capture_output=True)
    for split in ("dev", *([] if quick else ["fit"])):
        log = work / "logs" / f"questions.{split}.jsonl"
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
        log.write_text("".join(lines[:: 6 if quick else 1]), encoding="utf-8")
        chains = out / f"logs.{split}.jsonl"
        rechain("recover", log, "--workers", 1, "--out", chains, "--overwrite")
        rechain("audit", log, "--chains", chains, "--out", out / f"logs.{split}.html", "--overwrite")
        rechain("audit", log, "--chains", chains, "--json", out / f"logs.{split}.audit.json", "--overwrite")
    index = work / "handbook.index"
    (out / "index.txt").write_text(rechain("index", EXAMPLES / "handbook", "--out", index))
    found = rechain("recover", EXAMPLES / "handbook.jsonl", "--corpus", index, "--workers", 0)
    (out / "handbook.txt").write_text(found)


def other_commands(out: Path, work: Path) -> None:
    """Run the commands that work on chains, train a small game, and print every help."""
    questions, gold, chains = EXAMPLES / "demo.jsonl", EXAMPLES / "demo.gold.jsonl", out / "demo.jsonl"
    (out / "demo.txt").write_text(rechain("demo"))
    rechain("recover", questions, "--top", 3, "--explain", "--workers", 1, "--out", chains, "--overwrite")
    for model in ("bm25", "random", "lexical"):
        (out / f"demo.{model}.txt").write_text(rechain("recover", questions, "--model", model, "--workers", 0))
    (out / "evaluate.txt").write_text(rechain("evaluate", chains, questions, "--gold", gold))
    (out / "candidates.txt").write_text(rechain("candidates", questions, "--gold", gold))
    for form in ("hotpotqa", "triplets", "paths", "mdr"):
        exported = rechain("export", chains, "--to", form, "--questions", questions)
        (out / f"export.{form}.txt").write_text(exported)
    run = work / "game"
    (out / "train.txt").write_text(rechain("train", questions, "--hops", 2, *TINY, "--out", run).replace(str(run), ""))
    (out / "game.txt").write_text(rechain("recover", questions, "--hops", 2, "--model", run, "--workers", 0))
    for command in (
        "",
        "demo",
        "index",
        "recover",
        "audit",
        "serve",
        "candidates",
        "evaluate",
        "export",
        "train",
        "reproduce",
    ):
        (out / f"help.{command}.txt").write_text(rechain(*command.split(), "--help"))


def serve(out: Path, work: Path) -> None:
    """Ask the server for pages and for chains by REST."""
    program = """
import json, sys
from pathlib import Path
from starlette.testclient import TestClient
from rechain.cli import serve as command
apps = []
command._run = lambda server, *_: apps.append(server.config.app)
from rechain.cli.main import main
sys.argv = ["rechain", "serve", sys.argv[1], "--chains", sys.argv[2], "--labels", sys.argv[3], "--port", "0"]
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
client = TestClient(apps[0], base_url="http://127.0.0.1")
for page in ("/", "/?q=Curie", "/question?id=d01", "/label", "/try", "/health", "/openapi.json", "/questions/d01"):
    answer = client.get(page)
    print("=====", page, answer.status_code)
    print(answer.text)
"""
    files = (EXAMPLES / "demo.jsonl", out / "demo.jsonl", work / "labels.sqlite")
    done = subprocess.run([sys.executable, "-c", program, *map(str, files)], capture_output=True, text=True)
    (out / "serve.txt").write_text(re.sub(r"[0-9a-f]{16,}|[\w-]{22,}", "-", done.stdout) + done.stderr[-2000:])


def without_changing(paths: Iterable[Path], folders: tuple[Path, ...]) -> None:
    """Take times, folders and files of provenance out of what was written."""
    for path in paths:
        if path.name.endswith(".provenance"):
            path.unlink()
            continue
        text = path.read_text(encoding="utf-8")
        if path.suffix != ".jsonl":  # of chains every byte counts
            text = CHANGING.sub("-", text)
        for folder in folders:
            text = text.replace(str(folder), "-")
        path.write_text(text, encoding="utf-8")


def main() -> None:
    """Write everything into a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    out, work = options.out.absolute(), options.out.absolute().with_name(f"{options.out.name}.work")
    for folder in (out, work):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    other_commands(out, work)
    serve(out, work)
    recover_logs(out, work, options.quick)
    recover_sets(options.data.absolute(), out, work, options.quick)
    without_changing(sorted(out.iterdir()), (out, work, ROOT))


if __name__ == "__main__":
    main()
