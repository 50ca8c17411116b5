"""Judges what was played: every row's chain for every question, fold and seed, compared with gold. No training here."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rechain.errors import InputError, QuestionError, RechainError
from rechain.evaluation.judging import JudgedChain, is_same_entity, is_unambiguous, judge
from rechain.evaluation.statistics import Figure, mean_over_runs, mean_with_interval
from rechain.paper.entities import entity_names
from rechain.paper.plays import QUESTIONS, SCORES
from rechain.paper.policy import make_plan
from rechain.paper.settings import GameSettings
from rechain.paper.stage import read_index
from rechain.paper.tables import condition_of
from rechain.schema import Chain, Gold, GoldChain, Question
from rechain.scoring import Lexical, Random
from rechain.scoring.interface import Model
from rechain.system.files import read_sealed
from rechain.system.tensors import Array, load_arrays
from rechain.text.candidates import Candidates, CandidateSettings, find_candidates
from rechain.text.collection import Statistics

VOTE = " + vote"
"""added to the name of a row whose chains are picked with the Reasoner's vote"""
LEXICAL = " + lexical"
"""added to the name of a row whose chains are picked with the lexical rule, too"""
BASELINES: Mapping[str, Sequence[Model]] = {
    "random": [Random(seed) for seed in range(10)],  # one draw a question varies far more than the rows differ
    "lexical": [Lexical()],
}


class Game(NamedTuple):
    """The fold that was tested, and the seed of the training."""

    fold: int
    seed: int


class Outcome(NamedTuple):
    """What is right about the chain of one question; None if gold does not have it."""

    correct: float
    ordered: float | None = None
    head: float | None = None
    tail: float | None = None
    links: float | None = None
    """every linking entity, if the passages are right"""
    named: float | None = None
    """the share of linking entities that are right when the gold passages are read"""

    @classmethod
    def of(cls, judged: JudgedChain) -> "Outcome":
        """Return what the table shows of a judged chain."""
        return cls(judged.correct, judged.ordered, judged.head, judged.tail, judged.links)


@dataclass
class Row:
    """A row of a table: the outcomes of each of its games by question, and the metadata of its training."""

    name: str
    is_baseline: bool = False
    games: dict[Game, dict[str, Outcome]] = field(default_factory=lambda: defaultdict(dict))
    metadata: dict[Game, Mapping[str, Any]] = field(default_factory=dict)

    def means(self, column: str = "correct", games: Iterable[Game] | None = None) -> dict[str, float]:
        """Return a column for every question that has it, averaged over the seeds of some games or of all.

        A baseline is not trained: all its seeds count in every fold of the games.
        """
        chosen = set(self.games if games is None else games)
        if self.is_baseline:
            folds = {game.fold for game in chosen}
            chosen = {game for game in self.games if game.fold in folds}
        values: dict[str, list[float]] = {}
        for game in (game for game in self.games if game in chosen):
            for question, outcome in self.games[game].items():
                if (value := getattr(outcome, column)) is not None:
                    values.setdefault(question, []).append(value)
        return {question: float(np.mean(of_seeds)) for question, of_seeds in values.items()}

    def figure(self, column: str = "correct", games: Iterable[Game] | None = None) -> Figure | None:
        """Return the mean over questions with its interval."""
        return mean_with_interval(list(self.means(column, games).values()))

    def over_games(self) -> Figure | None:
        """Return the mean accuracy over games, each that of its questions, with its interval over games."""
        by_game = [list(self.means(games=[game]).values()) for game in sorted(self.games)]
        return mean_over_runs([float(np.mean(values)) for values in by_game if values])


def common_games(rows: Iterable[Row]) -> list[Game]:
    """Return the games that all rows have played; the baselines play in every one."""
    rows = list(rows)
    played = [set(row.games) for row in rows if not row.is_baseline] or [set(row.games) for row in rows]
    return sorted(set.intersection(*played)) if played else []


def _differences(row: Row, other: Row, games: Iterable[Game]) -> list[float]:
    one, two = row.means(games=games), other.means(games=games)
    return [value - two[question] for question, value in one.items() if question in two]


def difference(row: Row, other: Row) -> Figure | None:
    """Return by how much a row is better than another on the games they have in common, question by question."""
    return mean_with_interval(_differences(row, other, common_games([row, other])))


def difference_over_games(row: Row, other: Row) -> Figure | None:
    """Return the same, game by game: the interval is over the folds and seeds that both rows have."""
    by_game = [_differences(row, other, [game]) for game in common_games([row, other])]
    return mean_over_runs([float(np.mean(values)) for values in by_game if values])


@dataclass(frozen=True)
class Results:
    """All rows, and the numbers of questions behind them."""

    rows: Mapping[str, Row]
    folds: int
    questions: int
    """questions of the table"""
    with_gold: int
    """of these, the ones whose right chain is known"""
    without_chain: int
    """of these, the ones without any candidate chain, which count as wrong"""


