"""C, the candidate chains of a question (Section 2 of the paper), best first.

A chain is a row of different passages in which adjacent ones share an entity, the entities differ, and the last
passage holds the answer, which is not itself one of the linking entities. In chains of three passages or more the
first must hold an entity of the question, which is no linking entity either. Where links are names found in the
texts, a row of passages counts once, with its strongest links; where they are entities of the data's, every choice of
them is a chain of its own.
"""

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple

from rechain.answers import AnswerMatcher
from rechain.errors import QuestionError
from rechain.identifiers import identifier
from rechain.linking import LINKERS, Edge, LinkGraph
from rechain.linking.weights import DEFAULT_MIN_WEIGHT, idf
from rechain.passages import PassageView
from rechain.schema import Link, Question
from rechain.text import Text, fold

DEFAULT_HOPS = 2
DEFAULT_LIMIT = 1000
_STEPS_A_CHAIN = 50
_RARE, _UNCOMMON = 6.0, 2.0


@dataclass(frozen=True, slots=True)
class CandidateSettings:
    """How C is built."""

    hops: int | None = None
    """passages in a chain; None: as the question says, or 2"""
    link_types: Sequence[str] | None = None
    """the kinds of the links, one each; None: as the question says; empty: any"""
    min_weight: float = DEFAULT_MIN_WEIGHT
    """links of less weight than this do not count"""
    limit: int = DEFAULT_LIMIT
    """chains a question, best first by link weight"""
    linkers: Collection[str] = LINKERS
    """which linkers are used"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate chain: positions of its passages, head first, and what links them."""

    passages: tuple[int, ...]
    edges: tuple[Edge, ...]
    weight: float
    """the sum of the links' weights"""

    @property
    def links(self) -> list[Link]:
        """The links as they are written out."""
        return [edge.link for edge in self.edges]


@dataclass(frozen=True, slots=True)
class Candidates:
    """A question, its passages as linking sees them, and its candidate chains."""

    question: Question
    views: Sequence[PassageView]
    tails: Sequence[int]
    chains: Sequence[Candidate]


def find_candidates(question: Question, settings: CandidateSettings | None = None) -> Candidates:
    """Build C of a question. Raises QuestionError, which says why, where C is empty."""
    settings = settings or CandidateSettings()
    hops = settings.hops or question.hops or DEFAULT_HOPS
    if len(question.passages) < hops:
        raise QuestionError("too_few_passages", f"{len(question.passages)} passages cannot make a chain of {hops}")
    views = [PassageView(passage) for passage in question.passages]
    answer = AnswerMatcher(question)
    tails = answer.find_tails(views)
    heads = find_heads(question, views) if hops > 2 else None
    types = _link_types(question, hops, settings)
    graph = LinkGraph(
        views,
        settings.min_weight,
        _linkers(question, types, settings),
        ends=tails if hops == 2 else None,
        links_a_pair=hops - 1,
    )
    ends = answer.names.union(question.question_entities if hops > 2 else ())
    search = _Search(graph, tails, heads, hops, types, ends, settings.limit)
    chains = list(islice(search.chains(), settings.limit))
    if not chains:
        raise QuestionError("no_link", f"no {hops} passages are linked so that the last holds the answer")
    return Candidates(question, views, tails, chains)


def find_heads(question: Question, views: Sequence[PassageView]) -> Collection[int]:
    """Return the passages that hold an entity of the question, as chains of three or more must begin with one."""
    if question.question_entities:
        wanted = question.question_entities
        heads = [n for n, view in enumerate(views) if any(map(view.mentions, wanted))]
    else:
        asked = Text(question.question)
        words = _naming_words(asked)
        heads = [n for n, view in enumerate(views) if words & view.vocabulary or _is_named(view, asked)]
    if not heads:
        raise QuestionError("no_head", "no head: no passage holds an entity of the question")
    return frozenset(heads)


