"""What a source of pseudo questions hands out."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, Protocol

from rechain.schema import Passage, Question


class Draft(NamedTuple):
    """A question that nobody has tried yet, with the chain that it was made from."""

    question: Question
    chain: tuple[int, ...]
    links: tuple[str, ...]

    @property
    def asked(self) -> tuple[str, str]:
        """Question and answer, by which two questions from one source are told apart."""
        return self.question.question, self.question.answer


class Source(Protocol):
    """Passages that questions can be made from."""

    def draft(self, random: Random, name: str) -> Draft | None:
        """Return a question of that id, or None where the attempt came to nothing."""
        ...


def positions(chain: Sequence[Passage], passages: Sequence[Passage]) -> tuple[int, ...]:
    """Return where a chain's passages stand among others."""
    place = {passage.id: number for number, passage in enumerate(passages)}
    return tuple(place[passage.id] for passage in chain)
