"""What linkers find: entities that two or more passages hold."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from rechain.schema import GIVEN_KINDS, LinkKind


class Entity(NamedTuple):
    """Something that passages share.

    `name` is the entity id where the data gives one, else the folded words with a blank around each. Every two
    holders are linked by it; but where it is a title, or part of one, at least one of the two must be of that title.
    """

    name: str
    kind: LinkKind
    weight: float
    holders: Sequence[int]
    titled: frozenset[int] | None = None

    def partners(self, passage: int, allowed: Collection[int] | None = None) -> Iterator[int]:
        """Yield the passages that it links with one of its holders, or those of them that are allowed."""
        is_free = self.titled is None or passage in self.titled
        for holder in self.holders if is_free else self.titled or ():
            if holder != passage and (allowed is None or holder in allowed):
                yield holder

    def linked_to(self, passages: Collection[int]) -> Collection[int]:
        """Return the passages that it links with any of some, and perhaps one of these themselves."""
        held = [holder for holder in self.holders if holder in passages]
        if self.titled is None or any(holder in self.titled for holder in held):
            return self.holders if held else ()
        return self.titled if held else ()

    def may_have_key_among(self, keys: Collection[str]) -> bool:
        """Return whether a link by it may have one of some keys: a name is widened only to one that contains it."""
        return any(self.name in key for key in keys)

    @property
    def is_given(self) -> bool:
        """Whether the name is an id of the data's and not a text found in the passages."""
        return self.kind in GIVEN_KINDS
