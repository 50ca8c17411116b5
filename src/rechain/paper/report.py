"""Writes the tables next to the paper's, with intervals, differences, learning curves, times and plots."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rechain.evaluation.statistics import Figure
from rechain.paper.judge import LEXICAL, VOTE, Game, Results, Row, common_games, difference, difference_over_games
from rechain.paper.plays import PLAYS, read_plays
from rechain.paper.tables import CONDITIONS, CONTROL, ROWS, WITH_MORE, condition_of, row_name
from rechain.paper.train import PHASES

REPORT = "report.md"
NAMES = {"hotpotqa": "HotpotQA", "drughop": "DrugHop", "medhop": "MedHop"}
TITLES = {
    "paper": "The paper's own setting: hard C, no features, REINFORCE",
    "features": "With features: hard C, exact gradient",
    "ours": "Our setting: C weighted by evidence",
}
# The paper's Tables 1 and 2, as printed there; in brackets the recall of head and tail.
_HOTPOTQA = {
    "random": "40.3",
    "independent": "74.0",
    "head-to-tail": "77.1 (80.7 / 95.0)",
    "tail-to-head": "84.7 (88.1 / 96.2)",
    "cooperative": "87.2 (90.1 / 96.7)",
    "cooperative as written": "87.2 (90.1 / 96.7)",
}
_MEDHOP = {"random": "56.0", "independent": "59.3", "tail-to-head": "59.3", "cooperative": "62.6"}
PAPER = {"hotpotqa": _HOTPOTQA, "drughop": _MEDHOP, "medhop": _MEDHOP}
_COLUMNS = {
    "correct": "chain accuracy, %",
    "head": "head, %",
    "tail": "tail, %",
    "ordered": "passages in order, %",
    "links": "links, if the passages are right, %",
    "named": "entities named from the right passages, %",
}
_SHARE = re.compile(rf", (?:on (\d+)%|{WITH_MORE})")
"""the note of a row that learns from a share of the questions, or from more"""

Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""header and rows"""


def percent(figure: Figure | None, sign: str = "") -> str:
    """Format a share with its interval, or with the sign "+" a difference of two shares."""
    if figure is None:
        return ""
    value, low, high = (f"{100 * number:{sign}.1f}" for number in (figure.value, figure.low, figure.high))
    return f"{value} ({low} to {high})"


points = partial(percent, sign="+")


def conditions_of(results: Results) -> list[str]:
    """Return the tables of which anything was played; ours if nothing was."""
    played = [c for c in CONDITIONS if any(row_name(name, c) in results.rows for name in ROWS)]
    return played or ["ours"]


def _table_rows(results: Results, condition: str) -> dict[str, Row]:
    """Return the rows of a table that were played, by what they are called in it."""
    with_more = {f"cooperative, {WITH_MORE}": row_name("cooperative", condition, WITH_MORE)}
    names = {"random": "random"} | {name: row_name(name, condition) for name in ROWS} | with_more
    names["lexical"] = "lexical"
    return {name: row for name, full in names.items() if (row := results.rows.get(full)) and row.games}


def main_table(results: Results, data_set: str, condition: str = "ours") -> Table:
    """Return the paper's table next to ours, each row on all the games that it has played."""
    rows = _table_rows(results, condition)
    # In HotpotQA passages in order are the same as head and tail.
    shown = [column for column in _COLUMNS if data_set != "hotpotqa" or column != "ordered"]
    columns = [column for column in shown if any(row.means(column) for row in rows.values())]
    ways = [way for way in (VOTE, LEXICAL) if any(row.name + way in results.rows for row in rows.values())]
    paper = "paper" if data_set == "hotpotqa" else "paper, MedHop"
    header = ["", f"{paper}, %", *(_COLUMNS[column] for column in columns), "over folds and seeds, %"]
    header += [*(f"{way.removeprefix(' + ')} added, %" for way in ways), "games"]
    body = []
    for name, row in rows.items():
        figures = [*(row.figure(column) for column in columns), None if row.is_baseline else row.over_games()]
        figures += [other.figure() if (other := results.rows.get(row.name + way)) else None for way in ways]
        games = "" if row.is_baseline else str(len(row.games))
        body.append([name, PAPER[data_set].get(name, ""), *map(percent, figures), games])
    return header, body


