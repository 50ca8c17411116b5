"""Writes the tables beside the paper's, with intervals, differences, learning curves and the time it all took."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rechain.evaluation.statistics import Figure
from rechain.game.plays import PLAYS, read_plays
from rechain.tables.headroom import ORACLE, REWARD
from rechain.tables.judge import (
    BY_RANKER,
    COMBINED,
    Game,
    Results,
    Row,
    common_games,
    difference,
    difference_over_games,
)
from rechain.tables.plan import CONDITIONS, CONTROLS, LADDER, LARGE_BONUS, VARIANTS, row_name

REPORT = "report.md"
PAPER_QUESTIONS = 72_000
"""bridge questions of HotpotQA's training set, which the paper trains on"""
NAMES = {"hotpotqa": "HotpotQA", "drughop": "DrugHop", "medhop": "MedHop"}
_COOPERATIVE = tuple(row_name("cooperative", variant) for variant in VARIANTS)
_LEARNED = ("independent", "head-to-tail", "tail-to-head", *_COOPERATIVE)
"""rows that every table has of its own"""
TITLES = {
    "paper": "The paper's own setting: hard C, no features, REINFORCE",
    "features": "With features: hard C, exact gradient",
    "ours": "Our setting: C weighted by evidence",
}
# The paper's Tables 2 and 3, as printed there; in brackets the recall of head and tail.
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
    "links": "links, where passages are right, %",
    "named": "entity named from the right passages, %",
    "auc": "AUC of the bonus, %",
}
_CURVE_ROW = re.compile(r"(?P<row>cooperative|tail-to-head)(?: on (?P<share>\d+)%)?(?P<pseudo> after pseudo)?")

Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""header and rows"""


def main_table(results: Results, data_set: str, condition: str = "ours") -> Table:
    """Return the paper's table beside one of ours, each row on all the games that it has played."""
    rows = _table_rows(results, condition)
    # In HotpotQA passages in order are the same as head and tail, which stand there already.
    shown = [column for column in _COLUMNS if data_set != "hotpotqa" or column != "ordered"]
    columns = [column for column in shown if any(row.means(column) for row in rows.values())]
    paper = "paper" if data_set == "hotpotqa" else "paper, MedHop"
    header = ["", f"{paper}, %", *(_COLUMNS[column] for column in columns), "over folds and seeds, %"]
    votes = [BY_RANKER] if any(row.name + BY_RANKER in results.rows for row in rows.values()) else []
    header += [*(f"{end.strip()}, %" for end in votes), "with links and lexical, %", "games"]
    body = []
    for name, row in rows.items():
        figures = [row.figure(column) for column in columns]
        figures.append(None if row.is_baseline else row.over_games("correct"))
        picked = [results.rows.get(row.name + end) for end in (*votes, COMBINED)]
        figures += [other.figure("correct") if other else None for other in picked]
        games = "" if row.is_baseline else str(len(row.games))
        body.append([name, PAPER[data_set].get(name, ""), *map(percent, figures), games])
    return header, body


def brief_table(results: Results, data_set: str, condition: str = "ours") -> Table:
    """Return what of the table fits a terminal, with the difference from the row above on the games of both."""
    rows = _table_rows(results, condition)
    # where a row has fewer games than another, its level and its difference are not of the same games
    is_uneven = len({len(row.games) for row in rows.values() if not row.is_baseline}) > 1
    body = []
    for (name, row), above in zip(rows.items(), [None, *rows.values()], strict=False):
        paper = PAPER[data_set].get(name, "").partition(" ")[0]
        change = points(difference(row, above)) if above else ""
        games = [] if not is_uneven else [""] if row.is_baseline else [str(len(row.games))]
        body.append([name, paper, percent(row.figure("correct")), change, *games])
    return ["", "paper", "here", "from the row above", *(["games"] if is_uneven else [])], body


def pairs_table(figures: Mapping[str, Figure]) -> Table:
    """Return how well models tell interacting pairs."""
    return ["", "AUC, %", "pairs"], [[name, percent(f), str(f.questions)] for name, f in figures.items()]


