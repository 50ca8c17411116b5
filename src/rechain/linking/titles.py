"""Entities that are a passage's title, whole or in part, and stand in another passage."""

from collections.abc import Iterator, Mapping, Sequence

from rechain.linking.entities import Entity
from rechain.linking.weights import BONUS, idf, phrase_idf
from rechain.passages import PassageView


def titles_of(views: Sequence[PassageView]) -> list[str]:
    """Return the phrases to look for: every title, without its bracketed suffix."""
    return [view.title.joined for view in views if view.title.words]


def find(views: Sequence[PassageView], holders: Mapping[str, Sequence[int]]) -> Iterator[Entity]:
    """Yield every title that another passage holds."""
    for owner, view in enumerate(views):
        title = view.title.joined
        others = [holder for holder in holders.get(title, ()) if holder != owner]
        if others:
            yield Entity(title, "title", BONUS["title"] + phrase_idf(view.title.words), others, hub=owner)


def find_parts(views: Sequence[PassageView], holders: Mapping[str, Sequence[int]]) -> Iterator[Entity]:
    """Yield every word of a title that another passage holds: a surname, 'Tropicana' of 'Tropicana Las Vegas'."""
    for owner, view in enumerate(views):
        for word in view.title_words:
            others = [holder for holder in holders.get(word, ()) if holder != owner]
            if others:
                yield Entity(f" {word} ", "title part", BONUS["title part"] + idf(word), others, hub=owner)
