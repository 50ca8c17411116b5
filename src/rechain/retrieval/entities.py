"""Which passages may form the chain of a question whose entities the data names.

Heads mention an entity of the question, ends that of the answer. What the data's mentions link to heads and to ends is
looked up entity by entity; a passage is kept where it lies on a path from a head to an end. Where one passage is the
whole chain, it is head and end.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from itertools import pairwise
from math import inf, log

from rechain.retrieval.index import read_passage
from rechain.retrieval.shard import Ask, Condition, Hit
from rechain.schema import Passage, Question
from rechain.text.passages import PassageView

_HOPS = 2
"""passages of a chain where nobody says how many"""
_MOST_MENTIONING = 500
"""passages that one ask returns: DrugHop's commonest entity is in 185 of 3,594 abstracts"""


def find_by_entities(question: Question) -> Generator[list[Ask], list[list[Hit]], list[Passage]]:
    """Find passages that mention the entities of question and answer, and those that link them, best first."""
    hops = question.hops or (len(question.link_types) + 1 if question.link_types else _HOPS)
    types = question.link_types or [""] * (hops - 1)
    ends = frozenset((*question.question_entities, *filter(None, [question.answer_entity])))
    first = Condition("entity", tuple(question.question_entities))
    last = Condition("entity", (question.answer_entity,) if question.answer_entity is not None else ())
    if hops == 1:
        (both,) = yield [Ask((), (first, last), limit=_MOST_MENTIONING)]
        return [read_passage(hit.record) for hit in both]
    heads, tails = yield [Ask((), (first,), limit=_MOST_MENTIONING), Ask((), (last,), limit=_MOST_MENTIONING)]
    levels = [_views(heads), *([] for _ in range(hops - 2)), _views(tails)]
    for place in range(1, hops - 1):
        before = _entities(levels[place - 1], types[place - 1], ends)
        must = [Condition("entity", before)]
        if place == hops - 2:  # what follows is known: the ends
            must.append(Condition("entity", _entities(levels[-1], types[place], ends)))
        (middles,) = yield [Ask((), tuple(must), limit=_MOST_MENTIONING)]
        levels[place] = _views(middles)
    return _on_paths(levels, types, ends)


def _views(hits: Iterable[Hit]) -> list[PassageView]:
    return [PassageView(read_passage(hit.record)) for hit in hits]


def _entities(views: Iterable[PassageView], kind: str, ends: frozenset[str]) -> tuple[str, ...]:
    """Return the entities of a kind that may link passages to others."""
    return tuple(sorted({entity for view in views for entity in _links(view, kind, ends)}))


def _links(view: PassageView, kind: str, ends: frozenset[str]) -> set[str]:
    prefix = f"{kind}:" if kind else ""
    return {entity for entity in view.entities if entity.startswith(prefix) and entity not in ends}


def _on_paths(levels: Sequence[list[PassageView]], types: Sequence[str], ends: frozenset[str]) -> list[Passage]:
    """Return the passages on paths from the first level to the last, those first whose links few passages share."""
    forward = _best_into(levels, types, ends)
    backward = list(reversed(_best_into(levels[::-1], types[::-1], ends)))
    worth: dict[str, float] = {}
    passages: dict[str, Passage] = {}
    for level, before, after in zip(levels, forward, backward, strict=True):
        for view in level:
            name = view.passage.id
            if name in before and name in after:
                passages[name] = view.passage
                worth[name] = max(worth.get(name, -inf), before[name] + after[name])
    return sorted(passages.values(), key=lambda passage: (-worth[passage.id], passage.id))


def _best_into(
    levels: Sequence[list[PassageView]], types: Sequence[str], ends: frozenset[str]
) -> list[dict[str, float]]:
    """Return for each level the passages that can be reached from the first, and how rare the links to them are."""
    best = [{view.passage.id: 0.0 for view in levels[0]}]
    for (before, after), kind in zip(pairwise(levels), types, strict=True):
        holders = Counter(entity for view in (*before, *after) for entity in _links(view, kind, ends))
        sources: dict[str, float] = {}
        for view in before:
            if view.passage.id in best[-1]:
                for entity in _links(view, kind, ends):
                    worth = best[-1][view.passage.id] - log(holders[entity])
                    sources[entity] = max(sources.get(entity, -inf), worth)
        reached = {}
        for view in after:
            links = [sources[entity] for entity in _links(view, kind, ends) if entity in sources]
            if links:
                reached[view.passage.id] = max(links)
        best.append(reached)
    return best
