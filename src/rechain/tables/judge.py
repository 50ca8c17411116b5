"""Judges what was played: every row's chain for every question, fold and seed, compared with gold. No training here."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rechain.candidates import Candidates, CandidateSettings, find_candidates
from rechain.datasets.records import read_rows
from rechain.errors import InputError, QuestionError, RechainError
from rechain.evaluation.gold import PairLabel
from rechain.evaluation.judging import Verdict, is_same_entity, is_unambiguous, judge
from rechain.evaluation.statistics import Figure, mean_with_interval
from rechain.game.plan import make_plan
from rechain.game.plays import QUESTIONS
from rechain.game.settings import GameSettings
from rechain.preparation.questions import entity_names
from rechain.schema import Chain, Gold, GoldChain, Question
from rechain.scoring import Lexical, Random
from rechain.scoring.model import Model
from rechain.system.tensors import Array, load_arrays
from rechain.tables.stage import read_index

RANDOM_SEEDS = 10
COMBINED = " + links and lexical"
"""what is added to the name of a row whose chains are picked with links and lexical rule"""
BASELINES: Mapping[str, Sequence[Model]] = {
    "random": [Random(seed) for seed in range(RANDOM_SEEDS)],
    "lexical": [Lexical()],
}


class Game(NamedTuple):
    """What was tested, and with which seed it was trained."""

    fold: int
    seed: int


class Outcome(NamedTuple):
    """What is right about the chain of one question; None where gold does not tell."""

    correct: float
    ordered: float | None = None
    head: float | None = None
    tail: float | None = None
    links: float | None = None
    """every linking entity, where the passages are right"""
    named: float | None = None
    """the share of linking entities that are named right when the gold passages are read"""


@dataclass
class Row:
    """A row of a table: what came of each of its games, and what is told of them."""

    name: str
    is_baseline: bool = False
    games: dict[Game, dict[str, Outcome]] = field(default_factory=dict)
    stories: dict[Game, Mapping[str, Any]] = field(default_factory=dict)

    def add(self, game: Game, question: str, outcome: Outcome) -> None:
        """Take what came of a question."""
        self.games.setdefault(game, {})[question] = outcome

    def means(self, column: str, games: Iterable[Game] | None = None) -> dict[str, float]:
        """Return a column of outcomes for every question that has it, averaged over the seeds of some games or all."""
        values: dict[str, list[float]] = {}
        for game in self._among(games):
            for question, outcome in self.games[game].items():
                value = getattr(outcome, column)
                if value is not None:
                    values.setdefault(question, []).append(value)
        return {question: float(np.mean(told)) for question, told in values.items()}

    def figure(self, column: str = "correct", games: Iterable[Game] | None = None) -> Figure | None:
        """Return the mean over questions with its interval."""
        return mean_with_interval(list(self.means(column, games).values()))

    def _among(self, games: Iterable[Game] | None) -> list[Game]:
        """Return those of its games that are among some; a baseline, never trained, plays all its seeds in a fold."""
        if games is None:
            return list(self.games)
        if self.is_baseline:
            folds = {game.fold for game in games}
            return [game for game in self.games if game.fold in folds]
        wanted = set(games)
        return [game for game in self.games if game in wanted]


def common_games(rows: Iterable[Row]) -> list[Game]:
    """Return the games that all rows have played; the baselines play in every one."""
    rows = list(rows)
    played = [set(row.games) for row in rows if not row.is_baseline] or [set(row.games) for row in rows]
    return sorted(set.intersection(*played)) if played else []


def difference(row: Row, other: Row, column: str = "correct") -> Figure | None:
    """Return by how much a row is better than another on the games they have in common, question by question."""
    games = common_games([row, other])
    one, two = row.means(column, games), other.means(column, games)
    return mean_with_interval([value - two[question] for question, value in one.items() if question in two])


@dataclass(frozen=True)
class Judged:
    """All rows, and over which questions they were judged."""

    rows: Mapping[str, Row]
    folds: int
    asked: int
    """questions of the rows' files"""
    judged: int
    """of these, the ones whose right chain is known"""
    without_chain: int
    """of these, the ones without any candidate chain, which count as wrong"""


@dataclass(frozen=True)
class Played:
    """What the players of one game said of the chains they were tested on."""

    row: str
    game: Game
    story: Mapping[str, Any]
    scores: Mapping[str, Array]
    starts: Array
    """where the chains of each tested question begin"""
    links_read: tuple[int, ...]
    """the numbers of the links that a trained Reasoner was asked for"""

    def of(self, number: int) -> dict[str, Array]:
        """Return what was said of the chains of a question."""
        place = int(np.searchsorted(self.scores["questions"], number))
        chains = slice(self.starts[place], self.starts[place + 1])
        return {name: self.scores[name][chains] for name in ("ranker", "reasoner", "named")}


