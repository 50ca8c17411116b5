"""Entities given with the data: mentions in the text, or the page that an anchor points to."""

from collections.abc import Iterator, Sequence

from rechain.linking.entities import Entity
from rechain.linking.weights import BONUS
from rechain.text.passages import PassageView
from rechain.text.rarity import phrase_idf
from rechain.text.words import phrase


def find(views: Sequence[PassageView]) -> Iterator[Entity]:
    """Yield every given entity that two passages hold; a passage also holds the entity that is its id or title."""
    holders: dict[str, list[int]] = {}
    for number, view in enumerate(views):
        for entity in view.given if view.passage.mentions else ():
            holders.setdefault(entity, []).append(number)
    if not holders:
        return
    for number, view in enumerate(views):
        for entity in {view.passage.id, view.passage.title} & holders.keys():
            if number not in holders[entity]:
                holders[entity].append(number)
    for entity, numbers in holders.items():
        if len(numbers) > 1:
            yield Entity(entity, "mention", BONUS["mention"] + _surface_idf(entity, views[numbers[0]]), numbers)


def _surface_idf(entity: str, view: PassageView) -> float:
    start, end = view.given[entity][0]
    return phrase_idf(phrase(view.passage.text[start:end]).split())
