"""A chain as the network reads it: question and passages in order, with the linking entities marked.

A text has at most `max_tokens` tokens. A passage that is longer than its share is read in windows: the sentences that
mention its entities and the answer, then those that hold most of the question, in the order of the text. So the whole
of a passage is searched, however long it is, and what matters in it is read.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from tokenizers import Encoding, Tokenizer

from rechain.candidates import Candidate, Candidates
from rechain.linking import Edge
from rechain.preparation.arrays import FIRST_END, FROM_BEFORE, LAST_END, TO_NEXT
from rechain.system.tensors import Array
from rechain.text.answers import AnswerMatcher
from rechain.text.passages import PassageView, SentenceOverlaps, stretches, title_before
from rechain.text.rarity import rarities
from rechain.text.words import Span, Text, lazy

_MARKED, _ANSWERING = 1000.0, 500.0
"""what a sentence is worth for each marked entity and for the answer, beside the rarity of the question's words in it,
which seldom comes near either: a window without the link or the answer could not show why the chain is right"""
_QUESTION_PART = 3
"""a question has at most a third of `max_tokens`, so that some room is left for the passages; of a longer one the
beginning and the end are read, where the asking stands"""
_TITLE_PART = 4
"""a title has at most a quarter of a passage's tokens where not all of it can be read"""

Marks = Mapping[int, Sequence[Span | None]]
"""by kind, where it stands in a text; None is the title"""


class TokenText(NamedTuple):
    """The tokens of a text, what each is marked as, and to which of several entities it belongs (0: none)."""

    ids: Array
    marks: Array
    slots: Array


def flat_texts(texts: Sequence[TokenText]) -> dict[str, Array]:
    """Return texts one after another, and where each begins."""
    lengths = [len(text.ids) for text in texts]
    ids, marks, slots = (np.concatenate(column) for column in zip(*texts, strict=True))
    return {
        "ids": ids.astype(np.uint16 if ids.max(initial=0) < 2**16 else np.int32),
        "marks": marks,
        "slots": slots,
        "text_start": np.cumsum([0, *lengths], dtype=np.int64),
    }


class Tails:
    """The last passages of chains, and the entities that link each of them to passages before it."""

    def __init__(self, chains: Sequence[Candidate]) -> None:
        self.edges: dict[int, list[Edge]] = {}
        """by tail, one edge for each entity"""
        self._slots: dict[tuple[int, str], int] = {}
        for chain in chains:
            tail, edge = chain.passages[-1], chain.edges[-1]
            edges = self.edges.setdefault(tail, [])
            if (tail, edge.key) not in self._slots:
                edges.append(edge)
                self._slots[tail, edge.key] = len(edges)
        self._numbers = {tail: number for number, tail in enumerate(self.edges)}

    def place(self, chain: Candidate) -> tuple[int, int]:
        """Return the number of a chain's tail among the tails, and that of its last link among the tail's, from 1."""
        tail = chain.passages[-1]
        return self._numbers[tail], self._slots[tail, chain.edges[-1].key]


