"""From sources, which are questions of which only the passages count, to pseudo questions."""

from collections.abc import Iterable, Iterator
from itertools import islice
from random import Random
from typing import NamedTuple

from rechain.candidates import CandidateSettings, find_candidates
from rechain.errors import QuestionError, RechainError
from rechain.preparation.pseudo.drafts import Draft, Source
from rechain.preparation.pseudo.entities import EntitySource, shape_of
from rechain.preparation.pseudo.pool import Pool
from rechain.preparation.pseudo.settings import PseudoSettings
from rechain.preparation.pseudo.texts import TextSource
from rechain.schema import Question


class PseudoQuestion(NamedTuple):
    """A question made from passages, and the chain that it was made from."""

    question: Question
    chain: tuple[int, ...]
    """positions in `question.passages`, head first"""
    source: str
    """the id of the question whose passages it was made from"""
    links: tuple[str, ...] = ()
    """the linking entities: ids where the data gives them, else folded words"""


def make_pseudo_questions(
    questions: Iterable[Question],
    count: int,
    settings: PseudoSettings | None = None,
    seed: int = 0,
    candidates: CandidateSettings | None = None,
) -> Iterator[PseudoQuestion]:
    """Make `count` pseudo questions, or as many as can be found, spread evenly over the questions given.

    `candidates` says how their C will be built: the chain that one is made from stands in it.

    Of these questions the passages are used and, where the data gives entities, the types of entities along a chain;
    never their text, answer or evidence.
    """
    if count < 1:
        raise RechainError(f"the count of pseudo questions should be at least 1, not {count}.")
    return PseudoMaker(questions, settings, seed, candidates).make(count)


class PseudoMaker:
    """Makes pseudo questions, source by source.

    What is made from a source depends on the seed, the source and the pool (the passages of all sources) alone: several
    processes that hold the same questions can each make those of some sources.
    """

    def __init__(
        self,
        questions: Iterable[Question],
        settings: PseudoSettings | None = None,
        seed: int = 0,
        candidates: CandidateSettings | None = None,
    ) -> None:
        self.sources = list(questions)
        self._settings = settings or PseudoSettings()
        self._seed = seed
        self._candidates = candidates
        self._pool = Pool(self.sources)

    def make(self, count: int) -> Iterator[PseudoQuestion]:
        """Yield pseudo questions from all sources; where one has fewer than its share, the later ones give more."""
        made = 0
        for number, question in enumerate(self.sources):
            share = -((made - count) // (len(self.sources) - number))
            for pseudo in islice(self.from_source(question), share):
                made += 1
                yield pseudo
        if not made:
            raise RechainError(
                "no pseudo question can be made from these passages: they are not linked, have too little text, or "
                "have no other chains to choose from."
            )

    def from_source(self, question: Question) -> Iterator[PseudoQuestion]:
        """Yield pseudo questions from one source, until no more are found."""
        random = Random(f"{self._seed} {question.id}")
        source = self._source(question)
        seen: set[tuple[str, str]] = set()
        failures = 0
        while failures < self._settings.patience:
            draft = source.draft(random, f"{question.id}~{len(seen)}")
            failures += 1
            if draft is not None and draft.asked not in seen and self._is_useful(draft):
                failures = 0
                seen.add(draft.asked)
                yield PseudoQuestion(draft.question, draft.chain, question.id, draft.links)

    def _source(self, question: Question) -> Source:
        shape = shape_of(question)
        if shape is not None:
            return EntitySource(question.passages, shape, self._pool, self._settings)
        return TextSource(question.passages, self._pool, self._settings)

    def _is_useful(self, draft: Draft) -> bool:
        """Return whether the chain is one of at least two candidates."""
        try:
            chains = find_candidates(draft.question, self._candidates).chains
        except QuestionError:
            return False
        return len(chains) > 1 and any(chain.passages == draft.chain for chain in chains)
