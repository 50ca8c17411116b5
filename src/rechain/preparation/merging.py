"""One entity for one thing: equal and nested names of a question become one entity. No torch here.

Linkers find a title, its parts, a name and its words each by itself. To a Reasoner that has to choose one of them these
are one thing, by whatever name a passage calls it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rechain.linking.linkers import Entity

_MANY, _MANY_SHARE = 2, 0.2
"""passages, and the share of a question's: a part of a name that more than these hold is no sign of that name ("John",
"York"). Chosen by evidence alone: of 2, 3, 5 and any number, 2 best tells the chain of most evidence from others"""

DROPPED = -1
"""stands for the entity of a name that is no sign of anything"""


@dataclass(frozen=True)
class MergedEntity:
    """All names of one thing; the first is the longest."""

    name: str
    is_given: bool
    weight: float
    holders: frozenset[int]


@dataclass(frozen=True)
class Merging:
    """What the entities of a question come to."""

    entities: Sequence[MergedEntity]
    """heaviest first"""
    number_of: Sequence[int]
    """for every entity as it was found, the number of the merged one, or DROPPED"""


def merge(found: Sequence[Entity], passages: int) -> Merging:
    """Merge the entities of a question that has so many passages.

    A name within exactly one longer name is another name of the same thing; within several it stands for itself. A
    whole title always does, as a page of its own is a thing of its own ("Sex and the City" is not its second film).
    """
    names: dict[tuple[bool, str], list[Entity]] = {}
    for entity in found:
        names.setdefault((entity.is_given, entity.name), []).append(entity)
    wholes = _wholes([key for key in names if not key[0]], names)
    members: dict[tuple[bool, str], list[tuple[bool, str]]] = {}
    for key in names:
        whole = wholes.get(key, {key})
        is_part = whole != {key}
        if is_part and len(_holders(names[key])) > max(_MANY, passages * _MANY_SHARE):
            continue
        (of,) = whole if len(whole) == 1 else (key,)
        members.setdefault(of, []).append(key)
    merged = {of: _merged(of, [entity for key in keys for entity in names[key]]) for of, keys in members.items()}
    order = sorted(merged, key=lambda key: (-merged[key].weight, key))
    numbers = {key: number for number, of in enumerate(order) for key in members[of]}
    return Merging(
        [merged[key] for key in order], [numbers.get((entity.is_given, entity.name), DROPPED) for entity in found]
    )


def _wholes(
    keys: Sequence[tuple[bool, str]], names: dict[tuple[bool, str], list[Entity]]
) -> dict[tuple[bool, str], set[tuple[bool, str]]]:
    """Return for every name the longest names that it stands in; itself where it stands in none, or is a title."""
    wholes: dict[tuple[bool, str], set[tuple[bool, str]]] = {}
    for key in sorted(keys, key=lambda key: -len(key[1])):  # a name's longer ones come before it
        is_title = any(entity.kind == "title" for entity in names[key])
        within = () if is_title else [other for other in wholes if key[1] in other[1]]
        wholes[key] = set().union(*(wholes[other] for other in within)) or {key}
    return wholes


def _merged(key: tuple[bool, str], entities: Sequence[Entity]) -> MergedEntity:
    return MergedEntity(key[1], key[0], max(entity.weight for entity in entities), _holders(entities))


def _holders(entities: Iterable[Entity]) -> frozenset[int]:
    return frozenset(holder for entity in entities for holder in entity.holders)


def without_overlaps(spans: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return spans (start, length) of which no two share a word: of those that do, the longest, then the first."""
    kept: set[tuple[int, int]] = set()
    for start, length in sorted(spans, key=lambda span: (-span[1], span[0])):
        if all(start + length <= other or other + size <= start for other, size in kept):
            kept.add((start, length))
    return kept
