"""The passages that were found for a question, weighed by the best path to the answer that each lies on."""

from collections.abc import Collection, Iterable, Sequence

from rechain.retrieval.index import read_passage
from rechain.retrieval.shard import Hit
from rechain.schema import Passage
from rechain.text.passages import PassageView
from rechain.text.rarity import idf

_LINK = 10.0
"""what a link by a title is worth beside words, whose score is that of BM25: about as much as one rare word that
stands in the title and in the text; 5 to 15 find the same within chance"""
_WHOLE_NAME = 9.0
"""rarity of a title, all its words together, from which on it counts as a link in full: that of one rare word"""
_LONE = 0.5
"""what the words of a passage are worth that lies on no path"""
_SUBSTITUTE_ENDS = 8
"""passages that are taken for ends where none holds the answer word for word: those with most words"""


class _Found:
    """A passage of the pool."""

    __slots__ = ("best", "is_end", "name", "order", "rarity", "score", "view")

    def __init__(self, hit: Hit, view: PassageView, is_end: bool) -> None:
        self.view = view
        self.score = hit.score
        self.order = hit.order
        self.is_end = is_end
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
        """Add what was found; of a passage that was found before the greatest score counts."""
        for hit in hits:
            known = self._found.get(hit.record)
            if known is None:
                view = PassageView(read_passage(hit.record))
                is_end = any(phrase in view.joined for phrase in self._answers)
                self._found[hit.record] = _Found(hit, view, is_end)
            else:
                known.score = max(known.score, hit.score)

    def best(self, hits: Iterable[Hit], most: int) -> list[PassageView]:
        """Return the best of some passages that were added."""
        distinct = {hit.record: self._found[hit.record] for hit in hits}
        return [one.view for one in _ranked(distinct.values())[:most]]

    @property
    def ends(self) -> int:
        """The number of passages that hold the answer."""
        return sum(one.is_end for one in self._found.values())

    def best_ends(self, most: int) -> list[PassageView]:
        """Return the best passages that may be ends."""
        return [one.view for one in self._ends()[:most]]

    def _ends(self) -> list[_Found]:
        """Return the passages that hold the answer, or for want of any those with most words; best first."""
        ends = [one for one in self._found.values() if one.is_end]
        return _ranked(ends) if ends else _ranked(self._found.values())[:_SUBSTITUTE_ENDS]

    def select(self, most: int) -> list[Passage]:
        """Return the passages on the best paths, best first."""
        self._weigh()
        # All that is paired with the one good end is worth as much as that end, which has to come before them.
        ranked = sorted(self._found.values(), key=lambda one: (-one.best, -one.score, one.order))
        return [one.view.passage for one in ranked[:most]]

    def _weigh(self) -> None:
        """Set the worth of the best pair of a passage and an end to which each belongs.

        Paths of three were tried: they bring no more right passages of MuSiQue's longer chains, and wrong ones of
        HotpotQA's.
        """
        ranked, ends = _ranked(self._found.values()), self._ends()
        for one in ranked:
            one.best = _LONE * one.score
        for end in ends:
            for other in ranked:
                if other is not end:
                    _lift((other, end), other.score + end.score + _LINK * _link(other, end))


def _ranked(found: Iterable[_Found]) -> list[_Found]:
    return sorted(found, key=lambda one: (-one.score, one.order))


def _lift(path: Sequence[_Found], worth: float) -> None:
    for one in path:
        one.best = max(one.best, worth)


def _link(one: _Found, two: _Found) -> float:
    """Return how well two passages are linked: whether the title of either stands in the other, and how rare it is."""
    weight = one.rarity if one.name and one.name in two.view.text.joined else 0.0
    if two.rarity > weight and two.name in one.view.text.joined:
        weight = two.rarity
    return weight
