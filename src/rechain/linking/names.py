"""Entities that are names or rare words of both passages.

Two capitalised words in a row, or one rare word that is capitalised in both passages, are a name (or part of one: the
link is then widened to all that the two passages share of it). A rare word that is not capitalised is a mere word.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from rechain.linking.entities import Entity
from rechain.linking.weights import BONUS
from rechain.text.passages import PassageView
from rechain.text.rarity import MAX_PHRASE_IDF, idf, words_below

_FUNCTION_WORD = 1.0
_OTHER_WORDS = 0.5


def pairs_of(views: Iterable[PassageView], min_weight: float) -> list[str]:
    """Return the phrases to look for: two capitalised words in a row that are rare enough together."""
    found: dict[str, None] = {}
    common = words_below(min_weight / (1 + _OTHER_WORDS))  # two of these do not weigh enough
    for text in (text for view in views for text in (view.title, view.text)):
        capitalised = [number for number, word in enumerate(text.raw_words) if word[0].isupper()]
        for first, second in pairwise(capitalised):
            pair = text.words[first : second + 1]
            if len(pair) == 2 and not common.issuperset(pair) and _is_name(pair, min_weight):
                found[f" {pair[0]} {pair[1]} "] = None
    return list(found)


def _is_name(words: Sequence[str], min_weight: float) -> bool:
    return min(map(idf, words)) >= _FUNCTION_WORD and name_weight(words) >= min_weight


def name_weight(words: Sequence[str]) -> float:
    """The rarest word counts in full, the others by half, since the words of a name are anything but independent."""
    rarities = [idf(word) for word in words]
    rarest = max(rarities)
    return BONUS["name"] + min(_OTHER_WORDS * sum(rarities) + (1 - _OTHER_WORDS) * rarest, MAX_PHRASE_IDF)


def find_phrases(
    views: Sequence[PassageView], phrases: Iterable[str], holders: Mapping[str, Sequence[int]]
) -> Iterator[Entity]:
    """Yield every phrase that two passages hold, capitalised."""
    for phrase in phrases:
        numbers = holders.get(phrase, ())
        if len(numbers) > 1:
            capitalised = [number for number in numbers if _is_capitalised(views[number], phrase)]
            if len(capitalised) > 1:
                yield Entity(phrase, "name", name_weight(phrase.split()), capitalised)


def find_words(
    views: Sequence[PassageView], holders: Mapping[str, Sequence[int]], min_weight: float
) -> Iterator[Entity]:
    """Yield every rare word that two passages hold, as a name where it is capitalised, as a mere word elsewhere."""
    common = words_below(min_weight)
    for word, numbers in holders.items():
        if len(numbers) > 1 and word not in common and not word.isdigit():
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
    if at is None:
        return False
    last = at + name.count(" ") - 2
    return text.raw_words[at][0].isupper() and (last == at or text.raw_words[last][0].isupper())
