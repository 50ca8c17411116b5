"""Which passages lie on a path to the answer: by words and titles, or by the entities that the data names.

By words, every passage is weighed by the best path to the answer on which it lies (`Pool`). If the data names the
entities of question and answer, heads mention one of the question and ends that of the answer. What links them is
searched entity by entity, and a passage is kept if it lies on a path from a head to an end.
"""

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Sequence
from itertools import islice, pairwise
from math import inf, log

from rechain.index.engine import Ask, Condition, Hit, read_passage
from rechain.schema import Passage, Question
from rechain.text.languages import idf
from rechain.text.passage_views import PassageView

_LINK = 10.0
"""the worth of a link by a title, next to words, whose score is BM25: about one rare word in title and text; 5 to 15
find the same within chance"""
_WHOLE_NAME = 9.0
"""rarity of a title, all its words together, from which on it counts as a link in full: that of one rare word"""
_LONE = 0.5
"""what the words of a passage are worth that lies on no path"""
_SUBSTITUTE_ENDS = 8
"""passages that count as ends if none contains the answer word for word: those with most words"""
_HOPS = 2
"""passages of a chain if the data does not say how many"""
_MOST_MENTIONING = 500
"""passages that one ask returns: DrugHop's commonest entity is in 185 of 3,594 abstracts"""


class _Found:
    """A passage of the pool."""

    __slots__ = ("best", "is_end", "name", "order", "rarity", "score", "view")

    def __init__(self, hit: Hit, answers: Iterable[str]) -> None:
        self.view = view = PassageView(read_passage(hit.record))
        self.score = hit.score
        self.order = hit.order
        self.is_end = any(phrase in view.joined for phrase in answers)
        self.name = view.names[-1] if view.names else ""
        """what other texts call it: its title or, of a part of a document, its heading"""
        self.rarity = min(sum(map(idf, self.name.split())) / _WHOLE_NAME, 1.0)
        self.best = 0.0


class Pool:
    """Passages that were found, each once."""

    def __init__(self, answers: Collection[str]) -> None:
        """Take the phrases of the answer, each with a blank on either side of its words."""
        self._answers = answers
        self._found: dict[bytes, _Found] = {}

    def add(self, hits: Iterable[Hit]) -> None:
        """Add passages; the greatest score of each counts."""
        for hit in hits:
            if hit.record not in self._found:
                self._found[hit.record] = _Found(hit, self._answers)
            found = self._found[hit.record]
            found.score = max(found.score, hit.score)

    def best(self, hits: Iterable[Hit], most: int) -> list[PassageView]:
        """Return the best of some passages that were added."""
        distinct = {hit.record: self._found[hit.record] for hit in hits}
        return [one.view for one in _ranked(distinct.values())[:most]]

    @property
    def ends(self) -> int:
        """The number of passages that contain the answer."""
        return sum(one.is_end for one in self._found.values())

    def best_ends(self, most: int) -> list[PassageView]:
        """Return the best passages that may be ends."""
        return [one.view for one in self._ends()[:most]]

    def _ends(self) -> list[_Found]:
        """Return the passages that contain the answer or, if there are none, those with most words; best first."""
        ends = [one for one in self._found.values() if one.is_end]
        return _ranked(ends) if ends else _ranked(self._found.values())[:_SUBSTITUTE_ENDS]

    def select(self, most: int, pieces: Sequence[Hit] = ()) -> list[Passage]:
        """Return the passages on the best paths, and then pieces of evidence that are used wherever they lie.

        Each on a path is worth as much as the best pair with an end to which it belongs. Paths of three were tried:
        they bring no more right passages of MuSiQue's longer chains, and wrong ones of HotpotQA's.
        """
        for one in self._found.values():
            one.best = _LONE * one.score
        for end in self._ends():
            for other in self._found.values():
                if other is not end:
                    worth = other.score + end.score + _LINK * _link(other, end)
                    other.best, end.best = max(other.best, worth), max(end.best, worth)
        records = [record for record, _ in sorted(self._found.items(), key=lambda item: _worth(item[1]))]
        used = list(dict.fromkeys(hit.record for hit in pieces))[: most * 2 // 3]
        chosen = dict.fromkeys((*records[: most - len(used)], *used, *records))
        return [
            self._found[one].view.passage if one in self._found else read_passage(one) for one in islice(chosen, most)
        ]


def _worth(one: _Found) -> tuple[float, float, int]:
    """Return by what passages are ranked: what is paired with the one good end is worth as much, but comes after it."""
    return -one.best, -one.score, one.order


def _ranked(passages: Iterable[_Found]) -> list[_Found]:
    return sorted(passages, key=lambda one: (-one.score, one.order))


def _link(one: _Found, two: _Found) -> float:
    """Return how well two passages are linked: how rare the title of one is that the other contains."""
    weight = one.rarity if one.name and one.name in two.view.text.joined else 0.0
    return two.rarity if two.rarity > weight and two.name in one.view.text.joined else weight


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
    return tuple(sorted({entity for view in views for entity in _links(view, kind, ends)}))


def _links(view: PassageView, kind: str, ends: frozenset[str]) -> set[str]:
    """Return the entities of a kind that may link a passage to others."""
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