def conditions_of(results: Results) -> list[str]:
    """Return the tables of which anything was played; ours where nothing was."""
    played = [c for c in CONDITIONS if any(row_name(name, condition=c) in results.rows for name in _LEARNED)]
    return played or ["ours"]


def _table_rows(results: Results, condition: str) -> dict[str, Row]:
    """Return the rows of a table that were played, by what they are called in it."""
    names = {"random": "random"} | {name: row_name(name, condition=condition) for name in _LEARNED}
    names |= {"lexical": "lexical"} | {name: row_name(name, condition=condition) for name in (REWARD, ORACLE)}
    if condition == "ours":
        names["cooperative" + COMBINED] = "cooperative" + COMBINED
    return {name: row for name, full in names.items() if (row := results.rows.get(full)) and row.games}


def percent(figure: Figure | None, sign: str = "") -> str:
    """Show a share with its interval, or with the sign "+" a difference of two shares."""
    if figure is None:
        return ""
    value, low, high = (f"{100 * number:{sign}.1f}" for number in (figure.value, figure.low, figure.high))
    return f"{value} ({low} to {high})"


points = partial(percent, sign="+")


def write_report(folder: Path, results: Results, data_set: str, pairs: Mapping[str, Figure] | None = None) -> Path:
    """Write the report and its plots into a folder, and return its path.

    `pairs` are figures of how well models tell interacting pairs.
    """
    sections = [*_opening(folder, results, data_set)]
    curves, games = learning_curves(results) if results.with_gold else ({}, [])
    if results.with_gold:
        for condition in conditions_of(results):
            sections += _table_sections(results, data_set, condition)
        sections += [
            *_ladder(results),
            *_what_the_bonus_is_worth(results),
            *_what_the_reasoner_adds(results),
            _ablations(results),
            _learning_curve(curves, games),
        ]
    if pairs:
        note = (
            "How well a score tells pairs that interact from those that do not, 50 % being chance; the interval is over"
            " pairs. The guess, which a Reasoner that learned nothing comes to, knows how few entities a passage"
            " mentions: what a Reasoner has learned shows over it."
        )
        sections.append(_section("Interacting pairs", pairs_table(pairs), note))
    sections += [*_times(results), *_plots(folder, results, curves)]
    path = folder / REPORT
    path.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    return path


def _section(title: str, table: Table, *notes: str) -> str:
    header, rows = table
    lines = [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]
    return "\n\n".join([f"## {title}", "\n".join(lines), *notes])


def _table_sections(results: Results, data_set: str, condition: str) -> Iterator[str]:
    """Yield a table, the differences between its rows, and what these allow to say."""
    note = (
        f"`{REWARD}`: a chain of the greatest reward, drawn where several have it; `{ORACLE}`: the same if the Reasoner"
        " named the strongest entity that links the right passages. What lies between is all that a bonus could change"
        " in the reward's own preference; a Ranker that has learned more than the reward says may still gain or lose."
    )
    yield _section(TITLES[condition], main_table(results, data_set, condition), note)
    yield from _differences(results, condition)


