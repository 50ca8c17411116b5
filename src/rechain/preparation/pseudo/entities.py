"""Pseudo questions from passages whose entities the data gives: another pair of entities, and a chain between them."""

from collections.abc import Sequence
from itertools import filterfalse, pairwise
from random import Random

from rechain.preparation.pseudo.pool import Company, Pool, PseudoQuestion, PseudoSettings
from rechain.schema import Passage, Question
from rechain.text.passages import PassageView

_LINKING = (4, 9)
"""how many passages that mention a linking entity are brought in, at least and at most: they make other chains"""
_AT_AN_END = (1, 3)
"""how many that mention the question's entity, or the answer's"""


def chain_types(question: Question) -> tuple[str, ...]:
    """Return the types of the entities along a source's chain, from that of the question to that of the answer.

    Empty where the data does not give them.
    """
    if not question.question_entities or question.answer_entity is None or not question.link_types:
        return ()
    return _type_of(question.question_entities[0]), *question.link_types, _type_of(question.answer_entity)


def _type_of(entity: str) -> str:
    return entity.partition(":")[0]


class EntitySource:
    """The passages of one context, from which chains start, and those of the pool, through which they go on."""

    def __init__(self, passages: Sequence[Passage], types: Sequence[str], pool: Pool, settings: PseudoSettings) -> None:
        self._passages = passages
        self._types = types
        self._pool = pool
        self._settings = settings

    def draft(self, random: Random, source: str, number: int) -> PseudoQuestion | None:
        """Return a question from a random walk over passages, or None where it led nowhere."""
        walk = _Walk(self._types, self._pool, random)
        if not walk.goes_through(random.choice(self._passages)):
            return None
        first, *links, last = walk.entities
        if not set(self._pool.mentioning(first)).isdisjoint(self._pool.mentioning(last)):
            return None
        passages, chain = self._company(walk, random).shuffled(random)
        question = Question(
            id=f"{source}~{number}",
            question=self._settings.pattern.replace("{}", _mention_text(walk.passages[0], first)),
            answer=_mention_text(walk.passages[-1], last),
            question_entities=[first],
            answer_entity=last,
            hops=len(links) + 1,
            link_types=list(self._types[1:-1]),
            passages=passages,
        )
        return PseudoQuestion(question, chain, source, tuple(links))

    def _company(self, walk: "_Walk", random: Random) -> Company:
        """Return the chain among passages that mention its entities and others, none of which could replace its own."""
        size = random.randint(*self._settings.passages)
        company = Company(walk.passages)
        for number, entity in enumerate(walk.entities):
            most = random.randint(*(_LINKING if 0 < number < len(walk.entities) - 1 else _AT_AN_END))
            numbers = self._pool.mentioning(entity)
            mentioning = [self._pool.passages[n] for n in random.sample(numbers, min(2 * most, len(numbers)))]
            room = min(most, size - len(company.passages))
            company.add(filterfalse(walk.could_go_through, mentioning), room)
        others = random.sample(self._passages, len(self._passages))
        company.add(filterfalse(walk.could_go_through, others), size - len(company.passages))
        return company


class _Walk:
    """A way from passage to passage, by entities of the right types that stand together in a sentence."""

    def __init__(self, types: Sequence[str], pool: Pool, random: Random) -> None:
        self._types = types
        self._pool = pool
        self._random = random
        self.passages: list[Passage] = []
        self.entities: list[str] = []

    def goes_through(self, start: Passage) -> bool:
        """Walk from a passage on and return whether the end was reached."""
        passage = start
        while True:
            self.passages.append(passage)
            if not self._step(passage):
                return False
            if len(self.entities) == len(self._types):
                return True
            numbers, ids = self._pool.mentioning(self.entities[-1]), {passage.id for passage in self.passages}
            others = [other for other in map(self._pool.passages.__getitem__, numbers) if other.id not in ids]
            if not others:
                return False
            passage = self._random.choice(others)

    def could_go_through(self, passage: Passage) -> bool:
        """Return whether a passage holds two adjacent entities of the way in one sentence."""
        sentences = self._pool.entity_sentences(passage)
        places = [sentences.get(entity, frozenset()) for entity in self.entities]
        return any(not one.isdisjoint(two) for one, two in pairwise(places))

    def _step(self, passage: Passage) -> bool:
        """Choose the entity by which to leave a passage; in the first, also the one to start from."""
        sentences = self._pool.entity_sentences(passage)
        if not self.entities:
            starts = [entity for entity in sentences if _type_of(entity) == self._types[0]]
            if not starts:
                return False
            self.entities.append(self._choose(starts))
        kind, here = self._types[len(self.entities)], sentences[self.entities[-1]]
        beside = [
            entity
            for entity, there in sentences.items()
            if _type_of(entity) == kind and entity not in self.entities and not here.isdisjoint(there)
        ]
        if beside:
            self.entities.append(self._choose(beside))
        return bool(beside)

    def _choose(self, entities: Sequence[str]) -> str:
        """Return one of some entities, those more often that few passages mention."""
        rarity = [1 / len(self._pool.mentioning(entity)) for entity in entities]
        return self._random.choices(entities, rarity)[0]


def _mention_text(passage: Passage, entity: str) -> str:
    start, end = PassageView(passage).mentions(entity)[0]
    return passage.text[start:end]
