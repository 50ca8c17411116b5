"""Plots of a report, as SVG files. Needs matplotlib, of the extra `train`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Canvas

from rechain.evaluation.statistics import Figure
from rechain.game.training import PHASES
from rechain.tables.judge import COMBINED, Row

_SIZE = (7, 4)


def draw_learning_curve(path: Path, lines: Mapping[str, Mapping[float, Figure]]) -> None:
    """Draw chain accuracy against the number of training questions, with intervals."""
    axes = Canvas(_SIZE, layout="constrained").subplots()
    for name, line in lines.items():
        figures = [line[at] for at in sorted(line)]
        value, low, high = (100 * np.array([figure[place] for figure in figures]) for place in range(3))
        axes.errorbar(sorted(line), value, [value - low, high - value], label=name, marker="o", capsize=3)
    axes.set_xscale("log")
    ticks = sorted({at for line in lines.values() for at in line})
    axes.set_xticks(ticks, [f"{at:.0f}" for at in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("training questions")
    axes.set_ylabel("chain accuracy, %")
    _save(axes, path)


def draw_rewards(path: Path, rows: Sequence[Row]) -> bool:
    """Draw each row's mean reward on held-out questions after every epoch, and return whether there is any."""
    lines = {row.name: line for row in rows if COMBINED not in row.name and (line := rewards(row))}
    if not lines:
        return False
    axes = Canvas(_SIZE, layout="constrained").subplots()
    epochs = sorted({epoch for line in lines.values() for epoch in line}, key=_in_time)
    for name, line in lines.items():
        places = [place for place, epoch in enumerate(epochs) if epoch in line]
        axes.plot(places, [line[epochs[place]] for place in places], label=name, marker=".")
    axes.set_xticks(range(len(epochs)), [f"{phase} {epoch + 1}" for phase, epoch in epochs], rotation=60, ha="right")
    axes.set_ylabel("reward on held-out questions")
    _save(axes, path)
    return True


def rewards(row: Row) -> dict[tuple[str, int], float]:
    """Return the mean reward of a row's games after each epoch of each phase."""
    values: dict[tuple[str, int], list[float]] = {}
    for metadata in row.metadata.values():
        for point in metadata.get("curve", ()):
            if point.get("reward") is not None:
                values.setdefault((point["phase"], point["epoch"]), []).append(point["reward"])
    return {epoch: float(np.mean(values[epoch])) for epoch in sorted(values, key=_in_time)}


def _in_time(epoch: tuple[str, int]) -> tuple[int, int]:
    return PHASES.index(epoch[0]), epoch[1]


def _save(axes: Any, path: Path) -> None:
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    # a fixed salt and no date: the same figures make the same bytes
    with matplotlib.rc_context({"svg.hashsalt": "rechain"}):
        axes.figure.savefig(path, metadata={"Date": None})
