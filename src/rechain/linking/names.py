"""Entities that are names or rare words of both passages.

Two capitalised words in a row, or one rare word that is capitalised in both passages, are a name (or part of one: the
link is then widened to all that the two passages share of it). A rare word that is not capitalised is a mere word.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rechain.linking.linkers import Context, Entity, Holders, Kind, Linker
from rechain.text.passages import PassageView
from rechain.text.rarity import MAX_PHRASE_IDF, idf, words_below

NAME = Kind("name", 0.0, "a rare name that stands in both passages")
WORD = Kind("word", -1.0, "a rare word that stands in both passages")
# "In The", "of New": a word this common (idf) is part of a sentence or of a longer name, not half of a name.
_FUNCTION_WORD = 1.0
# The words of a name are anything but independent ("Anton" makes "Quillfeather" likelier), so that the rarest counts
# in full and the others by half.
_OTHER_WORDS = 0.5


def phrases(context: Context) -> Iterator[str]:
    """Yield two capitalised words in a row that are rare enough together, and single words that are rare enough."""
    ends, least = [context.views[end] for end in context.ends], context.min_weight
    pairs: dict[str, None] = {}
    common = words_below(least / (1 + _OTHER_WORDS))  # two of these do not weigh enough
    for text in (text for view in ends for text in (view.title, view.text)):
        capitalised = [number for number, word in enumerate(text.raw_words) if word[0].isupper()]
        for first, second in pairwise(capitalised):
            pair = text.words[first : second + 1]
            is_possible = len(pair) == 2 and not common.issuperset(pair)
            if is_possible and min(map(idf, pair)) >= _FUNCTION_WORD and name_weight(pair) >= least:
                pairs[f" {pair[0]} {pair[1]} "] = None
    yield from pairs
    for word in frozenset().union(*(view.vocabulary for view in ends)) - words_below(least):
        if not word.isdigit():
            yield f" {word} "


def name_weight(words: Sequence[str]) -> float:
    """Return what a name of some words weighs."""
    rarities = [idf(word) for word in words]
    rarest = max(rarities)
    return NAME.bonus + min(_OTHER_WORDS * sum(rarities) + (1 - _OTHER_WORDS) * rarest, MAX_PHRASE_IDF)


def find(context: Context, holders: Holders) -> Iterator[Entity]:
    """Yield what two passages hold, as a name where it is capitalised, a single word also where it is not."""
    for name, numbers in holders.items():
        words = name.split()
        capitalised = [number for number in numbers if _is_capitalised(context.views[number], name)]
        if len(capitalised) > 1:
            yield Entity(name, NAME.name, name_weight(words), capitalised)
        if len(words) == 1 and len(capitalised) < len(numbers):
            yield Entity(name, WORD.name, WORD.bonus + idf(words[0]), numbers)


def _is_capitalised(view: PassageView, name: str) -> bool:
    text, at = view.text, view.text.find(name)
    if at is None:
        text, at = view.title, view.title.find(name)
    if at is None:
        return False
    last = at + name.count(" ") - 2
    return text.raw_words[at][0].isupper() and (last == at or text.raw_words[last][0].isupper())


LINKER = Linker("names", (NAME, WORD), find, phrases)
