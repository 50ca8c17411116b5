"""Writes the tables beside the paper's, with intervals, differences, learning curves and the time it all took."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rechain.evaluation.statistics import Figure
from rechain.game.plays import PLAYS, read_plays
from rechain.tables.judge import COMBINED, Game, Judged, Row, common_games, difference

REPORT = "report.md"
PAPER_QUESTIONS = 72_000
NAMES = {"hotpotqa": "HotpotQA", "drughop": "DrugHop", "medhop": "MedHop"}
ROWS = ("random", "independent", "head-to-tail", "tail-to-head", "cooperative", "lexical", "cooperative" + COMBINED)
_HOTPOTQA = {
    "random": "40.3",
    "independent": "74.0",
    "head-to-tail": "77.1 (80.7 / 95.0)",
    "tail-to-head": "84.7 (88.1 / 96.2)",
    "cooperative": "87.2 (90.1 / 96.7)",
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
}
_OF_CURVE = re.compile(r"(?P<row>cooperative|tail-to-head)(?: on (?P<share>\d+)%)?(?P<pseudo> after pseudo)?")

Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def main_table(judged: Judged, data_set: str) -> Table:
    """Return header and rows of the paper's table beside ours, on the games that our rows have in common."""
    rows = _found(judged, ROWS)
    games = _shared_games(rows)
    shown = [column for column in _COLUMNS if data_set != "hotpotqa" or column != "ordered"]  # there it says the same
    columns = [column for column in shown if any(_is_told(row, column) for row in rows)]
    paper = "paper" if data_set == "hotpotqa" else "paper, MedHop"
    header = ["", f"{paper}, %", *(_COLUMNS[column] for column in columns), "with links and lexical, %"]
    body = [
        [
            row.name,
            PAPER[data_set].get(row.name, ""),
            *(percent(row.figure(column, games)) for column in columns),
            percent(judged.rows[row.name + COMBINED].figure("correct", games)) if _is_combined(judged, row) else "",
        ]
        for row in rows
    ]
    return header, body


def _is_combined(judged: Judged, row: Row) -> bool:
    return not row.is_baseline and row.name + COMBINED in judged.rows


def brief_table(judged: Judged, data_set: str) -> Table:
    """Return header and rows of the table as far as they fit a terminal, with the difference from the row above."""
    rows = _found(judged, ROWS)
    games = _shared_games(rows)
    above = [None, *rows[:-1]]
    body = [
        [
            row.name,
            PAPER[data_set].get(row.name, "").partition(" ")[0],
            percent(row.figure("correct", games)),
            points(difference(row, other)) if other else "",
        ]
        for row, other in zip(rows, above, strict=True)
    ]
    return ["", "paper", "here", "from the row above"], body


def percent(figure: Figure | None) -> str:
    """Show a share with its interval."""
    if figure is None:
        return ""
    return f"{100 * figure.value:.1f} ({100 * figure.low:.1f} to {100 * figure.high:.1f})"


def points(figure: Figure | None) -> str:
    """Show a difference of two shares with its interval."""
    if figure is None:
        return ""
    return f"{100 * figure.value:+.1f} ({100 * figure.low:+.1f} to {100 * figure.high:+.1f})"


def write_report(folder: Path, judged: Judged, data_set: str, pairs: Mapping[str, Figure] | None = None) -> Path:
    """Write the report and its plots into a folder, and return where it stands.

    `pairs` are figures of how well models tell interacting pairs.
    """
    sections = [_opening(folder, judged, data_set)]
    if judged.judged:
        sections += [_section("The table", *main_table(judged, data_set)), _differences(judged)]
        sections += [_cooperation(judged), _ablations(judged), _curve(judged)]
    sections += [_pairs(pairs), _times(judged), _plots(folder, judged)]
    path = folder / REPORT
    path.write_text("\n\n".join(filter(None, sections)) + "\n", encoding="utf-8")
    return path


def _opening(folder: Path, judged: Judged, data_set: str) -> str:
    games = sorted({game for name in ROWS if name in judged.rows for game in judged.rows[name].stories})
    told = [
        f"# {NAMES[data_set]}: the paper's table, made anew",
        f"Of {judged.asked} questions, the right chain of {judged.judged} is known"
        f" ({judged.without_chain} of these have no candidate chain and count as wrong). Every figure is averaged over"
        " the seeds of a question first; in brackets stands the 95 % bootstrap interval over questions.",
        f"Found: {_listed_games(games)}.",
        *(_what_is_missing(folder, judged, data_set) if judged.judged else ["So there is no table of chains."]),
    ]
    return "\n\n".join(told)


