"""The graph of a question: its passages in three columns, and the links between them as lines that the server draws.

Those that hold a name of the question stand left, those that hold the answer right. Columns are as wide as the page
allows, so that places across are percentages; rows are as high as letters, so that places down are in rem.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain as joined
from itertools import pairwise
from typing import Literal, NamedTuple

from rechain.errors import QuestionError
from rechain.schema import UNORDERED, Chain, Gold, GoldChain, Question
from rechain.text.answers.claims import read_answer
from rechain.text.answers.matcher import AnswerMatcher
from rechain.text.candidates import find_heads, find_links
from rechain.text.passage_views import PassageView
from rechain.web.chains import ChainList
from rechain.web.passages import Names

MOST_ROWS = 8
"""passages of a column that are drawn: more could not be told apart, and those that matter come first"""
_MOST_LINKED = 60
"""passages among which links are sought where there is no chain"""
_MOST_TOLD = 50
"""passages that are told in words"""
_MOST_IN_WORDS = 6
"""links of a passage that are written out"""
# as style.css has them
_WIDTH, _GAP = 28.0, 8.0
"""per cent of the page that a column and the gap after it take"""
_HEAD, _ROW, _NODE = 3.8, 3.5, 3.0
"""rem: the heading of a column, a row with the gap below it, a passage"""

Kind = Literal["chain", "rival", "gold", "other", "link", "gap"]
"""on the chain, on the one that is compared with it, on gold, on another candidate; any link, where there is no
candidate; and one that is missing"""
Ends = frozenset[str]
"""the ids of two passages that are linked"""


class Node(NamedTuple):
    """A passage in the graph."""

    id: str
    name: str
    is_named: bool
    """whether it holds a name of the question"""
    holds_answer: bool
    is_gold: bool
    step: int | None
    """its number on the chain that is shown; where two are compared, on either of them or on gold"""
    is_on_chain: bool
    is_on_rival: bool
    """whether it is on the chain that is compared"""
    chain: int | None
    """the number of the best candidate that leads through it"""
    lines: Sequence[int]
    """the numbers of the lines of that candidate"""
    links: Sequence[tuple[str, str]]
    """the links of which it is an end: what links it, to which passage"""
    further: int
    """how many links more it has than are written out"""


class Line(NamedTuple):
    """A line between two passages, and the rectangle in which it lies."""

    number: int
    kind: Kind
    x: str
    y: str
    width: str
    height: str
    path: str
    """within a rectangle of 100 by 100; empty: a straight line across"""


class GraphView(NamedTuple):
    """Passages in three columns, from question to answer, and the lines between them."""

    columns: Sequence[Sequence[Node]]
    undrawn: Sequence[int]
    """how many passages of each column have no part in anything, or no room"""
    words: Sequence[Node]
    """the passages that are told in words"""
    lines: Sequence[Line]
    height: str
    starts_lower: bool
    """whether the middle column leaves its first row to the line between the others"""
    link: str
    """the name of the link that is written there"""
    judges: bool
    """whether the answer is a yes or a no: no passage holds that, some hold what it judges"""
    gap: str | None
    """where the way from question to answer is interrupted"""
    numbers: Mapping[Ends, int]
    """the line of each link that is drawn"""

    @property
    def has_chain(self) -> bool:
        """Whether a passage of it is on a chain."""
        return any(node.is_on_chain for node in self.words)

    @property
    def has_rival(self) -> bool:
        """Whether a passage of it is on the chain that is compared."""
        return any(node.is_on_rival for node in self.words)

    @property
    def lacks_link(self) -> bool:
        """Whether a line stands for a link that is missing."""
        return any(line.kind == "gap" for line in self.lines)

    def lines_of(self, chain: Chain) -> list[int]:
        """Return the numbers of the lines between the passages of a chain."""
        return [self.numbers[ends] for ends in _joined(chain) if ends in self.numbers]


class Graph:
    """The graph of a question with one of its chains.

    `rival` is a chain that is compared with it, and `numbers` are those of the passages if both are shown.
    """

    def __init__(
        self,
        chains: ChainList,
        chain: Chain | None,
        gold: Gold | None,
        rival: Chain | None = None,
        numbers: Mapping[str, int] | None = None,
    ) -> None:
        question = chains.question
        self._question, self._chain, self._names = question, chain, Names(question)
        self._steps = {name: number for number, name in enumerate(chain.passages if chain else (), start=1)}
        self._rival, self._numbers_shown = rival, self._steps if numbers is None else numbers
        self._ids = [passage.id for passage in question.passages]
        gold_chains = gold.chains if gold else []
        self._gold_ways = [one.passages for one in gold_chains if _has_lines(one)]
        self._gold_ids = frozenset(name for one in gold_chains for name in one.passages)
        self._chains = chains
        self._ways = chains.ways if chains.scored or chains.has_links else []
        self._first = {name: number for number, way in reversed(list(enumerate(self._ways))) for name in way}
        self._named, self._holders = _named(question, chains.views), _holders(question, chains, chain)
        self._links = self._chain_links(chains)
        if not self._ways:
            self._links |= self._all_links(chains)
        self._drawn, self._undrawn = self._columns()
        self._places = {name: (column, row) for column, names in enumerate(self._drawn) for row, name in names.items()}

    def _chain_links(self, chains: ChainList) -> dict[Ends, str]:
        """Return the links of the chain and of all candidates, each with the name that it has on the best of them."""
        where: dict[Ends, tuple[int | None, int]] = {}
        shown = [] if self._chain is None else _joined(self._chain)
        for number, pairs in [(None, shown), *enumerate(chains.joined)]:
            for place, ends in enumerate(pairs):
                where.setdefault(ends, (number, place))
        links = dict[Ends, str]()
        for ends, (number, place) in where.items():
            if one := self._chain if number is None else chains.at(number):
                links[ends] = self._names.link(one, place)
        return links

    def _all_links(self, chains: ChainList) -> dict[Ends, str]:
        """Return the links between all passages, as there are no candidates that have some."""
        some = self._question.model_copy(update={"passages": self._question.passages[:_MOST_LINKED]})
        graph, links = find_links(some, chains.settings, chains.collection), dict[Ends, str]()
        for after in range(len(some.passages)):
            for edge in graph.edges(after):
                ends = self._ids[edge.before], self._ids[after]
                links.setdefault(frozenset(ends), self._names.entity(edge.link.entity, ends))
        return links

    def _columns(self) -> tuple[list[dict[int, str]], list[list[str]]]:
        """Return which passage stands in which row of each column, and those that are not drawn."""
        columns: list[list[str]] = [[], [], []]
        for name in sorted(self._ids, key=self._importance):
            columns[self._column(name)].append(name)
        drawn, undrawn = [], []
        for place, column in enumerate(columns):
            first = 1 if place == 1 and self._starts_lower else 0
            shown = list(filter(self._is_telling, column))[: MOST_ROWS - first]
            drawn.append(dict(enumerate(shown, start=first)))
            undrawn.append([name for name in column if name not in shown])
        return drawn, undrawn

    def _importance(self, name: str) -> tuple[int, int, bool, int]:
        """Return what orders the passages of a column: the chain, its rival, gold, then the best candidates."""
        last = len(self._ids)
        best = self._first.get(name, len(self._ways))
        return self._steps.get(name, last), self._numbers_shown.get(name, last), name not in self._gold_ids, best

    def _is_telling(self, name: str) -> bool:
        """Return whether a passage is worth drawing: it is part of something, or an end where there is no chain."""
        is_end = not self._ways and name in self._named | self._holders
        return is_end or name in self._steps or name in self._gold_ids or name in self._first or name in self._linked

    @cached_property
    def _linked(self) -> frozenset[str]:
        return frozenset(joined(*self._links))

    @property
    def _starts_lower(self) -> bool:
        return self._chain is None or (self._chain.shape == "chain" and len(self._chain.passages) == 2)

    def _column(self, name: str) -> int:
        step = self._steps.get(name)
        if step is not None and self._chain is not None and self._chain.shape == "chain":
            return 0 if step == 1 else 2 if step == len(self._steps) else 1
        return 2 if name in self._holders else 0 if name in self._named else 1

    def view(self) -> GraphView:
        """Return the graph."""
        rows = max((row + 1 for column in self._drawn for row in column), default=1)
        lines = self._lines()
        names = [*(name for column in self._drawn for name in column.values()), *joined(*self._undrawn)]
        shown = self._chain.between if self._chain else []
        numbers = {ends: line.number for ends, line in lines if line.kind in ("chain", "rival", "other")}
        links = self._links_by_passage()
        words = {name: self._node(name, numbers, links.get(name, ())) for name in names[:_MOST_TOLD]}
        return GraphView(
            columns=[[words[name] for name in column.values()] for column in self._drawn],
            undrawn=[len(names) for names in self._undrawn],
            words=list(words.values()),
            lines=[line for _, line in lines],
            height=_rem(_HEAD + rows * _ROW),
            starts_lower=self._starts_lower,
            link=self._links.get(frozenset(self._chain.passages), "") if self._chain and len(shown) == 1 else "",
            judges=self._judges,
            gap=None if self._ways else self._gap(),
            numbers=numbers,
        )

    def _links_by_passage(self) -> dict[str, list[tuple[str, str]]]:
        """Return the links of every passage: what links it, to which."""
        links: dict[str, list[tuple[str, str]]] = {}
        for ends, link in self._links.items():
            for name in ends:
                others = links.setdefault(name, [])
                others += [(link, self._names.passage(other)) for other in ends - {name}]
        return links

    def _lines(self) -> list[tuple[Ends, Line]]:
        """Return the lines, those that matter last, so that they lie above the others."""
        chain, rival = (list(dict.fromkeys(_joined(one))) if one else [] for one in (self._chain, self._rival))
        others = [ends for ends in self._links if ends not in (*chain, *rival)]
        kinds: list[tuple[Kind, Iterable[Ends]]] = [
            ("other" if self._ways else "link", others),
            ("chain", chain),
            ("rival", rival),
            ("gold", _pairs(self._gold_ways)),
        ]
        drawable = [
            (kind, ends, sorted(self._places[name] for name in ends))
            for kind, pairs in kinds
            for ends in pairs
            if len(ends) == 2 and ends <= self._places.keys()
        ]
        lines = [(ends, _between(number, kind, *places)) for number, (kind, ends, places) in enumerate(drawable)]
        has_ends = self._drawn[0] and self._drawn[2]
        if not self._ways and has_ends and not self._is_reached:
            lines.append((frozenset(), _between(len(lines), "gap", (0, 0), (2, 0))))
        return lines

    def _node(self, name: str, numbers: Mapping[Ends, int], links: Sequence[tuple[str, str]]) -> Node:
        first = self._first.get(name)
        on_way = [] if first is None else self._chains.joined[first]
        return Node(
            id=name,
            name=self._names.passage(name),
            is_named=name in self._named,
            holds_answer=name in self._holders,
            is_gold=name in self._gold_ids,
            step=self._numbers_shown.get(name),
            is_on_chain=name in self._steps,
            is_on_rival=self._rival is not None and name in self._rival.passages,
            chain=first,
            lines=[numbers[ends] for ends in on_way if ends in numbers],
            links=links[:_MOST_IN_WORDS],
            further=max(len(links) - _MOST_IN_WORDS, 0),
        )

    def _gap(self) -> str:
        """Return where the way from question to answer is interrupted, in words."""
        if not self._holders:
            return "No passage holds what the answer judges." if self._judges else "No passage holds the answer."
        if not self._named:
            return "No passage holds a name of the question."
        if self._is_reached:
            return "Links lead from the names of the question to the answer, but no chain of this length or kind."
        return "The link is missing: nothing leads from the names of the question to the answer."

    @cached_property
    def _judges(self) -> bool:
        question = self._question
        return question.answer_entity is None and read_answer(question.question, question.answer).kind == "judgement"

    @cached_property
    def _is_reached(self) -> bool:
        """Whether links lead from a name of the question to the answer, however many it takes."""
        reached, new = set(self._named), set(self._named)
        while new:
            new = {name for ends in self._links if ends & new for name in ends} - reached
            reached |= new
        return bool(reached & self._holders & self._linked)


def _has_lines(gold: GoldChain) -> bool:
    """Return whether it is known which passages of a gold chain follow one another: two do, in whatever order."""
    return gold.has_order or (len(gold.passages) == 2 and gold.shape not in UNORDERED)


def _named(question: Question, views: Sequence[PassageView]) -> frozenset[str]:
    """Return the passages that hold a name of the question."""
    try:
        return frozenset(question.passages[place].id for place in find_heads(question, views))
    except QuestionError:
        return frozenset()


def _holders(question: Question, chains: ChainList, chain: Chain | None) -> frozenset[str]:
    """Return the passages that hold the answer, also that of a chain whose model reads more than words."""
    own = {chain.answer.passage} if chain and chain.answer else set[str]()
    try:
        tails = chains.candidates.tails if chains.candidates else AnswerMatcher(question).hold(chains.views).tails
    except QuestionError:
        tails = []
    return frozenset({question.passages[place].id for place in tails} | own)


def _joined(chain: Chain) -> list[Ends]:
    """Return the passages that each link of a chain joins."""
    return [frozenset((chain.passages[before], chain.passages[after])) for before, after in chain.between]


def _pairs(ways: Iterable[Sequence[str]]) -> list[Ends]:
    """Return the passages that follow one another in some chains, each pair once."""
    return list(dict.fromkeys(frozenset(ends) for way in ways for ends in pairwise(way)))


def _between(number: int, kind: Kind, one: tuple[int, int], two: tuple[int, int]) -> Line:
    """Return the line between two places, each a column and a row, the one further left first."""
    (left, upper), (right, lower) = one, two
    top, bottom = (_HEAD + row * _ROW + _NODE / 2 for row in sorted((upper, lower)))
    if left == right:  # an arc beside the column, on the inner side
        is_last = left == 2
        x, width = (_edge(left)[0] - _GAP / 2 if is_last else _edge(left)[1]), _GAP / 2
        path = "M100,0 C-30,0 -30,100 100,100" if is_last else "M0,0 C130,0 130,100 0,100"
    else:
        x, width = _edge(left)[1], _edge(right)[0] - _edge(left)[1]
        path = "M0,0 C50,0 50,100 100,100" if upper < lower else "M0,100 C50,100 50,0 100,0"
    path = "" if top == bottom else path
    return Line(number, kind, f"{x:g}%", _rem(top), f"{width:g}%", _rem(bottom - top), path)


def _edge(column: int) -> tuple[float, float]:
    """Return where a column begins and ends, in per cent of the page."""
    start = column * (_WIDTH + _GAP)
    return start, start + _WIDTH


def _rem(value: float) -> str:
    return f"{round(value, 3):g}rem"
