"""A passage as linking sees it: its title and text cut into words, and the entities the data gives for it."""

import re
from bisect import bisect
from collections.abc import Mapping

from rechain.schema import Passage
from rechain.text.identifiers import find_identifiers
from rechain.text.lazy import lazy
from rechain.text.words import Span, Text, strip_suffix

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z(\[])")


def title_before(passage: Passage) -> str:
    """Return the title as it is to be read before the text: nothing where the text begins with it."""
    title, text = passage.title.strip(), passage.text
    begins_with_it = text.startswith(title) and not text[len(title) :][:1].isalnum()
    return "" if begins_with_it else title


class PassageView:
    """A passage, read once: everything that looks for something in it uses this view."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage

    @lazy
    def title(self) -> Text:
        """The title without its bracketed suffix."""
        return Text(strip_suffix(self.passage.title))

    @lazy
    def text(self) -> Text:
        """The text."""
        return Text(self.passage.text)

    @lazy
    def joined(self) -> str:
        """The folded words of title and text, as `Text.joined` has them; no phrase reaches from one to the other."""
        return f"{self.title.joined}\n{self.text.joined}"

    @lazy
    def title_words(self) -> frozenset[str]:
        """The distinct folded words of the title."""
        return frozenset(self.title.words)

    @lazy
    def words(self) -> list[str]:
        """The folded words of title and text."""
        return self.title.words + self.text.words

    @lazy
    def vocabulary(self) -> frozenset[str]:
        """The distinct folded words of title and text."""
        return frozenset(self.words)

    @lazy
    def sentences(self) -> list[Span]:
        """Where the sentences of the text begin and end."""
        bounds = [(match.start(), match.end()) for match in _SENTENCE_END.finditer(self.passage.text)]
        starts = [0, *(end for _, end in bounds)]
        ends = [*(start for start, _ in bounds), len(self.passage.text)]
        return list(zip(starts, ends, strict=True))

    def sentence_at(self, place: int) -> int:
        """Return the number of the sentence in which a character of the text stands."""
        return bisect(self.sentences, (place, len(self.passage.text))) - 1

    @lazy
    def given(self) -> Mapping[str, list[Span]]:
        """Where the entities that the data names stand in the text."""
        spans: dict[str, list[Span]] = {}
        for mention in self.passage.mentions:
            spans.setdefault(mention.entity, []).append((mention.start, mention.end))
        return spans

    @lazy
    def identifiers(self) -> Mapping[str, list[Span]]:
        """Where database identifiers stand in the text."""
        return find_identifiers(self.passage.text)

    def mentions(self, entity: str) -> list[Span]:
        """Return where an entity stands in the text: by the data's own mentions or, without any, as an identifier."""
        return (self.given if self.passage.mentions else self.identifiers).get(entity, [])
