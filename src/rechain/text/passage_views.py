"""A passage as linking and scoring see it: its title and text cut into words, sentences and lines, and its entities."""

import re
from bisect import bisect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import fsum
from typing import cast

from rechain.schema import Passage, Question
from rechain.text.values import Item
from rechain.text.values.normal import read_items
from rechain.text.words import Span, Text, lazy, strip_suffix

_VERY_LONG, _PART, _STEP = 1000, 300, 240
"""characters: a longer sentence (a list, a table, another script) is read in parts, which overlap so that what stands
at a cut is whole in one of them"""


HEADINGS = " > "
"""between the headings of a path, which is the title of a part of a document"""


def names_of(title: str) -> list[str]:
    """Return what other texts call a passage: its title and, of a path, the last heading, as `Text.joined`."""
    parts = (title, title.rsplit(HEADINGS, 1)[-1]) if HEADINGS in title else (title,)
    return [name.joined for name in (Text(strip_suffix(part)) for part in parts) if name.words]


def title_before(passage: Passage) -> str:
    """Return the title as it is to be read before the text: nothing where the text begins with it."""
    title, text = passage.title.strip(), passage.text
    begins_with_it = text.startswith(title) and not text[len(title) :][:1].isalnum()
    return "" if begins_with_it else title


class PassageView:
    """A passage, read once: everything that looks for something in it uses this view."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage
        self._sentences_with: dict[str, list[int]] = {}

    @lazy
    def title(self) -> Text:
        """The title without its bracketed suffix."""
        return Text(strip_suffix(self.passage.title))

    @lazy
    def names(self) -> Sequence[str]:
        """What other texts may call it: its title and, of a part of a document, its own heading."""
        if HEADINGS in self.passage.title:
            return names_of(self.passage.title)
        return [self.title.joined] if self.title.words else []

    @lazy
    def text(self) -> Text:
        """The text."""
        return Text(self.passage.text)

    @lazy
    def joined(self) -> str:
        """The folded words of title and text, as `Text.joined` has them; no phrase reaches from one to the other."""
        return f"{self.title.joined}\n{self.text.joined}"

    @lazy
    def vocabulary(self) -> frozenset[str]:
        """The distinct folded words of title and text."""
        return frozenset((*self.title.words, *self.text.words))

    @lazy
    def terms(self) -> frozenset[str]:
        """The distinct terms of title and text, by which passages are compared with questions."""
        if self.passage.text.isascii():
            return self.vocabulary
        return frozenset((*self.title.terms, *self.text.terms))

    @lazy
    def items(self) -> Sequence[Item]:
        """The words and values of the text: matching and verdicts read the same ones."""
        return read_items(self.passage.text)

    @lazy
    def sentences(self) -> list[Span]:
        """Where the sentences of the text begin and end."""
        return find_sentences(self.passage.text)

    @lazy
    def sentence_texts(self) -> list[Text]:
        """The sentences of the text, cut into words once for all that compare them with questions."""
        return [Text(self.passage.text[start:end]) for start, end in self.sentences]

    def sentence_number(self, place: int) -> int:
        """Return the number of the sentence in which a character of the text stands."""
        return bisect(self.sentences, (place, len(self.passage.text))) - 1

    def sentence_around(self, span: Span) -> Span:
        """Return the sentence in which a stretch of the text stands, or all those that it reaches into."""
        start, end = span
        return self.sentences[self.sentence_number(start)][0], self.sentences[self.sentence_number(end - 1)][1]

    def sentences_with(self, entity: str) -> list[int]:
        """Return the number of the sentence in which each mention of an entity stands."""
        if entity not in self._sentences_with:  # many pairs share an entity
            numbers = [self.sentence_number(start) for start, _ in self.mentions(entity)]
            self._sentences_with[entity] = numbers
        return self._sentences_with[entity]

    @lazy
    def given(self) -> Mapping[str, list[Span]]:
        """Where the entities that the data names stand in the text."""
        spans: dict[str, list[Span]] = {}
        for mention in self.passage.mentions:
            spans.setdefault(mention.entity, []).append((mention.start, mention.end))
        return spans

    @lazy
    def identifiers(self) -> Mapping[str, list[Span]]:
        """Where database identifiers stand in the text."""
        return find_identifiers(self.passage.text)

    @property
    def entities(self) -> Mapping[str, list[Span]]:
        """Where entities stand in the text: those that the data names or, without any, database identifiers."""
        return self.given if self.passage.mentions else self.identifiers

    def mentions(self, entity: str) -> list[Span]:
        """Return where an entity stands in the text: by the data's own mentions or, without any, as an identifier."""
        return (self.given if self.passage.mentions else self.identifiers).get(entity, [])


