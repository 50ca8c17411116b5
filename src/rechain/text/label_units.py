"""What people label: whole candidate chains, or the entity pairs that their passages should relate.

A pair is a passage and the two entities at its sides on a chain: the one that leads into it and the one that leads on.
Several chains may share a pair, and a label of it counts for all of them. Single passages and passages side by side
have no entities between them, so they are labelled whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from rechain.errors import QuestionError
from rechain.schema import NotBlank, Question, Shape
from rechain.text.candidates import Candidate, Candidates, CandidateSettings
from rechain.text.collection import Statistics
from rechain.text.evidence.search import find_evidence, worth_showing
from rechain.text.linking import Edge
from rechain.text.words import lazy, phrase

Value = Literal["yes", "no", "unsure"]
Mode = Literal["pairs", "chains"]

THE_QUESTION = ""
"""stands for the question itself, where the data names no entity of it"""


class Unit(BaseModel):
    """One thing to label: a passage with two entities, in no order, or passages in order with the links between.

    A single passage, and passages side by side, have no entities.
    """

    model_config = ConfigDict(frozen=True)

    question: NotBlank
    """the question's id"""
    passages: tuple[NotBlank, ...]
    entities: tuple[str, ...]

    @field_validator("entities")
    @classmethod
    def _fit_the_passages(cls, entities: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        passages = len(info.data.get("passages", ()))
        expected = 2 if passages == 1 else passages - 1
        if not passages or len(entities) not in (expected, 0):
            raise PydanticCustomError(
                "bad_unit",
                "{passages} passages go with {expected} entities or with none, not {entities}",
                {"passages": passages, "expected": max(expected, 0), "entities": len(entities)},
            )
        return tuple(sorted(entities)) if passages == 1 else entities

    @property
    def mode(self) -> Mode:
        """Whether it is one of the pairs or of the chains."""
        return "pairs" if len(self.passages) == 1 and self.entities else "chains"

    @property
    def shape(self) -> Shape:
        """The shape of what is labelled whole: it has entities between its passages, or else is no chain."""
        if self.entities:
            return "chain"
        return "single" if len(self.passages) == 1 else "parallel"


class Units:
    """The units of a question: its candidate chains, and the pairs on them."""

    def __init__(self, candidates: Candidates) -> None:
        self.candidates = candidates
        self.pairs: dict[Unit, list[int]] = {}
        """every pair once, in order of first use, and the numbers of the chains that share it"""
        self._sides: dict[Unit, tuple[str, str]] = {}
        self._units: dict[tuple[int, str, str], Unit] = {}
        self.pairs_of = [[self._pair(*step) for step in _steps(candidates, chain)] for chain in candidates.chains]
        """the pairs on each chain, head first; none of a single passage and of passages side by side"""
        self.chains: list[Unit] = [self._chain(chain) for chain in candidates.chains]
        """the candidate chains in their order"""
        for number, pairs in enumerate(self.pairs_of):
            for pair in pairs:
                self.pairs.setdefault(pair, []).append(number)

    @property
    def question(self) -> Question:
        """The question whose units these are."""
        return self.candidates.question

    @lazy
    def numbers(self) -> dict[Unit, int]:
        """The number of every candidate chain."""
        return {unit: number for number, unit in enumerate(self.chains)}

    def waiting(self, mode: Mode, values: Mapping[Unit, Value]) -> list[Unit]:
        """Return the units yet to be labelled after some labels: a pair only while one of its chains may be right."""
        if mode == "chains":
            return [unit for unit in self.chains if unit not in values]
        wrong = {number for pair, chains in self.pairs.items() if values.get(pair) == "no" for number in chains}
        return [pair for pair, chains in self.pairs.items() if pair not in values and not wrong.issuperset(chains)]

    def links(self, chain: int) -> list[str]:
        """Return the linking entities of a chain as they are written out."""
        candidate = self.candidates.chains[chain]
        return [link.entity for link in candidate.links] if candidate.shape == "chain" else []

    def name(self, entity: str) -> str:
        """Return an entity as people see it: the id where the data gives one, else the text of its name."""
        if entity == THE_QUESTION:
            return "the question"
        edge = self._edges.get(entity)
        return entity if edge is None or edge.is_given else edge.link.entity

    def in_order(self, pair: Unit) -> tuple[str, str]:
        """Return the entities of a pair in the order of the first chain that has it, if any has."""
        one, two = pair.entities
        return self._sides.get(pair, (one, two))

    def pairs_named(self, passage: str, one: str, two: str) -> Sequence[Unit]:
        """Return the pairs of a passage by their entities in any spelling: ids with or without kind, other case."""
        exact = Unit(question=self.question.id, passages=(passage,), entities=(one, two))
        if exact in self.pairs:
            return [exact]
        return self._by_spelling.get((passage, frozenset((_spelling(one), _spelling(two)))), [])

    @lazy
    def _by_spelling(self) -> dict[tuple[str, frozenset[str]], list[Unit]]:
        pairs: dict[tuple[str, frozenset[str]], list[Unit]] = {}
        for pair in self.pairs:
            pairs.setdefault((pair.passages[0], frozenset(map(_spelling, pair.entities))), []).append(pair)
        return pairs

    @lazy
    def _edges(self) -> dict[str, Edge]:
        edges: dict[str, Edge] = {}
        for chain in self.candidates.chains:
            for edge in chain.edges:
                edges.setdefault(edge.key.strip(), edge)
        return edges

    def _chain(self, chain: Candidate) -> Unit:
        passages = tuple(self.question.passages[number].id for number in chain.passages)
        return Unit(question=self.question.id, passages=passages, entities=_keys(chain))

    def _pair(self, passage: int, one: str, two: str) -> Unit:
        if (passage, one, two) not in self._units:
            name = self.question.passages[passage].id
            unit = Unit(question=self.question.id, passages=(name,), entities=(one, two))
            self._units[passage, one, two] = unit
            self._sides.setdefault(unit, (one, two))
        return self._units[passage, one, two]


def find_units(
    question: Question, settings: CandidateSettings | None = None, collection: Statistics | None = None
) -> Units:
    """Return the units of a question's candidate chains, which have any length where nothing fixes one.

    `collection` is where its passages come from, as what is common there does not link.
    """
    try:
        return Units(worth_showing(find_evidence(question, settings, collection=collection)))
    except QuestionError:
        settings = settings or CandidateSettings()
        return Units(Candidates(question, [], [], [], False, settings, collection=collection))


def _steps(candidates: Candidates, chain: Candidate) -> Iterator[tuple[int, str, str]]:
    """Yield each passage of a chain with the entities at its two sides, from the question's to the answer's."""
    if chain.shape != "chain":
        return
    question = candidates.question
    last = question.answer if question.answer_entity is None else question.answer_entity
    entities = (_start(candidates, chain), *_keys(chain), last.strip())
    for passage, (one, two) in zip(chain.passages, pairwise(entities), strict=True):
        yield passage, one, two


def _start(candidates: Candidates, chain: Candidate) -> str:
    """Return the entity of the question that a chain starts from: one that its head mentions, if any."""
    entities = candidates.question.question_entities
    head = candidates.views[chain.passages[0]]
    first = entities[0] if entities else THE_QUESTION
    return next((entity for entity in entities if head.mentions(entity)), first).strip()


def _keys(chain: Candidate) -> tuple[str, ...]:
    return tuple(edge.key.strip() for edge in chain.edges) if chain.shape == "chain" else ()


def _spelling(entity: str) -> str:
    """Return what the spellings of an entity have in common: its words, folded, without the kind of an id."""
    bare = entity.partition(":")[2] or entity
    return phrase(bare).strip() or bare