def _opening(folder: Path, results: Results, data_set: str) -> Iterator[str]:
    """Yield what the figures are taken over, and what is missing."""
    tables = {condition: _table_rows(results, condition) for condition in conditions_of(results)}
    games = {game for rows in tables.values() for row in rows.values() for game in row.metadata}
    yield f"# {NAMES[data_set]}: the paper's table, made anew"
    yield (
        f"Of {results.questions} questions, the right chain of {results.with_gold} is known"
        f" ({results.without_chain} of these have no candidate chain and count as wrong). Every figure is averaged over"
        " the seeds of a question first; in brackets stands the 95 % bootstrap interval over questions. `over folds and"
        " seeds` is the mean of the games, with Student's 95 % interval over them."
    )
    yield f"Found: {_list_games(games)}."
    if not results.with_gold:
        yield "So there is no table of chains."
        return
    for condition, rows in tables.items():
        wanted = [name for name in _LEARNED if name in PAPER[data_set]]
        if missing := [row_name(name, condition=condition) for name in wanted if name not in rows]:
            yield f"Left out, because it is not played yet: {', '.join(missing)}."
    plays = read_plays(folder) if (folder / PLAYS).exists() else []
    if waiting := sum(len(play.played(folder)) < len(play.branches) for play in plays):
        yield f"Of {len(plays)} plays {waiting} are still to be played; what follows is without them."
    for condition, rows in tables.items():
        trained = [row for row in rows.values() if not row.is_baseline]
        if any(set(row.games) != set(trained[0].games) for row in trained):
            of = "" if condition == "ours" else f" of the table '{condition}'"
            yield (
                f"The rows{of} were not all played on the same folds and seeds: the table shows each by itself, and"
                " only the differences below it compare them on what they have in common."
            )


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
    steps = [name for name in ("random", "independent", "head-to-tail", "tail-to-head") if name in rows]
    pairs: list[tuple[str, str]] = [(one, two) for two, one in pairwise(steps)]
    pairs += [(name, "tail-to-head") for name in _COOPERATIVE]
    pairs += [(row_name("cooperative", one), row_name("cooperative", two)) for one, two in CONTROLS.items()]
    pairs += [
        ("lexical", "cooperative"),
        ("cooperative" + COMBINED, "lexical"),
        ("cooperative" + COMBINED, "cooperative"),
    ]
    pairs.append((ORACLE, REWARD))
    body = [_compare(f"{one} - {two}", rows[one], rows[two]) for one, two in pairs if {one, two} <= rows.keys()]
    note = "Paired: question by question, or game by game, on the folds and seeds that both rows have."
    title = "Differences between rows" if condition == "ours" else f"Differences between rows, {condition}"
    yield _section(title, (_DIFFERENCES, body), note, *_verdicts(rows))


def _verdicts(rows: Mapping[str, Row]) -> Iterator[str]:
    """Yield what may be said of cooperation: that it helps only where its row is above the untaught one too."""
    for variant, control in CONTROLS.items():
        name, other = row_name("cooperative", variant), row_name("cooperative", control)
        if not {name, other, "tail-to-head"} <= rows.keys():
            continue
        over_ranker = difference_over_games(rows[name], rows["tail-to-head"])
        over_control = difference_over_games(rows[name], rows[other])
        if over_ranker is None or over_control is None:
            yield f"`{name}`: one game alone says nothing of cooperation."
        elif over_ranker.low > 0 and over_control.low > 0:
            yield f"`{name}`: cooperation helps, above the Ranker alone and above an untaught Reasoner."
        elif over_ranker.low > 0:
            yield (
                f"`{name}`: better than the Ranker alone, but not above an untaught Reasoner: the gain is that of"
                " preferring links that few passages share, not of what the Reasoner has learned."
            )
        else:
            yield f"`{name}`: no gain over the Ranker alone is shown."


def _what_the_bonus_is_worth(results: Results) -> Iterator[str]:
    """Yield what was seen of the Reasoner during training, without gold: after its first epoch and its last."""
    body = []
    for row in results.rows.values():
        curves = [metadata.get("curve", ()) for metadata in row.metadata.values() if _is_own(row.name)]
        watched = [seen for curve in curves if (seen := [epoch for epoch in curve if "bonus_auc" in epoch])]
        if watched:
            ends = [
                [100 * float(np.mean([seen[end].get(name, np.nan) for seen in watched])) for end in (0, -1)]
                for name in ("bonus_auc", "named_in")
            ]
            body.append([row.name, *(f"{first:.1f} to {last:.1f}" for first, last in ends), str(len(watched))])
    if body:
        note = (
            "On held-out questions, after the first epoch in which it was watched and after the last. The first figure:"
            " how often the chain of most evidence earns more bonus than another with the passage that the Reasoner"
            " reads. The second: the share of the other passages that hold the entity it finds likeliest."
        )
        header = ("", "AUC of the bonus by evidence, %", "passages that hold what is named, %", "games")
        yield _section("What the bonus is worth, without gold", (header, body), note)


