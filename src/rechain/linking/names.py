"""Entities that are names or rare words of both passages.

Two capitalised words in a row, or one rare word that is capitalised in both passages, are a name (or part of one: the
link is then widened to all that the two passages share of it). A rare word that is not capitalised is a mere word.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from rechain.linking.entities import Entity
from rechain.linking.weights import BONUS, idf
from rechain.passages import PassageView

_FUNCTION_WORD = 1.0
_SECOND_WORD = 0.5


def pairs_of(views: Iterable[PassageView], min_weight: float) -> list[str]:
    """Return the phrases to look for: two capitalised words in a row that are rare enough together."""
    found: dict[str, None] = {}
    for view in views:
        words = view.text.words
        capitalised = [number for number, word in enumerate(view.text.raw_words) if word[0].isupper()]
        for first, second in pairwise(capitalised):
            if second == first + 1 and _pair_weight(words[first], words[second]) >= min_weight:
                found[f" {words[first]} {words[second]} "] = None
    return list(found)


def _pair_weight(one: str, two: str) -> float:
    """The rarer word counts in full, the other by half, since the words of a name are anything but independent."""
    rarities = idf(one), idf(two)
    low, high = min(rarities), max(rarities)
    return BONUS["name"] + high + _SECOND_WORD * low if low >= _FUNCTION_WORD else 0.0


def find_pairs(
    views: Sequence[PassageView], pairs: Iterable[str], holders: Mapping[str, Sequence[int]]
) -> Iterator[Entity]:
    """Yield every pair of words that two passages hold, capitalised."""
    for pair in pairs:
        if len(holders[pair]) > 1:
            capitalised = [number for number in holders[pair] if _is_capitalised(views[number], pair)]
            if len(capitalised) > 1:
                yield Entity(pair, "name", _pair_weight(*pair.split()), capitalised)


def find_words(views: Sequence[PassageView], holders: Mapping[str, Sequence[int]]) -> Iterator[Entity]:
    """Yield every word that two passages hold, as a name where it is capitalised, as a mere word elsewhere."""
    for word, numbers in holders.items():
        if len(numbers) > 1 and not word.isdigit():
            name, rarity = f" {word} ", idf(word)
            capitalised = [number for number in numbers if _is_capitalised(views[number], name)]
            if len(capitalised) > 1:
                yield Entity(name, "name", BONUS["name"] + rarity, capitalised)
            if len(capitalised) < len(numbers):
                yield Entity(name, "word", BONUS["word"] + rarity, numbers)


def _is_capitalised(view: PassageView, name: str) -> bool:
    text, at = view.text, view.text.find(name)
    if at is None:
        text, at = view.title, view.title.find(name)
    return at is not None and text.raw_words[at][0].isupper()
