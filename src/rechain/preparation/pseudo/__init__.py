"""Pseudo questions: made from passages with links alone, to pretrain models before they see real questions.

They are made from sources: questions of which only the passages count.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from random import Random

from rechain.candidates import CandidateSettings, find_candidates
from rechain.errors import QuestionError, RechainError
from rechain.preparation.pseudo.entities import EntitySource, chain_types
from rechain.preparation.pseudo.pool import Pool, PseudoQuestion, PseudoSettings
from rechain.preparation.pseudo.texts import TextSource
from rechain.schema import Question

__all__ = ["PseudoMaker", "PseudoQuestion", "PseudoSettings", "make_pseudo_questions"]


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
        types, passages = chain_types(question), question.passages
        source: EntitySource | TextSource
        if types:
            source = EntitySource(passages, types, self._pool, self._settings)
        else:
            source = TextSource(passages, self._pool, self._settings)
        seen: set[tuple[str, str]] = set()
        failures = 0
        while failures < self._settings.patience:
            pseudo = source.draft(random, question.id, len(seen))
            failures += 1
            if pseudo is None:
                continue
            wording = pseudo.question.question, pseudo.question.answer
            if wording not in seen and self._is_useful(pseudo):
                failures = 0
                seen.add(wording)
                yield pseudo

    def _is_useful(self, pseudo: PseudoQuestion) -> bool:
        """Return whether the chain is one of at least two candidates."""
        try:
            chains = find_candidates(pseudo.question, self._candidates).chains
        except QuestionError:
            return False
        return len(chains) > 1 and any(chain.passages == pseudo.chain for chain in chains)
