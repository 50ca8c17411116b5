"""What people label: the answer of a question as a whole or, as experts on data that names entities, pairs of them.

A pair is a passage and the two entities at its sides on a chain: the one that leads into it and the one that leads on.
Several chains may share a pair, and a label of it counts for all of them. Single passages and passages side by side
have no pairs.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from rechain.errors import QuestionError
from rechain.schema import NotBlank, Question
from rechain.text.candidates import Candidate, Candidates, CandidateSettings
from rechain.text.collection import Statistics
from rechain.text.evidence.search import find_evidence, worth_showing
from rechain.text.linking import Edge
from rechain.text.words import lazy, phrase

Value = Literal["supported", "partly", "unsupported", "yes", "no", "unsure"]
"""verdicts on answers, and whether a passage relates the entities of a pair; "unsure" of either"""
PAIR_VALUES: tuple[Value, ...] = ("yes", "no", "unsure")
VERDICT_VALUES: tuple[Value, ...] = ("supported", "partly", "unsupported", "unsure")
Mode = Literal["answers", "pairs"]

THE_QUESTION = ""
"""stands for the question itself, where the data names no entity of it"""


class Unit(BaseModel):
    """One thing to label: the answer of a question, or a passage with two entities, in no order."""

    model_config = ConfigDict(frozen=True)

    question: NotBlank
    """the question's id"""
    passages: tuple[NotBlank, ...] = ()
    """of a pair: its passage"""
    entities: tuple[str, ...] = ()

    @field_validator("entities")
    @classmethod
    def _fit_the_passages(cls, entities: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if (len(info.data.get("passages", ())), len(entities)) not in ((0, 0), (1, 2)):
            raise PydanticCustomError("bad_unit", "a pair has one passage and two entities, an answer has neither")
        return tuple(sorted(entities))

    @property
    def mode(self) -> Mode:
        """Whether it is a pair or an answer."""
        return "pairs" if self.passages else "answers"


class Units:
    """The pairs of entities on the candidate chains of a question."""

    def __init__(self, candidates: Candidates) -> None:
        self.candidates = candidates
        self.pairs: dict[Unit, list[int]] = {}
        """every pair once, in order of first use, and the numbers of the chains that share it"""
        self._sides: dict[Unit, tuple[str, str]] = {}
        self._units: dict[tuple[int, str, str], Unit] = {}
        self.pairs_of = [[self._pair(*step) for step in _steps(candidates, chain)] for chain in candidates.chains]
        """the pairs on each chain, head first; none of a single passage and of passages side by side"""
        for number, pairs in enumerate(self.pairs_of):
            for pair in pairs:
                self.pairs.setdefault(pair, []).append(number)

    @property
    def question(self) -> Question:
        """The question whose units these are."""
        return self.candidates.question

    def waiting(self, values: Mapping[Unit, Value]) -> list[Unit]:
        """Return the pairs yet to be labelled after some labels: only those of which a chain may still be right."""
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
    """Return the pairs on a question's candidate chains, which have any length where nothing fixes one.

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
