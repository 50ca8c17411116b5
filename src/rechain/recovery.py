"""From a question to its chains: build C, score it, keep the best."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from rechain.baselines import BASELINES, Model
from rechain.baselines.model import Contributions
from rechain.candidates import Candidate, Candidates, CandidateSettings, find_candidates
from rechain.datasets.formats import bad_record
from rechain.errors import QuestionError, RechainError
from rechain.schema import Chain, Passage, Question, Recovered

PassageLike = Passage | Mapping[str, Any] | str


class Recoverer:
    """Recovers chains with a model: a name ("lexical", "bm25", "random") or anything that scores candidates."""

    def __init__(
        self,
        model: str | Model = "lexical",
        *,
        settings: CandidateSettings | None = None,
        top: int = 1,
        explain: bool = False,
    ) -> None:
        """Set up recovery: `top` chains a question; `explain` tells what contributed to each score."""
        self._model = _load(model) if isinstance(model, str) else model
        self._settings = settings or CandidateSettings()
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
            candidates = find_candidates(question, self._settings)
        except QuestionError as error:
            return Recovered(id=question.id, chains=[], error=error.problem)
        return Recovered(id=question.id, chains=self._best(candidates))

    def recover_many(self, questions: Iterable[Question]) -> Iterator[Recovered]:
        """Recover the chains of many questions, one at a time and in their order."""
        return map(self.recover, questions)

    def _best(self, candidates: Candidates) -> list[Chain]:
        scored = zip(self._model.score(candidates), candidates.chains, strict=True)
        best = sorted(scored, key=lambda pair: -sum(pair[0].values()))[: self._top]
        return [self._chain(candidates, chain, contributions) for contributions, chain in best]

    def _chain(self, candidates: Candidates, chain: Candidate, contributions: Contributions) -> Chain:
        return Chain(
            passages=[candidates.views[number].passage.id for number in chain.passages],
            links=chain.links,
            score=sum(contributions.values()),
            why=dict(contributions) if self._explain else None,
        )


def _load(name: str) -> Model:
    if name not in BASELINES:
        raise RechainError(f"there is no model '{name}'; the models are {', '.join(BASELINES)}.")
    return BASELINES[name]()


def _as_question(question: str, answer: str | None, passages: Iterable[PassageLike]) -> Question:
    try:
        return Question(id="question", question=question, answer=answer or "", passages=_as_passages(passages))
    except ValidationError as error:
        raise bad_record("question", error) from error


def _as_passages(passages: Iterable[PassageLike]) -> list[Passage]:
    """Make passages of what was given; one without an id gets its title or, if that is taken, its position."""
    made: list[Passage] = []
    for number, given in enumerate(passages):
        taken = {passage.id for passage in made}
        made.append(given if isinstance(given, Passage) else _as_passage(number, given, taken))
    return made


def _as_passage(number: int, given: Mapping[str, Any] | str, taken: Collection[str]) -> Passage:
    fields = {"text": given} if isinstance(given, str) else dict(given)
    title = fields.get("title")
    fields.setdefault("id", title if title and title not in taken else str(number))
    return Passage.model_validate(fields)
