"""From questions, chains and what is labelled of them to what the pages show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from rechain.evaluation.judging import judge
from rechain.schema import MATCHES, Chain, Claim, Gold, GoldChain, Link, Passage, Question, Recovered, Shape
from rechain.text.highlights import ANSWER, CLAIM, QUESTION, Highlighter, Piece, cut, link_role
from rechain.text.label_units import THE_QUESTION, Unit, Units
from rechain.text.passage_views import PassageView
from rechain.web.chains import ChainList, best_chain, is_gold
from rechain.web.link_graph import Graph, GraphView
from rechain.web.passages import (
    Names,
    Place,
    StripView,
    excerpt,
    number_passages,
    passage_name,
    place_of,
    roles_of_step,
    strip_of,
)
from rechain.web.site import MOST_SHOWN, Source


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
    number: int | None = None
    """its number on the page, where it is on a chain"""
    line: int = 0
    """which of several lines of evidence it is on, from 0"""
    link: Link | None = None
    link_name: str = ""
    """the entity of that link, as people see it"""
    link_number: int = 0
    """the number of that link, from 1"""
    leads_to: int | None = None
    """the number of the passage to which it leads, where that is not the next on its line"""
    excerpt: Sequence[Sequence[Piece]] | None = None
    """the sentences that matter to the chain; None where the whole text is short, or all of it matters"""
    place: Place | None = None
    """where it stands in a document of the index"""
    origin: str | None = None
    """where it comes from, if it was not found in the index as others were"""


class Part(NamedTuple):
    """A passage in a line, its number in the best chain if it is there too, and whether it leads to the next."""

    name: str
    number: int | None = None
    leads_on: bool = False


class LineView(NamedTuple):
    """The passages of a chain in one line, and the links between them that the best chain does not have."""

    shape: Shape
    passages: Sequence[Part]
    links: Sequence[str]


class CandidateView(NamedTuple):
    """A candidate chain in one line; without a score if the source has not scored it."""

    number: int
    line: LineView
    score: float | None
    confidence: float | None
    is_right: bool | None
    lines: Sequence[int]
    """the numbers of its lines in the graph"""


class GoldView(NamedTuple):
    """A gold chain in one line, and the number of the candidate that is this chain, if any is."""

    line: LineView
    candidate: int | None


@dataclass(frozen=True)
class QuestionView:
    """A question, one of its chains in full, and the other chains in one line each."""

    question: Question
    number: int | None
    """which of the candidates is shown, from 0; None: the source has no chain, and nobody asked for a candidate"""
    chain: Chain | None
    steps: Sequence[StepView]
    golds: Sequence[GoldView] | None
    """the gold chains, where they are known"""
    is_right: bool | None
    """whether the chain that is shown is a gold chain; None where nobody can tell, or nothing is there to judge"""
    rest: Sequence[Passage]
    """the passages that are not on the chain"""
    highlighter: Highlighter
    candidates: Sequence[CandidateView]
    """the first candidates"""
    chains: ChainList
    """all candidates"""
    graph: GraphView
    parts: Mapping[str, float]
    """what adds up to the score"""
    player_steps: Sequence[Mapping[str, Any]]
    """what Ranker and Reasoner chose, step by step"""
    recovered: Recovered | None
    """all that the source says of the question, its verdict among it"""
    names: Names
    how: str
    """how the answer appears in the chain, the beginning of a sentence; empty if it does not support the answer"""
    own: OwnPassages | None = None
    """the passages that came with the question; None where there is no index"""

    @cached_property
    def strip(self) -> StripView | None:
        """The chain in one line."""
        return None if self.chain is None else strip_of(self.question, self.chain, self.names)

    @property
    def others(self) -> list[StepView]:
        """The passages that are not on the chain, highlighted: most of the work of a page, and seldom looked at."""
        views = map(PassageView, self.rest)
        return [step_view(view, self.highlighter, self.own, (QUESTION, ANSWER)) for view in views]


def question_view(
    chains: ChainList,
    recovered: Recovered | None,
    number: int | None,
    gold: Gold | None,
    own: OwnPassages | None = None,
) -> QuestionView:
    """Return the view of one of a question's chains, counted from 0.

    Without a number, or with one that is too high, it is the source's best chain; a source that has none has no chain
    to show. Candidates that the source has not scored come after the others.
    """
    question = chains.question
    if number is None or not 0 <= number < len(chains):
        number = 0 if chains.scored else None
    chain = None if number is None else chains.at(number)
    why = (chain.why if chain else None) or {}
    steps = why.get("steps")
    names = Names(question)
    best = chains.scored[0] if chains.scored else None
    graph = Graph(chains, chain, gold).view()
    claims = recovered.claims if recovered else ()
    highlighter, on_chain = Highlighter.of_chain(question, chain, claims), chain.passages if chain else ()
    return QuestionView(
        question=question,
        number=number,
        chain=chain,
        steps=chain_steps(question, chain, claims, own, views=chains.views),
        golds=None
        if gold is None
        else [
            GoldView(_line(as_chain(one), names, best), chains.find(gold.model_copy(update={"chains": [one]})))
            for one in gold.chains
        ],
        is_right=None if gold is None or (chain is None and recovered is None) else judge(chain, gold).correct,
        rest=[passage for passage in question.passages if passage.id not in on_chain],
        highlighter=highlighter,
        candidates=[
            CandidateView(
                number=place,
                line=_line(one, names, best if place else None),
                score=one.score if place < len(chains.scored) else None,
                confidence=one.confidence,
                is_right=None if gold is None else is_gold(one, gold),
                lines=graph.lines_of(one),
            )
            for place, one in enumerate(map(chains.at, range(min(len(chains), MOST_SHOWN))))
        ],
        chains=chains,
        graph=graph,
        # a chains file may hold anything here: what cannot be shown is left out
        parts={name: float(value) for name, value in why.items() if isinstance(value, int | float)},
        player_steps=[
            step
            for step in (steps if isinstance(steps, list) else ())
            if isinstance(step, dict) and isinstance(step.get("probability"), int | float)
        ],
        recovered=recovered,
        names=names,
        how=_how_it_appears(question, chain, recovered),
        own=own,
    )


def _how_it_appears(question: Question, chain: Chain | None, recovered: Recovered | None) -> str:
    held = chain.answer if chain else None
    if held is None or (recovered and recovered.verdict in ("unsupported", "no_answer")):
        return ""
    if held.match == "phrase" and held.span:
        start, end = held.span
        texts = (one.text[start:end] for one in question.passages if one.id == held.passage)
        if not any(text.casefold() == question.answer.strip().casefold() for text in texts):
            return "The answer appears in another spelling in"
    if held.match == "words":
        return "The key words of the answer appear in"
    return f"The answer appears {MATCHES[held.match]} in"


def _line(chain: Chain, names: Names, best: Chain | None) -> LineView:
    """Return a chain in one line; what is as in the best chain is known by its number there."""
    known = {name: number for number, name in enumerate(best.passages if best else (), start=1)}
    links, known_links = (
        [names.link(one, number) for number in range(len(one.between))] if one else [] for one in (chain, best)
    )
    places = [(place, place != line[-1]) for line in chain.lines for place in line]
    passages = [(chain.passages[place], leads_on) for place, leads_on in places]
    return LineView(
        shape=chain.shape,
        passages=[Part(names.passage(name), known.get(name), leads_on) for name, leads_on in passages],
        links=[name for name in links if name not in known_links],
    )


def as_chain(gold: GoldChain) -> Chain:
    """Return a gold chain in the form of others, to be drawn like them."""
    links = [Link(entity=entity, kind="mention", weight=0.0, mentions=(None, None)) for entity in gold.links or ()]
    return Chain(shape=gold.shape or "chain", passages=gold.passages, links=links, score=0.0)


def chain_steps(
    question: Question,
    chain: Chain | None,
    claims: Sequence[Claim] = (),
    own: OwnPassages | None = None,
    numbers: Mapping[str, int] | None = None,
    views: Sequence[PassageView] = (),
) -> list[StepView]:
    """Return the passages of a chain, highlighted, and the links between them.

    `numbers` are those of its passages if several chains are shown together, `views` the question's if they are known.
    """
    if chain is None:
        return []
    highlighter, names = Highlighter.of_chain(question, chain, claims), Names(question)
    numbers = numbers or number_passages([chain.passages])
    passages = {view.passage.id: view for view in views or map(PassageView, question.passages)}
    on_line = {place: number for number, line in enumerate(chain.lines) for place in line}
    steps = []
    for place, name in enumerate(chain.passages):
        if name not in passages:  # of a chain from a file
            continue
        step = step_view(passages[name], highlighter, own, roles_of_step(place, chain.between))
        step = replace(step, number=numbers[name], line=on_line[place])
        for number, ((before, after), link) in enumerate(zip(chain.between, chain.joining_links, strict=True)):
            if before == place and chain.passages[after] in passages:
                leads_to = None if after == place + 1 else numbers[chain.passages[after]]
                link_name = names.link(chain, number)
                step = replace(step, link=link, link_name=link_name, link_number=number + 1, leads_to=leads_to)
        steps.append(step)
    return steps


def step_view(
    view: PassageView, highlighter: Highlighter, own: OwnPassages | None = None, roles: Sequence[str] = ()
) -> StepView:
    """Return a passage with its text cut where something is highlighted; `own` if others come from an index.

    With `roles`, the kinds of marks that matter in it, a long text also has an excerpt.
    """
    passage, marks = view.passage, highlighter.marks(view)
    is_own = own is not None and passage.id in own.ids
    return StepView(
        id=passage.id,
        name=passage_name(passage),
        title=passage.title,
        pieces=cut(passage.text, marks),
        excerpt=excerpt(view, marks, roles) if roles else None,
        place=None if own is None or is_own else place_of(passage),
        origin=own.origin if own is not None and is_own else None,
    )


class ComparedView(NamedTuple):
    """A question's best chain of one of two sources."""

    source: Source
    recovered: Recovered | None
    strip: StripView | None
    steps: Sequence[StepView]
    is_right: bool | None

    @property
    def is_late(self) -> bool:
        """Whether a model has not recovered it yet."""
        return self.source.is_model and self.recovered is None