def stretches(view: PassageView) -> Iterator[Span]:
    """Yield where the sentences of a passage stand; of one that is very long, or no sentence at all, its parts."""
    for start, end in view.sentences:
        if end - start <= _VERY_LONG:
            yield start, end
        else:
            yield from ((part, min(part + _PART, end)) for part in range(start, end, _STEP))


class SentenceOverlaps:
    """How much of a question each sentence of a passage holds, or each of some other stretches of it."""

    def __init__(self, view: PassageView, rarities: Mapping[str, float], spans: Sequence[Span] | None = None) -> None:
        """Take the words of the question, with the rarity of each."""
        self.spans = view.sentences if spans is None else spans
        """where they stand"""
        if spans is None:
            self._texts = view.sentence_texts
        else:
            self._texts = [Text(view.passage.text[start:end]) for start, end in spans]
        self.overlaps = [fsum(rarities[word] for word in rarities.keys() & set(text.terms)) for text in self._texts]
        """the sum of the rarities of the question's words that each holds; `fsum`, as the words come in no order"""
        self._best: dict[Collection[str], float] = {}

    def holding(self, phrases: Collection[str]) -> list[int]:
        """Return which sentences hold one of some phrases."""
        return [n for n, text in enumerate(self._texts) if any(phrase in text.joined for phrase in phrases)]

    def best_with(self, phrases: tuple[str, ...] | frozenset[str]) -> float:
        """Return the greatest overlap of a sentence that holds one of some phrases; many chains share a link."""
        if phrases not in self._best:
            self._best[phrases] = max((self.overlaps[number] for number in self.holding(phrases)), default=0.0)
        return self._best[phrases]

    def overlap_at(self, span: Span) -> float:
        """Return the overlap of the sentence in which a stretch of the text begins."""
        return next((o for (_, end), o in zip(self.spans, self.overlaps, strict=True) if span[0] < end), 0.0)


def first_sentences(questions: Iterable[Question], most: int = 300) -> list[str]:
    """Return the first sentence of a passage of each of some questions: they say different things.

    300 sentences are 45,000 pairs, whose mean likeness is known to two decimals.
    """
    views = (PassageView(question.passages[0]) for question in islice(questions, most) if question.passages)
    return [view.passage.text[slice(*view.sentences[0])] for view in views if view.sentences]


# Database identifiers that stand in the text itself: DrugBank, UniProt, QAngaroo's masks.
_FORMS = {
    "drug": r"DB\d{5}",
    "protein": r"(?:[OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9](?:[A-Z][A-Z0-9]{2}[0-9]){1,2})",
    "mask": r"___MASK\d+___",
}
_IDENTIFIER = re.compile(r"(?<!\w)(?:" + "|".join(f"(?P<{kind}>{form})" for kind, form in _FORMS.items()) + r")(?!\w)")


def identifier(text: str) -> str | None:
    """Return the entity id of a text that is one identifier ("drug:DB00072"), else None."""
    match = _IDENTIFIER.fullmatch(text.strip())
    return f"{match.lastgroup}:{match.group()}" if match else None


def find_identifiers(text: str) -> dict[str, list[Span]]:
    """Return the entity ids of all identifiers in a text, and where they stand."""
    spans: dict[str, list[Span]] = {}
    for match in _IDENTIFIER.finditer(text):
        spans.setdefault(f"{match.lastgroup}:{match.group()}", []).append(match.span())
    return spans


def bm25_scores(question: Question, views: Sequence[PassageView]) -> Sequence[float]:
    """Return how like a question each of its passages is, by BM25."""
    import bm25s

    collection = [view.title.words + view.text.words for view in views]
    vocabulary = set().union(*collection)
    # bm25s takes no query without a word of the collection.
    query = [word for word in Text(question.question).words if word in vocabulary]
    if not query:
        return [0.0] * len(collection)
    retriever = bm25s.BM25()
    retriever.index(collection, show_progress=False)
    return cast(Sequence[float], retriever.get_scores(query))


# --- Sentences of prose and of the lists, tables and headings of real documents; and lines that texts share ----------

