"""Pseudo questions from texts: head and tail are two linked passages of a context."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from random import Random
from typing import NamedTuple

from rechain.linking import DEFAULT_MIN_WEIGHT, Edge, LinkGraph
from rechain.preparation.pseudo.pool import Company, Pool, PseudoQuestion, PseudoSettings
from rechain.preparation.pseudo.wording import Answer, Clause, PassageReading, Phrasing
from rechain.schema import LinkKind, Passage, Question
from rechain.text.passages import PassageView
from rechain.text.rarity import idf
from rechain.text.words import Text, lazy, phrase

_OFTEN: dict[LinkKind, float] = {"title": 6.0, "title part": 1.0, "name": 0.5, "word": 0.05}
"""how often a pair is chosen by the kind of its link; the bridge of a real question is mostly a title"""
_TO_THE_TITLED = 2.0
"""how much more often the tail, and not the head, is the passage whose title links: it tells of the bridge"""
_CONTENT_WORD = 2.0
"""words of less rarity do not give a name away"""
_LEAST_CONTENT_WORDS = 3
"""a clause of fewer could be of any passage"""
_STRONG_LINK = 11.0
"""where a context has links of that weight, weaker ones, which may be chance, are not used"""
_LINKERS = frozenset(("anchors", "titles", "names"))
_FIRST_SENTENCE = 0.6
"""how often the head is described by its first sentence, which says what it is, where none holds the link"""


class _Pair(NamedTuple):
    """Two linked passages, as positions in the context."""

    head: int
    tail: int
    link: str
    """the linking entity: folded words, with a blank on either side of each"""
    giveaways: frozenset[str]
    """the words that name the linking entity"""
    often: float


class TextSource:
    """The passages of one context."""

    def __init__(self, passages: Sequence[Passage], pool: Pool, settings: PseudoSettings) -> None:
        self._readings = [PassageReading(PassageView(passage)) for passage in passages]
        self._pool = pool
        self._settings = settings
        self._known_linked: dict[tuple[int, str], Sequence[int]] = {}

    @lazy
    def _pairs(self) -> Sequence[_Pair]:
        views = [reading.view for reading in self._readings]
        graph = LinkGraph(views, DEFAULT_MIN_WEIGHT, _LINKERS)
        edges = [(tail, edge) for tail in range(len(views)) for edge in graph.edges(tail)]
        strong = [(tail, edge) for tail, edge in edges if edge.weight >= _STRONG_LINK]
        return [self._pair(tail, edge) for tail, edge in strong or edges]

    def _pair(self, tail: int, edge: Edge) -> _Pair:
        views = [self._readings[number].view for number in (edge.before, tail)]
        link, names = edge.key, [edge.key]
        if edge.is_given:
            spans = zip(views, edge.link.mentions, strict=True)
            names = [phrase(view.passage.text[slice(*span)]) for view, span in spans if span]
            link = names[0]
        titles = [view.title.joined for view in views if link in view.title.joined]
        giveaways = frozenset().union(*map(_content_words, names + titles))
        often = _OFTEN.get(edge.link.kind, 1.0) * (_TO_THE_TITLED if link in views[1].title.joined else 1.0)
        return _Pair(edge.before, tail, link, giveaways, often)

    @lazy
    def _shared_words(self) -> Set[str]:
        """The words that two passages hold, or more."""
        holders = Counter(word for reading in self._readings for word in reading.view.vocabulary)
        return {word for word, number in holders.items() if number > 1}

    def draft(self, random: Random, source: str, number: int) -> PseudoQuestion | None:
        """Return a question from two linked passages, or None where they have nothing to ask for."""
        if not self._pairs:
            return None
        pair = random.choices(self._pairs, [pair.often for pair in self._pairs])[0]
        wording = self._wording(pair, Phrasing(self._settings, random, self._shared_words), random)
        if wording is None:
            return None
        text, answer = wording
        words = Text(text)
        if pair.link in words.joined or answer.phrase in words.joined:  # which gives the chain away
            return None
        query = {word for word in words.words if idf(word) >= _CONTENT_WORD}
        passages, chain = self._company(pair, answer, query, random).shuffled(random)
        question = Question(id=f"{source}~{number}", question=text, answer=answer.text, hops=2, passages=passages)
        return PseudoQuestion(question, chain, source, (pair.link.strip(),))

    def _wording(self, pair: _Pair, phrasing: Phrasing, random: Random) -> tuple[str, Answer] | None:
        """Return the text of a question and its answer, or None where the passages have too little to say."""
        head, tail = self._readings[pair.head], self._readings[pair.tail]
        answer = self._choose_answer(pair, random)
        if answer is None or not head.sentences:
            return None
        banned = pair.giveaways | _content_words(answer.phrase)
        asking = phrasing.clause(tail.sentences[answer.sentence], answer.phrase, banned)
        described = self._describe(pair, banned, phrasing, random)
        if min(described.content_words, asking.content_words) < _LEAST_CONTENT_WORDS:
            return None
        titled = tail if pair.link in tail.view.title.joined else head
        kind = phrasing.kind_of(titled.sentences[0])
        kind = "" if kind in banned else kind
        return phrasing.question(described, asking, kind, answer.kind), answer

    def _choose_answer(self, pair: _Pair, random: Random) -> Answer | None:
        """Return something that the tail says of the linking entity, and the head does not."""
        head, tail = self._readings[pair.head], self._readings[pair.tail]
        possible = [
            answer
            for answer in tail.answers
            if answer.phrase not in head.view.joined and pair.giveaways.isdisjoint(answer.phrase.split())
        ]
        if pair.link not in tail.view.title.joined:
            beside = [answer for answer in possible if pair.link in tail.sentences[answer.sentence].joined]
            possible = beside or possible
        return random.choice(possible) if possible else None

    def _describe(self, pair: _Pair, banned: Set[str], phrasing: Phrasing, random: Random) -> Clause:
        head = self._readings[pair.head]
        holding = [sentence for sentence in head.sentences if pair.link in sentence.joined]
        if not holding and random.random() < _FIRST_SENTENCE:
            holding = head.sentences[:1]
        sentence = random.choice(holding or head.sentences)
        named = set(head.view.title.words) if random.random() < self._settings.keep_title else set()
        return phrasing.clause(sentence, pair.link, banned, named - banned)

    def _company(self, pair: _Pair, answer: Answer, query: Set[str], random: Random) -> Company:
        """Return the chain among distractors: as many passages as the context has."""
        context = [reading.view.passage for reading in self._readings]
        company = Company((context[pair.head], context[pair.tail]))
        others = self._others(pair, query)
        company.add(others, self._settings.kept_distractors)
        for numbers, words, most in self._distractors(pair, answer, query, random):
            room = min(most, len(context) - len(company.passages))
            if room:
                best = self._pool.best(numbers, words, room + len(context), random)
                company.add(best, room, of_other_titles=True)
        company.add(others, len(context) - len(company.passages))
        return company

    def _distractors(
        self, pair: _Pair, answer: Answer, query: Set[str], random: Random
    ) -> Iterator[tuple[Collection[int], Set[str], int]]:
        """Yield passages of the pool, the words that the best of them share, and how many to take."""
        of_the_head = query - self._readings[pair.tail].view.vocabulary
        yield self._linked(pair), of_the_head, random.randint(0, self._settings.link_distractors)
        if random.random() < self._settings.answer_distractors:
            yield self._pool.holding(answer.phrase), query, 1
        if most := random.randint(0, self._settings.word_distractors):
            yield self._pool.holding_any(query), query, most

    def _linked(self, pair: _Pair) -> Sequence[int]:
        """Return the passages of the pool that could stand before the tail in place of the head."""
        if (pair.tail, pair.link) not in self._known_linked:
            tail = self._readings[pair.tail].view
            numbers = {*self._pool.holding(pair.link), *self._pool.titled_in(tail.text.words)}
            numbers.update(self._pool.holding(tail.title.joined) if tail.title.words else ())
            self._known_linked[pair.tail, pair.link] = sorted(numbers)
        return self._known_linked[pair.tail, pair.link]

    def _others(self, pair: _Pair, query: Iterable[str]) -> list[Passage]:
        """Return the other passages of the context, those first that share most with the question."""
        views = [reading.view for n, reading in enumerate(self._readings) if n not in (pair.head, pair.tail)]
        ordered = sorted(query)  # a sum of floats depends on the order
        shared = {view.passage.id: sum(idf(word) for word in ordered if word in view.vocabulary) for view in views}
        return sorted((view.passage for view in views), key=lambda passage: -shared[passage.id])


def _content_words(name: str) -> frozenset[str]:
    return frozenset(word for word in name.split() if idf(word) >= _CONTENT_WORD)
