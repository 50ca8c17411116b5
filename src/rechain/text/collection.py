"""A collection of passages, and what is known of it: how many of them hold a word, a name, a title or an entity.

A question's own passages are too few to say what is rare. Where they come from a larger collection (a file of passages,
an index of documents) its counts say so. They depend on the collection alone, never on the questions beside one.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from inspect import getattr_static
from typing import Protocol

import orjson

from rechain.schema import Passage
from rechain.text.passage_views import PassageView, find_lines
from rechain.text.words import lazy

_STAMP_DIGITS = 16
"""hexadecimal digits: 64 bits tell apart all collections that anybody has, and are short in every line of the output"""


class Statistics(Protocol):
    """What is known of a collection; whatever has it can stand for one: passages in memory, or an index of documents.

    Words and phrases are folded as `Text.words` and `Text.joined` have them, a phrase with a blank on either side.
    """

    @property
    def stamp(self) -> str:
        """What identifies the content of the collection."""
        ...

    @property
    def passages(self) -> int:
        """The number of passages."""
        ...

    def count_word(self, word: str) -> int:
        """Return how many passages hold a folded word in title or text."""
        ...

    def count_name(self, name: str) -> int:
        """Return how many passages hold a folded phrase, " marie curie ", in title or text; it may be an estimate."""
        ...

    def count_title(self, title: str) -> int:
        """Return how many passages have a folded title, " mercury ", whatever their bracketed suffix."""
        ...

    def count_entity(self, entity: str) -> int:
        """Return how many passages mention an entity that the data gives or, without mentions, an identifier."""
        ...

    def count_line(self, line: str) -> int:
        """Return how many passages have a line, as `passage_views.find_lines` yields it."""
        ...


def is_collection(value: object) -> bool:
    """Return whether a value has statistics; it does not read them, since a stamp takes a while to compute."""
    names = [name for name in vars(Statistics) if name in ("stamp", "passages") or name.startswith("count_")]
    return all(getattr_static(value, name, None) is not None for name in names)


class PassageCollection(Mapping[str, Passage]):
    """Passages by id, in memory, and their statistics, each of which is counted when it is first asked for."""

    def __init__(self, by_id: Mapping[str, Passage]) -> None:
        self._by_id = by_id
        self._names: dict[str, int] = {}

    def __getitem__(self, name: str) -> Passage:
        return self._by_id[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    @lazy
    def stamp(self) -> str:
        """What identifies the content of the collection, in whatever order its passages come."""
        return stamp_of(map(passage_digest, self._by_id.values()))

    @property
    def passages(self) -> int:
        """The number of passages."""
        return len(self._by_id)

    def count_word(self, word: str) -> int:
        return len(self._holders.get(word, ()))

    def count_name(self, name: str) -> int:
        words = name.split()
        if len(words) == 1:
            return self.count_word(words[0])
        if name not in self._names:
            self._names[name] = sum(name in PassageView(self._numbered[n]).joined for n in self._with_all(words))
        return self._names[name]

    def count_title(self, title: str) -> int:
        return self._titles[title]

    def count_entity(self, entity: str) -> int:
        return self._entities[entity]

    def count_line(self, line: str) -> int:
        return self._lines[line]

    @lazy
    def _numbered(self) -> list[Passage]:
        return list(self._by_id.values())

    @lazy
    def _holders(self) -> dict[str, "array[int]"]:
        """The numbers of the passages that hold each word: an array takes a tenth of the memory of a set."""
        holders: dict[str, array[int]] = {}
        for number, passage in enumerate(self._numbered):
            view = PassageView(passage)
            for word in view.vocabulary | view.terms:
                holders.setdefault(word, array("I")).append(number)
        return holders

    def _with_all(self, words: list[str]) -> set[int]:
        """Return the numbers of the passages that hold all of some words, the fewest first, so that sets stay small."""
        fewest, *others = sorted((self._holders.get(word, ()) for word in set(words)), key=len)
        return set(fewest).intersection(*others)

    @lazy
    def _lines(self) -> Counter[str]:
        return Counter(line for passage in self._by_id.values() for line in set(find_lines(passage.text)))

    @lazy
    def _titles(self) -> Counter[str]:
        return Counter(name for passage in self._by_id.values() for name in PassageView(passage).names)

    @lazy
    def _entities(self) -> Counter[str]:
        return Counter(entity for passage in self._by_id.values() for entity in PassageView(passage).entities)


def stamp_of(digests: Iterable[bytes]) -> str:
    """Return what identifies a collection of passages with some digests, in whatever order they come."""
    whole = sha256()
    for digest in sorted(digests):
        whole.update(digest)
    return whole.hexdigest()[:_STAMP_DIGITS]


def passage_digest(passage: Passage) -> bytes:
    """Return the digest of all of a passage that decides results."""
    mentions = [(mention.entity, mention.start, mention.end) for mention in passage.mentions]
    return sha256(orjson.dumps([passage.id, passage.title, passage.text, mentions])).digest()