def _what_is_missing(folder: Path, judged: Judged, data_set: str) -> Iterator[str]:
    expected = [row for row in ROWS if row in PAPER[data_set] or COMBINED in row]
    if missing := [row for row in expected if row not in judged.rows]:
        yield f"Left out, because it is not played yet: {', '.join(missing)}."
    if (folder / PLAYS).exists():
        plays = read_plays(folder)
        if waiting := sum(not play.is_done(folder) for play in plays):
            yield f"{waiting} of the {len(plays)} plays are not done yet; what follows is without them."
    rows = [row for row in _found(judged, ROWS) if not row.is_baseline]
    if any(set(row.games) != set(rows[0].games) for row in rows):
        games = common_games(rows)
        shown = f"the table shows what they have in common ({_listed_games(games)})" if games else "each stands alone"
        yield f"The rows were not all played on the same folds and seeds; {shown}."


def _listed_games(games: Sequence[Game]) -> str:
    if not games:
        return "no game"
    folds, seeds = sorted({game.fold for game in games}), sorted({game.seed for game in games})
    shown = f"{_counted(len(folds), 'fold')} ({_joined(folds)}) and {_counted(len(seeds), 'seed')} ({_joined(seeds)})"
    return shown if len(games) == len(folds) * len(seeds) else f"{shown}, {len(games)} games in all"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _joined(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _found(judged: Judged, names: Iterable[str]) -> list[Row]:
    return [judged.rows[name] for name in names if name in judged.rows and judged.rows[name].games]


def _shared_games(rows: Sequence[Row]) -> list[Game] | None:
    """Return the games that all rows have in common; where there is none, each stands for itself."""
    return common_games(rows) or None


def _is_told(row: Row, column: str) -> bool:
    return any(getattr(outcome, column) is not None for game in row.games.values() for outcome in game.values())


def _section(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], *notes: str) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]
    return "\n\n".join([f"## {title}", "\n".join(lines), *notes])


def _differences(judged: Judged) -> str:
    names = [row.name for row in _found(judged, ROWS)]
    pairs = list(zip(names[1:], names, strict=False))
    if "cooperative" in names and "cooperative" + COMBINED in names:
        pairs.append(("cooperative" + COMBINED, "cooperative"))
    rows = [
        (f"{one} - {two}", points(difference(judged.rows[one], judged.rows[two])), _games_of(judged, one, two))
        for one, two in pairs
    ]
    note = "Paired: question by question, on the folds and seeds that both rows have."
    return _section("Differences between neighbouring rows", ("", "points", "games"), rows, note)


def _cooperation(judged: Judged) -> str:
    """Show what the Reasoner adds under every setting that was played with and without it."""
    endings = [name.removeprefix("cooperative") for name in judged.rows if name.startswith("cooperative")]
    pairs = [(f"cooperative{end}", f"tail-to-head{end}") for end in endings if COMBINED not in end]
    rows = [
        (one, points(difference(judged.rows[one], judged.rows[two])), _games_of(judged, one, two))
        for one, two in pairs
        if two in judged.rows
    ]
    note = "The cooperative row less the tail-to-head one of the same setting, folds and seeds, paired by question."
    return _section("What the Reasoner adds", ("", "points", "games"), rows, note) if rows else ""


def _games_of(judged: Judged, *names: str) -> str:
    return str(len(common_games(judged.rows[name] for name in names)))


def _pairs(figures: Mapping[str, Figure] | None) -> str:
    if not figures:
        return ""
    note = (
        "How well a score tells pairs that interact from those that do not, 50 % being chance; the interval is over"
        " pairs. The guess, which a Reasoner that learned nothing comes to, knows how few entities a passage mentions:"
        " what a Reasoner has learned shows over it."
    )
    return _section("Interacting pairs", *pairs_table(figures), note)


def pairs_table(figures: Mapping[str, Figure]) -> Table:
    """Return header and rows of how well models tell interacting pairs."""
    return ["", "AUC, %", "pairs"], [[name, percent(f), str(f.questions)] for name, f in figures.items()]


def _ablations(judged: Judged) -> str:
    others = [name for name in judged.rows if name not in ROWS and COMBINED not in name and " on " not in name]
    rows = [_ablation(judged, name) for name in sorted(others)]
    if not rows:
        return "## Ablations\n\nNone was played."
    header = ("", "chain accuracy, %", "the plain row, %", "difference, points", "with links and lexical, %", "games")
    note = (
        "`after pseudo`: warmed up with pseudo questions. `hard C`: every chain of C counts the same. `links`: chains"
        " weigh by their links alone. `without features`: no exact matches. `as in the paper`: hard C, no features,"
        " REINFORCE."
    )
    return _section("Ablations", header, rows, note)


def _ablation(judged: Judged, name: str) -> Sequence[str]:
    row, combined = judged.rows[name], judged.rows[name + COMBINED]
    plain = judged.rows.get(name.partition(" ")[0])
    games = common_games([row, plain]) if plain else []
    if plain is None or not games:
        return name, percent(row.figure()), "", "", percent(combined.figure()), str(len(row.games))
    figures = percent(row.figure("correct", games)), percent(plain.figure("correct", games))
    return name, *figures, points(difference(row, plain)), percent(combined.figure("correct", games)), str(len(games))