def read_played(folder: Path) -> list[Played]:
    """Read what was played in a folder, in the order of the names."""
    arrays = load_arrays(folder / QUESTIONS)
    lengths, hops = np.diff(arrays["chain_start"]), arrays["chain_passages"].shape[1]
    return [_read_game(path, lengths, hops) for path in sorted((folder / "plays").glob("*.safetensors"))]


def _read_game(path: Path, lengths: Array, hops: int) -> Played:
    row, fold, seed = path.stem.rsplit(".", 2)
    try:
        story = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path.with_suffix('.json')} cannot be read: {error}.") from error
    scores = load_arrays(path)
    starts = np.concatenate([[0], np.cumsum(lengths[scores["questions"]])])
    if starts[-1] != len(scores["ranker"]):
        raise RechainError(f"{path} tells of other chains than {QUESTIONS} holds; play it again in another folder.")
    links_read = tuple(reading.link for reading in make_plan(hops).readings) if _has_reasoner(row) else ()
    return Played(row, Game(int(fold), int(seed)), story, scores, starts, links_read)


def _has_reasoner(row: str) -> bool:
    return row.startswith("cooperative")


def pick(said: Mapping[str, Array], reasoner: float, evidence: Array | float = 0.0) -> int:
    """Return the number of the chain that Ranker, Reasoner and other evidence find best."""
    return int(np.argmax(said["ranker"] + reasoner * said["reasoner"] + evidence))


def read_pair_labels(path: Path) -> list[PairLabel]:
    """Read which pairs of entities interact, if that is what a file tells."""
    try:
        return [label for _, label in read_rows(path, PairLabel)]
    except InputError:
        return []


def choose(questions: Sequence[Question], golds: Mapping[str, Gold]) -> list[Question]:
    """Return the questions that can be judged: those with gold chains, unambiguous ones where passages alone count."""
    told = [question for question in questions if question.id in golds and golds[question.id].chains]
    return [q for q in told if golds[q.id].same != "passages" or is_unambiguous(q, golds[q.id])]


def judge_plays(
    folder: Path,
    questions: Sequence[Question],
    golds: Mapping[str, Gold],
    weights: GameSettings,
    candidates: CandidateSettings | None = None,
) -> Judged:
    """Judge everything that was played in a folder, and the baselines, on the questions it was prepared for.

    `weights` says how much Reasoner, links and lexical rule count in a chain's score. A question without any candidate
    chain counts as wrong.
    """
    chosen = choose(questions, golds)
    bench = _Bench(folder, weights)
    for question in chosen:
        bench.judge(question, golds[question.id], _candidates(question, candidates))
    return Judged(bench.rows, bench.folds, len(questions), len(chosen), bench.without_chain)


def _candidates(question: Question, settings: CandidateSettings | None) -> Candidates | None:
    try:
        return find_candidates(question, settings)
    except QuestionError:
        return None


