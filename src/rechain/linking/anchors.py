"""Entities given with the data: mentions in the text, or the page that an anchor points to."""

from collections.abc import Iterator

from rechain.linking.linkers import Context, Entity, Holders, Kind, Linker
from rechain.text.rarity import phrase_idf
from rechain.text.words import phrase

# Whatever its words, an entity that the data gives counts: 10 alone is more than the least weight.
MENTION = Kind("mention", 10.0, "an entity that the data gives in both passages")


def find(context: Context, _: Holders) -> Iterator[Entity]:
    """Yield every given entity that two passages hold; a passage also holds the entity that is its id or title."""
    views = context.views
    holders: dict[str, list[int]] = {}
    for number, view in enumerate(views):
        for entity in view.given:
            holders.setdefault(entity, []).append(number)
    for number, view in enumerate(views):
        for entity in {view.passage.id, view.passage.title} & holders.keys():
            if number not in holders[entity]:
                holders[entity].append(number)
    for entity, numbers in holders.items():
        if len(numbers) > 1:
            first = views[numbers[0]]
            start, end = first.given[entity][0]
            rarity = phrase_idf(phrase(first.passage.text[start:end]).split())
            yield Entity(entity, MENTION.name, MENTION.bonus + rarity, numbers)


LINKER = Linker("anchors", (MENTION,), find)