def curve_rows(judged: Judged) -> dict[str, dict[int, Row]]:
    """Return the rows of the learning curve by name and share of the questions, in percent."""
    curves: dict[str, dict[int, Row]] = {}
    for row in judged.rows.values():
        if match := _OF_CURVE.fullmatch(row.name):
            name = match["row"] + (match["pseudo"] or "")
            curves.setdefault(name, {})[int(match["share"] or 100)] = row
    return {name: dict(sorted(shares.items())) for name, shares in sorted(curves.items()) if len(shares) > 1}


def _curve(judged: Judged) -> str:
    curves = curve_rows(judged)
    if not curves:
        return "## Learning curve\n\nNone was played."
    games = _curve_games(curves)
    shares = sorted({share for rows in curves.values() for share in rows})
    body = [
        [f"{share} %", _questions_of(curves, share, games)]
        + [percent(rows[share].figure("correct", games)) if share in rows else "" for rows in curves.values()]
        for share in shares
    ]
    notes = [f"Chain accuracy in %, on what all of these have in common ({_listed_games(games or [])})."]
    notes += filter(None, [_extrapolated(name, rows, games) for name, rows in curves.items()])
    return _section("Learning curve", ("share", "questions", *curves), body, *notes)


def _curve_games(curves: Mapping[str, Mapping[int, Row]]) -> list[Game] | None:
    return _shared_games([row for rows in curves.values() for row in rows.values()])


def _questions_of(curves: Mapping[str, Mapping[int, Row]], share: int, games: Iterable[Game] | None) -> str:
    counts = [_training_questions(rows[share], games) for rows in curves.values() if share in rows]
    told = [count for count in counts if count is not None]
    return f"{np.mean(told):.0f}" if told else ""


def _training_questions(row: Row, games: Iterable[Game] | None) -> float | None:
    told = [row.stories[game].get("questions") for game in games or row.games]
    counts = [count for count in told if count]
    return float(np.mean(counts)) if counts else None


def _extrapolated(name: str, rows: Mapping[int, Row], games: Iterable[Game] | None) -> str:
    """Say where a power law through the errors leads."""
    counts = [_training_questions(row, games) for row in rows.values()]
    figures = [row.figure("correct", games) for row in rows.values()]
    known = [(n, 1 - f.value) for n, f in zip(counts, figures, strict=True) if n and f and f.value < 1]
    if len(known) < 3:
        return ""
    questions, errors = np.log(np.array(known)).T
    slope, start = np.polyfit(questions, errors, 1)
    error = float(np.exp(start + slope * np.log(PAPER_QUESTIONS)))
    return (
        f"`{name}`: a power law through these errors would give {100 * (1 - error):.1f} % with the paper's"
        f" {PAPER_QUESTIONS} questions; it is drawn through {len(known)} points and not to be relied on."
    )


def _times(judged: Judged) -> str:
    played = [row for row in judged.rows.values() if not row.is_baseline and COMBINED not in row.name]
    rows = []
    for row in sorted(played, key=lambda row: row.name):
        total = sum(value for story in row.stories.values() for value in _seconds(story).values())
        rows.append((row.name, str(len(row.stories)), f"{total:.0f}", f"{total / len(row.stories):.1f}"))
    note = (
        f"All plays together took {_seconds_of_all(judged):.0f} s; a warm-up or pretraining that rows share counts once"
        " there, and for each row in the table. Plays that run side by side take less time on the clock."
    )
    return _section("Time", ("", "games", "seconds", "seconds a game"), rows, note) if rows else ""


def _seconds(story: Mapping[str, Any]) -> dict[str, float]:
    return {name: value for name, value in story.items() if name.endswith("seconds")}


def _seconds_of_all(judged: Judged) -> float:
    """Add up all times; a time that two rows of a game share is the same to the last digit."""
    times = {
        (game, name, value)
        for row in judged.rows.values()
        for game, story in row.stories.items()
        for name, value in _seconds(story).items()
    }
    return sum(value for *_, value in times)


def _plots(folder: Path, judged: Judged) -> str:
    try:
        from rechain.tables.plots import draw_learning_curve, draw_rewards
    except ImportError:
        return "## Plots\n\nThey need matplotlib: pip install 'rechain[train]'."
    curves = curve_rows(judged) if judged.judged else {}
    drawn = draw_rewards(folder / "reward.svg", _found(judged, ROWS))
    shown = ["![Reward on held-out questions after each epoch](reward.svg)"] if drawn else []
    if curves:
        games = _curve_games(curves)
        lines = {name: _curve_points(rows, games) for name, rows in curves.items()}
        draw_learning_curve(folder / "learning_curve.svg", lines)
        shown.insert(0, "![Learning curve](learning_curve.svg)")
    return "\n\n".join(["## Plots", *shown]) if shown else ""


def _curve_points(rows: Mapping[int, Row], games: Iterable[Game] | None) -> dict[float, Figure]:
    """Return the chain accuracy by number of questions or, where that is not told, by share."""
    figures = {share: row.figure("correct", games) for share, row in rows.items()}
    known = {share: figure for share, figure in figures.items() if figure is not None}
    return {_training_questions(rows[share], games) or float(share): figure for share, figure in known.items()}
