"""What people call the passages and entities of a question: titles and texts in place of identifiers."""

import re
from collections import Counter
from collections.abc import Sequence

from rechain.schema import Chain, Passage, Question

_SHOWN_WORDS = 40
"""characters of a text that stand for a passage without a title"""
_TYPE = re.compile(r"[a-z_]+:(?=.)")
"""the type of an entity, before its id: "gene:" of "gene:CACNA1D" """


def short(text: str, most: int) -> str:
    """Return a text on one line, cut after a word where it is longer than it may be."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    cut = line[: most - 1]
    return f"{cut.rsplit(' ', 1)[0] if ' ' in cut[most // 2 :] else cut}…"


def passage_name(passage: Passage) -> str:
    """Return a passage's title; where it has none the first words of its text, as ids like "0" tell nobody anything."""
    return passage.title.strip() or f"“{short(passage.text, _SHOWN_WORDS)}”"


class Names:
    """The names of a question's passages and entities."""

    def __init__(self, question: Question) -> None:
        self._passages = {passage.id: passage for passage in question.passages}
        self._mentioned = {mention.entity for passage in question.passages for mention in passage.mentions}
        self._entities: dict[tuple[str, tuple[str, ...]], str] = {}

    def passage(self, name: str) -> str:
        """Return the name of the passage with an id; a chain of a file may have one that is not there."""
        passage = self._passages.get(name)
        return name if passage is None else passage_name(passage)

    def mentions(self, entity: str) -> bool:
        """Return whether the data says where an entity stands."""
        return entity in self._mentioned

    def has_title(self, name: str) -> bool:
        """Return whether the passage with an id has a title of its own."""
        passage = self._passages.get(name)
        return passage is not None and bool(passage.title.strip())

    def link(self, chain: Chain, number: int) -> str:
        """Return the name of a chain's link, counted from 0, as the passages that it links have it."""
        return self.entity(chain.links[number].entity, chain.passages[number : number + 2])

    def entity(self, entity: str, near: Sequence[str] = ()) -> str:
        """Return an entity as it is most often written in some passages, or else in any; as it is if it is a name."""
        key = entity, tuple(near)
        if entity not in self._mentioned:
            return _TYPE.sub("", entity, count=1)
        if key not in self._entities:
            found = self._most_frequent(entity, near) or self._most_frequent(entity, list(self._passages))
            self._entities[key] = found or _TYPE.sub("", entity, count=1)
        return self._entities[key]

    def _most_frequent(self, entity: str, names: Sequence[str]) -> str | None:
        counts = Counter(
            short(passage.text[mention.start : mention.end], _SHOWN_WORDS * 2)
            for passage in (self._passages[name] for name in names if name in self._passages)
            for mention in passage.mentions
            if mention.entity == entity
        )
        # of two spellings that are as frequent the longer tells more, as "Ca(v)1.2" beside "CaV1.2"
        return max(counts, key=lambda text: (counts[text], len(text), text), default=None)
