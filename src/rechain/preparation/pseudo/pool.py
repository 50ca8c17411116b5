"""The passages of all sources, and which of them hold some words or entities."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nlargest
from random import Random

from rechain.schema import Passage, Question
from rechain.text.passages import PassageView
from rechain.text.rarity import idf
from rechain.text.words import lazy

_INDEXED = 3.5
"""the least rarity of a word in the index: commoner ones would find most of the pool"""
_MOST_HOLDERS = 200
"""words that more passages hold do not make a passage a near miss"""
_MOST_TITLE_WORDS = 5
"""longer titles are hardly ever cited in full"""
_MOST_COMPARED = 50
"""passages compared with a question: a common link has thousands, and a sample is as good a source of near misses"""

EntitySentences = Mapping[str, frozenset[int]]
"""in which sentences each entity stands"""


class Pool:
    """Distinct passages under distinct ids, indexed by rare words and entities when first used."""

    def __init__(self, questions: Iterable[Question]) -> None:
        known: dict[str, Passage] = {}
        for question in questions:
            for passage in question.passages:
                other = known.setdefault(passage.id, passage)
                if (other.title, other.text) != (passage.title, passage.text):
                    name = f"{passage.id} of {question.id}"
                    known.setdefault(name, passage.model_copy(update={"id": name}))
        self.passages = list(known.values())
        self._known_sentences: dict[str, EntitySentences] = {}

    @lazy
    def _joined(self) -> list[str]:
        return [PassageView(passage).joined for passage in self.passages]

    @lazy
    def _holders(self) -> Mapping[str, list[int]]:
        holders: dict[str, list[int]] = {}
        for number, joined in enumerate(self._joined):
            for word in set(joined.split()):
                if idf(word) >= _INDEXED:
                    holders.setdefault(word, []).append(number)
        return holders

    @lazy
    def _titled(self) -> Mapping[str, list[int]]:
        titled: dict[str, list[int]] = {}
        for number, joined in enumerate(self._joined):
            titled.setdefault(joined.partition("\n")[0].strip(), []).append(number)
        return titled

    @lazy
    def _entity_holders(self) -> Mapping[str, list[int]]:
        holders: dict[str, list[int]] = {}
        for number, passage in enumerate(self.passages):
            for entity in PassageView(passage).entities:
                holders.setdefault(entity, []).append(number)
        return holders

    def holding(self, phrase: str) -> list[int]:
        """Return the passages that hold a phrase, given as folded words with a blank on either side of each."""
        rarest = max(phrase.split(), key=idf)
        numbers = self._holders.get(rarest, ())
        return [number for number in numbers if phrase in self._joined[number]]

    def titled_in(self, words: Sequence[str]) -> list[int]:
        """Return the passages whose titles stand in a row of folded words, but for titles of common words alone."""
        ends = range(1, _MOST_TITLE_WORDS + 1)
        spans = {" ".join(words[start : start + length]) for start in range(len(words)) for length in ends}
        return sorted(
            number
            for title in spans & self._titled.keys()
            if max(map(idf, title.split())) >= _INDEXED
            for number in self._titled[title]
        )

    def holding_any(self, words: Collection[str]) -> list[int]:
        """Return the passages that hold one of the words, or more, those left out that very many hold."""
        holders = (self._holders.get(word, ()) for word in words)
        return sorted({number for numbers in holders if len(numbers) <= _MOST_HOLDERS for number in numbers})

    def best(self, numbers: Collection[int], words: Collection[str], most: int, random: Random) -> list[Passage]:
        """Return those of some passages that share most with a question's words, by rarity; ties fall at random."""
        if len(numbers) > _MOST_COMPARED:
            numbers = random.sample(list(numbers), _MOST_COMPARED)
        weighed = [(f" {word} ", idf(word)) for word in sorted(words)]
        shared = {n: sum(rarity for word, rarity in weighed if word in self._joined[n]) for n in numbers}
        best = nlargest(most, numbers, key=lambda number: (shared[number], random.random()))
        return [self.passages[number] for number in best]

    def mentioning(self, entity: str) -> list[int]:
        """Return the passages that mention a given entity."""
        return self._entity_holders.get(entity, [])

    def entity_sentences(self, passage: Passage) -> EntitySentences:
        """Return in which sentences of a passage its entities stand."""
        known = self._known_sentences.get(passage.text)
        if known is None:
            view = PassageView(passage)
            known = {entity: frozenset(view.sentences_with(entity)) for entity in view.entities}
            self._known_sentences[passage.text] = known
        return known


class Company:
    """The passages of one question as they are brought together around its chain, none twice."""

    def __init__(self, chain: Iterable[Passage]) -> None:
        self._chain = list(chain)
        self.passages: list[Passage] = []
        self._ids: set[str] = set()
        self._texts: set[str] = set()
        self._titles: set[str | None] = set()
        for passage in self._chain:
            self._add(passage)

    def add(self, passages: Iterable[Passage], most: int, *, of_other_titles: bool = False) -> None:
        """Add passages that are not there yet, `most` of them at the most."""
        size = len(self.passages) + most
        for passage in passages:
            if len(self.passages) >= size:
                return
            is_there = passage.id in self._ids or passage.text in self._texts
            if not is_there and not (of_other_titles and passage.title and passage.title in self._titles):
                self._add(passage)

    def _add(self, passage: Passage) -> None:
        self.passages.append(passage)
        self._ids.add(passage.id)
        self._texts.add(passage.text)
        self._titles.add(passage.title)

    def shuffled(self, random: Random) -> tuple[list[Passage], tuple[int, ...]]:
        """Return the passages in a random order, and where those of the chain stand among them."""
        passages = random.sample(self.passages, len(self.passages))
        places = {passage.id: number for number, passage in enumerate(passages)}
        return passages, tuple(places[passage.id] for passage in self._chain)
