"""Entities that are database identifiers in the text."""

from collections.abc import Iterator, Sequence

from rechain.linking.entities import Entity
from rechain.linking.weights import BONUS
from rechain.text.passages import PassageView
from rechain.text.rarity import MAX_PHRASE_IDF


def find(views: Sequence[PassageView]) -> Iterator[Entity]:
    """Yield every identifier that two passages hold."""
    holders: dict[str, list[int]] = {}
    for number, view in enumerate(views):
        for entity in () if view.passage.mentions else view.identifiers:
            holders.setdefault(entity, []).append(number)
    for entity, numbers in holders.items():
        if len(numbers) > 1:
            yield Entity(entity, "identifier", BONUS["identifier"] + MAX_PHRASE_IDF, numbers)