_CAPITALS = "A-Z" + "".join(character for character in map(chr, range(0x80, 0x590)) if character.isupper())
"""Latin, Greek, Cyrillic and Armenian"""
_CASELESS = "\u05d0-\u109f\u1100-\u1cff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""letters of scripts without capitals: Hebrew, Arabic, Indian scripts, Thai, Han, Hangul"""
_OPENING, _CLOSING = "\"'“‘„«¿¡*_", "\"'”’»*_"
"""quotes, and the asterisks and underscores of Markdown, which may stand between a full stop and the blank"""
_MONTHS = "Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"
# What ends no sentence although a blank and a capital may follow: "e.g. Rome" and German's "z. B. Hotels" (but "5 p.m."
# may end one), the number of a list's item ("1. Open"), the day of "14. Mai", and an initial beside a quote ('William
# E. "Bill" Myers').
_NO_STOP = (
    r"(?<!\b[b-oq-z][.][A-Za-z][.])(?<!\b[b-oq-z][.]\s[A-Za-z][.])(?!(?<=\b[b-oq-z][.])\s[A-Za-z][.])"
    r"(?<!^\d[.])(?<!^\d\d[.])(?<!\s\s\d[.])"
    rf"(?!(?:(?<=\b\d[.])|(?<=\b\d\d[.]))\s+(?:{_MONTHS})\b)"
    rf"(?<!\b[A-Z][.][{_CLOSING}])(?!(?<=\b[A-Z][.])\s+[{_OPENING}])"
)
# A capital or a bracket must follow, so that "approx. 5 km" stays whole; "Mr. Smith" is cut, which does little harm.
_STOP = re.compile(
    rf"[.!?…؟।۔][{_CLOSING}]{{0,2}}{_NO_STOP}(\s+)(?=[{_OPENING}]*[{_CAPITALS}{_CASELESS}]|[(\[])", re.MULTILINE
)
_FULL_WIDTH_STOP = re.compile(r"[。！？；][」』”’）】]?(\s*)(?=[^\s。！？；」』”’）】])")
# The cells of a table's row stay together.
_CLOSING_TAG = re.compile(r"(?:</(?:p|li|tr|h\d|dd|div)>|<br ?/?>)(\s*)(?=\S)", re.IGNORECASE)
# Possessive, as blanks at the end of a text would take quadratic time.
_LINE_BREAK = re.compile(r"(?<=\S)([^\S\n]*+\n\s*+)(?=\S)")
_BEGINS_A_LINE = re.compile(r"#{1,6}\s|[-*+•‣◦–]\s|\d{1,3}[.)]\s|[|>]|<\w")
"""a Markdown heading, an item of a list, a row of a table, a quotation, or an HTML tag"""
_CELLS = re.compile(r"\S(?:\s*\|\s*|\t+| {3,})\S")
"""what parts the cells of a table's row, also without a mark before the first"""
_SHORT_LINE = 60
"""characters: the lines of prose that is wrapped by hand are longer"""


def find_sentences(text: str) -> list[Span]:
    """Return where the sentences of a text stand, and the lines that are none: headings, items, rows of tables.

    Together they cover the text, but for the blanks between them.
    """
    gaps = set(_gaps(text))
    starts = [0, *sorted(end for _, end in gaps)]
    ends = [*sorted(start for start, _ in gaps), len(text)]
    return list(zip(starts, ends, strict=True))


def _gaps(text: str) -> Iterator[Span]:
    """Yield the blanks between sentences, often empty ones; where two rules find the same gap, both yield it."""
    yield from (match.span(1) for match in _STOP.finditer(text))
    if not text.isascii():
        yield from (match.span(1) for match in _FULL_WIDTH_STOP.finditer(text))
    if "<" in text:
        yield from (match.span(1) for match in _CLOSING_TAG.finditer(text))
    if "\n" in text:
        yield from (gap for match in _LINE_BREAK.finditer(text) if _ends_a_line(text, *(gap := match.span(1))))


def _ends_a_line(text: str, start: int, end: int) -> bool:
    """Return whether a line break parts two lines, and does not only wrap prose."""
    line = text[text.rfind("\n", 0, start) + 1 : start].lstrip()
    return (
        text.count("\n", start, end) > 1
        or _BEGINS_A_LINE.match(text, end) is not None
        or line.startswith(("#", "|"))
        or _CELLS.search(line) is not None
        or line.endswith((":", "："))
        or (len(line) < _SHORT_LINE and not text[end].islower())
    )


_LONGEST = 160
"""characters: a longer line is prose"""
_NUMBER = re.compile(r"\d+")
_LINE = re.compile(r"[^\n]+")


def find_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text that may be repeated elsewhere, with all numbers alike; one line alone is a text."""
    if "\n" in text:
        yield from (_normal(match.group()) for match in _LINE.finditer(text) if len(match.group()) <= _LONGEST)


def blank_lines(text: str, is_blanked: Callable[[str], bool]) -> str:
    """Return a text with blanks in place of some lines, so that offsets stay the same."""
    return _LINE.sub(lambda match: " " * len(match[0]) if is_blanked(_normal(match[0])) else match[0], text)


def _normal(line: str) -> str:
    return _NUMBER.sub("0", line.strip())
