"""From questions and chains to what the pages show of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from rechain.candidates import CandidateSettings, find_of_any_shape
from rechain.errors import QuestionError
from rechain.evaluation.judging import is_correct
from rechain.schema import Chain, Claim, Gold, Link, Passage, Question, Recovered, Shape
from rechain.text.collection import Statistics
from rechain.text.highlights import Highlighter, Piece, cut
from rechain.text.passages import PassageView
from rechain.web.excerpts import excerpt, roles_of_step
from rechain.web.names import Names, passage_name
from rechain.web.places import Place, place_of
from rechain.web.site import MOST_SHOWN
from rechain.web.strip import StripView, strip_of


@dataclass(frozen=True)
class OwnPassages:
    """Which passages of a question came with it, where the others were found in an index."""

    ids: frozenset[str]
    origin: str = "from the log"
    """where they come from, in words for people"""


@dataclass(frozen=True)
class StepView:
    """A passage, with its text cut where something is highlighted, and the link that leads on from it."""

    id: str
    name: str
    """its title, or what stands for one"""
    title: str
    pieces: Sequence[Piece]
    link: Link | None = None
    link_name: str = ""
    """the entity of that link, as people see it"""
    excerpt: Sequence[Sequence[Piece]] | None = None
    """the sentences that matter to the chain; None where the whole text is short, or all of it matters"""
    place: Place | None = None
    """where it stands in a document of the index"""
    origin: str | None = None
    """where it comes from, if it was not found in the index as others were"""


@dataclass(frozen=True)
class CandidateView:
    """A candidate chain in one line; without a score where the source has not scored it."""

    number: int
    shape: Shape
    passages: Sequence[str]
    links: Sequence[Link]
    score: float | None
    confidence: float | None
    is_right: bool | None


@dataclass(frozen=True)
class GoldView:
    """A gold chain in one line, and the number of the candidate that is this chain, if any is."""

    shape: Shape
    passages: Sequence[str]
    links: Sequence[str]
    candidate: int | None


@dataclass(frozen=True)
class QuestionView:
    """A question, one of its chains in full, and the other chains in one line each."""

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
    player_steps: Sequence[Mapping[str, Any]]
    """what Ranker and Reasoner chose, step by step"""
    error: str | None
    """why the source has no chain"""
    recovered: Recovered | None
    """all that the source says of the question, its verdict among it"""
    own: OwnPassages | None = None
    """the passages that came with the question; None where there is no index"""

    @property
    def strip(self) -> StripView | None:
        """The chain in one line."""
        return None if self.chain is None else strip_of(self.question, self.chain)

    @property
    def others(self) -> list[StepView]:
        """The passages that are not on the chain, highlighted: most of the work of a page, and seldom looked at."""
        return [step_view(passage, self.highlighter, own=self.own) for passage in self.rest]


def question_view(
    question: Question,
    recovered: Recovered | None,
    number: int,
    gold: Gold | None,
    settings: CandidateSettings,
    own: OwnPassages | None = None,
    collection: Statistics | None = None,
) -> QuestionView:
    """Return the view of one of a question's chains, counted from 0; the first where there is no such chain.

    Candidates that the source has not scored come after the others.
    """
    scored = recovered.chains if recovered else []
    chains = [*scored, *_unscored(question, scored, settings, collection)]
    number = number if 0 <= number < len(chains) else 0
    chain = chains[number] if chains else None
    why = (chain.why if chain else None) or {}
    steps = why.get("steps")
    titles = {passage.id: passage.title or passage.id for passage in question.passages}
    claims = recovered.claims if recovered else ()
    highlighter, on_chain = Highlighter.of_chain(question, chain, claims), chain.passages if chain else ()
    return QuestionView(
        question=question,
        number=number,
        chain=chain,
        steps=_steps(question, chain, highlighter, own) if chain else [],
        golds=None if gold is None else _golds(gold, chains, titles),
        rest=[passage for passage in question.passages if passage.id not in on_chain],
        highlighter=highlighter,
        candidates=[
            CandidateView(
                number=place,
                shape=one.shape,
                passages=[titles.get(name, name) for name in one.passages],
                links=one.links,
                score=one.score if place < len(scored) else None,
                confidence=one.confidence,
                is_right=None if gold is None else _is_gold(one, gold),
            )
            for place, one in enumerate(chains)
        ],
        # a chains file may hold anything here: what cannot be shown is left out
        parts={name: float(value) for name, value in why.items() if isinstance(value, int | float)},
        player_steps=[
            step
            for step in (steps if isinstance(steps, list) else ())
            if isinstance(step, dict) and isinstance(step.get("probability"), int | float)
        ],
        error=None if recovered is None or recovered.error is None else recovered.error.message,
        recovered=recovered,
        own=own,
    )


def chain_steps(
    question: Question, chain: Chain | None, claims: Sequence[Claim] = (), own: OwnPassages | None = None
) -> list[StepView]:
    """Return the passages of a chain, highlighted, and the links between them."""
    return _steps(question, chain, Highlighter.of_chain(question, chain, claims), own) if chain else []


def _steps(question: Question, chain: Chain, highlighter: Highlighter, own: OwnPassages | None) -> list[StepView]:
    passages, names = {passage.id: passage for passage in question.passages}, Names(question)
    present = [name for name in chain.passages if name in passages]
    links = chain.links_in_order[: max(len(present) - 1, 0)]  # a passage may be missing
    steps = []
    for place, (name, link) in enumerate(zip_longest(present, links)):
        roles = roles_of_step(place, len(present), len(links))
        step = step_view(passages[name], highlighter, link, own, roles)
        steps.append(replace(step, link_name=names.link(chain, place)) if link else step)
    return steps


def step_view(
    passage: Passage,
    highlighter: Highlighter,
    link: Link | None = None,
    own: OwnPassages | None = None,
    roles: Sequence[str] = (),
) -> StepView:
    """Return a passage with its text cut where something is highlighted; `own` where others come from an index.

    With `roles`, which say what matters in it, a long text also has an excerpt.
    """
    is_own = own is not None and passage.id in own.ids
    view = PassageView(passage)
    marks = highlighter.marks(view)
    return StepView(
        id=passage.id,
        name=passage_name(passage),
        title=passage.title,
        pieces=cut(passage.text, marks),
        link=link,
        link_name=link.entity if link else "",
        excerpt=excerpt(view, marks, roles) if roles else None,
        place=None if own is None or is_own else place_of(passage),
        origin=own.origin if own is not None and is_own else None,
    )


def _golds(gold: Gold, chains: Sequence[Chain], titles: Mapping[str, str]) -> list[GoldView]:
    views = []
    for one in gold.chains:
        alone = gold.model_copy(update={"chains": [one]})
        candidate = next((number for number, chain in enumerate(chains) if _is_gold(chain, alone)), None)
        shape = one.shape or "chain"
        views.append(GoldView(shape, [titles.get(name, name) for name in one.passages], one.links or (), candidate))
    return views


def _is_gold(chain: Chain, gold: Gold) -> bool:
    return is_correct(chain.passages, [link.entity for link in chain.links], gold, chain.shape)


def _unscored(
    question: Question, scored: Sequence[Chain], settings: CandidateSettings, collection: Statistics | None
) -> list[Chain]:
    """Return the candidate chains that a source has not scored, by link weight."""
    if len(scored) >= MOST_SHOWN:
        return []
    try:
        candidates = find_of_any_shape(question, settings, collection=collection)
    except QuestionError:
        return []
    identities = {chain.identity for chain in scored}
    names = [passage.id for passage in question.passages]
    chains = (
        Chain(
            shape=candidate.shape,
            passages=[names[place] for place in candidate.passages],
            links=candidate.links,
            score=candidate.weight,
        )
        for candidate in candidates.chains[:MOST_SHOWN]
    )
    return [chain for chain in chains if chain.identity not in identities]
