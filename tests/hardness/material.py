"""What cases share: tiny models and runs, made once, by the commands themselves, before the first case."""

import json
import os
import shutil
import tempfile
from pathlib import Path
from random import Random

import examples
from commands import run

_PLACE = "RECHAIN_HARDNESS_MATERIAL"
"""tells worker processes where the material is"""
SMALL_GAME = ("hidden=3", "batch_size=4", "pretrain_epochs=1", "game_epochs=1", "held_out=0.25")
SMALL_READER = ("max_tokens=64", "batch_size=4", "epochs=1", "held_out=0.25", "teachers=1", "checkpoint_steps=1")


def place() -> Path:
    """Return the folder of the material."""
    return Path(os.environ[_PLACE])


def settings(values: tuple[str, ...]) -> list[str]:
    """Return settings as options of `rechain train`."""
    return [word for value in values for word in ("--set", value)]


def prepare() -> None:
    """Make a folder with questions, an encoder, a reader and a game; it is removed when this process ends."""
    import atexit

    folder = Path(tempfile.mkdtemp(prefix="hardness-"))
    os.environ[_PLACE] = str(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    draw = Random(0)
    rows = [json.dumps(examples.plain(draw, number)) for number in range(12)]
    (folder / "questions.jsonl").write_text("\n".join(rows) + "\n")
    _make_encoder(folder / "encoder")
    shared = ["train", "questions.jsonl", "--device", "cpu"]
    vectors = folder / "vectors.txt"
    words = {word.strip(".?") for row in rows for word in json.loads(row)["question"].split()}
    vectors.write_text("".join(f"{word.lower()} 0.1 -0.2 0.3\n" for word in sorted(words)))
    (folder / "settings.toml").write_text("\n".join((*SMALL_GAME, 'row = "conditional"', "seed = 3", "bonus = 0.25")))
    reader = ["--model", "reader", "--encoder", "encoder", "--out", "reader", *settings(SMALL_READER)]
    for options in (["--out", "game", "--vectors", vectors, *settings(SMALL_GAME)], reader):
        before = Path.cwd()
        outcome = run(folder, [*shared, *options])
        os.chdir(before)
        assert outcome.code == 0, outcome


def _make_encoder(folder: Path) -> None:
    """Write an encoder with eight numbers a token, as the transformers library does."""
    import torch

    from rechain.models.text_encoders import untrained
    from rechain.preparation.arrays import TEXT_MARKS
    from rechain.reader.pretrained import BUNDLED, TOKENIZER, find

    torch.manual_seed(0)
    shape = {"model_type": "bert", "vocab_size": 30522, "hidden_size": 8, "num_hidden_layers": 1}
    shape |= {"num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 320}
    untrained(shape, TEXT_MARKS).model.save_pretrained(folder)
    shutil.copy(find(BUNDLED) / TOKENIZER, folder)
