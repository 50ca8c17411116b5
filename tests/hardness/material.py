"""What cases share: tiny models and runs, made once, by the commands themselves, before the first case."""

import atexit
import gzip
import json
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import examples
import pyarrow
import pyarrow.parquet
from commands import run

_PLACE = "RECHAIN_HARDNESS_MATERIAL"
"""tells worker processes where the material is"""
SMALL_GAME = ("hidden=3", "batch_size=4", "pretrain_epochs=1", "game_epochs=1")
SMALL_READER = ("max_tokens=64", "batch_size=4", "epochs=2", "held_out=0.25", "checkpoint_steps=1")


def place() -> Path:
    """Return the folder of the material."""
    return Path(os.environ[_PLACE])


def settings(values: tuple[str, ...]) -> list[str]:
    """Return settings as options of `rechain train`."""
    return [word for value in values for word in ("--set", value)]


OPTIONS: dict[str, list[str]] = {
    "game": ["--vectors", "vectors.txt", *settings(SMALL_GAME)],
    "reader": ["--model", "reader", "--encoder", "encoder", *settings(SMALL_READER)],
}


def prepare() -> None:
    """Make a folder with questions, an encoder, a reader and a game; it is removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="hardness-"))
    os.environ[_PLACE] = str(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    draw = Random(0)
    rows = [examples.plain(draw, number) for number in range(12)]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = {word.strip(".?").lower() for row in rows for word in row["question"].split()}
    (folder / "vectors.txt").write_text("".join(f"{word} 0.1 -0.2 0.3\n" for word in sorted(words)))
    settings_file = (*SMALL_GAME, 'row = "tail to head"', "seed = 3", "bonus = 0.25")
    (folder / "settings.toml").write_text("\n".join(settings_file))
    make_encoder(folder / "encoder")
    recovering = ["recover", "questions.jsonl", "--model", "lexical", "--batch-size", 2, "--workers", 0]
    _run(folder, *recovering, "--out", "chains.jsonl")
    for kind, options in OPTIONS.items():
        _run(folder, "train", "questions.jsonl", "--device", "cpu", "--out", kind, *options)
        shutil.copy(folder / "questions.jsonl", folder / kind)


def _run(folder: Path, *arguments: object) -> None:
    before = Path.cwd()
    outcome = run(folder, arguments)
    os.chdir(before)
    assert outcome.code == 0, outcome


def prepare_all() -> None:
    """Make also what the commands write: runs that were stopped half way, chains with what is beside them, labels."""
    prepare()
    for kind in OPTIONS:
        _stop_half_way(place(), kind)
    data = place() / "data"
    data.mkdir()
    for name in ("questions.jsonl", "chains.jsonl", "chains.jsonl.provenance"):
        shutil.copy(place() / name, data)
    rows = [json.loads(line) for line in (data / "questions.jsonl").read_text().splitlines()]
    (data / "questions.jsonl.gz").write_bytes(gzip.compress((data / "questions.jsonl").read_bytes()))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), data / "questions.parquet")
    recovering = ["recover", "questions.jsonl", "--model", "lexical"]
    _run(data, "export", "chains.jsonl", "--to", "parquet", "--out", "chains.parquet")
    _run(data, *recovering, "--engine", "ray", "--part-size", 2, "--batch-size", 1, "--out", "parts")
    _make_labels(data)


def _make_labels(data: Path) -> None:
    """Write the labels of two annotators; beside a copy, the journal that a kill in the middle of a write leaves."""
    chains = [json.loads(line) for line in (data / "chains.jsonl").read_text().splitlines()]
    gold = [
        {"id": row["id"], "chains": [{"passages": c["passages"], "links": [k["entity"] for k in c["links"]]}]}
        for row in chains
        for c in row["chains"]
    ]
    (data / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in gold))
    for annotator in ("Ada", "Ben"):
        _run(data, "labels", "import", "labels.sqlite", "gold.jsonl", "questions.jsonl", "--annotator", annotator)
    killed = place() / "killed"
    shutil.copytree(data, killed)
    database = sqlite3.connect(data / "labels.sqlite", isolation_level=None)
    database.execute("PRAGMA cache_size = 1")  # so that changes reach the file before they are committed
    database.execute("BEGIN IMMEDIATE")
    database.execute("UPDATE events SET note = ?", ("x" * 3000,))
    for name in ("labels.sqlite", "labels.sqlite-journal"):
        shutil.copy(data / name, killed)
    database.execute("ROLLBACK")
    database.close()


def _stop_half_way(folder: Path, kind: str) -> None:
    """Train until the first epoch has ended, as if somebody had stopped the run there."""
    from rechain.system.training import TrainingState

    whole, ended = TrainingState.end_epoch, []

    def stop(self: TrainingState, *arguments: Any) -> None:
        if ended:
            raise KeyboardInterrupt
        ended.append(True)
        whole(self, *arguments)

    TrainingState.end_epoch = stop  # type: ignore[method-assign]
    before = Path.cwd()
    outcome = run(folder, ["train", "questions.jsonl", "--device", "cpu", "--out", f"{kind}_half", *OPTIONS[kind]])
    os.chdir(before)
    TrainingState.end_epoch = whole  # type: ignore[method-assign]
    assert outcome.code == 130, outcome
    shutil.copy(folder / "questions.jsonl", folder / f"{kind}_half")
    (folder / f"{kind}_half" / "kind.json").write_text(json.dumps(kind))


def resumed_options(kind: str) -> list[object]:
    """Return the options with which a run in the material was begun; its folder has been copied elsewhere."""
    names = {"vectors.txt", "encoder"}
    return [place() / option if option in names else option for option in OPTIONS[kind]]


def make_encoder(folder: Path) -> None:
    """Write an encoder with eight numbers a token, as the transformers library does."""
    import torch

    from rechain.reader.encoders import PretrainedEncoder
    from rechain.reader.pretrained import BUNDLED, TOKENIZER, find
    from rechain.reader.settings import TEXT_MARKS

    torch.manual_seed(0)
    shape = {"model_type": "bert", "vocab_size": 30522, "hidden_size": 8, "num_hidden_layers": 1}
    shape |= {"num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 320}
    PretrainedEncoder(shape, TEXT_MARKS).model.save_pretrained(folder)
    shutil.copy(find(BUNDLED) / TOKENIZER, folder)