def brief_table(results: Results, data_set: str, condition: str = "ours") -> Table:
    """Return the part of the table that fits a terminal, with the difference from the row above."""
    rows = _table_rows(results, condition)
    # if a row has fewer games than another, its level and its difference are not of the same games
    is_uneven = len({len(row.games) for row in rows.values() if not row.is_baseline}) > 1
    body = []
    for (name, row), above in zip(rows.items(), [None, *rows.values()], strict=False):
        paper = PAPER[data_set].get(name, "").partition(" ")[0]
        games = [] if not is_uneven else [""] if row.is_baseline else [str(len(row.games))]
        body.append([name, paper, percent(row.figure()), points(difference(row, above)) if above else "", *games])
    return ["", "paper", "here", "from the row above", *(["games"] if is_uneven else [])], body


def pairs_table(figures: Mapping[str, Figure]) -> Table:
    """Return how well models tell interacting pairs."""
    return ["", "AUC, %", "pairs"], [[name, percent(f), str(f.questions)] for name, f in figures.items()]


def write_report(folder: Path, results: Results, data_set: str, pairs: Mapping[str, Figure] | None = None) -> Path:
    """Write the report and its plots into a folder, and return its path."""
    sections = list(_opening(folder, results, data_set))
    if results.with_gold:
        for condition in conditions_of(results):
            sections.append(_section(TITLES[condition], main_table(results, data_set, condition)))
            sections += _differences(results, condition)
            sections += _learning_curve(results, condition)
        sections += [*_bonus_without_gold(results), _ablations(results)]
    if pairs:
        note = (
            "How well a score tells pairs that interact from those that do not, 50 % being chance, with intervals over"
            " pairs. The guess, which a Reasoner that learned nothing comes to, knows how few entities a passage"
            " mentions."
        )
        sections.append(_section("Interacting pairs", pairs_table(pairs), note))
    sections += [*_times(results), *_plots(folder, results, data_set)]
    path = folder / REPORT
    path.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    return path


def _section(title: str, table: Table, *notes: str) -> str:
    header, rows = table
    lines = [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]
    return "\n\n".join([f"## {title}", "\n".join(lines), *notes])


def _opening(folder: Path, results: Results, data_set: str) -> Iterator[str]:
    """Yield what the figures are taken over, and what is missing."""
    tables = {condition: _table_rows(results, condition) for condition in conditions_of(results)}
    yield f"# {NAMES[data_set]}: the paper's tables, reproduced"
    yield (
        f"Of {results.questions} questions, the right chain of {results.with_gold} is known"
        f" ({results.without_chain} of these have no candidate chain and count as wrong). Every figure is averaged over"
        " the seeds of a question first; in brackets is the 95 % bootstrap interval over questions. `over folds and"
        " seeds` is the mean of the games, with Student's 95 % interval over them."
    )
    games = {game for rows in tables.values() for row in rows.values() for game in row.metadata}
    yield f"Played: {_list_games(games)}."
    if not results.with_gold:
        yield "So there is no table of chains."
        return
    for condition, rows in tables.items():
        wanted = [name for name in ROWS if name in PAPER[data_set]]
        if missing := [row_name(name, condition) for name in wanted if name not in rows]:
            yield f"Not played yet: {', '.join(missing)}."
        trained = [row for row in rows.values() if not row.is_baseline]
        if any(set(row.games) != set(trained[0].games) for row in trained):
            yield (
                f"The rows of `{condition}` were not all played on the same folds and seeds: its table shows each by"
                " itself, and only the differences below it compare them on what they have in common."
            )
    plays = read_plays(folder) if (folder / PLAYS).exists() else []
    if waiting := sum(len(play.played(folder)) < len(play.branches) for play in plays):
        yield f"Of {len(plays)} plays {waiting} are still to be played."