class ComparisonView(NamedTuple):
    """A question's best chains of two sources, each in full and both in one graph."""

    sources: Sequence[ComparedView]
    golds: Sequence[StripView] | None
    """the gold chains, if they are known"""
    graph: GraphView


def comparison_view(
    chains: ChainList,
    found: Sequence[tuple[Source, Recovered | None]],
    gold: Gold | None,
    own: OwnPassages | None = None,
) -> ComparisonView:
    """Return the best chains of two sources, and gold; a passage has the same number wherever it is shown."""
    question, golds = chains.question, [as_chain(one) for one in gold.chains] if gold else []
    best, names = [best_chain(recovered) for _, recovered in found], Names(question)
    numbers = number_passages(chain.passages for chain in (*best, *golds) if chain)
    views = [
        ComparedView(
            source=source,
            recovered=recovered,
            strip=strip_of(question, chain, names, numbers) if chain else None,
            steps=chain_steps(question, chain, recovered.claims if recovered else (), own, numbers, chains.views),
            is_right=None if gold is None or recovered is None else judge(chain, gold).correct,
        )
        for (source, recovered), chain in zip(found, best, strict=True)
    ]
    return ComparisonView(
        sources=views,
        golds=None if gold is None else [strip_of(question, chain, names, numbers) for chain in golds],
        graph=Graph(chains, best[0], gold, best[1], numbers).view(),
    )