class _Bench:
    """Goes through the questions one at a time and hears what every game said of them."""

    def __init__(self, folder: Path, weights: GameSettings) -> None:
        index = read_index(folder)
        self.folds: int = index["folds"]
        self.without_chain = 0
        self.rows = {name: Row(name, is_baseline=True) for name in BASELINES}
        self._weights = weights
        self._has_test = bool(index.get("has_test"))
        self._number = {name: number for number, name in enumerate(index["ids"])}
        self._arrays = load_arrays(folder / QUESTIONS)
        self._played: dict[int, list[Played]] = {}
        for played in read_played(folder):
            self._played.setdefault(played.game.fold, []).append(played)
            for name in (played.row, played.row + COMBINED):
                self.rows.setdefault(name, Row(name)).stories[played.game] = played.story

    def judge(self, question: Question, gold: Gold, candidates: Candidates | None) -> None:
        """Judge the chains of a question that all games and baselines pick."""
        number = self._number.get(question.id)
        if candidates is None or number is None:
            self._judge_without(question, gold)
            return
        chains = self._chains_of(number, candidates)
        fold = int(self._arrays["fold"][number])
        case = _Case(candidates, gold)
        for played in self._played.get(fold, ()):
            self._hear(played, played.of(number), case, chains)
        for name, models in BASELINES.items():
            for seed, model in enumerate(models):
                scores = [sum(told.values()) for told in model.score(candidates)]
                self.rows[name].add(Game(fold, seed), question.id, case.outcome_of(scores))

    def _judge_without(self, question: Question, gold: Gold) -> None:
        fold = 0 if self._has_test else self.without_chain % self.folds
        self.without_chain += 1
        wrong = _outcome(judge(None, gold))
        games = [(played.row + end, played.game) for played in self._played.get(fold, ()) for end in ("", COMBINED)]
        games += [(name, Game(fold, seed)) for name, models in BASELINES.items() for seed in range(len(models))]
        for row, game in games:
            self.rows[row].add(game, question.id, wrong)

    def _chains_of(self, number: int, candidates: Candidates) -> slice:
        """Return where the chains of a question lie in the arrays, once it is sure that they are the same."""
        start, end = self._arrays["chain_start"][number : number + 2]
        passages = self._arrays["chain_passages"][start:end]
        if [chain.passages for chain in candidates.chains] != list(map(tuple, passages.tolist())):
            name = candidates.question.id
            raise RechainError(f"the folder was prepared with other candidate chains of the question '{name}'.")
        return slice(start, end)

    def _hear(self, played: Played, said: Mapping[str, Array], case: "_Case", chains: slice) -> None:
        weights = self._weights
        reasoner = weights.reasoner_weight if _has_reasoner(played.row) else 0.0
        evidence = weights.link_weight * self._arrays["chain_link_weight"][chains]
        evidence = evidence + weights.lexical_weight * self._arrays["chain_lexical"][chains]
        named = case.share_named(said["named"], played.links_read)
        for name, added in ((played.row, 0.0), (played.row + COMBINED, evidence)):
            outcome = case.outcome(pick(said, reasoner, added))._replace(named=named)
            self.rows[name].add(played.game, case.question.id, outcome)


class _Case:
    """A question with its C and its gold."""

    def __init__(self, candidates: Candidates, gold: Gold) -> None:
        self.question = candidates.question
        self._candidates = candidates
        self._gold = gold
        self._known: dict[int, Outcome] = {}
        self._names: list[str] | None = None
        self._told = dict(self._find_told())

    def outcome(self, number: int) -> Outcome:
        """Return what is right about one of the chains of C."""
        if number not in self._known:
            chain = self._candidates.chains[number]
            recovered = Chain(passages=self._ids(number), links=chain.links, score=0.0)
            self._known[number] = _outcome(judge(recovered, self._gold))
        return self._known[number]

    def outcome_of(self, scores: Sequence[float]) -> Outcome:
        """Return what is right about the best chain, and about the links of the best one through the gold passages."""
        shares = []
        for (first, *others), golds in self._told.values():
            best = max((first, *others), key=scores.__getitem__)
            links = [link.entity for link in self._candidates.chains[best].links]
            shares += [_is_link(name, golds, link) for link, name in enumerate(links)]
        named = float(np.mean(shares)) if shares else None
        return self.outcome(int(np.argmax(scores)))._replace(named=named)

    def share_named(self, named: Array, links: Sequence[int]) -> float | None:
        """Return the share of links, read in the gold passages, for which the Reasoner names a gold entity."""
        shares = [
            _is_link(self._name(int(named[chains[0], reading])), golds, link)
            for chains, golds in self._told.values()
            for reading, link in enumerate(links)
        ]
        return float(np.mean(shares)) if shares else None

    def _find_told(self) -> Iterator[tuple[tuple[str, ...], tuple[list[int], list[GoldChain]]]]:
        """Yield the passages of gold chains that name their links, where they stand in C, and those gold chains."""
        told = [chain for chain in self._gold.chains if chain.ordered and chain.links is not None]
        for passages in {tuple(chain.passages): None for chain in told}:
            places = [n for n in range(len(self._candidates.chains)) if tuple(self._ids(n)) == passages]
            if places:
                yield passages, (places, [chain for chain in told if tuple(chain.passages) == passages])

    def _ids(self, number: int) -> list[str]:
        return [self.question.passages[place].id for place in self._candidates.chains[number].passages]

    def _name(self, entity: int) -> str:
        if self._names is None:
            self._names = entity_names(self._candidates)
        return self._names[entity] if entity < len(self._names) else ""


def _is_link(name: str, golds: Iterable[GoldChain], link: int) -> bool:
    return any(is_same_entity(name, chain.links[link]) for chain in golds if chain.links and link < len(chain.links))


def _outcome(verdict: Verdict) -> Outcome:
    return Outcome(verdict.correct, verdict.ordered, verdict.head, verdict.tail, verdict.links)
