"""How pseudo questions are made, and the passages of all sources, by the words and entities that they hold."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from random import Random
from typing import NamedTuple

from rechain.schema import Passage, Question
from rechain.system.settings import Count, Positive, Settings, Share, wrong_setting
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


@dataclass(frozen=True)
class PseudoSettings(Settings):
    """How pseudo questions are made, and how hard."""

    drop: Share = 0.95
    """the chance that a word of the rarest kind is dropped; that of others is less, in proportion to their rarity"""
    drop_unique: Share = 0.8
    """the least chance that a word is dropped which no other passage of the context holds"""
    paraphrase: Share = 0.8
    """the chance that a word is replaced by one that means the same, or inflected otherwise, where one is known"""
    keep_title: Share = 0.35
    """the chance that a question names its head by title, where the title is not the link"""
    clause_words: tuple[Positive, Positive] = (4, 8)
    """the least and the most words taken from one sentence"""
    link_distractors: Count = 6
    """the most passages brought in because they too are linked with the tail"""
    answer_distractors: Share = 0.6
    """the chance that a passage is brought in because it holds the answer"""
    word_distractors: Count = 1
    """the most passages brought in because they hold rare words of the question"""
    kept_distractors: Count = 2
    """how many passages of the context at least stay beside the chain, if it has as many"""
    patience: Count = 60
    """the failures in a row after which a source is given up"""
    pattern: str = "interacts_with {}?"
    """the question where the data gives the entities; {} is the entity it starts from"""
    passages: tuple[Positive, Positive] = (15, 30)
    """the least and the most passages of a question, where the data gives the entities"""

    def __post_init__(self) -> None:
        """Say which setting is wrong."""
        super().__post_init__()
        for name in ("clause_words", "passages"):
            least, most = getattr(self, name)
            if least > most:
                raise wrong_setting(name, (least, most), "the least and the most number")
        if "{}" not in self.pattern:
            raise wrong_setting("pattern", self.pattern, "a text with {} where the entity stands")


class PseudoQuestion(NamedTuple):
    """A question made from passages, and the chain that it was made from."""

    question: Question
    chain: tuple[int, ...]
    """positions in `question.passages`, head first"""
    source: str
    """the id of the question whose passages it was made from"""
    links: tuple[str, ...] = ()
    """the linking entities: ids where the data gives them, else folded words"""


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
        self._known_sentences: dict[str, Mapping[str, frozenset[int]]] = {}

    @lazy
    def _joined(self) -> list[str]:
        return [PassageView(passage).joined for passage in self.passages]

    @lazy
    def _holders(self) -> Mapping[str, list[int]]:
        return _index([word for word in set(joined.split()) if idf(word) >= _INDEXED] for joined in self._joined)

    @lazy
    def _titled(self) -> Mapping[str, list[int]]:
        return _index([joined.partition("\n")[0].strip()] for joined in self._joined)

    @lazy
    def _entity_holders(self) -> Mapping[str, list[int]]:
        return _index(PassageView(passage).entities for passage in self.passages)

    def holding(self, phrase: str) -> list[int]:
        """Return the passages that hold a phrase, given as folded words with a blank on either side of each."""
        rarest = max(phrase.split(), key=idf)
        return [number for number in self._holders.get(rarest, ()) if phrase in self._joined[number]]

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

    def entity_sentences(self, passage: Passage) -> Mapping[str, frozenset[int]]:
        """Return in which sentences of a passage its entities stand."""
        known = self._known_sentences.get(passage.text)
        if known is None:
            view = PassageView(passage)
            known = {entity: frozenset(view.sentences_with(entity)) for entity in view.entities}
            self._known_sentences[passage.text] = known
        return known


def _index(names: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    """Return the numbers of the passages that hold each name, from the names of each passage."""
    holders: dict[str, list[int]] = {}
    for number, of_passage in enumerate(names):
        for name in of_passage:
            holders.setdefault(name, []).append(number)
    return holders


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
