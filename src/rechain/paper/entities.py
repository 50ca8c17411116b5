"""The entities by which the passages of a question are linked, where they are mentioned, and which of them are one.

Linkers find a title, its parts, a name and its words each by itself. To a Reasoner that has to choose one of them
these are one thing, whatever a passage calls it: equal and nested names are merged. No torch here.
"""

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rechain.paper.settings import ANSWER, ASKED, BESIDE
from rechain.scoring.steps import END
from rechain.text.answers.matcher import AnswerMatcher
from rechain.text.candidates import Candidates
from rechain.text.evidence.pairs import EntityPairs
from rechain.text.linking.linkers import Entity
from rechain.text.passage_views import PassageView
from rechain.text.words import Text

MAX_ENTITIES = 512
"""of a question, the heaviest: a long list of passages may share thousands, and each costs a row of every batch"""
_MANY, _MANY_SHARE = 2, 0.2
"""passages, and the share of a question's: a part of a name that more than these mention is no sign of that name
("John", "York"). Of 2, 3, 5 and any number, 2 best tells the chain of most evidence from others, without gold"""
DROPPED = -1
"""the number of an entity whose name is no sign of anything"""

_Key = tuple[bool, str]
"""whether the data names an entity, and its name"""


@dataclass(frozen=True)
class MergedEntity:
    """All names of one thing."""

    name: str
    """the longest of them"""
    is_given: bool
    weight: float
    holders: frozenset[int]


def merge(entities: Sequence[Entity], passages: int) -> tuple[list[MergedEntity], list[int]]:
    """Merge the entities of a question with so many passages; heaviest first, and the number that each has become.

    A name within exactly one longer name is another name of the same thing; within several it is its own thing. A
    title always is, as a page of its own is a thing of its own ("Sex and the City" is not its second film).
    """
    names: dict[_Key, list[Entity]] = {}
    for entity in entities:
        names.setdefault((entity.is_given, entity.name), []).append(entity)
    members: dict[_Key, list[_Key]] = {}
    for key, whole in _wholes(names).items():
        mentioned_in = {holder for entity in names[key] for holder in entity.holders}
        if whole == {key} or len(mentioned_in) <= max(_MANY, passages * _MANY_SHARE):
            (of,) = whole if len(whole) == 1 else (key,)
            members.setdefault(of, []).append(key)
    merged = {of: _merged(of, [entity for key in keys for entity in names[key]]) for of, keys in members.items()}
    order = sorted(merged, key=lambda key: (-merged[key].weight, key))
    numbers = {key: number for number, of in enumerate(order) for key in members[of]}
    return [merged[key] for key in order], [numbers.get((e.is_given, e.name), DROPPED) for e in entities]


def _wholes(names: dict[_Key, list[Entity]]) -> dict[_Key, set[_Key]]:
    """Return for every name the longest names that contain it: itself if there are none, it is a title, or given."""
    wholes: dict[_Key, set[_Key]] = {}
    for key in sorted((key for key in names if not key[0]), key=lambda key: -len(key[1])):
        is_title = any(entity.kind == "title" for entity in names[key])
        longer = () if is_title else [other for other in wholes if key[1] in other[1]]
        wholes[key] = set().union(*(wholes[other] for other in longer)) or {key}
    return {key: wholes.get(key, {key}) for key in names}


def _merged(key: _Key, entities: Sequence[Entity]) -> MergedEntity:
    holders = frozenset(holder for entity in entities for holder in entity.holders)
    return MergedEntity(key[1], key[0], max(entity.weight for entity in entities), holders)


