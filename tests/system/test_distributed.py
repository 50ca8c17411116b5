"""Two processes that play one game together come to what one comes to alone."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from rechain.schema import Question
from rechain.system.distributed import average, average_gradients, is_first, is_shared, join, own_share

Towns = Callable[..., list[Question]]

PLAY = """
import json, sys
import torch, torch.distributed as dist
from safetensors.torch import save_file
from rechain.formats.datasets import read_questions
from rechain.paper.data import Prepared
from rechain.paper.settings import GameSettings
from rechain.paper import encoder, ranker, reasoner, train
from rechain.paper.train import Training
from rechain.paper.lexicon import Lexicon
from rechain.paper.prepare import prepare
from rechain.paper.vectors import no_vectors

path, out, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
for module in (encoder, ranker, reasoner):
    module.DROPOUT = 0.0  # processes draw different random numbers
train.HELD_OUT, train.BONUS_FROM, train.GAME_RATE = 0.25, 0, 1.0
torch.set_num_threads(1)
rank = 0
if len(sys.argv) > 4:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
questions = list(read_questions(path))
table = torch.from_numpy(no_vectors().table)
settings = GameSettings(**settings)
training = Training(table, Prepared(prepare(questions, Lexicon({})).arrays(), settings), settings)
training.run()
save_file(training.players.state_dict(), f"{out}.{rank}")
print(json.dumps(training.state.progress.curve))
if dist.is_initialized():
    dist.barrier()  # one that goes while another still talks to it can bring that one down
    dist.destroy_process_group()
"""


def free_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def play(processes: int, questions: Path, out: Path, settings: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Play in some processes side by side; return what each says of its epochs."""
    command = [sys.executable, "-c", PLAY, str(questions), str(out), json.dumps(settings)]
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": str(processes)}
    started = [
        subprocess.Popen(
            [*command, *(["shared"] if processes > 1 else [])],
            env=os.environ | told | {"RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    ended = [one.communicate(timeout=600) for one in started]
    assert all(one.returncode == 0 for one in started), "\n".join(error for _, error in ended)
    return [json.loads(output.splitlines()[-1]) for output, _ in ended]


ADDED_TO_ALL = {"ranker.score.bias", "reasoner.classify.bias"}
"""what is added to all scores alike: its gradient is rounding alone, which Adam enlarges"""


def figures(told: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in told.items() if isinstance(value, float)}


SETTINGS = {
    "hidden": 3,
    "pretrain_epochs": 1,
    "game_epochs": 1,
    "learning_rate": 1e-3,
    "reasoner_epochs": 1,
}


@pytest.mark.parametrize(
    ("processes", "sizes"),
    [
        (
            2,
            {"batch_size": 4},
        ),  # 4, 4 and 1 of nine questions: the second reads none of the last
        pytest.param(3, {"batch_size": 5}, marks=pytest.mark.slow),  # 2, 2, 1
    ],
)
def test_several_processes_come_to_the_same_losses_and_weights_as_one(
    town_file: Path, tmp_path: Path, processes: int, sizes: dict[str, int]
) -> None:
    (alone,) = play(1, town_file, tmp_path / "alone", SETTINGS | sizes)
    together = play(processes, town_file, tmp_path / "together", SETTINGS | sizes)
    assert [told["phase"] for told in alone] == ["pretraining", "reasoner", "game"]
    for curve in together:
        for one, other in zip(alone, curve, strict=True):
            assert figures(one) == pytest.approx(figures(other), rel=1e-5, abs=1e-5)
    expected = load_file(tmp_path / "alone.0")
    first = load_file(tmp_path / "together.0")
    for name, value in (pair for pair in expected.items() if pair[0] not in ADDED_TO_ALL):
        torch.testing.assert_close(first[name], value, rtol=1e-5, atol=1e-5, msg=lambda told, n=name: f"{n}: {told}")
    for rank in range(1, processes):
        other = load_file(tmp_path / f"together.{rank}")
        assert all(torch.equal(first[name], other[name]) for name in first)


def test_a_process_alone_keeps_everything_to_itself() -> None:
    assert not is_shared()
    assert is_first()
    questions = np.arange(5)
    share = own_share(questions)
    assert (share.questions.tolist(), share.weight) == ([0, 1, 2, 3, 4], 5)
    parameter = torch.nn.Parameter(torch.zeros(2))
    parameter.grad = torch.ones(2)
    average_gradients([parameter], 3)
    assert parameter.grad.tolist() == [1, 1]
    assert average(torch.tensor(7.0), 0).item() == 7


def test_without_torchrun_there_is_nothing_to_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with join("cpu") as device:
        assert device == "cpu"
        assert not is_shared()


@pytest.mark.slow
def test_torchrun_trains_in_two_processes_and_resumes(town_file: Path, tmp_path: Path) -> None:
    quick = ["hidden=3", "batch_size=4", "pretrain_epochs=2", "game_epochs=1"]
    changes = [word for setting in quick for word in ("--set", setting)]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", free_port()]
    rechain = ["-m", "rechain.cli.main", "train", str(town_file), "--device", "cpu", *changes, "--out"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def run(*command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)

    together = run(*torchrun, *rechain, str(tmp_path / "together"))
    assert together.returncode == 0, together.stderr
    assert together.stderr.count("pretraining, epoch 1: ") == 1
    assert together.stderr.count("contains the model") == 1
    two = load_file(tmp_path / "together" / "model.safetensors")
    (tmp_path / "together" / "model.safetensors").unlink()
    again = run(*torchrun, *rechain, str(tmp_path / "together"), "--resume")
    assert again.returncode == 0, again.stderr
    resumed = load_file(tmp_path / "together" / "model.safetensors")
    assert all(torch.equal(two[name], resumed[name]) for name in two)
    refused = run(*torchrun, *rechain, str(tmp_path / "together"))
    assert refused.returncode != 0
    assert "already contains a run; continue it with --resume" in refused.stderr