def _list_games(games: Iterable[Game]) -> str:
    """Return e.g. "2 folds (0, 1) and 1 seed (0)"."""
    games = list(games)
    if not games:
        return "no game"
    parts, combinations = [], 1
    for name, numbers in (("fold", {game.fold for game in games}), ("seed", {game.seed for game in games})):
        listed = ", ".join(map(str, sorted(numbers)))
        parts.append(f"{len(numbers)} {name}{'s' if len(numbers) > 1 else ''} ({listed})")
        combinations *= len(numbers)
    return " and ".join(parts) + ("" if len(games) == combinations else f", {len(games)} games in all")


_DIFFERENCES = ("", "points, over questions", "points, over folds and seeds", "games")


def _compare(title: str, one: Row, two: Row) -> tuple[str, ...]:
    games = len(common_games([one, two]))
    return title, points(difference(one, two)), points(difference_over_games(one, two)), str(games)


def _differences(results: Results, condition: str) -> Iterator[str]:
    """Yield the differences of a table's rows: one from the next, cooperative ones from what they are compared with."""
    rows = _table_rows(results, condition)
    rows |= {name + way: row for name in rows for way in (VOTE, LEXICAL) if (row := _with(results, rows[name], way))}
    steps = [name for name in ("random", "independent", "head-to-tail", "tail-to-head") if name in rows]
    pairs: list[tuple[str, str]] = [(one, two) for two, one in pairwise(steps)]
    pairs += [(name, "tail-to-head") for name in ROWS if name.startswith("cooperative")]
    pairs += [("cooperative" + way, CONTROL + way) for way in ("", VOTE)]
    pairs += [("cooperative" + way, "cooperative") for way in (VOTE, LEXICAL)]
    pairs += [(f"cooperative, {WITH_MORE}{way}", "cooperative" + way) for way in ("", VOTE)]
    pairs += [("lexical", "cooperative"), ("cooperative" + LEXICAL, "lexical")]
    body = [_compare(f"{one} - {two}", rows[one], rows[two]) for one, two in pairs if {one, two} <= rows.keys()]
    note = "Paired: question by question, or game by game, on the folds and seeds that both rows have."
    yield _section(f"Differences between rows, {condition}", (_DIFFERENCES, body), note, *_verdict(rows))


def _with(results: Results, row: Row, way: str) -> Row | None:
    return results.rows.get(row.name + way)


def _verdict(rows: Mapping[str, Row]) -> Iterator[str]:
    """Yield what may be said of cooperation: that it helps only if its row is above the untaught one too."""
    if not {"cooperative", CONTROL, "tail-to-head"} <= rows.keys():
        return
    over_ranker = difference_over_games(rows["cooperative"], rows["tail-to-head"])
    over_control = difference_over_games(rows["cooperative"], rows[CONTROL])
    if over_ranker is None or over_control is None:
        yield "One game alone shows nothing about cooperation."
    elif over_ranker.low > 0 and over_control.low > 0:
        yield "Cooperation helps: the row is above the Ranker alone and above an untaught Reasoner."
    elif over_ranker.low > 0:
        yield (
            "Better than the Ranker alone, but not above an untaught Reasoner: the gain comes from preferring links"
            " that few passages share, not of what the Reasoner has learned."
        )
    else:
        yield "No gain over the Ranker alone is shown."


def _is_own(name: str) -> bool:
    """Return whether a row is of a play itself, not of another way to pick chains by its scores."""
    return not name.endswith((VOTE, LEXICAL))


def _bonus_without_gold(results: Results) -> Iterator[str]:
    """Yield what the bonus was worth by evidence, without gold: after the Reasoner's first epoch and its last."""
    body = []
    for row in filter(lambda row: _is_own(row.name), results.rows.values()):
        curves = [[e["bonus_auc"] for e in m.get("curve", ()) if "bonus_auc" in e] for m in row.metadata.values()]
        if curves := [curve for curve in curves if curve]:
            first, last = (100 * float(np.mean([curve[end] for curve in curves])) for end in (0, -1))
            body.append([row.name, f"{first:.1f} to {last:.1f}", str(len(curves))])
    if body:
        note = (
            "On held-out questions, after the first epoch with a Reasoner and after the last: how often the chain of"
            " most evidence earns more bonus than another with the passage that the Reasoner reads."
        )
        yield _section("The bonus, without gold", (("", "AUC of the bonus by evidence, %", "games"), body), note)


