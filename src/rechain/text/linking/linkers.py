"""What a linker is: it finds entities that passages share.

Each linker is a module that ends with `LINKER = Linker(...)`, and `registry` lists them. A linker that looks for names
says which (`phrases`) and gets back which passages hold them, so that all linkers share one scan of the texts.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation

from rechain.schema import GIVEN_KINDS, LinkKind
from rechain.text.languages import find_german
from rechain.text.passage_views import PassageView
from rechain.text.words import lazy

Holders = Mapping[str, Sequence[int]]
"""Phrases, and the passages that hold each."""


class Kind(NamedTuple):
    """A kind of link."""

    name: LinkKind
    bonus: float
    """what a link of this kind weighs beside the rarity of its words: about what it takes to make up for the words of
    a stray match, so that for equal words a title beats a part of one, that a name, and that a mere word"""
    meaning: str
    """what the two passages share, in words"""


# Whatever its words, an entity that the data gives counts: 10 alone is more than the least weight.
MENTION = Kind("mention", 10.0, "an entity that the data gives in both passages")
IDENTIFIER = Kind("identifier", 10.0, "a database identifier that stands in both passages")
TITLE = Kind("title", 6.0, "the title of one passage stands in the other")
TITLE_PART = Kind("title part", 4.0, "a word of one passage's title stands in the other")
NAME = Kind("name", 0.0, "a rare name that stands in both passages")
WORD = Kind("word", -1.0, "a rare word that stands in both passages")


class Entity(NamedTuple):
    """Something that passages share.

    `name` is the entity id where the data gives one, else the folded words with a blank around each. Every two
    holders are linked by it; but where it is a title, or part of one, at least one of the two must be of that title.
    """

    name: str
    kind: LinkKind
    weight: float
    holders: Sequence[int]
    titled: frozenset[int] | None = None
    forms: Mapping[int, str] | None = None
    """the words that stand for it in each holder, where they are not the same in all: inflected, or in a compound"""

    @property
    def is_given(self) -> bool:
        """Whether the name is an id that the data gives and not a text found in the passages."""
        return self.kind in GIVEN_KINDS


@dataclass(frozen=True)
class Context:
    """What linkers look at: the passages of one question, and which links count."""

    views: Sequence[PassageView]
    ends: Collection[int]
    """the passages of which one must be at an end of every link: chains of two need only the links of the tails"""
    min_weight: float
    """links of less weight are dropped; a linker may leave them out at once"""
    spacy_model: str = ""

    @lazy
    def german(self) -> frozenset[int]:
        """The passages that are German."""
        return find_german([view.vocabulary for view in self.views])


def no_phrases(context: Context) -> Iterable[str]:
    """Return that a linker needs no shared scan."""
    return ()


class Linker(NamedTuple):
    """One way to find entities."""

    name: str
    """what settings and the command line call it"""
    kinds: tuple[Kind, ...]
    """the kinds of links that it makes"""
    find: Callable[[Context, Holders], Iterable[Entity]]
    """yields the entities, given which passages hold the phrases, for those that two passages or more do"""
    phrases: Callable[[Context], Iterable[str]] = no_phrases
    """the phrases to look for: folded words with a blank on either side of each"""
    is_default: bool = True
    """whether it is used unless settings say otherwise"""

    @property
    def is_given(self) -> bool:
        """Whether all its links are entities that the data gives."""
        return all(kind.name in GIVEN_KINDS for kind in self.kinds)


def find_entities(linkers: Iterable[Linker], context: Context) -> Iterator[Entity]:
    """Yield what linkers find in some passages."""
    phrases = [(linker, list(linker.phrases(context))) for linker in linkers]
    holders = find_holders([phrase for _, wanted in phrases for phrase in wanted], context.views)
    for linker, wanted in phrases:
        yield from linker.find(context, {phrase: held for phrase in wanted if len(held := holders.get(phrase, ())) > 1})


def find_holders(phrases: Iterable[str], views: Sequence[PassageView]) -> dict[str, list[int]]:
    """Return the passages that hold each phrase, in order: single words by their sets of words, others by one scan."""
    holders: dict[str, list[int]] = {}
    distinct = dict.fromkeys(phrases)
    if not distinct:  # where the data gives the entities, the texts need not be read
        return holders
    single = {phrase[1:-1]: phrase for phrase in distinct if phrase.count(" ") == 2}
    words = frozenset(single)  # two sets meet quicker than the keys of a dict and a set
    for number, view in enumerate(views):
        for word in words & view.vocabulary:
            holders.setdefault(single[word], []).append(number)
    longer = [phrase for phrase in distinct if phrase.count(" ") > 2]
    ends = list(accumulate(len(view.joined) for view in views))
    # An automaton serves one question, so that building it counts as much as searching: this kind is good at both.
    automaton = AhoCorasick(longer, implementation=Implementation.ContiguousNFA)
    holder = 0
    # Matches come by where they end, and none goes across two passages.
    for number, start, _ in automaton.find_matches_as_indexes("".join(v.joined for v in views), overlapping=True):
        while start >= ends[holder]:
            holder += 1
        known = holders.setdefault(longer[number], [])
        if not known or known[-1] != holder:
            known.append(holder)
    return holders
