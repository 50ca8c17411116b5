"""Entities that are database identifiers in the text."""

from collections.abc import Iterator

from rechain.linking.linkers import Context, Entity, Holders, Kind, Linker
from rechain.text.rarity import MAX_PHRASE_IDF

IDENTIFIER = Kind("identifier", 10.0, "a database identifier that stands in both passages")


def find(context: Context, _: Holders) -> Iterator[Entity]:
    """Yield every identifier that two passages hold; where the data gives mentions, they decide instead."""
    holders: dict[str, list[int]] = {}
    for number, view in enumerate(context.views):
        for entity in () if view.passage.mentions else view.identifiers:
            holders.setdefault(entity, []).append(number)
    for entity, numbers in holders.items():
        if len(numbers) > 1:
            # An identifier has no rarity in the table of words: it counts as the rarest of phrases.
            yield Entity(entity, IDENTIFIER.name, IDENTIFIER.bonus + MAX_PHRASE_IDF, numbers)


LINKER = Linker("identifiers", (IDENTIFIER,), find)
