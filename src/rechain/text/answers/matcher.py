"""Which passages hold the answer, and how well.

Tiers, best first: the whole answer stands in a passage word for word ("phrase"); it does but for the way in which
numbers, dates, units and plurals are written ("normalised"); the telling part of a longer answer does ("words"); a
sentence means what the answer says ("meaning"). Where a passage holds the answer word for word, nothing else is asked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import fsum
from typing import Any, NamedTuple

import numpy as np

from rechain.errors import QuestionError
from rechain.schema import Match, Passage, Question
from rechain.text.answers.claims import AnswerReading, Claim, read_answer
from rechain.text.languages import idf, is_foreign, rarities
from rechain.text.passage_views import PassageView, SentenceOverlaps
from rechain.text.values import Item, ValueIndex, same
from rechain.text.values.normal import read_items
from rechain.text.values.units import SYMBOLS
from rechain.text.words import Span, Text, is_unspaced, lazy, phrase

Meaning = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]
"""returns how alike each of some claims is to each of some sentences, 0 to 1, [claims][sentences]"""

_VALUE = 9.0
"""what a number or date counts beside the rarity of words: as much as the rarest of them"""
_LEAST_RARITY = 1.0
"""a telling word is never worth nothing, however common"""
_SCATTERED = 0.85
"""what telling words are worth that stand in one sentence, but not in a row"""
_NEARBY = 0.7
"""what a telling word is worth that stands in the title or in the sentence before or after"""
_LEAST_STRENGTH = 0.25
"""of a passage that holds a claim: less is chance; how little it is weighs in score and verdict"""
_LEAST_SHARE = 0.65
"""of the strength of the passage that holds a claim best; passages below are not ends of chains"""
_MOST_TAILS = 8
"""passages that hold a claim in some way, where none holds the answer word for word; the best are kept"""
_MOST_WORDS = 60
"""telling words of a claim that are looked for, the rarest: more tell nothing new"""
_CONTENT = 2.5
"""rarity of a word of the question that says what it is about: "the", "which" and the like have less"""
_MOST_JUDGED = 4
"""passages that may hold what a "yes" judges"""
_ALIKE = 0.55
"""from this likeness on a sentence may mean what a claim says: sentences that say other things have up to 0.5"""
_MOST_COMPARED, _LONGEST_COMPARED, _CHARACTERS = 200, 400, 24_000
"""sentences whose meaning is compared with a claim's, and characters of one and of all of them that are read: more than
logs have, and less than a second of one core's time"""
_MOST_CLAIMS = 50
"""of an answer and its aliases that are looked for in other words; word for word any number is"""
_MEANING = 0.6
"""what likeness is worth beside words: it does not tell a name or a number from another"""


class Holding(NamedTuple):
    """How a passage holds a claim."""

    match: Match
    strength: float
    """how much of what the claim says, 0 to 1"""
    span: Span | None = None
    """where in the text; None: in the title alone, or wherever the phrases of the claim stand"""


class HeldClaim(NamedTuple):
    """A claim, and the passages that hold it."""

    claim: Claim
    holdings: Mapping[int, Holding]
    """by the passage's position"""
    phrases: frozenset[str] = frozenset()
    """of what stands word for word: the folded words of the answer and its aliases"""

    def sentence(self, passage: int, view: PassageView) -> Span | None:
        """Return the sentence of a passage that holds the claim; None where none does, or its title alone.

        What stands word for word may reach over several sentences, which are returned together.
        """
        holding = self.holdings.get(passage)
        if holding is None:
            return None
        # Few claims are ever shown, so that phrases are not looked for before.
        span = holding.span or min((span for words in self.phrases for span in view.text.spans(words)), default=None)
        return None if span is None else view.sentence_around(span)


@dataclass(frozen=True, slots=True)
class Holdings:
    """What passages hold of an answer."""

    claims: Sequence[HeldClaim] = ()
    phrases: frozenset[str] = frozenset()
    """what was looked for: the folded words of the answer and its aliases, or the telling parts of its claims"""
    words: frozenset[str] = frozenset()
    """the words of the answer or, of a longer one, those that tell something"""
    is_judgement: bool = False
    """whether the answer is a mere "yes" or "no", so that the passages hold what the question says"""

    @property
    def tails(self) -> list[int]:
        """The passages that hold a claim, in their order."""
        return sorted({passage for held in self.claims for passage in held.holdings})

    def best(self, passage: int) -> Holding | None:
        """Return how a passage holds the claim that it holds best."""
        found = [held.holdings[passage] for held in self.claims if passage in held.holdings]
        return max(found, key=lambda holding: holding.strength, default=None)

    def spans(self, passage: int, view: PassageView) -> list[Span | None]:
        """Return where a passage holds what was looked for; None is its title."""
        spans = {span for words in self.phrases for span in view.text.spans(words)}
        holding = self.best(passage)
        if holding is not None and holding.span is not None and (holding.match == "phrase" or not spans):
            spans = {holding.span}  # also of "€120", whose words stand wherever "120" does
        is_in_title = any(words in view.title.joined for words in self.phrases)
        return [*([None] if is_in_title else []), *sorted(spans)]


