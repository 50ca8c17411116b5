"""From questions to the arrays that `rechain.paper.data` reads, which says how they are laid out. No torch here."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from rechain.errors import QuestionError
from rechain.paper.entities import QuestionEntities, Words
from rechain.paper.lexicon import Lexicon
from rechain.paper.settings import ASKED, STEP_FEATURES
from rechain.schema import Question
from rechain.scoring.interface import Lexical
from rechain.scoring.steps import END, QuestionSteps, StepOffers
from rechain.system.tensors import Array
from rechain.text.candidates import Candidates, CandidateSettings, find_candidates
from rechain.text.collection import Statistics
from rechain.text.evidence.pairs import closeness, log_count
from rechain.text.passage_views import PassageView
from rechain.text.words import Text

COLLECTION = "collection"
"""what the lexical rule calls the rarity of entities in the collection"""
_LAST_WORD = 2**15 - 1
"""the greatest position in int16; no network reads so far"""
_LONGEST_MENTION = 2**8 - 1
"""the greatest number of words in uint8"""


def _columns(hops: int) -> dict[str, list[tuple[str, int | None, type]]]:
    """Return the arrays that each list becomes: name, numbers a row (None: a single one), type."""
    return {
        "text": [("tokens", None, np.int32)],
        "passage": [("passage_text", None, np.int64)],
        "mark": [("mark_token", None, np.int16), ("mark_kind", None, np.uint8)],
        "entity": [("entity_links", None, np.uint8)],
        "merged": [("merged_links", None, np.uint8)],
        "mention": [
            ("mention_entity", None, np.int16),
            ("mention_merged", None, np.int16),
            ("mention_token", None, np.int16),
            ("mention_length", None, np.uint8),
            ("mention_weight", None, np.float16),
        ],
        "chain": [
            ("chain_passages", hops, np.int16),
            ("chain_entity", hops - 1, np.int16),
            ("chain_merged", hops - 1, np.int16),
            ("chain_lexical", None, np.float32),
        ],
        "step": [
            ("step_passage", None, np.int16),
            ("step_entity", 2, np.int16),
            ("step_roles", None, np.uint8),
            ("step_merged", 2, np.int16),
            ("step_features", STEP_FEATURES, np.float16),
        ],
    }


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
        self._lexicon, self._settings, self._collection = lexicon, settings, collection
        self._hops: int | None = None
        self._rows: dict[str, list[Any]] = {name: [] for name in _columns(2)}
        self._starts: dict[str, list[int]] = {name: [0] for name in self._rows}
        self._holders: dict[str, list[int]] = {"entity": [], "merged": []}
        self._texts: dict[tuple[str, str, bool], int] = {}
        self._title_lengths: list[int] = []
        self._question_texts: list[int] = []
        self._lexical = Lexical()
        self._chain_steps: list[Sequence[int]] = []
        self._chain_rarity: list[float] = []
        self._offers: StepOffers | None = StepOffers()
        """the steps of all questions; None if the data does not name the entities of one"""

    def _add(self, name: str, rows: Iterable[Any]) -> None:
        """Add a list: numbers, or rows of them."""
        self._rows[name] += rows
        self._starts[name].append(len(self._rows[name]))

    def take(self, question: Question) -> bool:
        """Take a question, or count why it cannot be."""
        try:
            candidates = find_candidates(question, self._settings, self._collection)
        except QuestionError as error:
            self.left_out[error.code] += 1
            return False
        if self._hops not in (None, candidates.hops):
            self.left_out["other_hops"] += 1
            return False
        self.add(candidates)
        return True

    def add(self, candidates: Candidates) -> None:
        """Add a question whose C is known."""
        self._hops = candidates.hops
        self._add_texts(candidates.question, candidates.views, candidates.names_entities)
        entities = QuestionEntities(candidates)
        self._add_entities("entity", map(entities.row, entities.all))
        self._add_entities("merged", map(entities.row, entities.merged))
        for passage in range(len(candidates.views)):
            self._add_mentions(entities.mentions(passage), entities.marks(passage))
        contributions = self._lexical.score(candidates)
        rarity = [parts.get(COLLECTION, 0.0) for parts in contributions]
        lexical = [sum(value for name, value in parts.items() if name != COLLECTION) for parts in contributions]
        links = [
            [entities.given.get(edge.key, END) if edge.is_given else END for edge in chain.edges]
            for chain in candidates.chains
        ]
        rows = zip(candidates.chains, links, lexical, strict=True)
        self._add("chain", [(*c.passages, *ls, *map(entities.merged_number, ls), score) for c, ls, score in rows])
        if not candidates.names_entities or self._offers is None:
            self._offers = None
            return
        steps = QuestionSteps(candidates, entities.given, [entities.all[n].holders for n in entities.given.values()])
        self._add("step", ((*r[:4], *map(entities.merged_number, r[1:3]), *r.features) for r in steps.rows()))
        self._chain_steps += steps.chains
        self._chain_rarity += rarity
        self._offers.add(candidates, np.add(lexical, rarity))

    def _add_entities(self, name: str, rows: Iterable[tuple[int, int]]) -> None:
        links, holders = zip(*rows, strict=True) if (rows := list(rows)) else ((), ())
        self._add(name, links)
        self._holders[name] += holders

    def _add_mentions(self, mentions: Iterable[Sequence[float]], marks: Iterable[tuple[int, int]]) -> None:
        """Add the mentions and marks of a passage."""
        self._add(
            "mention",
            [(*who, min(first, _LAST_WORD), min(n, _LONGEST_MENTION), weight) for *who, first, n, weight in mentions],
        )
        self._add("mark", [(min(word, _LAST_WORD), kind) for word, kind in marks])

    def beliefs(self, parts: Sequence[Sequence[int]]) -> dict[str, Array]:
        """Return what each of some parts of the questions, by number, believes of all chains; nothing without steps.

        chain_beliefs  float32 [chains, parts]   log(pi / prior), summed over the steps of a chain
        """
        if self._offers is None:
            return {}
        columns = [np.concatenate([np.zeros(0), *self._offers.told(part)]) for part in parts]
        return {"chain_beliefs": np.stack(columns, axis=1).astype(np.float32)}

    def add_reading(self, question: Question, entities: Collection[str], hops: int) -> None:
        """Add a question without C, in whose passages the Reasoner only scores entities of these names."""
        self._hops = hops
        views = [PassageView(passage) for passage in question.passages]
        self._add_texts(question, views, names_entities=True)
        holders = [sum(1 << n for n, view in enumerate(views) if view.mentions(entity)) for entity in entities]
        for name in self._holders:
            self._add_entities(name, [((1 << (hops - 1)) - 1, bits) for bits in holders])
        for view in views:
            words = Words(view, names_entities=True)
            mentions = [(n, n, *span, 0.0) for n, name in enumerate(entities) for span in words.spans(name, True)]
            self._add_mentions(
                mentions, (m for entity in question.question_entities for m in words.marks(entity, ASKED))
            )
        self._add("chain", ())
        self._add("step", self._heads(question, views, entities))

    def _heads(self, question: Question, views: Sequence[PassageView], entities: Collection[str]) -> Iterator[Any]:
        """Yield the steps that a Reasoner reads as heads: a passage, the question's first entity, and every other."""
        asked = next(iter(question.question_entities), "")
        for passage, view in enumerate(views if asked else ()):
            for number, name in enumerate(entities):
                rarities = (log_count(self._collection, entity) for entity in (asked, name))
                yield passage, END, number, 1, END, number, *closeness(view, asked, name), *rarities

    def _add_texts(self, question: Question, views: Sequence[PassageView], names_entities: bool) -> None:
        """Add the words of a question and of its passages."""
        self.ids.append(question.id)
        self._question_texts.append(self._add_text(("", question.question, False), Text(question.question).words, 0))
        texts = []
        for view in views:
            words = Words(view, names_entities)
            key = view.passage.title, view.passage.text, words.has_title_once
            texts.append(self._add_text(key, words.all, len(view.title.words)))
        self._add("passage", texts)

    def _add_text(self, key: tuple[str, str, bool], words: Sequence[str], title_length: int) -> int:
        """Return the number of a text, which is kept once however many questions have it."""
        if key not in self._texts:
            self._texts[key] = len(self._texts)
            self._add("text", self._lexicon.numbers(words or ["?"]))  # a GRU reads at least one
            self._title_lengths.append(title_length)
        return self._texts[key]

    def arrays(self) -> dict[str, Array]:
        """Return everything that was taken."""
        hops = self._hops or 2
        arrays = self._lexicon.arrays()
        arrays["title_length"] = np.array(self._title_lengths, dtype=np.int64)
        arrays["question_text"] = np.array(self._question_texts, dtype=np.int64)
        size = -(-int(np.diff(self._starts["passage"]).max(initial=1)) // 8)  # bytes with a bit for every passage
        for name, holders in self._holders.items():
            bits = b"".join(one.to_bytes(size, "little") for one in holders)
            arrays[f"{name}_passages"] = np.frombuffer(bits, np.uint8).reshape(-1, size)
        has_steps = self._offers is not None and len(self._starts["step"]) > 1
        for name, columns in _columns(hops).items():
            if name != "step" or has_steps:
                arrays[f"{name}_start"] = np.array(self._starts[name], dtype=np.int64)
                arrays |= _split(self._rows[name], columns)
        if has_steps:
            arrays["chain_steps"] = np.array(self._chain_steps, dtype=np.int16).reshape(-1, hops)
            arrays["chain_rarity"] = np.array(self._chain_rarity, dtype=np.float32)
        return arrays


def _split(rows: list[Any], columns: Sequence[tuple[str, int | None, type]]) -> dict[str, Array]:
    """Return rows of numbers as one array for each column."""
    table, at, arrays = np.array(rows, np.float64).reshape(-1, sum(width or 1 for _, width, _ in columns)), 0, {}
    for name, width, kind in columns:
        block: Array = table[:, at : at + (width or 1)].astype(kind)
        arrays[name] = block[:, 0] if width is None else block
        at += width or 1
    return arrays


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