def _naming_words(question: Text) -> set[str]:
    """Return the words of a question that name something: rare ones, and capitalised ones but for the first."""
    capitalised = {fold(word) for word in question.raw_words[1:] if word[0].isupper()}
    return {w for w in question.words if idf(w) >= _RARE or (w in capitalised and idf(w) >= _UNCOMMON)}


def _is_named(view: PassageView, question: Text) -> bool:
    return bool(view.title.words) and view.title.joined in question.joined


class _Partial(NamedTuple):
    """The end of a chain: what has been found so far, from the tail backwards."""

    passages: tuple[int, ...]
    edges: tuple[Edge, ...] = ()
    weight: float = 0.0

    def extended(self, edge: Edge) -> "_Partial":
        return _Partial((edge.before, *self.passages), (edge, *self.edges), self.weight + edge.weight)

    def identity(self) -> tuple[object, ...]:
        """What makes two chains the same: the passages, and the entities where the data gives them."""
        return self.passages, tuple(edge.key if edge.is_given else None for edge in self.edges)


class _Search:
    """Best-first search for chains, from the tail backwards."""

    def __init__(
        self,
        graph: LinkGraph,
        tails: Sequence[int],
        heads: Collection[int] | None,
        hops: int,
        link_types: Sequence[str],
        not_a_link: frozenset[str],
        limit: int,
    ) -> None:
        self._graph = graph
        self._tails = tails
        self._heads = heads
        self._hops = hops
        self._types = link_types
        self._not_a_link = not_a_link
        self._most_steps = limit * _STEPS_A_CHAIN

    def chains(self) -> Iterator[Candidate]:
        """Yield chains by the sum of their link weights, the greatest first.

        The heap holds the next extension of every end of a chain found so far, by the weight it can come to at most.
        """
        heap: list[tuple[float, int, _Partial, _Partial, Iterator[Edge]]] = []
        order = count()
        seen = set()

        def push(end: _Partial, edges: Iterator[Edge]) -> None:
            if edge := next(edges, None):
                longer = end.extended(edge)
                heapq.heappush(heap, (-self._most_weight(longer), next(order), longer, end, edges))

        for tail in self._tails:
            push(_Partial((tail,)), self._extensions(_Partial((tail,))))
        for _ in range(self._most_steps):
            if not heap:
                return
            _, _, longer, end, edges = heapq.heappop(heap)
            push(end, edges)
            if len(longer.passages) < self._hops:
                push(longer, self._extensions(longer))
            elif longer.identity() not in seen:
                seen.add(longer.identity())
                yield Candidate(*longer)

    def _most_weight(self, end: _Partial) -> float:
        return end.weight + (self._hops - len(end.passages)) * self._graph.max_weight

    def _extensions(self, end: _Partial) -> Iterator[Edge]:
        """Yield the links by which a chain's end can be extended, strongest first."""
        used = self._not_a_link.union(edge.key for edge in end.edges)
        is_last = len(end.passages) + 1 == self._hops
        kind = self._types[-len(end.passages)] + ":" if self._types else ""
        for edge in self._graph.edges(end.passages[0]):
            if edge.before in end.passages or edge.is_one_of(used):
                continue
            if is_last and self._heads is not None and edge.before not in self._heads:
                continue
            if not kind or (edge.is_given and edge.key.startswith(kind)):
                yield edge


def _link_types(question: Question, hops: int, settings: CandidateSettings) -> Sequence[str]:
    types = question.link_types if settings.link_types is None else settings.link_types
    if types and len(types) != hops - 1:
        raise QuestionError("bad_field", f"link_types names {len(types)} links, but a chain of {hops} has {hops - 1}")
    return types or ()


def _linkers(question: Question, types: Sequence[str], settings: CandidateSettings) -> Collection[str]:
    """Leave out linkers that cannot find anything of use.

    Only ids have a type. Identifiers in the text are entities where the answer is one; elsewhere they are rare names
    like others.
    """
    useless = {"titles", "names"} if types else set()
    if identifier(question.answer) is None:
        useless.add("identifiers")
    return [linker for linker in settings.linkers if linker not in useless]
