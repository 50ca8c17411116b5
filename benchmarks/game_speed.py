"""How fast the game is trained, and what share of a GPU's time its GRUs take: `python benchmarks/game_speed.py FOLDER`.

The folder is one that `rechain reproduce … --prepare-only` has written. Needs torch, numpy and safetensors alone.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from rechain.game.decoding import decode
from rechain.game.plays import Stage
from rechain.game.settings import GameSettings
from rechain.game.training import Part, Training

SIZE, STEPS = 256, 6
_GRU_KERNELS = ("_forward", "_backward", "rnn", "gru", "lstm")


def main() -> None:
    """Print questions a second for every kind of step, and the share of the GRU kernels."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    stage = Stage(Path(sys.argv[1]), device)
    settings = GameSettings(hidden=64, max_tokens=150, precision="bfloat16")
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}, batches of {SIZE} questions")
    for row, phases in (("independent", ("pretraining",)), ("conditional", ("game",)), ("cooperative", ("game",))):
        training = Training(stage.vectors, stage.questions(settings, 0), settings.but(row=row))
        for phase in phases:
            print(f"{row}, {phase}: {_rate(_step(training, phase)):.0f} questions/s")
    print(f"cooperative, decoding C: {_rate(_decode(training)):.0f} questions/s")
    if device == "cuda":
        print(f"share of GRU kernels in a step of the game: {100 * _gru_share(_step(training, 'game')):.0f} %")


def _step(training: Training, phase: str) -> Callable[[int], None]:
    return lambda number: _drop(training.step(phase, Part(training.data, _questions(training, number))))


def _decode(training: Training) -> Callable[[int], None]:
    def run(number: int) -> None:
        with training.arithmetic():
            decode(training.players, training.data.batch(_questions(training, number)))

    return run


def _questions(training: Training, number: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.take(training.questions, range(number * SIZE, (number + 1) * SIZE), mode="wrap")


def _drop(_: object) -> None:
    """Wait for the device."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _rate(run: Callable[[int], None]) -> float:
    """Return questions a second: the median of some steps, after others that warm up."""
    took = []
    for number in range(STEPS):
        _drop(None)
        start = time.perf_counter()
        run(number)
        _drop(None)
        took.append(time.perf_counter() - start)
    return SIZE / float(np.median(took[STEPS // 2 :]))


def _gru_share(run: Callable[[int], None]) -> float:
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        run(0)
        run(1)
    kernels = [(event.key.lower(), event.self_device_time_total) for event in seen.key_averages()]
    of_gru = sum(took for name, took in kernels if name.startswith(_GRU_KERNELS) or "rnn" in name)
    return float(of_gru / sum(took for _, took in kernels))


if __name__ == "__main__":
    main()