class AnswerMatcher:
    """Looks for a question's answer or one of its aliases."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.entity = question.answer_entity
        phrases = {text: phrase(text) for text in (question.answer, *question.answer_aliases)}
        self.phrases = frozenset(filter(None, phrases.values()))
        # An answer without any letter or digit ("!!!") is looked for as it stands.
        self._symbols = [text.strip() for text, words in phrases.items() if not words and text.strip()]
        # Words do not show a unit that is written as a symbol: they find "€120" wherever "120" stands.
        self._amounts = {
            words: [item for item in read_items(text) if item.units]
            for text, words in phrases.items()
            if not SYMBOLS.isdisjoint(text)
        }

    def is_held_by(self, passage: Passage | PassageView) -> bool:
        """Return whether a passage holds the answer word for word, case and accents folded.

        Where the data names the answer's entity, that decides.
        """
        view = passage if isinstance(passage, PassageView) else PassageView(passage)
        if self.entity is not None:
            return bool(view.mentions(self.entity))
        return any(words in view.joined and self._has_units(words, view) for words in self.phrases) or any(
            text in view.passage.title or text in view.passage.text for text in self._symbols
        )

    def _has_units(self, words: str, view: PassageView) -> bool:
        """Return whether the words of an answer stand somewhere with the units that it writes as symbols."""
        amounts = self._amounts.get(words)
        return not amounts or any(next(_find_amounts(words, amounts, text), None) for text in (view.text, view.title))

    def hold(self, views: Sequence[PassageView], meaning: Meaning | None = None) -> Holdings:
        """Return which passages hold what of the answer; raises QuestionError where there is no answer or no tail."""
        question = self._question
        if self.entity is not None:
            return self._hold_entity(views)
        reading = read_answer(question.question, question.answer)
        if reading.kind == "none":
            raise QuestionError("no_answer", "the answer is empty, or says that there is none")
        _check_any(views)
        if reading.kind == "judgement":
            return Holdings(_Judged(question.question, views), is_judgement=True)
        tails = {number: view for number, view in enumerate(views) if self.is_held_by(view)}
        if tails:
            return self._hold_whole(reading, tails)
        search = _ClaimSearch(question.question, views, meaning)
        for claims in self._readings(reading):
            if (found := search.holdings(claims)).tails:
                return found
        texts = (question.answer, *question.answer_aliases)
        quoted = " or ".join(f"'{text if len(text) <= 80 else text[:79] + '…'}'" for text in texts)
        raise QuestionError("no_tail", f"no tail: no passage holds the answer {quoted}, nor what it says")

    def _readings(self, reading: AnswerReading) -> Iterator[Sequence[Claim]]:
        """Yield the claims of the answer and those of its aliases, up to so many in all."""
        aliases = (read_answer(self._question.question, alias) for alias in self._question.answer_aliases)
        read = 0
        for one in chain((reading,), aliases):
            if one.kind == "text":
                yield one.claims
            read += max(len(one.claims), 1)
            if read >= _MOST_CLAIMS:
                return

    def _hold_entity(self, views: Sequence[PassageView]) -> Holdings:
        """Return which passages mention the answer's entity."""
        _check_any(views)
        tails = {number: Holding("phrase", 1.0) for number, view in enumerate(views) if self.is_held_by(view)}
        if not tails:
            raise QuestionError("no_tail", f"no tail: no passage mentions the answer's entity '{self.entity}'")
        claim = Claim(self._question.answer, tuple(self.phrases), ())
        words = frozenset(Text(self._question.answer).words)
        return Holdings([HeldClaim(claim, tails, phrases=self.phrases)], self.phrases, words)

    def _hold_whole(self, reading: AnswerReading, tails: Mapping[int, PassageView]) -> Holdings:
        """Return that some passages hold the answer word for word; it is one claim then, whatever it says."""
        text = self._question.answer
        claim = reading.claims[0] if len(reading.claims) == 1 else Claim(text, tuple(self.phrases), ())
        holdings = {tail: Holding("phrase", 1.0, self._find_apart(view)) for tail, view in tails.items()}
        return Holdings([HeldClaim(claim, holdings, phrases=self.phrases)], self.phrases, frozenset(Text(text).words))

    def _find_apart(self, view: PassageView) -> Span | None:
        """Return where an answer stands in a text that its words alone do not find."""
        for words, amounts in self._amounts.items():
            if amounts and (span := next(_find_amounts(words, amounts, view.text), None)):
                return span
        places = ((view.passage.text.find(symbols), len(symbols)) for symbols in self._symbols)
        return next(((start, start + length) for start, length in places if start >= 0), None)