def _what_the_reasoner_adds(results: Results) -> Iterator[str]:
    """Yield what the Reasoner adds in the ablations that were played without it too."""
    rows = results.rows
    names = [name for name in rows if name.startswith("cooperative ") and _is_own(name) and ", " not in name]
    pairs = [(name, name.replace("cooperative", "tail-to-head")) for name in names]
    if body := [_compare(one, rows[one], rows[two]) for one, two in pairs if two in rows]:
        note = "The cooperative row less the tail-to-head one of the same setting, folds and seeds, paired by question."
        yield _section("What the Reasoner adds", (_DIFFERENCES, body), note)


def _ablations(results: Results) -> str:
    of_tables = {row.name for condition in CONDITIONS for row in _table_rows(results, condition).values()}
    of_tables |= {name for rung in LADDER for name in _rungs(rung)}
    names = [name for name in results.rows if name not in of_tables and _is_own(name) and " on " not in name]
    if not names:
        return "## Ablations\n\nNone was played."
    body = []
    for name in sorted(names):
        row, combined = results.rows[name], results.rows[name + COMBINED]
        plain = results.rows.get(_plain(name), Row("not played"))
        games = common_games([row, plain]) or None
        figures = [row.figure("correct", games), plain.figure("correct", games) if games else None]
        cells = [*map(percent, figures), points(difference(row, plain)), percent(combined.figure("correct", games))]
        body.append([name, *cells, str(len(games or row.games))])
    header = ("", "chain accuracy, %", "the plain row, %", "difference, points", "with links and lexical, %", "games")
    note = (
        "`after pseudo`: warmed up with pseudo questions. `links`: chains weigh by their links alone. `without"
        f" features`: no exact matches. `r {LARGE_BONUS:g}`: the bonus is {LARGE_BONUS:g}."
    )
    return _section("Ablations", (header, body), note)


def _is_own(name: str) -> bool:
    """Return whether a row is of a play itself, not of another way to pick chains by its scores."""
    return COMBINED not in name and BY_RANKER not in name


def _rungs(rung: str) -> tuple[str, str]:
    return f"cooperative {rung}", f"tail-to-head {rung}"


def _ladder(results: Results) -> Iterator[str]:
    """Yield what selecting steps, what is known of them and what weighs C each add, on the games of all rungs."""
    played = [name for name in LADDER if results.rows.keys() >= {*_rungs(name)}]
    rows = {name: [results.rows[row] for row in _rungs(name)] for name in played}
    own = ("cooperative", "tail-to-head")
    if not played or not results.rows.keys() >= {*own}:
        return
    weightless = rows.pop("hard C", None)
    rows["beliefs"] = [results.rows[name] for name in own]
    if weightless:
        rows["hard C"] = weightless
    games, body = common_games(row for of_rung in rows.values() for row in of_rung), []
    for (name, of_rung), above in zip(rows.items(), [None, *rows.values()], strict=False):
        figures = [percent(row.figure("correct", games)) for row in of_rung]
        changes = [points(difference(one, two)) for one, two in zip(of_rung, above or (), strict=False)]
        body.append([name, *figures, *(changes or ["", ""])])
    header = ("", "cooperative, %", "Ranker alone, %", "cooperative, points", "Ranker alone, points")
    note = (
        "Each row with what those above have, in points over the one above. `passages`: selected as in the paper."
        " `steps`: selected with their two entities, whose states are read. `closeness`: numbers of the two entities,"
        " too. `rarity`: how rare they are counts, in these numbers and in the weights of C. `beliefs`: what questions"
        " tell each other of steps weighs C; the table's own rows. `hard C`: the same, but nothing weighs C."
        f" On {_list_games(games)}."
    )
    yield _section("What steps add", (header, body), note)


def _plain(name: str) -> str:
    """Return the row that an ablation is compared with: the same with the bonus of the table, or the plain one."""
    large = f", r {LARGE_BONUS:g}"
    return name.replace(large, "") if large in name else name.partition(" ")[0]


