"""Entities that are a passage's title, whole or in part, and stand in another passage."""

from collections.abc import Iterator, Mapping, Sequence

from rechain.linking.entities import Entity
from rechain.linking.weights import BONUS
from rechain.text.passages import PassageView
from rechain.text.rarity import idf, phrase_idf


def titles_of(views: Sequence[PassageView]) -> dict[str, list[int]]:
    """Return the phrases to look for, every title without its bracketed suffix, and the passages of that title."""
    titled: dict[str, list[int]] = {}
    for number, view in enumerate(views):
        if view.title.words:
            titled.setdefault(view.title.joined, []).append(number)
    return titled


def find(titled: Mapping[str, Sequence[int]], holders: Mapping[str, Sequence[int]]) -> Iterator[Entity]:
    """Yield every title that another passage holds."""
    for title, numbers in titled.items():
        if len(holders[title]) > 1:
            weight = BONUS["title"] + phrase_idf(title.split())
            yield Entity(title, "title", weight, holders[title], frozenset(numbers))


def find_parts(views: Sequence[PassageView], holders: Mapping[str, Sequence[int]]) -> Iterator[Entity]:
    """Yield every word of a title that another passage holds: a surname, 'Tropicana' of 'Tropicana Las Vegas'."""
    titled: dict[str, list[int]] = {}
    for number, view in enumerate(views):
        for word in view.title_words:
            if len(holders.get(word, ())) > 1:
                titled.setdefault(word, []).append(number)
    for word, numbers in titled.items():
        yield Entity(f" {word} ", "title part", BONUS["title part"] + idf(word), holders[word], frozenset(numbers))