def _find_amounts(words: str, amounts: Sequence[Item], text: Text) -> Iterator[Span]:
    """Yield where words stand in a text together with all of some amounts, whatever their units are written like."""
    values = [value for value in read_items(text.original) if value.units]
    for start, end in text.spans(words):
        there = [value for value in values if value.start < end and start < value.end]
        if all(any(same(amount, value) for value in there) for amount in amounts):
            yield start, end


def _check_any(views: Sequence[PassageView]) -> None:
    if not views:
        raise QuestionError("too_few_passages", "the question has no passages")


class _Judged(Sequence[HeldClaim]):
    """The question as the one claim that a mere "yes" or "no" judges, looked for when it is needed first.

    Models that want a chain refuse such questions without it, and the search takes longer than all else of them.
    """

    def __init__(self, question: str, views: Sequence[PassageView]) -> None:
        self._question = question
        self._views = views

    @lazy
    def _claims(self) -> list[HeldClaim]:
        """Which passages hold most of what the question says."""
        words = tuple(dict.fromkeys(word for word in Text(self._question).words if idf(word) >= _CONTENT))
        claim = Claim(self._question, (), words)
        found = _ClaimSearch(self._question, self._views).holdings([claim])
        strengths = [(number, holding) for held in found.claims for number, holding in held.holdings.items()]
        best = sorted(strengths, key=lambda one: -one[1].strength)[:_MOST_JUDGED]
        return [HeldClaim(claim, {number: holding._replace(match="meaning") for number, holding in best})]

    def __len__(self) -> int:
        return 1

    def __getitem__(self, number: Any) -> Any:
        return self._claims[number]


class _Wanted(NamedTuple):
    """A telling word or value of a claim, or two characters of a script without blanks, and what it counts."""

    key: str
    weight: float
    value: Item | None = None


def _wanted(claim: Claim) -> list[_Wanted]:
    """Return what to look for: a claim's telling words, and the values that have one of them."""
    telling = set(claim.words)
    items = read_items(claim.text)
    wanted: dict[str, _Wanted] = {}
    before: Item | None = None
    for item in items:
        words = Text(claim.text[item.start : item.end]).words
        if telling.isdisjoint(words):
            before = None
            continue
        if item.is_value:
            wanted.setdefault(item.key, _Wanted(item.key, _VALUE, item))
        elif is_unspaced(item.key):
            if before is not None and before.end == item.start:
                pair = before.key + item.key
                wanted.setdefault(pair, _Wanted(pair, _LEAST_RARITY))
        else:
            wanted.setdefault(item.key, _Wanted(item.key, max(map(idf, words), default=_LEAST_RARITY)))
        before = item if is_unspaced(item.key) else None
    return sorted(wanted.values(), key=lambda one: -one.weight)[:_MOST_WORDS]


def _total(wanted: Sequence[_Wanted]) -> float:
    return fsum(one.weight for one in wanted)


class _ClaimSearch:
    """Looks for claims sentence by sentence."""

    def __init__(self, question: str, views: Sequence[PassageView], meaning: Meaning | None = None) -> None:
        self._question = question
        self._views = views
        self._meaning = meaning
        self._sentences = [_NormalSentences(view) for view in views]

    def holdings(self, claims: Sequence[Claim]) -> Holdings:
        """Return which passages hold which claims."""
        found = [self._by_words(claim, _wanted(claim)) for claim in claims]
        if self._meaning is not None:
            found = self._with_meaning(claims, found, self._meaning)
        held = [HeldClaim(claim, _best(holdings)) for claim, holdings in zip(claims, found, strict=True)]
        phrases = frozenset(phrase for claim in claims for phrase in claim.phrases)
        return Holdings(held, phrases, frozenset(word for claim in claims for word in claim.words))

    def _by_words(self, claim: Claim, wanted: Sequence[_Wanted]) -> dict[int, Holding]:
        """Return how much of what is telling in a claim each passage holds in one of its sentences."""
        if not wanted:
            return {}
        found = ((number, sentences.hold(wanted, claim.phrases)) for number, sentences in enumerate(self._sentences))
        return {number: holding for number, holding in found if holding is not None}

    def _with_meaning(
        self, claims: Sequence[Claim], found: Sequence[dict[int, Holding]], meaning: Meaning
    ) -> list[dict[int, Holding]]:
        """Add the passages with a sentence that means what a claim says, where words did not show it.

        The encoder has learnt English: to it all sentences of another language are alike.
        """
        added = [dict(held) for held in found]
        doubtful = [n for n, held in enumerate(found) if not held and not is_foreign(Text(claims[n].text))]
        places = self._compared if doubtful else []
        if not places:
            return added
        texts = [self._views[number].passage.text[start:end][:_LONGEST_COMPARED] for number, (start, end) in places]
        likeness = meaning([claims[n].text for n in doubtful], texts)
        for claim, row in zip(doubtful, likeness, strict=True):
            for (number, span), alike in zip(places, row, strict=True):
                known = added[claim].get(number)
                strength = _MEANING * float(alike)
                if alike >= _ALIKE and (known is None or known.strength < strength):
                    added[claim][number] = Holding("meaning", strength, span)
        return added

    @lazy
    def _compared(self) -> list[tuple[int, Span]]:
        """Return the sentences whose meaning is compared: of very much text those that hold most of the question."""
        places = [(number, span) for number, view in enumerate(self._views) for span in view.sentences]
        lengths = np.array([min(end - start, _LONGEST_COMPARED) for _, (start, end) in places])
        if len(places) <= _MOST_COMPARED and lengths.sum() <= _CHARACTERS:
            return places
        asked = rarities(Text(self._question))
        overlaps = [overlap for view in self._views for overlap in SentenceOverlaps(view, asked).overlaps]
        best = np.argsort(-np.array(overlaps), kind="stable")[:_MOST_COMPARED]
        best = best[np.cumsum(lengths[best]) <= _CHARACTERS]
        return [places[number] for number in sorted(best.tolist())]