def _ablations(results: Results) -> str:
    """Return what a changed setting does to the rows of a table, and what the Reasoner adds with it."""
    body = []
    for name, row in sorted(results.rows.items()):
        plain = results.rows.get(row_name(name.partition(", ")[0], condition_of(name)))
        if plain is None or plain is row or not _is_own(name) or _SHARE.search(name):
            continue
        alone = results.rows.get(name.replace("cooperative", "tail-to-head"))
        gain = difference(row, alone) if alone and alone is not row else None
        figures = percent(row.figure(games=common_games([row, plain]) or None))
        body.append([name, figures, points(difference(row, plain)), points(gain), str(len(row.games))])
    if not body:
        return "## Ablations\n\nNone was played."
    header = ("", "chain accuracy, %", "from the plain row, points", "from the Ranker alone, points", "games")
    return _section("Ablations", (header, body), "Each row changes one setting of the table's row before the comma.")


class CurvePoint(NamedTuple):
    """Accuracy with some of the training questions, or with more."""

    share: str
    questions: float
    accuracy: Figure


def learning_curves(results: Results, condition: str = "ours") -> tuple[dict[str, list[CurvePoint]], list[Game]]:
    """Return the learning curve of every row of a table that has one, and the games that all its points share."""
    shares: dict[str, dict[str, Row]] = {}
    for name, row in results.rows.items():
        if (match := _SHARE.search(name)) and _is_own(name) and condition_of(name) == condition:
            plain = name[: match.start()] + name[match.end() :]
            shares.setdefault(plain, {})[f"{match[1]} %" if match[1] else f"100 %, {WITH_MORE}"] = row
            if plain in results.rows:
                shares[plain]["100 %"] = results.rows[plain]
    games = common_games(row for rows in shares.values() for row in rows.values())
    curves: dict[str, list[CurvePoint]] = {}
    for name, rows in sorted(shares.items()):
        for share, row in rows.items():
            counts = [row.metadata[game].get("questions", 0) for game in games or row.games]
            if accuracy := row.figure(games=games or None):
                curves.setdefault(name, []).append(CurvePoint(share, float(np.mean(counts)), accuracy))
        curves.get(name, []).sort(key=lambda point: (point.questions, point.share))
    return curves, games


def _learning_curve(results: Results, condition: str) -> Iterator[str]:
    curves, games = learning_curves(results, condition)
    counts = {point.share: point.questions for curve in curves.values() for point in curve}
    body = []
    for share, questions in sorted(counts.items(), key=lambda item: item[1]):
        cells = [[percent(point.accuracy) for point in curve if point.share == share] for curve in curves.values()]
        body.append([share, f"{questions:.0f}", *("".join(cell) for cell in cells)])
    if body:
        note = f"Chain accuracy in %, on what all of these have in common ({_list_games(games)})."
        yield _section(f"Learning curve, {condition}", (("share", "questions", *curves), body), note)


def _times(results: Results) -> Iterator[str]:
    """Yield the seconds of every row; a time that two rows of a game share is the same to the last digit."""
    body, times = [], set()
    trained = [row for row in results.rows.values() if not row.is_baseline and _is_own(row.name)]
    for row in sorted(trained, key=lambda row: row.name):
        metadata = [(game, *item) for game, items in row.metadata.items() for item in items.items()]
        seconds = [(game, name, value) for game, name, value in metadata if name.endswith("seconds")]
        times.update(seconds)
        total = sum(value for *_, value in seconds)
        body.append((row.name, str(len(row.metadata)), f"{total:.0f}", f"{total / len(row.metadata):.1f}"))
    if body:
        note = (
            f"All plays together took {sum(value for *_, value in times):.0f} s; a pretraining that rows share counts"
            " once there, and for each row in the table. Plays that run side by side take less time on the clock."
        )
        yield _section("Time", (("", "games", "seconds", "seconds a game"), body), note)


