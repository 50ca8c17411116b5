"""From questions to the arrays that the networks read (`rechain.game.data` says how they lie there). No torch here."""

from bisect import bisect
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rechain.answers.matching import AnswerMatcher
from rechain.candidates import Candidates, CandidateSettings, find_candidates
from rechain.errors import QuestionError
from rechain.linking.linkers import Entity
from rechain.preparation.arrays import ANSWER, ASKED, BESIDE, STEP_FEATURES
from rechain.preparation.lexicon import Lexicon
from rechain.preparation.merging import DROPPED, merge, without_overlaps
from rechain.preparation.steps import END, QuestionSteps, StepOffers, log_count
from rechain.schema import Question
from rechain.scoring.lexical import Lexical
from rechain.scoring.pairs import EntityPairs, closeness
from rechain.system.tensors import Array
from rechain.text.collection import Statistics
from rechain.text.passages import PassageView
from rechain.text.words import Text

MAX_ENTITIES = 512
"""of a question, the heaviest: a long list of passages may share thousands, and each costs a row of every batch"""
_LAST_WORD = 2**15 - 1
"""the greatest position that int16 holds; no network reads so far"""
_LONGEST_MENTION = 2**8 - 1
"""words of a mention that are counted"""
COLLECTION = "collection"
"""what the lexical rule calls the rarity of entities in the collection"""


@dataclass
class _Lists:
    """Lists of different lengths, one after another."""

    values: list[Any] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    """where each list begins, then where the last one ends"""

    def add(self, values: Iterable[Any]) -> None:
        self.values += values
        self.starts.append(len(self.values))


