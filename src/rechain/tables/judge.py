"""Judges what was played: every row's chain for every question, fold and seed, compared with gold. No training here."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rechain.candidates import Candidates, CandidateSettings, find_candidates
from rechain.errors import InputError, QuestionError, RechainError
from rechain.evaluation.judging import JudgedChain, is_same_entity, is_unambiguous, judge
from rechain.evaluation.statistics import Figure, mean_over_runs, mean_with_interval
from rechain.game.plan import Reading, make_plan
from rechain.game.plays import QUESTIONS
from rechain.game.settings import GameSettings
from rechain.preparation.questions import entity_names
from rechain.schema import Chain, Gold, GoldChain, Question
from rechain.scoring import Lexical, Random
from rechain.scoring.model import Model
from rechain.system.digests import read_sealed
from rechain.system.tensors import Array, load_arrays
from rechain.tables.headroom import ORACLE, REWARD, chain_rewards, chains_of, expected_accuracy, with_oracle
from rechain.tables.plan import CONDITIONS, row_name
from rechain.tables.stage import read_index
from rechain.text.collection import Statistics

COMBINED = " + links and lexical"
"""what is added to the name of a row whose chains are picked with links and lexical rule"""
BY_RANKER = " by the Ranker alone"
"""what is added to the name of a row whose Reasoner votes, where it does not"""
BASELINES: Mapping[str, Sequence[Model]] = {
    "random": [Random(seed) for seed in range(10)],  # one draw a question varies far more than the rows differ
    "lexical": [Lexical()],
}


class Game(NamedTuple):
    """The fold that was tested, and the seed of the training."""

    fold: int
    seed: int


class Outcome(NamedTuple):
    """What is right about the chain of one question; None where gold does not say."""

    correct: float
    ordered: float | None = None
    head: float | None = None
    tail: float | None = None
    links: float | None = None
    """every linking entity, where the passages are right"""
    named: float | None = None
    """the share of linking entities that are named right when the gold passages are read"""
    auc: float | None = None
    """how often the right chain earns more of the Reasoner's bonus than another with the passages that it reads"""

    @classmethod
    def of(cls, verdict: JudgedChain) -> "Outcome":
        """Return what the table shows of a verdict."""
        return cls(verdict.correct, verdict.ordered, verdict.head, verdict.tail, verdict.links)


@dataclass
class Row:
    """A row of a table: the outcomes of each of its games by question, and the metadata of its training."""

    name: str
    is_baseline: bool = False
    games: dict[Game, dict[str, Outcome]] = field(default_factory=lambda: defaultdict(dict))
    metadata: dict[Game, Mapping[str, Any]] = field(default_factory=dict)

    def means(self, column: str, games: Iterable[Game] | None = None) -> dict[str, float]:
        """Return a column for every question that has it, averaged over the seeds of some games or of all.

        A baseline is not trained: all its seeds count in every fold of the games.
        """
        chosen = set(self.games if games is None else games)
        if self.is_baseline:
            folds = {game.fold for game in chosen}
            chosen = {game for game in self.games if game.fold in folds}
        values: dict[str, list[float]] = {}
        for game, outcomes in self.games.items():
            for question, outcome in outcomes.items() if game in chosen else ():
                if (value := getattr(outcome, column)) is not None:
                    values.setdefault(question, []).append(value)
        return {question: float(np.mean(of_seeds)) for question, of_seeds in values.items()}

    def figure(self, column: str = "correct", games: Iterable[Game] | None = None) -> Figure | None:
        """Return the mean over questions with its interval."""
        return mean_with_interval(list(self.means(column, games).values()))

    def over_games(self, column: str = "correct", games: Iterable[Game] | None = None) -> Figure | None:
        """Return the mean over games, each that of its questions, with its interval over games."""
        chosen = sorted(self.games if games is None else games)
        by_game = [list(self.means(column, [game]).values()) for game in chosen]
        return mean_over_runs([float(np.mean(values)) for values in by_game if values])


def common_games(rows: Iterable[Row]) -> list[Game]:
    """Return the games that all rows have played; the baselines play in every one."""
    rows = list(rows)
    played = [set(row.games) for row in rows if not row.is_baseline] or [set(row.games) for row in rows]
    return sorted(set.intersection(*played)) if played else []


