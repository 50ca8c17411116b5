"""kill -9 at any moment: the run goes on from its last checkpoint to the same weights."""

import os
import signal
import subprocess
import time
from pathlib import Path
from random import Random

import pytest
from tests.cli.common import RECHAIN

from rechain.system.training import CHECKPOINT, RUN_FILE, WEIGHTS

SETTINGS = ["hidden=3", "batch_size=2", "pretrain_epochs=12", "game_epochs=12", "sharpness=0", "gradient=reinforce"]
KILLS = 20


READER = [
    "max_tokens=64",
    "batch_size=2",
    "epochs=12",
    "patience=99",
    "held_out=0.25",
    "checkpoint_steps=2",
]


def command(questions: Path, out: Path, encoder: Path | None) -> list[str]:
    settings = SETTINGS if encoder is None else READER
    changes = [word for setting in settings for word in ("--set", setting)]
    if encoder is not None:
        changes += ["--model", "reader", "--encoder", str(encoder)]
    resume = ["--resume"] if (out / RUN_FILE).exists() else []
    return [
        *RECHAIN,
        "train",
        str(questions),
        "--out",
        str(out),
        "--device",
        "cpu",
        *changes,
        *resume,
    ]


def begin(questions: Path, out: Path, encoder: Path | None) -> "subprocess.Popen[str]":
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command(questions, out, encoder), env=environment, stderr=subprocess.PIPE, text=True)


def wait_for_training(process: "subprocess.Popen[str]", out: Path) -> None:
    """Wait until the process has begun to work in its folder."""
    before = (out / CHECKPOINT).stat().st_mtime_ns if (out / CHECKPOINT).exists() else 0
    while process.poll() is None:
        if (out / CHECKPOINT).exists() and (out / CHECKPOINT).stat().st_mtime_ns > before:
            return
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["game", "reader"])
def test_a_run_that_is_killed_twenty_times_ends_with_the_same_weights(
    town_file: Path, tmp_path: Path, tiny_encoder: Path, model: str
) -> None:
    encoder = tiny_encoder if model == "reader" else None
    whole = begin(town_file, tmp_path / "whole", encoder)
    wait_for_training(whole, tmp_path / "whole")
    start = time.monotonic()
    _, err = whole.communicate(timeout=600)
    usual = time.monotonic() - start
    assert whole.returncode == 0, err
    random, out, kills = Random(0), tmp_path / "killed", 0
    while kills < KILLS:
        process = begin(town_file, out, encoder)
        if kills % 4:  # every fourth is killed at any moment of its start
            wait_for_training(process, out)
            time.sleep(random.uniform(0, 1.5 * usual / KILLS))
        else:
            time.sleep(random.uniform(0.5, 4))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        _, err = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), err
        if process.returncode == 0:  # it was finished before all kills were used: the rest hit another run
            assert (out / WEIGHTS).read_bytes() == (tmp_path / "whole" / WEIGHTS).read_bytes()
            out = tmp_path / f"killed{kills}"
    last = begin(town_file, out, encoder)
    _, err = last.communicate(timeout=600)
    assert last.returncode == 0, err
    assert (out / WEIGHTS).read_bytes() == (tmp_path / "whole" / WEIGHTS).read_bytes()
