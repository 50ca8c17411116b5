"""What linkers find: entities that two or more passages hold."""

from collections.abc import Sequence
from typing import NamedTuple

from rechain.schema import LinkKind


class Entity(NamedTuple):
    """Something that passages share.

    `name` is the entity id where the data gives one, else the folded words with a blank around each. Every two
    holders are linked by it, or, where it is the title (or part of the title) of the passage `hub`, every holder with
    the hub.
    """

    name: str
    kind: LinkKind
    weight: float
    holders: Sequence[int]
    hub: int | None = None

    @property
    def is_given(self) -> bool:
        """Whether the name is an id of the data's and not a text found in the passages."""
        return self.kind in ("mention", "identifier")
