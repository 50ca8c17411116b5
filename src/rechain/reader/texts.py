"""A chain as the network reads it: question and passages in order, with the linking entities marked.

A text has at most `max_tokens` tokens. A passage that is longer than its share is read in windows: the sentences that
mention its entities and the answer, then those that hold most of the question, in the order of the text. So the whole
of a passage is searched, however long it is, and what matters in it is read.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from tokenizers import Encoding, Tokenizer

from rechain.reader.settings import FIRST_END, FROM_BEFORE, LAST_END, TO_NEXT
from rechain.system.tensors import Array
from rechain.text.candidates import Candidate, Candidates
from rechain.text.languages import rarities
from rechain.text.linking import Edge
from rechain.text.passage_views import PassageView, SentenceOverlaps, stretches, title_before
from rechain.text.words import Span, Text, lazy

_MARKED, _ANSWERING = 1000.0, 500.0
"""value of a sentence for each marked entity and for the answer, compared with the rarity of the question's words in
it, which is seldom close to either: a window without the link or the answer could not show why the chain is right"""
_QUESTION_PART = 3
"""a question has at most a third of `max_tokens`, so that some room is left for the passages; of a longer one the
beginning and the end are read, which usually contain the request"""
_ANSWER_TOKENS, _ANSWER_CHARACTERS = 48, 2000
"""what the judge reads of an answer at most: of a longer one the beginning and the end; the rest is not
cut into tokens"""
_LONGEST = 250_000
"""characters of a text that are cut into tokens, about 80 pages: a tokeniser takes 100 bytes for each token, of which
one of a strange model may make 33 of a character"""
_TITLE_PART = 4
"""a title has at most a quarter of a passage's tokens where not all of it can be read"""

Marks = dict[int, Sequence[Span | None]]
"""the places in a text by kind; None is the title"""


class Case(NamedTuple):
    """What the judge decides: whether passages support an answer, or one claim of it, to a question."""

    passages: Sequence[int]
    """positions of the passages, in order"""
    answer: str
    """in its own words, in a sentence or not"""
    spans: Mapping[int, Sequence[Span | None]]
    """its places in the passages, by position; None is the title"""
    edges: Sequence[Edge] = ()
    """what links passages; none if they are side by side"""
    between: Sequence[tuple[int, int]] = ()
    """the places in `passages` that each link joins"""


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


class Arrival(NamedTuple):
    """A passage that chains reach from another one, and how they go on: what the Reasoner reads alone."""

    passage: int
    way_on: Edge | None
    """the link to the next passage; None: it is the last"""
    ways: list[Edge]
    """one link for each entity that leads there"""

    @property
    def key(self) -> tuple[int, str | None]:
        """What distinguishes it from others of the same question."""
        return self.passage, None if self.way_on is None else self.way_on.key


class Arrivals:
    """Where chains arrive after their first passage, and the entities that may have led there."""

    def __init__(self, chains: Iterable[Candidate]) -> None:
        self.all: list[Arrival] = []
        self._numbers: dict[tuple[int, str | None], int] = {}
        for chain in chains:
            for arrival, edge in _steps(chain):
                number = self._numbers.setdefault(arrival.key, len(self.all))
                if number == len(self.all):
                    self.all.append(arrival)
                if self._slot(number, edge) == 0:
                    self.all[number].ways.append(edge)

    def places(self, chain: Candidate) -> list[tuple[int, int]]:
        """Return for each passage but the first the number of the arrival, and the slot of its link there, from 1."""
        numbers = [(self._numbers[arrival.key], edge) for arrival, edge in _steps(chain)]
        return [(number, self._slot(number, edge)) for number, edge in numbers]

    def _slot(self, number: int, edge: Edge) -> int:
        return next((slot for slot, way in enumerate(self.all[number].ways, 1) if way.key == edge.key), 0)


def _steps(chain: Candidate) -> Iterator[tuple[Arrival, Edge]]:
    """Yield where a chain arrives after its first passage, and the link that leads there; other shapes do not."""
    if chain.shape != "chain":
        return
    for passage, edge, way_on in zip(chain.passages[1:], chain.edges, (*chain.edges[1:], None), strict=True):
        yield Arrival(passage, way_on, []), edge


