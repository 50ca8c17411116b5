"""The sentences of a passage, and how much of the question each of them holds."""

from collections.abc import Iterator, Mapping, Sequence
from math import fsum

from rechain.text.answers import AnswerMatcher
from rechain.text.passages import PassageView
from rechain.text.rarity import idf
from rechain.text.words import Span, Text

_VERY_LONG, _PART, _STEP = 1000, 300, 240
"""characters: a sentence that has more is read in parts of so many, one every so many"""


def rarities(asked: Text) -> dict[str, float]:
    """Return the words of a question, and how rare each is."""
    return {word: idf(word) for word in asked.words}


def stretches(view: PassageView) -> Iterator[Span]:
    """Yield where the sentences of a passage stand; of one that is very long, or no sentence at all, its parts."""
    for start, end in view.sentences:
        if end - start <= _VERY_LONG:
            yield start, end
        else:
            yield from ((part, min(part + _PART, end)) for part in range(start, end, _STEP))


class AskedSentences:
    """A passage's sentences, or other stretches of it, under a question."""

    def __init__(self, view: PassageView, asked: Mapping[str, float], spans: Sequence[Span] | None = None) -> None:
        self.spans = view.sentences if spans is None else spans
        """where they stand"""
        self._texts = [Text(view.passage.text[start:end]) for start, end in self.spans]
        self.overlaps = [fsum(asked[word] for word in asked.keys() & set(text.words)) for text in self._texts]
        """how much of the question each holds: the sum of its words' rarities"""
        self._best: dict[str, float] = {}

    def best_with(self, name: str) -> float:
        """Return the greatest overlap of a sentence that holds a name."""
        if name not in self._best:
            held = (overlap for text, overlap in zip(self._texts, self.overlaps, strict=True) if name in text.joined)
            self._best[name] = max(held, default=0.0)
        return self._best[name]

    def best_answering(self, answer: AnswerMatcher) -> float:
        """Return the greatest overlap of a sentence that holds the answer."""
        return max((self.overlaps[number] for number in self.answering(answer)), default=0.0)

    def answering(self, answer: AnswerMatcher) -> list[int]:
        """Return which sentences hold the answer."""
        return [number for number, text in enumerate(self._texts) if answer.is_in(text.joined)]