def difference(row: Row, other: Row) -> Figure | None:
    """Return by how much a row is better than another on the games they have in common, question by question."""
    games = common_games([row, other])
    one, two = row.means("correct", games), other.means("correct", games)
    return mean_with_interval([value - two[question] for question, value in one.items() if question in two])


def difference_over_games(row: Row, other: Row) -> Figure | None:
    """Return the same, game by game: the interval is over the folds and seeds that both rows have."""
    differences = []
    for game in common_games([row, other]):
        one, two = row.means("correct", [game]), other.means("correct", [game])
        if paired := [value - two[question] for question, value in one.items() if question in two]:
            differences.append(float(np.mean(paired)))
    return mean_over_runs(differences)


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
    scores: Mapping[str, Array]
    starts: Array
    """where the chains of each tested question begin"""
    readings: tuple[Reading, ...]
    """what a Reasoner reads; nothing in rows without one"""

    @classmethod
    def read(cls, path: Path, lengths: Array, hops: int) -> "PlayScores":
        """Read the file of a game; `lengths` has the number of chains of every question."""
        row, fold, seed = path.stem.rsplit(".", 2)
        try:
            metadata = read_sealed(path.with_suffix(".json"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path.with_suffix('.json')} cannot be read: {error}.") from error
        scores = load_arrays(path)
        if not scores.keys() >= {"questions", "ranker", "reasoner", "named"}:
            raise InputError(f"{path} does not hold the scores of a game; delete it and prepare again to play it.")
        starts = np.concatenate([[0], np.cumsum(lengths[scores["questions"]])])
        if starts[-1] != len(scores["ranker"]):
            raise RechainError(f"{path} tells of other chains than {QUESTIONS} holds; play it again in another folder.")
        readings = make_plan(hops).readings if row.startswith("cooperative") else ()
        return cls(row, Game(int(fold), int(seed)), metadata, scores, starts, readings)

    @cached_property
    def settings(self) -> GameSettings:
        """How it was played."""
        return GameSettings.recorded(self.metadata.get("settings", {}), "the metadata of a play")

    def of(self, number: int) -> dict[str, Array]:
        """Return the scores of the chains of a question."""
        place = int(np.searchsorted(self.scores["questions"], number))
        chains = slice(self.starts[place], self.starts[place + 1])
        return {
            name: self.scores[name][chains] for name in ("ranker", "reasoner", "named", "bonus") if name in self.scores
        }


def pick(scores: Mapping[str, Array], reasoner: float, evidence: Array | float = 0.0) -> int:
    """Return the number of the chain that Ranker, Reasoner and other evidence find best."""
    return int(np.argmax(scores["ranker"] + reasoner * scores["reasoner"] + evidence))


def choose(questions: Sequence[Question], golds: Mapping[str, Gold]) -> list[Question]:
    """Return the questions that can be judged: those with gold chains, unambiguous ones where passages alone count."""
    with_gold = [question for question in questions if question.id in golds and golds[question.id].chains]
    return [q for q in with_gold if golds[q.id].same != "passages" or is_unambiguous(q, golds[q.id])]


def judge_plays(
    folder: Path,
    questions: Sequence[Question],
    golds: Mapping[str, Gold],
    weights: GameSettings,
    candidates: CandidateSettings | None = None,
    collection: Statistics | None = None,
) -> Results:
    """Judge everything that was played in a folder, and the baselines, on the questions it was prepared for.

    `weights` says how much Reasoner, links and lexical rule count in a chain's score. A question without any candidate
    chain counts as wrong.
    """
    chosen = choose(questions, golds)
    judging = _Judging(folder, weights)
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

    def __init__(self, folder: Path, weights: GameSettings) -> None:
        index = read_index(folder)
        self.folds: int = index["folds"]
        self.without_chain = 0
        self.rows = {name: Row(name, is_baseline=True) for name in BASELINES}
        self._weights = weights
        self._has_test = bool(index.get("has_test"))
        self._numbers = {name: number for number, name in enumerate(index["ids"])}
        self._arrays = load_arrays(folder / QUESTIONS)
        self._plays: dict[int, list[PlayScores]] = {}
        lengths, hops = np.diff(self._arrays["chain_start"]), self._arrays["chain_passages"].shape[1]
        self._plan = make_plan(hops)
        self._rewards: dict[str, GameSettings] = {}
        """the rewards of every table: by the end of its rows' names, the settings of one"""
        for path in sorted((folder / "plays").glob("*.safetensors")):
            play = PlayScores.read(path, lengths, hops)
            self._plays.setdefault(play.game.fold, []).append(play)
            for name in (play.row + end for end in self._ends(play)):
                self.rows.setdefault(name, Row(name)).metadata[play.game] = play.metadata
            for condition in CONDITIONS:
                if play.row == row_name("cooperative", condition=condition):
                    self._rewards.setdefault(condition, play.settings)
        for condition in self._rewards:
            for name in (row_name(REWARD, condition=condition), row_name(ORACLE, condition=condition)):
                self.rows[name] = Row(name, is_baseline=True)

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
        fold = int(self._arrays["fold"][number])
        case = _Case(candidates, gold)
        weights = self._weights
        evidence = weights.link_weight * self._arrays["chain_link_weight"][chains]
        evidence = evidence + weights.lexical_weight * self._arrays["chain_lexical"][chains]
        for play in self._plays.get(fold, ()):  # each picks a chain by itself, and one with links and lexical rule
            scores, reasoner = play.of(number), self._vote(play)
            links = [reading.link for reading in play.readings]
            named = case.share_named_by_reasoner(scores["named"], links, play.settings.entities == "merged")
            auc = case.auc(scores["bonus"], play.readings) if play.readings and "bonus" in scores else None
            for end in self._ends(play):
                vote, added = 0.0 if end == BY_RANKER else reasoner, evidence if end == COMBINED else 0.0
                outcome = case.outcome(pick(scores, vote, added))._replace(named=named, auc=auc)
                self.rows[play.row + end].games[play.game][question.id] = outcome
        for name, models in BASELINES.items():
            for seed, model in enumerate(models):
                sums = [sum(contributions.values()) for contributions in model.score(candidates)]
                self.rows[name].games[Game(fold, seed)][question.id] = case.outcome_of(sums)
        for condition, settings in self._rewards.items():
            reward, oracle = self._headroom(case, number, settings)
            self.rows[row_name(REWARD, condition=condition)].games[Game(fold, 0)][question.id] = Outcome(reward)
            self.rows[row_name(ORACLE, condition=condition)].games[Game(fold, 0)][question.id] = Outcome(oracle)

    def _vote(self, play: PlayScores) -> float:
        """Return how much the Reasoner counts in a chain's score: nothing if nobody has taught it."""
        return self._weights.reasoner_weight if play.readings and not play.settings.freezes_reasoner else 0.0

    def _ends(self, play: PlayScores) -> list[str]:
        """Return the ways in which chains are picked by a play's scores, as the names of rows end with them."""
        return ["", COMBINED, *([BY_RANKER] if self._vote(play) else [])]

    def _headroom(self, case: "_Case", number: int, settings: GameSettings) -> tuple[float, float]:
        """Return the accuracy of what earns most, without a bonus and with an oracle's."""
        if "merged_start" not in self._arrays:
            raise RechainError("the folder was prepared by an earlier version; prepare another.")
        chains = chains_of(self._arrays, number, int(self._arrays["fold"][number]))
        is_right = [case.outcome(candidate).correct for candidate in range(len(chains.passages))]
        alone = expected_accuracy(chain_rewards(chains, settings), is_right)
        if 1.0 not in is_right:
            return alone, alone
        return alone, expected_accuracy(with_oracle(chains, is_right.index(1.0), self._plan, settings), is_right)

    def count_as_wrong(self, question: Question, gold: Gold) -> None:
        """Count a question without candidates as wrong in every row; they are dealt out to the folds in turn."""
        fold = 0 if self._has_test else self.without_chain % self.folds
        self.without_chain += 1
        games = [(play.row + end, play.game) for play in self._plays.get(fold, ()) for end in self._ends(play)]
        games += [(name, Game(fold, seed)) for name, models in BASELINES.items() for seed in range(len(models))]
        wrong = Outcome.of(judge(None, gold))
        for row, game in games:
            self.rows[row].games[game][question.id] = wrong
        for condition in self._rewards:  # which prefer chains, and say nothing of head and tail
            for name in (REWARD, ORACLE):
                self.rows[row_name(name, condition=condition)].games[Game(fold, 0)][question.id] = Outcome(0.0)


class _Case:
    """A question with its C and its gold."""

    def __init__(self, candidates: Candidates, gold: Gold) -> None:
        self.candidates = candidates
        self._gold = gold
        self._outcomes: dict[int, Outcome] = {}
        """by chain: many games pick the same"""
        passages = candidates.question.passages
        self._ids = [[passages[place].id for place in chain.passages] for chain in candidates.chains]
        self._linked: list[tuple[list[int], list[GoldChain]]] = []
        """the candidates through the passages of gold chains that name their links, and those gold chains"""
        golds = [chain for chain in gold.chains if chain.ordered and chain.links is not None]
        for ids in dict.fromkeys(tuple(chain.passages) for chain in golds):
            numbers = [number for number, found in enumerate(self._ids) if tuple(found) == ids]
            if numbers:
                self._linked.append((numbers, [chain for chain in golds if tuple(chain.passages) == ids]))

    @cached_property
    def _names(self) -> dict[bool, list[str]]:
        """The names of the question's entities, of all and of the merged ones."""
        return {is_merged: entity_names(self.candidates, is_merged) for is_merged in (False, True)}

    def outcome(self, number: int) -> Outcome:
        """Return what is right about one of the chains of C."""
        if number not in self._outcomes:
            chain = Chain(passages=self._ids[number], links=self.candidates.chains[number].links, score=0.0)
            self._outcomes[number] = Outcome.of(judge(chain, self._gold))
        return self._outcomes[number]

    def outcome_of(self, scores: Sequence[float]) -> Outcome:
        """Return what is right about the best chain, and about the links of the best one through the gold passages."""

        def links(numbers: Sequence[int]) -> list[tuple[int, str]]:
            best = max(numbers, key=scores.__getitem__)
            return [(place, link.entity) for place, link in enumerate(self.candidates.chains[best].links)]

        return self.outcome(int(np.argmax(scores)))._replace(named=self._share_named(links))

    def auc(self, bonus: Array, readings: Sequence[Reading]) -> float | None:
        """Return how often a right chain earns more bonus than a wrong one that has the passages read, ties half."""
        read = [reading.role for reading in readings]
        groups: dict[tuple[int, ...], list[int]] = {}
        for number, chain in enumerate(self.candidates.chains):
            groups.setdefault(tuple(chain.passages[role] for role in read), []).append(number)
        wins: list[float] = []
        for numbers in groups.values():
            is_right = [self.outcome(number).correct == 1.0 for number in numbers]
            right = [float(bonus[n]) for n, right in zip(numbers, is_right, strict=True) if right]
            wrong = [float(bonus[n]) for n, right in zip(numbers, is_right, strict=True) if not right]
            wins += [(one > two) + 0.5 * (one == two) for one in right for two in wrong]
        return float(np.mean(wins)) if wins else None

    def share_named_by_reasoner(self, named: Array, links: Sequence[int], is_merged: bool = False) -> float | None:
        """Return the share of links, read in the gold passages, for which the Reasoner names a gold entity."""
        # a number beyond them is padding, which names nothing
        names = dict(enumerate(self._names[is_merged])) if self._linked else {}
        return self._share_named(
            lambda numbers: [(link, names.get(int(named[numbers[0], at]), "")) for at, link in enumerate(links)]
        )

    def _share_named(self, entities: Callable[[Sequence[int]], Sequence[tuple[int, str]]]) -> float | None:
        """Return the share of linking entities that gold has too; `entities` names them, given some candidates."""
        hits = [
            any(is_same_entity(name, gold.links[link]) for gold in golds if gold.links and link < len(gold.links))
            for numbers, golds in self._linked
            for link, name in entities(numbers)
        ]
        return float(np.mean(hits)) if hits else None
