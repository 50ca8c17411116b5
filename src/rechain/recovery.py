"""From a question to its chains: build C, score it, keep the best."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, count
from math import isfinite
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rechain.baselines import BASELINES, Model
from rechain.candidates import Candidate, Candidates, CandidateSettings, find_candidates
from rechain.errors import QuestionError, RechainError
from rechain.model import Contributions
from rechain.schema import Chain, Passage, Question, Recovered
from rechain.validation import bad_record

PassageLike = Passage | Mapping[str, Any] | str


class Recoverer:
    """Recovers chains with a model.

    The model is a name ("lexical", "bm25", "random"), the folder of a training run, or anything that scores candidates.
    """

    def __init__(
        self,
        model: str | Path | Model = "lexical",
        *,
        settings: CandidateSettings | None = None,
        top: int = 1,
        explain: bool = False,
        device: str | None = None,
    ) -> None:
        """Set up recovery: `top` chains a question; `explain` tells what contributed to each score.

        `device` is where a trained model computes: a GPU if there is one, unless told.
        """
        self._model = _load(str(model), device) if isinstance(model, str | Path) else model
        self._settings = settings or CandidateSettings()
        if top < 1:
            raise RechainError(f"top should be at least 1, not {top}.")
        self._top = top
        self._explain = explain

    def recover(
        self, question: Question | str, answer: str | None = None, passages: Iterable[PassageLike] = ()
    ) -> Recovered:
        """Recover the chains of a Question, or of a question's text with its answer and passages.

        Passages are Passage objects, dicts with their fields, or plain texts, whose ids are then their positions.
        """
        if isinstance(question, str):
            question = _as_question(question, answer, passages)
        try:
            chains = self._best(find_candidates(question, self._settings))
        except QuestionError as error:
            return Recovered(id=question.id, chains=[], error=error.problem)
        return Recovered(id=question.id, chains=chains)

    def recover_many(self, questions: Iterable[Question]) -> Iterator[Recovered]:
        """Recover the chains of many questions, one at a time and in their order."""
        return map(self.recover, questions)

    def _best(self, candidates: Candidates) -> list[Chain]:
        scored = zip(self._model.score(candidates), candidates.chains, strict=True)
        best = sorted(scored, key=lambda pair: -_score(pair[0]))[: self._top]
        return [self._chain(candidates, candidate, contributions) for contributions, candidate in best]

    def _chain(self, candidates: Candidates, candidate: Candidate, contributions: Contributions) -> Chain:
        return Chain(
            passages=[candidates.views[number].passage.id for number in candidate.passages],
            links=candidate.links,
            score=_score(contributions),
            why=dict(contributions) if self._explain else None,
        )


def _score(contributions: Contributions) -> float:
    score = sum(contributions.values())
    if not isfinite(score):
        raise RechainError(f"the model gave a chain the score {score}, by {dict(contributions)}.")
    return score


def _load(name: str, device: str | None) -> Model:
    """Return a baseline by its name, or the model that a training run has left in a folder."""
    if name in BASELINES:
        return BASELINES[name]()
    if not Path(name).is_dir():
        known = ", ".join((*BASELINES, "or a folder that `rechain train` has written"))
        raise RechainError(f"there is no model '{name}'; the models are {known}.")
    from rechain.devices import device_named
    from rechain.trained import TrainedModel

    return TrainedModel.load(Path(name), device=device_named(device))


def _as_question(question: str, answer: str | None, passages: Iterable[PassageLike]) -> Question:
    try:
        return Question.model_validate(
            {"id": "question", "question": question, "answer": answer or "", "passages": list(_as_passages(passages))}
        )
    except ValidationError as error:
        raise bad_record("question", error) from error


def _as_passages(passages: Iterable[PassageLike]) -> Iterator[Passage | Mapping[str, Any]]:
    """Give every passage an id that lacks one: its title or, if that is taken, its position."""
    if isinstance(passages, str):
        raise RechainError("passages should be a list of passages, not one text.")
    taken: set[str] = set()
    for number, given in enumerate(passages):
        passage = given if isinstance(given, Passage) else _with_id(number, given, taken)
        taken.add(passage.id if isinstance(passage, Passage) else str(passage["id"]))
        yield passage


def _with_id(number: int, given: Mapping[str, Any] | str, taken: Collection[str]) -> Mapping[str, Any]:
    if not isinstance(given, str | Mapping):
        raise RechainError(f"passages[{number}] should be a text, a dict or a Passage, not {given!r:.40}.")
    fields = {"text": given} if isinstance(given, str) else given
    names = chain((str(fields.get("title") or number), str(number)), (f"{number}.{n}" for n in count(1)))
    return {"id": next(name for name in names if name not in taken), **fields}
