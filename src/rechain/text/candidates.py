"""C, the candidate chains of a question (Section 2 of the paper), best first.

A chain is a row of different passages in which adjacent ones share an entity, the linking entities differ, and the last
passage holds the answer. In chains of three passages or more the first must hold an entity of the question. Where links
are names found in the texts, a row of passages counts once, with its strongest links; where they are entities of the
data's, every choice of them is a chain of its own, and the entities of question and answer, which are the chain's two
ends, do not link as well.

Evidence has other shapes, too: models that choose among all of them get their candidates from
`rechain.text.evidence.search.find_evidence`.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, pairwise
from math import isfinite
from typing import NamedTuple

from rechain.errors import QuestionError, RechainError
from rechain.schema import UNORDERED, Link, Question, Shape
from rechain.system.tensors import Array
from rechain.text.answers.matcher import AnswerMatcher, Holdings
from rechain.text.collection import Statistics
from rechain.text.languages import naming_words
from rechain.text.linking import DEFAULT_LINKERS, DEFAULT_MIN_WEIGHT, DEFAULT_SPACY_MODEL, LINKERS, Edge, LinkGraph
from rechain.text.passage_views import PassageView, identifier
from rechain.text.words import Text

DEFAULT_HOPS = 2
DEFAULT_LIMIT = 1000
"""HotpotQA has 7 chains a question and DrugHop 19 (docs/measured/results.md): the limit is for what has very many"""
MOST_CHAINS = 1_000_000
"""the highest limit: so many candidates of one question take about a gigabyte of memory"""
_MOST_PARTNERS = 100
"""in chains of 3 or more: a name in all of 1,000 passages would link a million pairs, and their paths without end"""


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
    """the most chains of a question, best first by link weight"""
    linkers: Collection[str] = DEFAULT_LINKERS
    """which linkers are used"""
    spacy_model: str = DEFAULT_SPACY_MODEL
    """the model of the linker `spacy`, where that is used"""

    def __post_init__(self) -> None:
        """Say which setting is wrong."""
        if self.hops is not None and not 1 <= self.hops <= 8:
            raise RechainError(f"a chain has 1 to 8 passages, not {self.hops}.")
        if not 1 <= self.limit <= MOST_CHAINS:
            raise RechainError(f"the limit should be 1 to {MOST_CHAINS:,}, not {self.limit}.")
        if not isfinite(self.min_weight):
            raise RechainError(f"the least weight of a link should be a number, not {self.min_weight}.")
        if unknown := frozenset(self.linkers) - LINKERS.keys():
            raise RechainError(f"there is no linker '{min(unknown)}'; the linkers are {', '.join(sorted(LINKERS))}.")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate chain: positions of its passages, head first, and what links them."""

    passages: tuple[int, ...]
    edges: tuple[Edge, ...]
    weight: float
    """the sum of the links' weights"""
    shape: Shape = "chain"
    ends: tuple[tuple[int, int], ...] | None = None
    """of a graph, the places in `passages` that each link joins"""

    @property
    def between(self) -> Sequence[tuple[int, int]]:
        """The places in `passages` that each link joins: in all but a graph, each and the next."""
        return list(pairwise(range(len(self.edges) + 1))) if self.ends is None else self.ends

    @property
    def links(self) -> list[Link]:
        """The links as they are written out."""
        if self.ends is None:
            return [edge.link for edge in self.edges]
        return [
            edge.link.model_copy(update={"between": ends}) for edge, ends in zip(self.edges, self.ends, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Candidates:
    """A question, its passages as linking sees them, and its candidate chains."""

    question: Question
    views: Sequence[PassageView]
    tails: Sequence[int]
    chains: Sequence[Candidate]
    is_cut: bool
    """whether there are more chains than the limit"""
    settings: CandidateSettings = field(default_factory=CandidateSettings)
    """how they were built"""
    holdings: Holdings = field(default_factory=Holdings)
    """what the passages hold of the answer"""
    collection: Statistics | None = None
    """what is known of the collection that the passages come from, if there is one"""
    evidence: "Array | None" = None
    """what tells for or against each candidate, where the search has described them"""

    @property
    def hops(self) -> int:
        """Passages in a chain; where chains of several lengths were sought, in the shortest."""
        return min(len(chain.passages) for chain in self.chains)

    @property
    def link_types(self) -> Sequence[str]:
        """The kinds of the links, one each; empty: any."""
        return _link_types(self.question, self.hops, self.settings)

    @property
    def ends(self) -> frozenset[str]:
        """The entities of question and answer that the data names, which cannot link as well."""
        return _given_ends(self.question, self.hops)

    @property
    def names_entities(self) -> bool:
        """Whether the data names the entities of question and links, so that pairs of them can be weighed."""
        if not self.question.question_entities or any(chain.shape in UNORDERED for chain in self.chains):
            return False  # what has no order leads from no entity to the next
        return all(edge.is_given for chain in self.chains for edge in chain.edges)

    def identity(self, chain: Candidate) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return what `Chain.identity` is of a chain, without looking for links in texts, which takes time."""
        ids = [self.question.passages[number].id for number in chain.passages]
        given = (edge.name if edge.is_given else "" for edge in chain.edges)
        return tuple(sorted(ids) if chain.shape in UNORDERED else ids), tuple(given)

    def all_links(self) -> LinkGraph:
        """Find the links between all passages, not only those that chains need."""
        linkers = _linkers(self.question, self.link_types, self.settings)
        return _graph(self.views, linkers, self.settings, self.collection)


def find_candidates(
    question: Question, settings: CandidateSettings | None = None, collection: Statistics | None = None
) -> Candidates:
    """Build C of a question. Raises QuestionError, which says why, where C is empty."""
    settings = settings or CandidateSettings()
    return find_chains(question, (settings.hops or question.hops or DEFAULT_HOPS,), settings, collection)


def find_chains(
    question: Question, lengths: Sequence[int], settings: CandidateSettings, collection: Statistics | None = None
) -> Candidates:
    """Return chains of any of some lengths, the shortest first and of each length no more than the limit."""
    views = [PassageView(passage) for passage in question.passages]
    holdings = AnswerMatcher(question).hold(views)
    if holdings.is_judgement and max(lengths) > 1:
        raise QuestionError("no_tail", f"no tail: the answer '{question.answer}' judges, and no passage can hold it")
    search = _Chains(question, views, holdings.tails, settings, collection)
    chains, is_cut, problem = list[Candidate](), False, None
    for length in lengths:
        try:
            found = _singles(holdings) if length == 1 else search.find(length)
        except QuestionError as error:
            problem = problem or error
        else:
            chains += found[: settings.limit]
            is_cut = is_cut or len(found) > settings.limit
    if not chains:
        raise problem or QuestionError("no_tail", "no tail: no passage holds what the question says")
    return Candidates(question, views, holdings.tails, chains, is_cut, settings, holdings, collection)


def find_links(
    question: Question,
    settings: CandidateSettings | None = None,
    collection: Statistics | None = None,
    views: Sequence[PassageView] | None = None,
) -> LinkGraph:
    """Find the links between the passages of a question, whether or not any of them are part of a chain."""
    settings = settings or CandidateSettings()
    views = [PassageView(passage) for passage in question.passages] if views is None else views
    types = (question.link_types if settings.link_types is None else settings.link_types) or ()
    return _graph(views, _linkers(question, types, settings), settings, collection, most_partners=_MOST_PARTNERS)


def _graph(
    views: Sequence[PassageView],
    linkers: frozenset[str],
    settings: CandidateSettings,
    collection: Statistics | None,
    ends: Collection[int] | None = None,
    most_partners: int | None = None,
) -> LinkGraph:
    least, model = settings.min_weight, settings.spacy_model
    return LinkGraph(
        views, least, linkers, ends=ends, most_partners=most_partners, spacy_model=model, collection=collection
    )


def _singles(holdings: Holdings) -> list[Candidate]:
    return [Candidate((tail,), (), 0.0, "single") for tail in holdings.tails]


@dataclass
class _Chains:
    """Finds the chains of a question, by links that are found once for all chains of three passages or more."""

    question: Question
    views: Sequence[PassageView]
    tails: Sequence[int]
    settings: CandidateSettings
    collection: Statistics | None
    longer: dict[frozenset[str], LinkGraph] = field(default_factory=dict)
    """the links of chains of three or more, by the names of the linkers"""

    def find(self, hops: int) -> list[Candidate]:
        """Return the chains of some length, one more than the limit if there are more."""
        question, views = self.question, self.views
        if len(views) < hops:
            raise QuestionError("too_few_passages", f"{len(views)} passages cannot make a chain of {hops}")
        heads = find_heads(question, views) if hops > 2 else None
        types = _link_types(question, hops, self.settings)
        graph = self._graph(hops, _linkers(question, types, self.settings))
        search = _Search(graph, hops, heads, types, _given_ends(question, hops), self.settings.limit)
        chains = search.chains(self.tails)
        if not chains:
            raise QuestionError("no_link", f"no {hops} passages are linked so that the last holds the answer")
        return chains

    def _graph(self, hops: int, linkers: frozenset[str]) -> LinkGraph:
        """Return the links of chains of some length."""
        make = partial(_graph, self.views, linkers, self.settings, self.collection)
        if hops == 2:
            return make(ends=self.tails)
        if linkers not in self.longer:
            self.longer[linkers] = make(most_partners=_MOST_PARTNERS)
        return self.longer[linkers].with_links_a_pair(hops - 1)


def find_heads(question: Question, views: Sequence[PassageView]) -> frozenset[int]:
    """Return the passages that hold an entity of the question, as chains of three or more must begin with one."""
    if question.question_entities:
        heads = [n for n, view in enumerate(views) if any(map(view.mentions, question.question_entities))]
    else:
        query = Text(question.question)
        words = naming_words(query)
        heads = [
            number
            for number, view in enumerate(views)
            if words & view.terms or (view.title.words and view.title.joined in query.joined)
        ]
    if not heads:
        raise QuestionError("no_head", "no head: no passage holds an entity of the question")
    return frozenset(heads)


class _Partial(NamedTuple):
    """The end of a chain: what has been found so far, from the tail backwards."""

    passages: tuple[int, ...]
    edges: tuple[Edge, ...] = ()
    weight: float = 0.0


def _distinct(chains: Iterable[_Partial]) -> Iterator[_Partial]:
    """Leave out chains that came before, with heavier links: of the same passages and, where given, entities."""
    seen = set()
    for chain in chains:
        identity = chain.passages, tuple(edge.key if edge.is_given else None for edge in chain.edges)
        if identity not in seen:
            seen.add(identity)
            yield chain


class _Search:
    """Finds chains from the tail backwards, passage by passage, the heaviest first."""

    def __init__(
        self,
        graph: LinkGraph,
        hops: int,
        heads: frozenset[int] | None,
        link_types: Sequence[str],
        given_ends: frozenset[str],
        limit: int,
    ) -> None:
        self._graph = graph
        self._hops = hops
        self._types = link_types
        self._given_ends = given_ends
        self._limit = limit
        self._allowed = [heads]
        for _ in range(hops - 2):
            self._allowed.append(graph.neighbours(self._allowed[-1] or ()))
        """which passages may stand first, second, …: those from which a head can be reached"""

    def chains(self, tails: Sequence[int]) -> list[Candidate]:
        """Return chains by the sum of their link weights, the greatest first, and one more than the limit if there is.

        At every length the heaviest ends of chains are kept, as many as the limit or 1,000, whichever is more: where
        there are fewer, no chain is missed.
        """
        ends = [_Partial((tail,)) for tail in tails]
        for _ in range(self._hops - 2):
            ends = list(islice(self._longer(ends), max(self._limit, DEFAULT_LIMIT)))
        return [Candidate(*chain) for chain in islice(_distinct(self._longer(ends)), self._limit + 1)]

    def _longer(self, ends: Iterable[_Partial]) -> Iterator[_Partial]:
        """Yield the ends that are longer by one passage, the heaviest first."""
        return heapq.merge(*map(self._extensions, ends), key=lambda end: -end.weight)

    def _extensions(self, end: _Partial) -> Iterator[_Partial]:
        """Yield a chain's end with one passage more before it, by the strongest link first."""
        used = self._given_ends.union(edge.key for edge in end.edges)
        allowed = self._allowed[self._hops - len(end.passages) - 1]
        kind = self._types[-len(end.passages)] + ":" if self._types else ""
        for edge in self._graph.edges(end.passages[0], allowed, used):
            is_of_kind = not kind or (edge.is_given and edge.key.startswith(kind))
            if is_of_kind and edge.before not in end.passages:
                yield _Partial((edge.before, *end.passages), (edge, *end.edges), end.weight + edge.weight)


def _link_types(question: Question, hops: int, settings: CandidateSettings) -> Sequence[str]:
    types = question.link_types if settings.link_types is None else settings.link_types
    if types and settings.link_types is None and settings.hops not in (None, question.hops or len(types) + 1):
        return ()  # the file's types are those of its own number of hops
    if types and len(types) != hops - 1:
        raise QuestionError("bad_field", f"link_types names {len(types)} links, but a chain of {hops} has {hops - 1}")
    return types or ()


def _given_ends(question: Question, hops: int) -> frozenset[str]:
    """Return the entities at the two ends of a chain; that of the question counts where the head must hold it."""
    first = question.question_entities if hops > 2 else ()
    return frozenset(first if question.answer_entity is None else (*first, question.answer_entity))


def _linkers(question: Question, types: Sequence[str], settings: CandidateSettings) -> frozenset[str]:
    """Leave out linkers that cannot find anything of use.

    Where the data names the entity of the answer, or the types of links, chains are made of entities that it gives.
    Identifiers in the text are entities where the answer is one; elsewhere they are rare names like others.
    """
    names = frozenset(settings.linkers)
    if types or question.answer_entity is not None:
        names = frozenset(name for name in names if LINKERS[name].is_given)
    if not any(passage.mentions for passage in question.passages):
        names -= {"anchors"}
    return names if identifier(question.answer) else names - {"identifiers"}
