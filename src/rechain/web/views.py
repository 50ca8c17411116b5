"""From questions and chains to what the pages show of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from rechain.candidates import CandidateSettings, find_of_any_length
from rechain.errors import QuestionError
from rechain.evaluation.judging import is_correct
from rechain.linking import KINDS
from rechain.schema import Chain, Gold, GoldChain, Link, Passage, Question, Recovered
from rechain.text.highlights import Highlighter, Piece, link_role
from rechain.text.passages import PassageView
from rechain.web.site import MOST_SHOWN


@dataclass(frozen=True)
class LinkView:
    """What joins a passage to the next."""

    role: str
    entity: str
    kind: str
    meaning: str
    weight: float


@dataclass(frozen=True)
class StepView:
    """A passage, with its text cut where something is highlighted, and the link that leads on from it."""

    id: str
    title: str
    pieces: Sequence[Piece]
    link: LinkView | None = None


@dataclass(frozen=True)
class CandidateView:
    """A candidate chain in one line; without a score where the source does not say anything of it."""

    number: int
    passages: Sequence[str]
    links: Sequence[LinkView]
    score: float | None
    confidence: float | None
    is_right: bool | None


@dataclass(frozen=True)
class GoldView:
    """A gold chain in one line, and the number of the candidate that is this chain, if any is."""

    passages: Sequence[str]
    links: Sequence[str]
    candidate: int | None


@dataclass(frozen=True)
class QuestionView:
    """A question, the chain that is looked at, and the others."""

    question: Question
    number: int
    chain: Chain | None
    steps: Sequence[StepView]
    golds: Sequence[GoldView] | None
    """the gold chains, where they are known"""
    rest: Sequence[Passage]
    """the passages that are not on the chain"""
    highlighter: Highlighter
    candidates: Sequence[CandidateView]
    parts: Mapping[str, float]
    """what adds up to the score"""
    said: Sequence[Mapping[str, Any]]
    """what Ranker and Reasoner said on the way"""
    error: str | None
    """why the source has no chain"""

    @property
    def others(self) -> list[StepView]:
        """The passages that are not on the chain, highlighted: most of the work of a page, and seldom looked at."""
        return [_step(passage, self.highlighter) for passage in self.rest]


def question_view(
    question: Question, recovered: Recovered | None, number: int, gold: Gold | None, settings: CandidateSettings
) -> QuestionView:
    """Look at one of a question's chains; numbers begin at 0, and that of a chain which is not there is the first's.

    Candidates of which the source says nothing come after the others.
    """
    known = recovered.chains if recovered else []
    chains = [*known, *_unscored(question, known, settings)]
    number = number if 0 <= number < len(chains) else 0
    chain = chains[number] if chains else None
    why = dict(chain.why or {}) if chain else {}
    highlighter, names = Highlighter.of_chain(question, chain), chain.passages if chain else ()
    return QuestionView(
        question=question,
        number=number,
        chain=chain,
        steps=_steps(question, chain, highlighter) if chain else [],
        golds=None if gold is None else [_gold(question, gold, one, chains) for one in gold.chains],
        rest=[passage for passage in question.passages if passage.id not in names],
        highlighter=highlighter,
        candidates=[_candidate(question, place, one, gold, place < len(known)) for place, one in enumerate(chains)],
        said=_said(why.pop("steps", [])),
        parts=_numbers(why),
        error=None if recovered is None or recovered.error is None else recovered.error.message,
    )


def chain_steps(question: Question, chain: Chain | None) -> list[StepView]:
    """Return the passages of a chain, highlighted, and the links between them."""
    return _steps(question, chain, Highlighter.of_chain(question, chain)) if chain else []


def _steps(question: Question, chain: Chain, highlighter: Highlighter) -> list[StepView]:
    passages = {passage.id: passage for passage in question.passages}
    names = [name for name in chain.passages if name in passages]
    links = [link_view(place, link) for place, link in enumerate(chain.links)][: max(len(names) - 1, 0)]
    return [_step(passages[name], highlighter, link) for name, link in zip_longest(names, links)]


def link_view(place: int, link: Link) -> LinkView:
    """Return a link as it is shown."""
    return LinkView(link_role(place), link.entity, link.kind, KINDS[link.kind].meaning, link.weight)


def _step(passage: Passage, highlighter: Highlighter, link: LinkView | None = None) -> StepView:
    return StepView(passage.id, passage.title, highlighter.pieces(PassageView(passage)), link)


def _candidate(question: Question, number: int, chain: Chain, gold: Gold | None, is_scored: bool) -> CandidateView:
    entities = [link.entity for link in chain.links]
    return CandidateView(
        number,
        _titles(question, chain.passages),
        [link_view(place, link) for place, link in enumerate(chain.links)],
        chain.score if is_scored else None,
        chain.confidence,
        None if gold is None else is_correct(chain.passages, entities, gold),
    )


def _gold(question: Question, gold: Gold, one: GoldChain, chains: Sequence[Chain]) -> GoldView:
    alone = gold.model_copy(update={"chains": [one]})
    same = (
        number
        for number, chain in enumerate(chains)
        if is_correct(chain.passages, [link.entity for link in chain.links], alone)
    )
    return GoldView(_titles(question, one.passages), one.links or (), next(same, None))


def _titles(question: Question, names: Sequence[str]) -> list[str]:
    titles = {passage.id: passage.title for passage in question.passages}
    return [titles.get(name) or name for name in names]


def _unscored(question: Question, known: Sequence[Chain], settings: CandidateSettings) -> list[Chain]:
    """Return the candidate chains of which a source has said nothing, by link weight."""
    if len(known) >= MOST_SHOWN:
        return []
    try:
        candidates = find_of_any_length(question, settings)
    except QuestionError:
        return []
    told = {chain.identity for chain in known}
    names = [passage.id for passage in question.passages]
    unscored = []
    for chain in candidates.chains[:MOST_SHOWN]:
        passages = tuple(names[place] for place in chain.passages)
        if (passages, tuple(edge.key if edge.is_given else "" for edge in chain.edges)) not in told:
            unscored.append(Chain(passages=list(passages), links=chain.links, score=chain.weight))
    return unscored


def _said(steps: Any) -> list[Mapping[str, Any]]:
    """Return the steps that can be shown; in a file anything may stand there."""
    told = steps if isinstance(steps, list) else []
    return [one for one in told if isinstance(one, dict) and isinstance(one.get("probability"), int | float)]


def _numbers(why: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in why.items() if isinstance(value, int | float)}