class ChainTexts:
    """Writes the chains of one question as tokens."""

    def __init__(self, candidates: Candidates, tokenizer: Tokenizer, max_tokens: int) -> None:
        self._candidates = candidates
        self._tokenizer = tokenizer
        self._rarities = rarities(Text(candidates.question.question))
        self._answer = AnswerMatcher(candidates.question)
        self._passages: dict[int, _PassageTokens] = {}
        first, *_, separator = tokenizer.encode("").ids
        question = list(tokenizer.encode(candidates.question.question, add_special_tokens=False).ids)
        most = max_tokens // _QUESTION_PART
        if len(question) > most:
            question = question[: most // 2] + question[-(most - most // 2) :]
        self._start = _unmarked([first, *question, separator])
        self._end = _unmarked([separator])
        self._room = max_tokens - len(self._start.ids)

    def chain(self, chain: Candidate) -> TokenText:
        """Return a chain: question, then every passage with its links marked."""
        marks = [self._marks(chain, place) for place in range(len(chain.passages))]
        return self._write(chain.passages, marks, [{} for _ in chain.passages])

    def tail(self, tail: int, edges: Iterable[Edge]) -> TokenText:
        """Return the last passage alone, as the Reasoner reads it, with the tokens of each entity that may link it."""
        slots = {slot: _spans(self._candidates.views[tail], edge, 1) for slot, edge in enumerate(edges, 1)}
        return self._write([tail], [self._end_marks(tail, is_first=False, is_last=True)], [slots])

    def _marks(self, chain: Candidate, place: int) -> Marks:
        """Return what to mark in a passage of a chain."""
        passage, last = chain.passages[place], len(chain.passages) - 1
        view = self._candidates.views[passage]
        marks = dict(self._end_marks(passage, place == 0, place == last))
        if place > 0:
            marks[FROM_BEFORE] = _spans(view, chain.edges[place - 1], 1)
        if place < last:
            marks[TO_NEXT] = _spans(view, chain.edges[place], 0)
        return marks

    def _end_marks(self, passage: int, is_first: bool, is_last: bool) -> Marks:
        """Return where the entities of question and answer stand, as far as the data names them."""
        question, view = self._candidates.question, self._candidates.views[passage]
        heads = [span for entity in question.question_entities for span in view.mentions(entity)] if is_first else []
        answer = view.mentions(question.answer_entity) if is_last and question.answer_entity else []
        return {FIRST_END: heads, LAST_END: answer}

    def _write(self, passages: Sequence[int], marks: Sequence[Marks], slots: Sequence[Marks]) -> TokenText:
        """Return the question and some passages, each with its share of the room and a separator after it."""
        tokens = self._tokens(passages)
        shares = share_out(self._room - len(passages), [passage.size for passage in tokens])
        answers = [None] * (len(passages) - 1) + [self._answer]
        parts = [
            passage.write(share, marked, slotted, answer)
            for passage, share, marked, slotted, answer in zip(tokens, shares, marks, slots, answers, strict=True)
        ]
        columns = zip(self._start, *(column for part in parts for column in (part, self._end)), strict=True)
        return TokenText(*(np.concatenate(column) for column in columns))

    def _tokens(self, passages: Collection[int]) -> list["_PassageTokens"]:
        """Return the tokens of passages; each is cut into tokens once, however many chains it is in."""
        new = [passage for passage in passages if passage not in self._passages]
        views = [self._candidates.views[passage] for passage in new]
        titles = [title_before(view.passage) for view in views]
        texts = [view.passage.text for view in views]
        pairs = [text for title, body in zip(titles, texts, strict=True) for text in (title and f"{title}:", body)]
        encoded = self._tokenizer.encode_batch(pairs, add_special_tokens=False)
        for passage, view, title, text in zip(new, views, encoded[::2], encoded[1::2], strict=True):
            self._passages[passage] = _PassageTokens(view, title, text, self._rarities)
        return [self._passages[passage] for passage in passages]


class _PassageTokens:
    """A passage cut into tokens: its title, unless the text begins with it, and its text."""

    def __init__(self, view: PassageView, title: Encoding, text: Encoding, rarities: Mapping[str, float]) -> None:
        self._view = view
        self._rarities = rarities
        self._title = len(title.ids)
        self._ids = np.array([*title.ids, *text.ids], dtype=np.uint32)
        self._starts = np.array([start for start, _ in text.offsets], dtype=np.int64)
        self._ends = np.array([end for _, end in text.offsets], dtype=np.int64)
        self.size = len(self._ids)

    @lazy
    def _sentences(self) -> SentenceOverlaps:
        return SentenceOverlaps(self._view, self._rarities, list(stretches(self._view)))

    def write(self, most: int, marks: Marks, slots: Marks, answer: AnswerMatcher | None) -> TokenText:
        """Return the passage, or as many of its tokens as there is room for."""
        tokens = TokenText(self._ids, self._kinds(marks), self._kinds(slots))
        if self.size <= most:
            return tokens
        kept = self._windows(most, np.maximum(tokens.marks, tokens.slots), answer)
        return TokenText(*(column[kept] for column in tokens))

    def _kinds(self, marks: Marks) -> Array:
        """Return for every token the kind of mark that it belongs to, 0 where there is none."""
        kinds = np.zeros(self.size, dtype=np.uint8)
        for kind, spans in marks.items():
            for span in spans:
                kinds[self._at(span)] = kind
        return kinds

    def _at(self, span: Span | None) -> slice:
        """Return the tokens of a stretch of the text, or of the title."""
        if span is None:
            return slice(0, self._title)
        first, last = np.searchsorted(self._ends, span[0], "right"), np.searchsorted(self._starts, span[1], "left")
        return slice(self._title + int(first), self._title + int(max(last, first + 1)))

    def _windows(self, most: int, marks: Array, answer: AnswerMatcher | None) -> Array:
        """Return whether each token is kept: of the title, then sentence by sentence, the most telling first."""
        kept = np.zeros(self.size, dtype=bool)
        kept[: min(self._title, most // _TITLE_PART)] = True
        left = most - int(kept.sum())
        for sentence in self._ranked(marks, answer):
            tokens = self._at(self._sentences.spans[sentence])
            window = _around(tokens, marks[tokens], left)
            kept[window] = True
            left -= window.stop - window.start
            if left <= 0:
                break
        return kept

    def _ranked(self, marks: Array, answer: AnswerMatcher | None) -> list[int]:
        """Return the sentences: first those that mention most entities, then the answer, then most of the question."""
        worth = np.array(self._sentences.overlaps, dtype=float)
        for number, span in enumerate(self._sentences.spans):
            worth[number] += _MARKED * len(set(marks[self._at(span)].tolist()) - {0})
        if answer is not None:
            worth[self._sentences.holding(answer.phrases)] += _ANSWERING
        return np.argsort(-worth, kind="stable").tolist()


def _around(tokens: slice, marks: Array, most: int) -> slice:
    """Return a stretch of at most `most` tokens, around what is marked in it if it is longer."""
    length = tokens.stop - tokens.start
    if length <= most:
        return tokens
    middle = int(np.flatnonzero(marks).mean()) if marks.any() else 0
    start = min(max(middle - most // 2, 0), length - most)
    return slice(tokens.start + start, tokens.start + start + most)


def share_out(room: int, sizes: Sequence[int]) -> list[int]:
    """Divide room evenly among passages of some sizes; what one does not need goes to the others."""
    shares = [0] * len(sizes)
    left = max(room, 0)
    for done, number in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[number] = min(sizes[number], left // (len(sizes) - done))
        left -= shares[number]
    return shares


def _unmarked(ids: Sequence[int]) -> TokenText:
    nothing = np.zeros(len(ids), dtype=np.uint8)
    return TokenText(np.array(ids, dtype=np.uint32), nothing, nothing)


def _spans(view: PassageView, edge: Edge, side: int) -> Sequence[Span | None]:
    """Return where a link stands in the passage before it (side 0) or after it (side 1)."""
    if edge.is_given:
        return view.mentions(edge.key)
    return [edge.link.mentions[side]]