Asks = Literal["answer", "start", "end", "relation"]
"""what the desk asks about a pair: whether its passage says that something is the answer, leads from the question to an
entity, leads from an entity to the answer, or relates two entities"""


class PairView(NamedTuple):
    """A passage with two entities as the desk shows it."""

    asks: Asks
    names: Sequence[str]
    """the entities, as people see them"""
    steps: Sequence[StepView]
    """the passage, highlighted"""
    chains: int
    """how many candidate chains it is on"""


def pair_view(units: Units, unit: Unit) -> PairView:
    """Return a pair as the desk shows it."""
    known, entities = Names(units.question), units.in_order(unit)
    names = [known.entity(one, unit.passages) if known.mentions(one) else units.name(one) for one in entities]
    return PairView(
        _asks(units.question, entities, names), names, _pair_steps(units, unit), len(units.pairs.get(unit, ()))
    )


def _asks(question: Question, entities: Sequence[str], names: Sequence[str]) -> Asks:
    """Return what to ask about a pair, whose entities are in the order of the chain."""
    answer = question.answer if question.answer_entity is None else question.answer_entity
    starts, ends = entities[0] == THE_QUESTION, entities[1] == answer.strip()
    if (starts and ends) or names[0].lower() == names[1].lower():
        return "answer"
    if starts:
        return "start"
    return "end" if ends else "relation"


def _pair_steps(units: Units, unit: Unit) -> list[StepView]:
    """Return the passage of a pair with its entities highlighted, and of a long one the sentences that hold them."""
    answers = units.question.answer, units.question.answer_entity
    links, roles = list[str](), [CLAIM]
    for entity in units.in_order(unit):
        if entity in (THE_QUESTION, *units.question.question_entities):
            roles.append(QUESTION)
        elif entity in answers:
            roles.append(ANSWER)
        else:
            roles.append(link_role(len(links)))
            links.append(units.name(entity))
    highlighter = Highlighter(units.question, links)
    views = [view for view in units.candidates.views if view.passage.id in unit.passages]
    return [step_view(view, highlighter, roles=roles) for view in views]
