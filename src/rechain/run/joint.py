"""The second pass of joint recovery: from a file of offers, which the first pass writes, to a file of chains.

The first pass takes nearly all of the time; workers do it, and its file can be resumed. The second is quick and starts
again after an interruption; its file of chains appears as a whole.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rechain.errors import QuestionError, RechainError
from rechain.run.work import Tally
from rechain.schema import Recovered
from rechain.scoring.beliefs import Beliefs, Offer, Offers
from rechain.system.files import replacing
from rechain.system.provenance import Facts, differences, read_provenance, sidecar_of, write_provenance

_SUFFIX = ".offers"
_REPLACE = "name another file, or replace it with --overwrite"


def offers_beside(output: Path) -> Path:
    """Return the path of the offers while chains are recovered into a file; they are removed in the end."""
    return output.with_name(f"{output.name}{_SUFFIX}")


class JointPass:
    """The second pass over the offers of all questions."""

    def __init__(self, offers: Path, top: int, min_confidence: float | None, strict: bool = False) -> None:
        """Read the offers once, and learn from all questions what their steps are worth."""
        self._offers, self._top, self._min_confidence, self._strict = offers, top, min_confidence, strict
        known = Offers()
        with offers.open("rb") as file:
            for line in file:
                Offer.of_json(line).add_to(known)
        self.beliefs: Beliefs = known.learn()
        self.tally = Tally()
        """of the questions whose chains were written"""

    def recovered(self) -> Iterator[Recovered]:
        """Yield the chains of every question in the order of the input; if strict, raise the first error.

        That can only be one of confidence, which needs all questions; the first pass stops at all others.
        """
        with self._offers.open("rb") as file:
            for position, line in enumerate(file):
                offer = Offer.of_json(line)
                recovered = offer.settle(self.beliefs, position, self._top, self._min_confidence)
                if self._strict and recovered.error:
                    raise QuestionError(recovered.error.code, recovered.error.message)
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

    def summary(self) -> str:
        """Return in a sentence what was shared."""
        beliefs = self.beliefs
        if not beliefs.questions:
            return "No question has candidates between named entities, so all is as without --jointly."
        different = f"{beliefs.questions} different question{'s offer' if beliefs.questions > 1 else ' offers'}"
        return f"{different} {len(beliefs.steps)} steps, {beliefs.shared} of them in common with others."


def remove_offers(offers: Path) -> None:
    """Remove offers and their provenance."""
    offers.unlink(missing_ok=True)
    sidecar_of(offers).unlink(missing_ok=True)


def tally_of_finished(output: Path, head: Facts, questions: Path) -> Tally:
    """Return the counts of a finished file of chains; raises RechainError if it was made of anything else.

    It cannot be continued: with other questions, or more of them, every chain could be another.
    """
    provenance = read_provenance(output)
    if provenance and not provenance.damage and (problem := next(differences(provenance.made_by, head), None)):
        raise RechainError(f"{output} was made with {problem}; {_REPLACE}.")
    if provenance is None or (misfits := provenance.misfits(questions)) or provenance.end is None:
        why = misfits[0] if provenance else f"Nothing says what made {output}."
        raise RechainError(f"{why} What is recovered jointly is made as a whole: {_REPLACE}.")
    end = provenance.end
    tally = Tally(end["questions"], end["with_chain"])
    tally.problems.update(end["errors"])
    return tally