class ChainTexts:
    """Writes the chains of one question as tokens."""

    def __init__(self, candidates: Candidates, tokenizer: Tokenizer) -> None:
        self._candidates = candidates
        self._tokenizer = tokenizer
        self._rarities = rarities(Text(candidates.question.question))
        self._answer = candidates.holdings.phrases
        self._passages: dict[int, _PassageTokens] = {}
        self._first, *_, self._separator = tokenizer.encode("").ids
        self._question = self._encode(candidates.question.question)

    def chain(self, chain: Candidate, max_tokens: int) -> TokenText:
        """Return a chain: question, then every passage with its links marked."""
        marks = [
            self._end_marks(passage, place == 0, place == len(chain.passages) - 1)
            | self._link_marks(passage, place, chain)
            for place, passage in enumerate(chain.passages)
        ]
        return self._write(self._start(max_tokens), chain.passages, marks, max_tokens, answer=self._answer)

    def arrival(self, arrival: Arrival, max_tokens: int) -> TokenText:
        """Return a passage alone, as the Reasoner reads it: a slot for each entity that may have led there.

        The link that leads on is marked as in a whole chain, so that both entities of a step are seen.
        """
        passage, way_on, ways = arrival
        view = self._candidates.views[passage]
        slots = {slot: _spans(view, edge, 1) for slot, edge in enumerate(ways, 1)}
        marks = self._end_marks(passage, is_first=False, is_last=way_on is None)
        if way_on is not None:
            marks[TO_NEXT] = _spans(view, way_on, 0)
        answer = self._answer if way_on is None else None
        return self._write(self._start(max_tokens), [passage], [marks], max_tokens, [slots], answer)

    def case(self, case: Case, max_tokens: int) -> TokenText:
        """Return what the judge reads: question, answer (as slot 1), and passages with the answer marked.

        The case may be of another answer than that of these candidates.
        """
        answer = _cut(self._encode(case.answer[:_ANSWER_CHARACTERS]), min(_ANSWER_TOKENS, max_tokens // _QUESTION_PART))
        start = _joined([self._start(max_tokens), unmarked(answer, slot=1), unmarked([self._separator])])
        marks = [
            self._link_marks(passage, place, case) | {LAST_END: case.spans.get(passage, ())}
            for place, passage in enumerate(case.passages)
        ]
        return self._write(start, case.passages, marks, max_tokens)

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _start(self, max_tokens: int) -> TokenText:
        """Return the question as every text begins with it."""
        question = _cut(self._question, max_tokens // _QUESTION_PART)
        return unmarked([self._first, *question, self._separator])

    def _link_marks(self, passage: int, place: int, linked: "Candidate | Case") -> Marks:
        """Return the places of the links of a passage to those before and after it."""
        view = self._candidates.views[passage]
        marks: dict[int, list[Span | None]] = {}
        for (before, after), edge in zip(linked.between, linked.edges, strict=True):
            if place == after:
                marks.setdefault(FROM_BEFORE, []).extend(_spans(view, edge, 1))
            if place == before:
                marks.setdefault(TO_NEXT, []).extend(_spans(view, edge, 0))
        return {**marks}

    def _end_marks(self, passage: int, is_first: bool, is_last: bool) -> Marks:
        """Return the places of the entities of question and answer, if the data names them."""
        question, view = self._candidates.question, self._candidates.views[passage]
        heads = [span for entity in question.question_entities for span in view.mentions(entity)] if is_first else []
        answer = view.mentions(question.answer_entity) if is_last and question.answer_entity else []
        return {FIRST_END: heads, LAST_END: answer}

    def _write(
        self,
        start: TokenText,
        passages: Sequence[int],
        marks: Sequence[Marks],
        max_tokens: int,
        slots: Sequence[Marks] | None = None,
        answer: frozenset[str] | None = None,
    ) -> TokenText:
        """Return a start and some passages, each with its share of the room and a separator after it.

        If `answer` is given, the sentences of the last passage that contain it come first.
        """
        tokens, slots = self._tokens(passages), slots or [{} for _ in passages]
        shares = share_out(max_tokens - len(start.ids) - len(passages), [passage.size for passage in tokens])
        answers = [None] * (len(passages) - 1) + [answer]
        texts, end = [start], unmarked([self._separator])
        for passage, share, marked, slotted, wanted in zip(tokens, shares, marks, slots, answers, strict=True):
            texts += [passage.write(share, marked, slotted, wanted), end]
        return _joined(texts)

    def _tokens(self, passages: Collection[int]) -> list["_PassageTokens"]:
        """Return the tokens of passages; each is cut into tokens once, however many chains it is in."""
        new = [passage for passage in passages if passage not in self._passages]
        views = [self._candidates.views[passage] for passage in new]
        titles = [title_before(view.passage) for view in views]
        texts = [view.passage.text[:_LONGEST] for view in views]
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
        return SentenceOverlaps(self._view, self._rarities, [s for s in stretches(self._view) if s[1] <= _LONGEST])

    def write(self, most: int, marks: Marks, slots: Marks, answer: frozenset[str] | None) -> TokenText:
        """Return the passage, or as many of its tokens as there is room for."""
        tokens = TokenText(self._ids, self._kinds(marks), self._kinds(slots))
        if self.size <= most:
            return tokens
        kept = self._windows(most, np.maximum(tokens.marks, tokens.slots), answer)
        return TokenText(*(column[kept] for column in tokens))

    def _kinds(self, marks: Marks) -> Array:
        """Return for every token the kind of mark that it belongs to, 0 if there is none."""
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

    def _windows(self, most: int, marks: Array, answer: frozenset[str] | None) -> Array:
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

    def _ranked(self, marks: Array, answer: frozenset[str] | None) -> list[int]:
        """Return the sentences: first those that mention most entities, then the answer, then most of the question."""
        worth = np.array(self._sentences.overlaps, dtype=float)
        for number, span in enumerate(self._sentences.spans):
            worth[number] += _MARKED * len(set(marks[self._at(span)].tolist()) - {0})
        if answer is not None:
            worth[self._sentences.holding(answer)] += _ANSWERING
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


def _cut(ids: list[int], most: int) -> list[int]:
    """Return the beginning and the end of tokens that are more than `most`."""
    return ids if len(ids) <= most else ids[: most // 2] + ids[-(most - most // 2) :]


def unmarked(ids: Sequence[int] | Array, slot: int = 0) -> TokenText:
    """Return tokens without marks, all of one slot."""
    marks = np.zeros(len(ids), dtype=np.uint8)
    return TokenText(np.array(ids, dtype=np.uint32), marks, marks + np.uint8(slot))


def _joined(texts: Sequence[TokenText]) -> TokenText:
    return TokenText(*(np.concatenate(column) for column in zip(*texts, strict=True)))


def _spans(view: PassageView, edge: Edge, side: int) -> Sequence[Span | None]:
    """Return the places of a link in the passage before it (side 0) or after it (side 1)."""
    if edge.is_given:
        return view.mentions(edge.key)
    return [edge.link.mentions[side]]
