"""A passage as linking sees it: its title and text cut into words, and the entities the data gives for it."""

from collections.abc import Mapping

from rechain.identifiers import find_identifiers
from rechain.lazy import lazy
from rechain.schema import Passage
from rechain.text import Span, Text, strip_suffix


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
