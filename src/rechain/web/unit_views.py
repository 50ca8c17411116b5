"""The units of a question as the labelling desk shows them: what is asked, of which passages, highlighted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rechain.labels.store import Label
from rechain.labels.suggestions import Suggestion
from rechain.schema import Chain, Question
from rechain.text.candidates.label_units import THE_QUESTION, Unit, Units
from rechain.text.highlights import ANSWER, CLAIM, QUESTION, Highlighter, link_role
from rechain.web.names import Names, StripView, strip_of
from rechain.web.views import StepView, chain_steps, step_view

Asks = Literal["chain", "single", "parallel", "answer", "start", "end", "relation"]
"""what the desk asks about a unit: whether a chain holds, whether one passage suffices, or passages side by side, or
whether a passage says that something is the answer, leads from the question to an entity, leads from an entity to the
answer, or relates two entities"""


@dataclass(frozen=True)
class UnitView:
    """A unit as the desk shows it."""

    unit: Unit
    asks: Asks
    names: Sequence[str]
    """its entities, as people see them"""
    strip: StripView | None
    """a chain in one line"""
    steps: Sequence[StepView]
    """its passages, highlighted"""
    chains: Sequence[int]
    """the numbers of the candidate chains that a pair is on"""
    own: Label | None
    """the annotator's label, or the one that settles"""
    note: str
    """the annotator's note"""
    labels: Sequence[Label] = ()
    """the labels of all annotators, where it is to be settled"""
    suggestion: Suggestion | None = None
    """what the model says of it, where that is shown"""


def unit_view(
    units: Units,
    unit: Unit,
    own: Label | None,
    annotator: str | None,
    labels: Sequence[Label] = (),
    suggestion: Suggestion | None = None,
) -> UnitView:
    """Return a unit as the desk shows it."""
    chain = None if unit.mode == "pairs" else _chain(units, unit)
    known, entities = Names(units.question), unit.entities if chain else units.in_order(unit)
    names = [known.entity(one, unit.passages) if known.mentions(one) else units.name(one) for one in entities]
    return UnitView(
        unit=unit,
        asks=unit.shape if chain else _asks(units.question, entities, names),
        names=names,
        strip=strip_of(units.question, chain) if chain and chain.links else None,
        steps=chain_steps(units.question, chain) if chain else _pair(units, unit),
        chains=units.pairs.get(unit, ()),
        own=own,
        note=(own.note if own and own.annotator == annotator else None) or "",
        labels=labels,
        suggestion=suggestion,
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


def _pair(units: Units, unit: Unit) -> list[StepView]:
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


def _chain(units: Units, unit: Unit) -> Chain:
    """Return a unit as a chain; of one that is no candidate, without links."""
    number = units.numbers.get(unit)
    links = [] if number is None else units.candidates.chains[number].links
    return Chain(shape=unit.shape, passages=list(unit.passages), links=links, score=0.0)