def without_overlaps(spans: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return spans (start, length) of which no two share a word: of those that do, the longest, then the first."""
    kept: set[tuple[int, int]] = set()
    for start, length in sorted(spans, key=lambda span: (-span[1], span[0])):
        if all(start + length <= other or other + size <= start for other, size in kept):
            kept.add((start, length))
    return kept


def entity_names(candidates: Candidates, is_merged: bool = False) -> list[str]:
    """Return the names of a question's entities, in the order of their numbers in the arrays: all, or merged ones."""
    entities = QuestionEntities(candidates)
    return [entity.name for entity in (entities.merged if is_merged else entities.all)]


class QuestionEntities:
    """The entities of one question, as they were found and merged, with their mentions."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        graph = candidates.all_links()
        self._of_passage = [graph.entities(number) for number in range(len(candidates.views))]
        # the ends of a chain link nothing; an entity is identified by its object, as two finders may use one name
        linking = {id(e): e for entities in self._of_passage for e in entities if e.name not in candidates.ends}
        self.all = sorted(linking.values(), key=lambda entity: -entity.weight)[:MAX_ENTITIES]
        self.given = {entity.name: number for number, entity in enumerate(self.all) if entity.is_given}
        """the numbers of the entities that the data names"""
        self.merged, self._merged_numbers = merge(self.all, len(candidates.views))
        self._numbers = {id(entity): number for number, entity in enumerate(self.all)}
        self._pairs = EntityPairs(candidates) if candidates.names_entities else None
        self._words = [Words(view, candidates.names_entities) for view in candidates.views]

    def merged_number(self, number: int) -> int:
        """Return the number of the merged entity that an entity has become; END stays END."""
        return self._merged_numbers[number] if number != END else END

    def row(self, entity: Entity | MergedEntity) -> tuple[int, int]:
        """Return which links of a chain an entity may be, and which passages mention it, both as bits."""
        types, any_link = self._candidates.link_types, (1 << (self._candidates.hops - 1)) - 1
        fits = [entity.is_given and entity.name.startswith(f"{kind}:") for kind in types or ()]
        links = sum(1 << number for number, fit in enumerate(fits) if fit) if types else any_link
        return links, sum(1 << holder for holder in set(entity.holders))

    def mentions(self, passage: int) -> Iterator[tuple[int, int, int, int, float]]:
        """Yield (entity, merged entity, first word, words, weight) of every mention in a passage.

        Words that mention a merged entity by several of its names count once: its other mentions there are DROPPED.
        """
        present = [(self._numbers[id(e)], e) for e in self._of_passage[passage] if id(e) in self._numbers]
        words, merged = self._words[passage], self._merged_numbers
        spans = {number: words.spans(entity.name, entity.is_given) for number, entity in present}
        distinct: dict[int, set[tuple[int, int]]] = {}
        for number in spans:
            distinct.setdefault(merged[number], set()).update(spans[number])
        counted = {number: without_overlaps(of_entity) for number, of_entity in distinct.items() if number != DROPPED}
        for number, entity in present:
            weight = self._pairs.evidence(passage, entity.name) if self._pairs else entity.weight
            left = counted.get(merged[number], set())
            for span in spans[number]:
                yield number, merged[number] if span in left else DROPPED, *span, weight
                left.discard(span)  # another finder may have the very same words

    def marks(self, passage: int) -> Iterator[tuple[int, int]]:
        """Yield (word, kind) of words that mention an entity of the question or the answer, or are next to one."""
        question, words = self._candidates.question, self._words[passage]
        for entity in question.question_entities:
            yield from words.marks(entity, ASKED)
        if question.answer_entity is not None:
            yield from words.marks(question.answer_entity, ANSWER)
            return
        for phrase in sorted(AnswerMatcher(question).phrases):
            yield from ((word, ANSWER) for word, _ in words.spans(phrase, False))


class Words:
    """The words of a passage as networks read them: its title's, then its text's.

    If the data names entities, a text that begins with its title, such as an article's summary, is read without it.
    """

    def __init__(self, view: PassageView, names_entities: bool) -> None:
        self._view = view
        title = view.title.words
        self.has_title_once = names_entities and bool(title) and view.text.words[: len(title)] == title
        self._title_length = 0 if self.has_title_once else len(title)

    @property
    def all(self) -> list[str]:
        """All words."""
        return [*self._view.title.words[: self._title_length], *self._view.text.words]

    def spans(self, name: str, is_given: bool) -> list[tuple[int, int]]:
        """Return the first word and the number of words of every mention of a name, those in the title first."""
        view, first = self._view, self._title_length
        if is_given:
            ends = [(_word_at(view.text, start), _word_at(view.text, end - 1)) for start, end in view.mentions(name)]
            return [(first + start, end - start + 1) for start, end in ends]
        length = name.count(" ") - 1  # there is a blank on either side of every word
        in_title = [] if self.has_title_once else [(word, length) for word in _occurrences(view.title.joined, name)]
        return in_title + [(first + word, length) for word in _occurrences(view.text.joined, name)]

    def marks(self, entity: str, kind: int) -> Iterator[tuple[int, int]]:
        """Yield the words that mention an entity, and all words of the sentences that do."""
        view, first = self._view, self._title_length
        yield from ((word, kind) for word, _ in self.spans(entity, True))
        for sentence in set(view.sentences_with(entity)):
            start, end = (first + _word_at(view.text, offset) for offset in view.sentences[sentence])
            yield from ((word, kind + BESIDE) for word in range(start, end + 1))


def _word_at(text: Text, offset: int) -> int:
    """Return the number of the word at an offset of a text, or before it."""
    return max(bisect(text.places, (offset, len(text.original))) - 1, 0)


def _occurrences(joined: str, name: str) -> list[int]:
    """Return at which words a phrase occurs in a text's joined words."""
    words, word, last, at = [], 0, 0, joined.find(name)
    while at >= 0:
        word, last = word + joined.count(" ", last, at), at
        words.append(word)
        at = joined.find(name, at + len(name) - 1)  # the blank after one may be that before the next
    return words