class _NormalSentences:
    """The sentences of a passage as words and values that are written alike."""

    def __init__(self, view: PassageView) -> None:
        self._spans = view.sentences
        self._places: dict[str, set[int]] = {}
        values: list[tuple[Item, int]] = []
        for item in view.items:
            number = view.sentence_number(item.start)
            self._places.setdefault(item.key, set()).add(number)
            if item.is_value:
                values.append((item, number))
        self._values = ValueIndex(values)
        self._texts = view.sentence_texts
        self._title = {item.key for item in read_items(view.passage.title)}

    def hold(self, wanted: Sequence[_Wanted], phrases: Sequence[str]) -> Holding | None:
        """Return how the sentence that holds most of what is wanted holds it; None if that is too little."""
        places = [self._with(one) for one in wanted]
        if not self._may_hold(wanted, places):
            return None
        worth = [self._worth(one, here) for one, here in zip(wanted, places, strict=True)]
        total = _total(wanted)
        inside = sorted(set().union(*places))
        strengths = {}
        for number in inside or [0]:  # the title alone may hold something, and is beside every sentence
            order = 1.0 if any(one in self._texts[number].joined for one in phrases[:1]) else _SCATTERED
            strengths[number] = order * fsum(of_one.get(number, 0.0) for of_one in worth) / total
        best = max(strengths, key=strengths.__getitem__)
        if strengths[best] < _LEAST_STRENGTH:
            return None
        start, end = self._spans[best]
        found = next((found for words in phrases[:1] for found in self._texts[best].spans(words)), None)
        span = (start, end) if found is None else (start + found[0], start + found[1])
        is_whole = all(of_one.get(best) == one.weight for one, of_one in zip(wanted, worth, strict=True))
        match: Match = "normalised" if is_whole and found is None else "words"
        return Holding(match, min(strengths[best], 1.0), span if inside else None)

    def _may_hold(self, wanted: Sequence[_Wanted], places: Sequence[set[int]]) -> bool:
        """Return whether all that the passage holds, were it in one sentence, would be enough: of most it is not."""
        there = fsum(one.weight for one, here in zip(wanted, places, strict=True) if here or one.key in self._title)
        return there >= _LEAST_STRENGTH * _total(wanted)

    def _worth(self, one: _Wanted, here: set[int]) -> dict[int, float]:
        """Return what a word or value counts in each sentence: less where it stands in the title or the next sentence.

        A value counts in its own sentence alone: that of the next row of a table is another's.
        """
        worth = dict.fromkeys(here, one.weight)
        if one.value is None:
            near = range(len(self._spans)) if one.key in self._title else {n + step for n in here for step in (-1, 1)}
            worth |= {number: _NEARBY * one.weight for number in near if number not in here}
        return worth

    def _with(self, one: _Wanted) -> set[int]:
        """Return the sentences that hold a word or value."""
        if one.value is not None:
            return {number for _, number in self._values.find(one.value)}
        if is_unspaced(one.key):
            return {number for number, text in enumerate(self._texts) if f" {' '.join(one.key)} " in text.joined}
        return self._places.get(one.key, set())


def _best(holdings: Mapping[int, Holding]) -> dict[int, Holding]:
    """Return the passages that hold a claim best, and those nearly as well."""
    least = _LEAST_SHARE * max((holding.strength for holding in holdings.values()), default=0.0)
    ranked = sorted(holdings.items(), key=lambda one: (-one[1].strength, one[0]))
    return {number: holding for number, holding in ranked[:_MOST_TAILS] if holding.strength >= least}