def _plots(folder: Path, results: Results, data_set: str) -> Iterator[str]:
    try:
        import matplotlib  # noqa: F401 - of the extra `train`
    except ImportError:
        yield "## Plots\n\nThey need matplotlib: pip install 'rechain[train]'."
        return
    images = []
    for condition in conditions_of(results):
        rows, curves = _table_rows(results, condition), learning_curves(results, condition)[0]
        lines = {name: line for name, row in rows.items() if (line := mean_rewards(row))}
        note = "" if condition == "ours" else f"_{condition}"
        if rows:
            _draw_order(folder / f"order{note}.svg", rows, PAPER[data_set])
            images.append(f"![The rows of the table, {condition}](order{note}.svg)")
        if curves:
            _draw_learning_curve(folder / f"learning_curve{note}.svg", curves)
            images.append(f"![Learning curve, {condition}](learning_curve{note}.svg)")
        if lines:
            _draw_rewards(folder / f"reward{note}.svg", lines)
            images.append(f"![Reward on held-out questions after each epoch](reward{note}.svg)")
    if images:
        yield "\n\n".join(["## Plots", *images])


def mean_rewards(row: Row) -> dict[tuple[str, int], float]:
    """Return the mean reward of a row's games after each epoch of each phase."""
    values: dict[tuple[str, int], list[float]] = {}
    for metadata in row.metadata.values():
        for point in metadata.get("curve", ()):
            if point.get("reward") is not None:
                values.setdefault((point["phase"], point["epoch"]), []).append(point["reward"])
    return {epoch: float(np.mean(values[epoch])) for epoch in sorted(values, key=_in_time)}


def _in_time(epoch: tuple[str, int]) -> tuple[int, int]:
    return PHASES.index(epoch[0]), epoch[1]


def _draw_order(path: Path, rows: Mapping[str, Row], paper: Mapping[str, str]) -> None:
    """Draw the accuracy of every row as a bar, with its interval over questions, and the paper's figure next to it."""
    axes = _axes()
    figures = {name: figure for name, row in rows.items() if (figure := row.figure())}
    places = np.arange(len(figures))
    value, low, high = (100 * np.array([figure[part] for figure in figures.values()]) for part in range(3))
    axes.bar(places, value, 0.5, yerr=[value - low, high - value], capsize=3, label="here")
    printed = [(place, float(paper[name].split()[0])) for place, name in enumerate(figures) if name in paper]
    axes.plot(*zip(*printed, strict=True), "kD", label="the paper")
    axes.set_xticks(places, list(figures), rotation=30, ha="right")
    axes.set_ylabel("chain accuracy, %")
    _save(axes, path)


def _draw_learning_curve(path: Path, curves: Mapping[str, Sequence[CurvePoint]]) -> None:
    """Draw chain accuracy against the number of training questions, with intervals."""
    axes = _axes()
    for name, curve in curves.items():
        questions = [point.questions for point in curve]
        value, low, high = (100 * np.array([point.accuracy[place] for point in curve]) for place in range(3))
        axes.errorbar(questions, value, [value - low, high - value], label=name, marker="o", capsize=3)
    axes.set_xlabel("training questions")
    axes.set_ylabel("chain accuracy, %")
    _save(axes, path)


def _draw_rewards(path: Path, lines: Mapping[str, Mapping[tuple[str, int], float]]) -> None:
    """Draw each row's mean reward on held-out questions after every epoch."""
    axes = _axes()
    epochs = sorted({epoch for line in lines.values() for epoch in line}, key=_in_time)
    for name, line in lines.items():
        places = [place for place, epoch in enumerate(epochs) if epoch in line]
        axes.plot(places, [line[epochs[place]] for place in places], label=name, marker=".")
    axes.set_xticks(range(len(epochs)), [f"{phase} {epoch + 1}" for phase, epoch in epochs], rotation=60, ha="right")
    axes.set_ylabel("reward on held-out questions")
    _save(axes, path)


def _axes() -> Any:
    from matplotlib.figure import Figure as Canvas

    return Canvas((7, 4), layout="constrained").subplots()


def _save(axes: Any, path: Path) -> None:
    import matplotlib

    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    # a fixed salt and no date: the same figures make the same bytes
    with matplotlib.rc_context({"svg.hashsalt": "rechain"}):
        axes.figure.savefig(path, metadata={"Date": None})
