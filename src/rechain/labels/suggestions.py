"""What a model suggests of the units that people label: which are likely, in which order they come, how sure it is."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

from rechain.schema import Chain
from rechain.text.label_units import Mode, Unit, Units


class Suggestion(NamedTuple):
    """The place of a chain among those that a model ranked, from 1, and how sure it is that the chain is right.

    Of a pair it is the best chain that the pair is on.
    """

    place: int
    confidence: float | None


class Suggestions:
    """The units of a question as a model ranks their chains; without ranked chains, as the candidates come."""

    def __init__(self, units: Units, ranked: Sequence[Chain] = ()) -> None:
        """Take the chains that a model ranked, best first; it need not have ranked all candidates."""
        self._units = units
        self._ranked = ranked
        self._places = _places(units, ranked)

    def likeliest_first(self, mode: Mode) -> list[Unit]:
        """Return all units of a mode, those of the likeliest chain first; pairs in the order of that chain."""
        numbers = sorted(range(len(self._units.chains)), key=lambda number: (self._places.get(number, inf), number))
        if mode == "chains":
            return [self._units.chains[number] for number in numbers]
        return list(dict.fromkeys(pair for number in numbers for pair in self._units.pairs_of[number]))

    def of(self, unit: Unit) -> Suggestion | None:
        """Return what the model says of a unit, or None where it has ranked no chain with it."""
        is_chain = unit in self._units.numbers
        numbers = [self._units.numbers[unit]] if is_chain else self._units.pairs.get(unit, ())
        places = [self._places[number] for number in numbers if number in self._places]
        return Suggestion(min(places) + 1, self._ranked[min(places)].confidence) if places else None


def _places(units: Units, ranked: Sequence[Chain]) -> Mapping[int, int]:
    """Return the places of those candidates that were ranked, by their numbers."""
    if not ranked:
        return {}
    places = {chain.identity: place for place, chain in reversed(list(enumerate(ranked)))}
    found = {}
    for number, (unit, candidate) in enumerate(zip(units.chains, units.candidates.chains, strict=True)):
        chain = Chain(shape=candidate.shape, passages=list(unit.passages), links=candidate.links, score=0.0)
        if (place := places.get(chain.identity)) is not None:
            found[number] = place
    return found