class Preparation:
    """Takes questions one at a time and returns them as arrays; all must have chains of the same length."""

    def __init__(
        self, lexicon: Lexicon, settings: CandidateSettings | None = None, collection: Statistics | None = None
    ) -> None:
        """Number words by a lexicon; `collection` is where the passages come from, if that is known."""
        self.ids: list[str] = []
        """the questions that were taken"""
        self.left_out: Counter[str] = Counter()
        """why others were not"""
        self._lexicon = lexicon
        self._settings = settings
        self._hops: int | None = None
        self._texts: dict[tuple[str, str, bool], int] = {}
        self._tokens, self._passages, self._chains = _Lists(), _Lists(), _Lists()
        self._entities, self._merged, self._mentions, self._marks = _Lists(), _Lists(), _Lists(), _Lists()
        self._title_lengths: list[int] = []
        self._question_texts: list[int] = []
        self._lexical = Lexical()
        self._collection = collection
        self._steps, self._chain_steps, self._chain_rarity = _Lists(), list[Sequence[int]](), list[float]()
        self._offers: StepOffers | None = StepOffers()
        """the steps of all questions; None where the data does not name the entities of one"""

    def take(self, question: Question, made: tuple[int, ...] | None = None) -> bool:
        """Take a question, or count why it cannot be; `made` is the chain a pseudo question was made from."""
        try:
            candidates = find_candidates(question, self._settings, self._collection)
        except QuestionError as error:
            self.left_out[error.code] += 1
            return False
        if self._hops not in (None, candidates.hops):
            self.left_out["other_hops"] += 1
            return False
        if made is not None and all(chain.passages != made for chain in candidates.chains):
            self.left_out["other_chains"] += 1
            return False
        self.add(candidates, made)
        return True

    def add(self, candidates: Candidates, made: tuple[int, ...] | None = None) -> None:
        """Add a question whose C is known."""
        self._hops = candidates.hops
        self._add_texts(candidates.question, candidates.views, candidates.names_entities)
        entities = _QuestionEntities(candidates, made)
        self._entities.add(entities.rows())
        self._merged.add(entities.merged_rows())
        for passage in range(len(candidates.views)):
            self._mentions.add(entities.mentions(passage))
            self._marks.add(entities.marks(passage))
        rows, rarities = [], []
        for chain, contributions in zip(candidates.chains, self._lexical.score(candidates), strict=True):
            links = [entities.given.get(edge.key, -1) if edge.is_given else -1 for edge in chain.edges]
            merged = [entities.merging.number_of[link] if link >= 0 else -1 for link in links]
            rarities.append(contributions.get(COLLECTION, 0.0))
            lexical = sum(value for name, value in contributions.items() if name != COLLECTION)
            rows.append((*chain.passages, *links, *merged, chain.weight, lexical, chain.passages == made))
        self._chains.add(rows)
        self._add_steps(candidates, entities, np.array(rarities), np.array([row[-2] for row in rows]))

    def _add_steps(
        self, candidates: Candidates, entities: "_QuestionEntities", rarities: Array, lexical: Array
    ) -> None:
        """Add the steps that can be selected, where the data names the entities of this and all questions before."""
        if not candidates.names_entities or self._offers is None:
            self._offers = None
            return
        holders = [entities.entities[number].holders for number in entities.given.values()]
        steps = QuestionSteps(candidates, entities.given, holders)
        self._steps.add((*row[:4], *map(entities.merged_number, row[1:3]), *row.features) for row in steps.rows())
        self._chain_steps += steps.chains
        self._chain_rarity += rarities.tolist()
        self._offers.add(candidates, lexical + rarities)

    def tell(self, parts: Sequence[Sequence[int]]) -> dict[str, Array]:
        """Return what each of some parts of the questions, by number, tells of all chains; nothing without steps.

        chain_told  float32 [chains, parts]   log(pi / prior), summed over the steps of a chain
        """
        if self._offers is None:
            return {}
        columns = [np.concatenate([np.zeros(0), *self._offers.told(part)]) for part in parts]
        return {"chain_told": np.stack(columns, axis=1).astype(np.float32)}

    def add_reading(self, question: Question, entities: Collection[str], hops: int) -> None:
        """Add a question without C, of whose passages the Reasoner only names entities; these are passed by name."""
        self._hops = hops
        views = [PassageView(passage) for passage in question.passages]
        self._add_texts(question, views, True)
        any_link = (1 << (hops - 1)) - 1
        holders = [sum(1 << n for n, view in enumerate(views) if view.mentions(entity)) for entity in entities]
        self._entities.add((any_link, bits) for bits in holders)
        self._merged.add((any_link, bits) for bits in holders)
        for view in views:
            self._mentions.add(
                (n, n, *span, 0.0) for n, name in enumerate(entities) for span in _Words(view, True).spans(name, True)
            )
            self._marks.add(
                mark for entity in question.question_entities for mark in _Words(view, True).marks(entity, ASKED)
            )
        self._chains.add(())
        self._steps.add(self._read_steps(question, views, entities))

    def _read_steps(self, question: Question, views: Sequence[PassageView], entities: Collection[str]) -> Iterator[Any]:
        """Yield the heads that a Reasoner reads: each passage, the first entity of the question, and every other."""
        asked = next(iter(question.question_entities), "")
        for passage, view in enumerate(views if asked else ()):
            for number, name in enumerate(entities):
                rarities = (log_count(self._collection, entity) for entity in (asked, name))
                yield passage, END, number, 1, END, number, *closeness(view, asked, name), *rarities

    def _add_texts(self, question: Question, views: Sequence[PassageView], names_entities: bool) -> None:
        """Add the words of a question and of its passages; a text is kept once however many questions have it."""
        self.ids.append(question.id)
        numbers = [self._add_text(("", question.question, False), Text(question.question).words, 0)]
        for view in views:
            words = _Words(view, names_entities)
            key = view.passage.title, view.passage.text, words.has_title_once
            numbers.append(self._add_text(key, words.all, len(view.title.words)))
        self._question_texts.append(numbers[0])
        self._passages.add(numbers[1:])

    def _add_text(self, key: tuple[str, str, bool], words: Sequence[str], title_length: int) -> int:
        if key not in self._texts:
            self._texts[key] = len(self._texts)
            self._tokens.add(self._lexicon.numbers(words or ["?"]))  # a GRU reads one at least
            self._title_lengths.append(title_length)
        return self._texts[key]

    def arrays(self) -> dict[str, Array]:
        """Return everything that was taken."""
        hops = self._hops or 2
        chains = np.array(self._chains.values, dtype=np.float64).reshape(-1, 3 * hops + 1)
        mentions = np.array(self._mentions.values, dtype=np.float64).reshape(-1, 5)
        marks = np.array(self._marks.values, dtype=np.int64).reshape(-1, 2)
        size = -(-int(np.diff(self._passages.starts).max(initial=1)) // 8)  # bytes with a bit for every passage

        def holders(entities: _Lists) -> Array:
            joined = b"".join(bits.to_bytes(size, "little") for _, bits in entities.values)
            return np.frombuffer(joined, np.uint8).reshape(-1, size)

        return self._lexicon.arrays() | {
            "tokens": np.array(self._tokens.values, dtype=np.int32),
            "text_start": np.array(self._tokens.starts, dtype=np.int64),
            "title_length": np.array(self._title_lengths, dtype=np.int64),
            "question_text": np.array(self._question_texts, dtype=np.int64),
            "passage_text": np.array(self._passages.values, dtype=np.int64),
            "passage_start": np.array(self._passages.starts, dtype=np.int64),
            "entity_start": np.array(self._entities.starts, dtype=np.int64),
            "entity_links": np.array([links for links, _ in self._entities.values], dtype=np.uint8),
            "entity_holders": holders(self._entities),
            "merged_start": np.array(self._merged.starts, dtype=np.int64),
            "merged_links": np.array([links for links, _ in self._merged.values], dtype=np.uint8),
            "merged_holders": holders(self._merged),
            "mention_start": np.array(self._mentions.starts, dtype=np.int64),
            "mention_entity": mentions[:, 0].astype(np.int16),
            "mention_merged": mentions[:, 1].astype(np.int16),
            "mention_token": mentions[:, 2].clip(max=_LAST_WORD).astype(np.int16),
            "mention_length": mentions[:, 3].clip(max=_LONGEST_MENTION).astype(np.uint8),
            "mention_weight": mentions[:, 4].astype(np.float16),
            "mark_start": np.array(self._marks.starts, dtype=np.int64),
            "mark_token": marks[:, 0].clip(max=_LAST_WORD).astype(np.int16),
            "mark_kind": marks[:, 1].astype(np.uint8),
            "chain_start": np.array(self._chains.starts, dtype=np.int64),
            "chain_passages": chains[:, :hops].astype(np.int16),
            "chain_links": chains[:, hops : 2 * hops - 1].astype(np.int16),
            "chain_merged": chains[:, 2 * hops - 1 : 3 * hops - 2].astype(np.int16),
            "chain_link_weight": chains[:, 3 * hops - 2].astype(np.float32),
            "chain_lexical": chains[:, 3 * hops - 1].astype(np.float32),
            "chain_made": chains[:, 3 * hops].astype(np.uint8),
            **self._step_arrays(hops),
        }

    def _step_arrays(self, hops: int) -> dict[str, Array]:
        """Return the steps that can be selected; nothing where the data does not name the entities."""
        if self._offers is None or len(self._steps.starts) == 1:
            return {}
        steps = np.array(self._steps.values, dtype=np.float64).reshape(-1, 6 + STEP_FEATURES)
        return {
            "step_start": np.array(self._steps.starts, dtype=np.int64),
            "step_passage": steps[:, 0].astype(np.int16),
            "step_entities": steps[:, 1:3].astype(np.int16),
            "step_roles": steps[:, 3].astype(np.uint8),
            "step_merged": steps[:, 4:6].astype(np.int16),
            "step_features": steps[:, 6:].astype(np.float16),
            "chain_steps": np.array(self._chain_steps, dtype=np.int16).reshape(-1, hops),
            "chain_rarity": np.array(self._chain_rarity, dtype=np.float32),
        }


def prepare(
    questions: Iterable[Question],
    lexicon: Lexicon,
    settings: CandidateSettings | None = None,
    collection: Statistics | None = None,
) -> Preparation:
    """Take all questions that have chains."""
    preparation = Preparation(lexicon, settings, collection)
    for question in questions:
        preparation.take(question)
    return preparation


def entity_names(candidates: Candidates, is_merged: bool = False) -> list[str]:
    """Return the names of a question's entities, in the order of their numbers in the arrays: all, or merged ones."""
    entities = _QuestionEntities(candidates)
    return [entity.name for entity in (entities.merging.entities if is_merged else entities.entities)]


class _QuestionEntities:
    """The entities of one question by which its passages are linked, and where they stand."""

    def __init__(self, candidates: Candidates, passages: Collection[int] | None = None) -> None:
        """Find the entities of all passages, or of some: the others then have none."""
        self._candidates = candidates
        graph = candidates.all_links(passages)
        every = range(len(candidates.views))
        self._of_passage = [graph.entities(n) if n in (passages or every) else () for n in every]
        # the ends of a chain link nothing; an entity is known by its object, as two finders may use one name
        linking = {id(e): e for entities in self._of_passage for e in entities if e.name not in candidates.ends}
        self.entities = sorted(linking.values(), key=lambda entity: -entity.weight)[:MAX_ENTITIES]
        self.given = {entity.name: number for number, entity in enumerate(self.entities) if entity.is_given}
        """the numbers of the entities that the data names"""
        self.merging = merge(self.entities, len(candidates.views))
        self._numbers = {id(entity): number for number, entity in enumerate(self.entities)}
        self._pairs = EntityPairs(candidates) if candidates.names_entities else None
        self._words = [_Words(view, candidates.names_entities) for view in candidates.views]

    def merged_number(self, number: int) -> int:
        """Return the number of the merged entity that an entity comes to; END stays what it is."""
        return self.merging.number_of[number] if number != END else END

    def rows(self) -> Iterator[tuple[int, int]]:
        """Yield of every entity which links of a chain it may be, and which passages hold it, both as bits."""
        yield from (self._row(entity.name, entity.is_given, entity.holders) for entity in self.entities)

    def merged_rows(self) -> Iterator[tuple[int, int]]:
        """Yield the same of every merged entity."""
        yield from (self._row(entity.name, entity.is_given, entity.holders) for entity in self.merging.entities)

    def _row(self, name: str, is_given: bool, holders: Iterable[int]) -> tuple[int, int]:
        types, any_link = self._candidates.link_types, (1 << (self._candidates.hops - 1)) - 1
        fits = (is_given and name.startswith(f"{kind}:") for kind in types or ())
        links = sum(1 << number for number, fit in enumerate(fits) if fit) if types else any_link
        return links, sum(1 << holder for holder in set(holders))

    def mentions(self, passage: int) -> Iterator[tuple[int, int, int, int, float]]:
        """Yield (entity, merged entity, first word, words, weight) of every mention in a passage.

        Words that mention a merged entity by several of its names do so once: other mentions there are of none.
        """
        known = [(self._numbers[id(entity)], entity) for entity in self._of_passage[passage] if self._is_known(entity)]
        words, merged = self._words[passage], self.merging.number_of
        spans = {number: words.spans(entity.name, entity.is_given) for number, entity in known}
        distinct: dict[int, set[tuple[int, int]]] = {}
        for number in spans:
            distinct.setdefault(merged[number], set()).update(spans[number])
        counted = {number: without_overlaps(of_entity) for number, of_entity in distinct.items() if number != DROPPED}
        for number, entity in known:
            weight = self._pairs.evidence(passage, entity.name) if self._pairs else entity.weight
            left = counted.get(merged[number], set())
            for span in spans[number]:
                yield number, merged[number] if span in left else DROPPED, *span, weight
                left.discard(span)  # another finder may have the very same words

    def _is_known(self, entity: Entity) -> bool:
        return id(entity) in self._numbers

    def marks(self, passage: int) -> Iterator[tuple[int, int]]:
        """Yield (word, kind) of the words that mention an entity of the question, or the answer, or stand beside it."""
        question, words = self._candidates.question, self._words[passage]
        for entity in question.question_entities:
            yield from words.marks(entity, ASKED)
        if question.answer_entity is not None:
            yield from words.marks(question.answer_entity, ANSWER)
            return
        for phrase in sorted(AnswerMatcher(question).phrases):
            yield from ((word, ANSWER) for word, _ in words.spans(phrase, False))


class _Words:
    """The words of a passage as networks read them: its title's, then its text's.

    Where the data names entities, a text that begins with its title, as of an article's summary, is not read after it.
    """

    def __init__(self, view: PassageView, names_entities: bool) -> None:
        self._view = view
        title = view.title.words
        self.has_title_once = names_entities and bool(title) and view.text.words[: len(title)] == title
        self._before = 0 if self.has_title_once else len(title)
        """words before those of the text"""

    @property
    def all(self) -> list[str]:
        """All words."""
        return [*self._view.title.words[: self._before], *self._view.text.words]

    def spans(self, name: str, is_given: bool) -> list[tuple[int, int]]:
        """Return the first word and the number of words of every mention of a name, those in the title first."""
        view, before = self._view, self._before
        if is_given:
            ends = [(_word_at(view.text, start), _word_at(view.text, end - 1)) for start, end in view.mentions(name)]
            return [(before + first, last - first + 1) for first, last in ends]
        length = name.count(" ") - 1  # a blank stands on either side of every word
        in_title = [] if self.has_title_once else [(word, length) for word in _occurrences(view.title.joined, name)]
        return in_title + [(before + word, length) for word in _occurrences(view.text.joined, name)]

    def marks(self, entity: str, kind: int) -> Iterator[tuple[int, int]]:
        """Yield the words that mention an entity, and all words of the sentences that do."""
        view, before = self._view, self._before
        yield from ((word, kind) for word, _ in self.spans(entity, True))
        for sentence in set(view.sentences_with(entity)):
            start, end = (before + _word_at(view.text, offset) for offset in view.sentences[sentence])
            yield from ((word, kind + BESIDE) for word in range(start, end + 1))


def _word_at(text: Text, offset: int) -> int:
    """Return the number of the word that stands at an offset of a text, or before it."""
    return max(bisect(text.places, (offset, len(text.original))) - 1, 0)


def _occurrences(joined: str, name: str) -> list[int]:
    """Return at which words a phrase occurs in a text's joined words."""
    words, word, last, at = [], 0, 0, joined.find(name)
    while at >= 0:
        word, last = word + joined.count(" ", last, at), at
        words.append(word)
        at = joined.find(name, at + len(name) - 1)  # the blank after one may be that before the next
    return words