class CurvePoint(NamedTuple):
    """The chain accuracy with a share of the training questions."""

    share: int
    """in percent"""
    questions: float | None
    """the mean number of questions, where the plays say it"""
    accuracy: Figure | None


def learning_curves(results: Results) -> tuple[dict[str, list[CurvePoint]], list[Game]]:
    """Return every row's learning curve, and the games that all of them have in common."""
    shares: dict[str, dict[int, Row]] = {}
    for row in results.rows.values():
        if match := _CURVE_ROW.fullmatch(row.name):
            name = match["row"] + (match["pseudo"] or "")
            shares.setdefault(name, {})[int(match["share"] or 100)] = row
    shares = {name: rows for name, rows in sorted(shares.items()) if len(rows) > 1}
    games = common_games(row for rows in shares.values() for row in rows.values())
    curves: dict[str, list[CurvePoint]] = {}
    for name, rows in shares.items():
        for share, row in sorted(rows.items()):
            counts = [count for game in games or row.games if (count := row.metadata[game].get("questions"))]
            questions = float(np.mean(counts)) if counts else None
            curves.setdefault(name, []).append(CurvePoint(share, questions, row.figure("correct", games or None)))
    return curves, games


def _learning_curve(curves: Mapping[str, Sequence[CurvePoint]], games: Sequence[Game]) -> str:
    if not curves:
        return "## Learning curve\n\nNone was played."
    body = []
    for share in sorted({point.share for curve in curves.values() for point in curve}):
        cells = {name: point for name, curve in curves.items() for point in curve if point.share == share}
        counts = [point.questions for point in cells.values() if point.questions]
        accuracies = [percent(cells[name].accuracy) if name in cells else "" for name in curves]
        body.append([f"{share} %", f"{np.mean(counts):.0f}" if counts else "", *accuracies])
    notes = [f"Chain accuracy in %, on what all of these have in common ({_list_games(games)})."]
    notes += filter(None, [_extrapolate(name, curve) for name, curve in curves.items()])
    return _section("Learning curve", (("share", "questions", *curves), body), *notes)


def _extrapolate(name: str, curve: Sequence[CurvePoint]) -> str:
    """Return where a power law through the errors leads; less than three errors make no curve."""
    errors = [(p.questions, 1 - p.accuracy.value) for p in curve if p.questions and p.accuracy and p.accuracy.value < 1]
    if len(errors) < 3:
        return ""
    questions, log_errors = np.log(np.array(errors)).T
    slope, start = np.polyfit(questions, log_errors, 1)
    error = float(np.exp(start + slope * np.log(PAPER_QUESTIONS)))
    return (
        f"`{name}`: a power law through these errors would give {100 * (1 - error):.1f} % with the paper's"
        f" {PAPER_QUESTIONS} questions; it is drawn through {len(errors)} points and not to be relied on."
    )


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
        yield _section(
            "Time",
            (("", "games", "seconds", "seconds a game"), body),
            f"All plays together took {sum(value for *_, value in times):.0f} s; a warm-up or pretraining that rows"
            " share counts once there, and for each row in the table. Plays that run side by side take less time on"
            " the clock.",
        )


def _plots(folder: Path, results: Results, curves: Mapping[str, Sequence[CurvePoint]]) -> Iterator[str]:
    try:
        from rechain.tables.plots import draw_learning_curve, draw_rewards
    except ImportError:
        yield "## Plots\n\nThey need matplotlib: pip install 'rechain[train]'."
        return
    images = []
    if curves:
        lines = {
            name: {point.questions or float(point.share): point.accuracy for point in curve if point.accuracy}
            for name, curve in curves.items()
        }
        draw_learning_curve(folder / "learning_curve.svg", lines)
        images.append("![Learning curve](learning_curve.svg)")
    for condition in conditions_of(results):
        name = "reward.svg" if condition == "ours" else f"reward_{condition}.svg"
        if draw_rewards(folder / name, list(_table_rows(results, condition).values())):
            images.append(f"![Reward on held-out questions after each epoch]({name})")
    if images:
        yield "\n\n".join(["## Plots", *images])