@dataclass(frozen=True)
class PlayScores:
    """The scores that the players of one game gave to the chains they were tested on."""

    row: str
    game: Game
    metadata: Mapping[str, Any]
    settings: GameSettings
    """how it was played"""
    scores: Mapping[str, Array]
    starts: Array
    """where the chains of each tested question begin"""

    @classmethod
    def read(cls, path: Path, lengths: Array) -> "PlayScores":
        """Read the file of a game; `lengths` has the number of chains of every question."""
        row, fold, seed = path.stem.rsplit(".", 2)
        try:
            metadata = read_sealed(path.with_suffix(".json"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path.with_suffix('.json')} cannot be read: {error}.") from error
        scores = load_arrays(path)
        if not scores.keys() >= {"questions", *SCORES}:
            raise InputError(f"{path} does not have the scores of a game; delete it and prepare again to play it.")
        starts = np.concatenate([[0], np.cumsum(lengths[scores["questions"]])])
        if starts[-1] != len(scores["ranker"]):
            raise RechainError(f"{path} is of other chains than {QUESTIONS} has; play it again in another folder.")
        settings = GameSettings.of(metadata.get("settings", {}), str(path.with_suffix(".json")))
        return cls(row, Game(int(fold), int(seed)), metadata, settings, scores, starts)

    def of(self, number: int) -> dict[str, Array]:
        """Return the scores of the chains of a question."""
        place = int(np.searchsorted(self.scores["questions"], number))
        chains = slice(self.starts[place], self.starts[place + 1])
        return {name: self.scores[name][chains] for name in SCORES}


def choose(questions: Sequence[Question], golds: Mapping[str, Gold]) -> list[Question]:
    """Return the questions that can be judged: those with gold chains, unambiguous ones if passages alone count."""
    with_gold = [question for question in questions if question.id in golds and golds[question.id].chains]
    return [q for q in with_gold if golds[q.id].same != "passages" or is_unambiguous(q, golds[q.id])]


def judge_plays(
    folder: Path,
    questions: Sequence[Question],
    golds: Mapping[str, Gold],
    tables: Mapping[str, GameSettings],
    candidates: CandidateSettings | None = None,
    collection: Statistics | None = None,
) -> Results:
    """Judge everything that was played in a folder, and the baselines, on the questions it was prepared for.

    `tables` has how much Reasoner and lexical rule count in each table. A question without any candidate chain counts
    as wrong.
    """
    chosen = choose(questions, golds)
    judging = _Judging(folder, tables)
    for question in chosen:
        try:
            found = find_candidates(question, candidates, collection)
        except QuestionError:
            judging.count_as_wrong(question, golds[question.id])
        else:
            judging.judge(found, golds[question.id])
    return Results(judging.rows, judging.folds, len(questions), len(chosen), judging.without_chain)


class _Judging:
    """Goes through the questions one at a time and fills the rows with what every game picks."""

    def __init__(self, folder: Path, tables: Mapping[str, GameSettings]) -> None:
        index = read_index(folder)
        self.folds: int = index["folds"]
        self.without_chain = 0
        self.rows = {name: Row(name, is_baseline=True) for name in BASELINES}
        self._tables, self._has_test = tables, index["has_test"]
        self._numbers = {name: number for number, name in enumerate(index["ids"])}
        self._arrays = load_arrays(folder / QUESTIONS)
        self._links = [reading.link for reading in make_plan(index["hops"]).readings]
        self._plays: dict[int, list[PlayScores]] = {}
        lengths = np.diff(self._arrays["chain_start"])
        for path in sorted((folder / "plays").glob("*.safetensors")):
            play = PlayScores.read(path, lengths)
            self._plays.setdefault(play.game.fold, []).append(play)
            for name in self._ways(play):
                self.rows.setdefault(name, Row(name)).metadata[play.game] = play.metadata

    def _ways(self, play: PlayScores) -> dict[str, tuple[float, float]]:
        """Return the weights of Reasoner and lexical rule for each way to pick chains by a play's scores, by its name.

        The Ranker alone; with the Reasoner's vote; and with the lexical rule, which an untaught Reasoner stays out of.
        """
        settings = self._tables[condition_of(play.row)]
        vote = settings.reasoner_weight if play.settings.is_cooperative else 0.0
        ways = {play.row: (0.0, 0.0)}
        if vote:
            ways[play.row + VOTE] = vote, 0.0
        if settings.lexical_weight:
            ways[play.row + LEXICAL] = vote if play.settings.teaches_reasoner else 0.0, settings.lexical_weight
        return ways

    def judge(self, candidates: Candidates, gold: Gold) -> None:
        """Judge the chains of a question that all games and baselines pick."""
        question = candidates.question
        number = self._numbers.get(question.id)
        if number is None:
            return self.count_as_wrong(question, gold)
        chains = slice(*self._arrays["chain_start"][number : number + 2])
        prepared = self._arrays["chain_passages"][chains].tolist()
        if [chain.passages for chain in candidates.chains] != list(map(tuple, prepared)):
            raise RechainError(f"the folder was prepared with other candidate chains of the question '{question.id}'.")
        fold, case = int(self._arrays["fold"][number]), _Case(candidates, gold)
        for play in self._plays.get(fold, ()):
            scores, named = play.of(number), None
            if play.settings.is_cooperative:
                is_merged = not play.settings.is_as_written
                named = case.share_named_by_reasoner(scores["predicted"], self._links, is_merged)
            for name, (vote, lexical) in self._ways(play).items():
                total = scores["ranker"] + vote * scores["reasoner"] + lexical * self._arrays["chain_lexical"][chains]
                self.rows[name].games[play.game][question.id] = case.outcome(int(total.argmax()))._replace(named=named)
        for name, models in BASELINES.items():
            for seed, model in enumerate(models):
                sums = [sum(contributions.values()) for contributions in model.score(candidates)]
                self.rows[name].games[Game(fold, seed)][question.id] = case.outcome_of(sums)

    def count_as_wrong(self, question: Question, gold: Gold) -> None:
        """Count a question without candidates as wrong in every row; they go to the folds in turn."""
        fold = 0 if self._has_test else self.without_chain % self.folds
        self.without_chain += 1
        games = [(name, play.game) for play in self._plays.get(fold, ()) for name in self._ways(play)]
        games += [(name, Game(fold, seed)) for name, models in BASELINES.items() for seed in range(len(models))]
        for row, game in games:
            self.rows[row].games[game][question.id] = Outcome.of(judge(None, gold))


class _Case:
    """A question with its C and its gold."""

    def __init__(self, candidates: Candidates, gold: Gold) -> None:
        self._candidates, self._gold = candidates, gold
        self._outcomes: dict[int, Outcome] = {}
        """by chain: many games pick the same"""
        passages = candidates.question.passages
        self._ids = [[passages[place].id for place in chain.passages] for chain in candidates.chains]
        golds = [chain for chain in gold.chains if chain.ordered and chain.links is not None]
        by_passages = {ids: [n for n, one in enumerate(self._ids) if tuple(one) == ids] for ids in _passages(golds)}
        self._linked = [(ns, [c for c in golds if tuple(c.passages) == ids]) for ids, ns in by_passages.items() if ns]
        """the candidates through the passages of gold chains that name their links, and those gold chains"""

    @cached_property
    def _names(self) -> dict[bool, list[str]]:
        """The names of the question's entities, of all and of the merged ones."""
        return {is_merged: entity_names(self._candidates, is_merged) for is_merged in (False, True)}

    def outcome(self, number: int) -> Outcome:
        """Return what is right about one of the chains of C."""
        if number not in self._outcomes:
            chain = Chain(passages=self._ids[number], links=self._candidates.chains[number].links, score=0.0)
            self._outcomes[number] = Outcome.of(judge(chain, self._gold))
        return self._outcomes[number]

    def outcome_of(self, scores: Sequence[float]) -> Outcome:
        """Return what is right about the best chain, and about the links of the best one through the gold passages."""

        def links(numbers: Sequence[int]) -> list[tuple[int, str]]:
            best = max(numbers, key=scores.__getitem__)
            return [(place, link.entity) for place, link in enumerate(self._candidates.chains[best].links)]

        return self.outcome(int(np.argmax(scores)))._replace(named=self._share_named(links))

    def share_named_by_reasoner(self, predicted: Array, links: Sequence[int], is_merged: bool) -> float | None:
        """Return the share of links, read in the gold passages, for which the Reasoner predicts a gold entity."""
        if not self._linked:
            return None
        names = dict(enumerate(self._names[is_merged]))  # a number beyond them is padding
        return self._share_named(
            lambda ns: [(link, names.get(int(predicted[ns[0], n]), "")) for n, link in enumerate(links)]
        )

    def _share_named(self, entities: Callable[[Sequence[int]], Sequence[tuple[int, str]]]) -> float | None:
        """Return the share of linking entities that gold has too; `entities` returns them for some candidates."""
        hits = [
            any(is_same_entity(name, gold.links[link]) for gold in golds if gold.links and link < len(gold.links))
            for numbers, golds in self._linked
            for link, name in entities(numbers)
        ]
        return float(np.mean(hits)) if hits else None


def _passages(golds: Sequence[GoldChain]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(tuple(chain.passages) for chain in golds))
