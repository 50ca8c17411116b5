"""Tables and the plot of the proof, from what was played."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from common import percent, print_heading, print_rows
from proof_plays import ARRAYS, CARRY, FOLDS, GOLD, MIXED, SETS, SHARES, TEXTS, WEIGHTED, Plan, Play, seeds_of

from rechain.evaluation.statistics import Figure, bootstrap, mean_with_interval
from rechain.system.tensors import Array, load_arrays

NAMES = {
    "bm25_search": "BM25, one step",
    "untrained_once": "untrained encoder, one step",
    "untrained": "untrained encoder, two steps",
    "answer": "taught by answer matching",
    "bm25": "taught by BM25 (question and answer)",
    "lexical": "taught by `lexical` chains",
    "default": "taught by default chains, all",
    "default90": "taught by default chains, confidence at least 0.9",
    WEIGHTED: "taught by default chains, weighted by confidence",
    "gold": "taught by gold",
    "gold10": "taught by gold of 10 % of the questions",
    "gold25": "taught by gold of 25 %",
    "gold50": "taught by gold of 50 %",
    MIXED: "taught by gold of 10 % and default chains of the rest",
}
TABLE = tuple(row for row in NAMES if row not in SHARES and row != MIXED)
CUTS = (2, 10, 20)
AIM = 10
"""the cut by which rows are compared"""
UNTRAINED = ("bm25_search", "untrained_once", "untrained")
LEARNT = tuple(row for row in TABLE if row not in UNTRAINED)
PLOT = "proof_labels.svg"


@dataclass
class Row:
    """What the plays of one row found: for every measure its values, by seed, of every question."""

    values: dict[str, dict[int, Array]] = field(default_factory=dict)
    labels: list[int] = field(default_factory=list)

    def seeds(self, measure: str) -> set[int]:
        """Return the seeds of which all questions have a value."""
        return set(self.values.get(measure, {}))

    def mean(self, measure: str, seeds: Iterable[int] | None = None) -> Array | None:
        """Return the mean over seeds for every question; None where there is no seed."""
        chosen = self.seeds(measure) if seeds is None else set(seeds) & self.seeds(measure)
        return np.mean([self.values[measure][seed] for seed in sorted(chosen)], axis=0) if chosen else None


class Results:
    """All that was collected."""

    def __init__(self, stage: Path) -> None:
        self._folder = Plan.read(stage / CARRY).played(stage)
        self._arrays, gold = load_arrays(stage / ARRAYS / TEXTS), load_arrays(stage / GOLD)
        self.gold, self.is_ordered = gold["gold"], gold["ordered"].astype(bool)
        self.questions, self.passages = self._arrays["set_questions"], self._arrays["set_passages"]
        self.rows = {name: self._row(name) for name in NAMES}

    def missing(self) -> list[str]:
        """Return what is not played, a line for each row, kind and seed."""
        lines = []
        for kind, rows in (("retriever", NAMES), ("selector", [row for row in TABLE if row != WEIGHTED])):
            for row in (row for row in rows if row not in UNTRAINED):
                for seed, plays in self._plays(kind, row).items():
                    lacking = [play.fold for play in plays if not play.path(self._folder).exists()]
                    folds = "all folds" if len(lacking) == len(FOLDS) else f"folds {', '.join(map(str, lacking))}"
                    lines += [f"{kind}, {NAMES[row]}: seed {seed}, {folds}"] if lacking else []
        return lines

    def label_shares(self, row: str) -> tuple[float, float] | None:
        """Return which part of a row's labels, of all folds, are the gold passages, and which part has no order."""
        supervision = "default" if row in ("default90", WEIGHTED) else row
        rows = self._arrays.get(f"labels.{supervision}")
        if rows is None:
            return None
        least = 0.9 if row == "default90" else 0.0
        there = (rows[:, 0] >= 0) & (self._arrays[f"weight.{supervision}"] >= least)
        same = np.sort(rows[there, :2], axis=1) == np.sort(self.gold[: len(rows)][there], axis=1)
        return float(same.all(axis=1).mean()), 1 - float(self._arrays[f"ordered.{supervision}"][there].mean())

    def _plays(self, kind: str, row: str) -> dict[int, list[Play]]:
        """Return the plays of a row by their seeds."""
        if row in UNTRAINED:
            return {0: [Play(kind, row)]}
        return {seed: [Play(kind, row, fold, seed) for fold in FOLDS] for seed in seeds_of(row)}

    def _row(self, name: str) -> Row:
        row = Row()
        for kind, measure in (("retriever", self._retrieved), ("selector", self._selected)):
            for seed, plays in self._plays(kind, name).items():
                if all(play.path(self._folder).exists() for play in plays):
                    parts = [load_arrays(play.path(self._folder)) for play in plays]
                    for key, values in measure(parts).items():
                        row.values.setdefault(key, {})[seed] = values
                    if kind == "retriever":
                        row.labels += [int(part["labels"][0]) for part in parts if "labels" in part]
        return row

    def _retrieved(self, parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
        """Return whether both gold passages are among the first, and whether the best path is the gold one."""
        measures: dict[str, Array] = {}
        for place, name in enumerate(SETS):
            begin, end = self.questions[place : place + 2]
            gold, is_ordered = self.gold[begin:end] - self.passages[place], self.is_ordered[begin:end]
            sums = {key: np.zeros(end - begin) for key in (*map(str, CUTS), "path")}
            counts = np.zeros(end - begin)
            for part in parts:
                asked = part[f"{name}.questions"]
                top, path = (part[f"{name}.{key}"].astype(np.int64) for key in ("top", "path"))
                counts[asked] += 1
                for cut in CUTS:
                    found = (top[:, :cut, None] == gold[asked][:, None]).any(axis=1).all(axis=1)
                    sums[str(cut)][asked] += found
                sums["path"][asked] += (path == gold[asked]).all(axis=1)
            assert counts.all(), "a play lacks questions"
            for key, values in sums.items():
                chosen = is_ordered if key == "path" else np.ones(len(values), dtype=bool)
                measures[f"{name}.{key}"] = (values / counts)[chosen]
        return measures

    def _selected(self, parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
        """Return whether a selector chose the gold passages."""
        right = np.full(self.questions[1], np.nan)
        for part in parts:
            chosen = np.sort(part["pair"].astype(np.int64), axis=1)
            right[part["questions"]] = (chosen == np.sort(self.gold[part["questions"]], axis=1)).all(axis=1)
        assert not np.isnan(right).any(), "a play lacks questions"
        return {"selector": right}

    def figure(self, row: str, measure: str) -> Figure | None:
        """Return a row's mean of a measure, with its interval over questions."""
        values = self.rows[row].mean(measure)
        return None if values is None else mean_with_interval(list(values))

    def difference(self, one: str, other: str, measure: str) -> Figure | None:
        """Return by how much one row is above another on the same questions, over the seeds that both have."""
        first, second = self.rows[one], self.rows[other]
        seeds = first.seeds(measure) & second.seeds(measure) if other not in UNTRAINED else None
        one_mean = first.mean(measure, seeds)
        other_mean = second.mean(measure, seeds)
        if one_mean is None or other_mean is None:
            return None
        return mean_with_interval(list(one_mean - other_mean))

    @cached_property
    def base(self) -> str | None:
        """The better of the two ways to search with the untrained encoder: a gain over the worse would be too easy."""
        means = {row: self.rows[row].mean(f"hotpotqa.{AIM}") for row in ("untrained", "untrained_once")}
        found = {row: float(values.mean()) for row, values in means.items() if values is not None}
        return max(found, key=found.__getitem__) if found else None

    def gain(self, row: str, measure: str = f"hotpotqa.{AIM}") -> Figure | None:
        """Return what part of gold's gain over the untrained encoder a row has."""
        seeds = self.rows[row].seeds(measure) & self.rows["gold"].seeds(measure)
        means = [self.rows[row].mean(measure, seeds), self.rows["gold"].mean(measure, seeds)]
        base = None if self.base is None else self.rows[self.base].mean(measure)
        if base is None or means[0] is None or means[1] is None:
            return None
        own, gold = means[0] - base, means[1] - base

        def ratio(draw: Array) -> float:
            return float(own[draw].mean() / gold[draw].mean()) if gold[draw].mean() else np.nan

        return Figure(ratio(np.arange(len(own))), *bootstrap(ratio, len(own)), len(own))


# ---- tables


def _heading(results: Results, stage: Path) -> None:
    print_heading()
    calls = Plan.read(stage / CARRY).played(stage) / "calls.jsonl"
    for line in calls.read_text(encoding="utf-8").splitlines() if calls.exists() else ():
        call = json.loads(line)
        where = f"{call['machine']}, {call['processes']} processes"
        print(f"Played: {call['plays']} plays on {where}, {call['seconds']:.0f} s  ")
    counts = [
        f"{name} {results.questions[place + 1] - results.questions[place]:,} questions, "
        f"{results.passages[place + 1] - results.passages[place]:,} passages"
        for place, name in enumerate(SETS)
    ]
    print(f"Data: {'; '.join(counts)}")


def _hotpotqa(results: Results, _: Path) -> None:
    header = ["row", "labels", "right, %", "without order, %", *(f"first {cut}, %" for cut in CUTS)]
    rows = []
    for row in TABLE:
        measures = [*(f"hotpotqa.{cut}" for cut in CUTS), "hotpotqa.path", "selector"]
        source = row if row != "untrained_once" else "untrained"  # which has the selection, the same for both
        figures = [results.figure(source if measure == "selector" else row, measure) for measure in measures]
        count = f"{np.mean(results.rows[row].labels):.0f}" if results.rows[row].labels else ""
        shares = [f"{100 * share:.1f}" for share in results.label_shares(row) or ()] or ["", ""]
        rows.append([NAMES[row], count, *shares, *map(percent, figures)])
    print_rows([*header, "path in order, %", "selector, %"], rows)
    seeds = [[NAMES[row], *(_by_seed(results.rows[row], m) for m in (f"hotpotqa.{AIM}", "selector"))] for row in LEARNT]
    print_rows(["row", f"first {AIM} by seed, %", "selector by seed, %"], seeds)


def _by_seed(row: Row, measure: str) -> str:
    values = row.values.get(measure, {})
    return " / ".join(f"{100 * values[seed].mean():.1f}" for seed in sorted(values))


def _others(results: Results, _: Path) -> None:
    measures = [(name, key) for name in SETS[1:] for key in (*map(str, CUTS), "path")]
    names = {"path": "path in order"} | {str(cut): f"first {cut}" for cut in CUTS}
    header = ["row", *(f"{name}: {names[key]}, %" for name, key in measures)]
    print_rows(header, [[NAMES[row], *(percent(results.figure(row, ".".join(m))) for m in measures)] for row in TABLE])


def _differences(results: Results, _: Path) -> None:
    rows = []
    for other in (row for row in TABLE if row != "default"):
        columns = (f"hotpotqa.{AIM}", "hotpotqa.path", "selector", f"2wiki.{AIM}", f"musique.{AIM}")
        rows.append([NAMES[other], *(percent(results.difference("default", other, column)) for column in columns)])
    header = ["default chains, all, less", f"first {AIM}, points", "path in order, points", "selector, points"]
    print_rows([*header, f"2wiki: first {AIM}, points", f"musique: first {AIM}, points"], rows)
    base = f"`{NAMES[results.base]}`" if results.base else "the untrained encoder"
    gains = [
        [NAMES[row], percent(results.gain(row))]
        for row in ("answer", "bm25", "lexical", "default", "default90", WEIGHTED)
    ]
    print_rows(["row", f"of gold's gain over {base}, first {AIM}, %"], gains)


def _labels(results: Results, _: Path) -> None:
    rows = []
    for row in (*SHARES, "gold", "default", "default90", MIXED):
        labels = results.rows[row].labels
        figures = [results.figure(row, f"hotpotqa.{cut}") for cut in CUTS]
        difference = percent(results.difference("default", row, f"hotpotqa.{AIM}")) if row != "default" else ""
        rows.append([NAMES[row], f"{np.mean(labels):.0f}" if labels else "", *map(percent, figures), difference])
    print_rows(["row", "labels", *(f"first {cut}, %" for cut in CUTS), f"default chains less this, first {AIM}"], rows)
    print(meeting(results))


def meeting(results: Results) -> str:
    """Return how many gold labels reach what default chains reach, on a line between the shares that were measured."""
    curve = _gold_curve(results)
    reached = results.figure("default", f"hotpotqa.{AIM}")
    if reached is None or len(curve) < 2:
        return "Where the curves meet is not known yet: plays are missing."
    counts = sorted(curve)
    means = [curve[count].value for count in counts]
    if reached.value >= max(means):
        return f"Default chains reach what gold of all {counts[-1]:.0f} questions does."
    if reached.value <= means[0]:
        return f"Default chains reach no more than gold of {counts[0]:.0f} questions."
    above = next(place for place, mean in enumerate(means) if mean >= reached.value)
    low, high = above - 1, above
    part = (reached.value - means[low]) / (means[high] - means[low])
    count = np.exp(np.log(counts[low]) + part * (np.log(counts[high]) - np.log(counts[low])))
    return f"Default chains are worth about {count:.0f} gold labels of {counts[-1]:.0f} (logarithmic interpolation)."


def _gold_curve(results: Results) -> dict[float, Figure]:
    points = {}
    for row in (*SHARES, "gold"):
        figure = results.figure(row, f"hotpotqa.{AIM}")
        if figure is not None:
            points[float(np.mean(results.rows[row].labels))] = figure
    return points


def _missing(results: Results, _: Path) -> None:
    lines = results.missing()
    print("\n".join(f"- {line}" for line in lines) if lines else "Nothing: all rows, folds and seeds are played.")


TABLES: dict[str, Callable[[Results, Path], None]] = {
    "heading": _heading,
    "hotpotqa": _hotpotqa,
    "others": _others,
    "differences": _differences,
    "labels": _labels,
    "missing": _missing,
}
"""what prints each table, by name"""


# ---- the plot


def draw(results: Results, path: Path) -> bool:
    """Draw what gold labels are worth, beside recovered chains, and return whether there is anything to draw."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    curve = _gold_curve(results)
    if not curve:
        return False
    axes: Any = Canvas((7, 4), layout="constrained").subplots()
    value, low, high = (100 * np.array([curve[at][place] for at in sorted(curve)]) for place in range(3))
    axes.errorbar(sorted(curve), value, [value - low, high - value], label="gold labels", marker="o", capsize=3)
    for row, color in (("default", "C1"), (MIXED, "C2"), ("answer", "C3"), (results.base or "untrained", "grey")):
        figure = results.figure(row, f"hotpotqa.{AIM}")
        if figure is not None:
            axes.axhline(100 * figure.value, label=NAMES[row], color=color, linestyle="--")
            axes.axhspan(100 * figure.low, 100 * figure.high, color=color, alpha=0.12)
    axes.set_xscale("log")
    axes.set_xticks(sorted(curve), [f"{at:.0f}" for at in sorted(curve)])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("questions with gold labels")
    axes.set_ylabel(f"both passages in the first {AIM}, %")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    # a fixed salt and no date: the same figures make the same bytes
    with matplotlib.rc_context({"svg.hashsalt": "rechain"}):
        axes.figure.savefig(path, metadata={"Date": None})
    return True


def judge(stage: Path, plots: Path | None) -> None:
    """Print the tables, and write the plot into a folder."""
    results = Results(stage)
    for name, print_table in TABLES.items():
        print(f"## {name}\n")
        print_table(results, stage)
    if plots:
        plots.mkdir(parents=True, exist_ok=True)
        draw(results, plots / PLOT)
