"""The second pass of joint recovery: from a file of offers, which the first has filled, to a file of chains.

The first pass is recovery as ever, in workers and into a file that can be resumed, but for what its lines hold. It
takes nearly all of the time. The second is quick, so it is begun anew after an interruption: chains appear at once.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rechain.bulk.work import Tally
from rechain.errors import RechainError
from rechain.schema import Recovered
from rechain.scoring.beliefs import Beliefs, Offers
from rechain.scoring.jointly import Offer
from rechain.system.files import replacing
from rechain.system.provenance import Facts, differences, read_provenance, sidecar_of, write_provenance

_SUFFIX = ".offers"


def offers_beside(output: Path) -> Path:
    """Return where the offers stand while chains are recovered into a file; they are removed in the end."""
    return output.with_name(f"{output.name}{_SUFFIX}")


class JointPass:
    """The second pass over the offers of all questions."""

    def __init__(self, offers: Path, top: int, min_confidence: float | None) -> None:
        """Read the offers once, and estimate what all questions believe of their steps."""
        self._offers, self._top, self._min_confidence = offers, top, min_confidence
        known = Offers()
        with offers.open("rb") as file:
            for line in file:
                Offer.of_json(line).add_to(known)
        self.beliefs: Beliefs = known.learn()
        self.tally = Tally()
        """of the questions whose chains were written"""

    def recovered(self) -> Iterator[Recovered]:
        """Yield the chains of every question in the order of the input."""
        with self._offers.open("rb") as file:
            for position, line in enumerate(file):
                offer = Offer.of_json(line)
                recovered = offer.settle(self.beliefs, position, self._top, self._min_confidence)
                self.tally.count(recovered)
                yield recovered

    def write(self, output: Path, head: Facts) -> None:
        """Write the chains, which take the place of an earlier file when all are there, and what made them."""
        with replacing(output) as file:
            file.writelines(recovered.to_json().encode() + b"\n" for recovered in self.recovered())
        write_provenance(output, head, {**self.tally.counts(), "jointly": self.facts()})

    def facts(self) -> dict[str, Any]:
        """Return what was shared, by the names that it has in provenance."""
        beliefs = self.beliefs
        return {
            "questions": beliefs.questions,
            "steps": len(beliefs.steps),
            "shared_steps": beliefs.shared,
            "rounds": beliefs.rounds,
        }


def remove_offers(offers: Path) -> None:
    """Remove offers and their provenance, which without them would say nothing."""
    offers.unlink(missing_ok=True)
    sidecar_of(offers).unlink(missing_ok=True)


def tally_of_finished(output: Path, head: Facts, questions: Path) -> Tally:
    """Return the counts of a file of chains that is finished; raises RechainError where it is not what would be made.

    It cannot be continued: with other questions, or more of them, every chain could be another.
    """
    provenance = read_provenance(output)
    made_by: Mapping[str, Any] = provenance.made_by if provenance else {}
    problem = next(differences(made_by, head), None)
    if problem:
        raise RechainError(f"{output} was made with {problem}; name another file, or replace it with --overwrite.")
    if provenance is None or (misfits := provenance.misfits(questions)) or provenance.end is None:
        why = misfits[0] if provenance else f"Nothing says what made {output}."
        raise RechainError(f"{why} What is recovered jointly is made as a whole: replace it with --overwrite.")
    end = provenance.end
    tally = Tally(end["questions"], end["with_chain"])
    tally.problems.update(end["errors"])
    return tally
