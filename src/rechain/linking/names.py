"""Entities that are names or rare words of both passages.

Two capitalised words in a row, or one rare word that is capitalised in both passages, are a name (or part of one: the
link is then widened to all that the two passages share of it). A rare word that is not capitalised is a mere word.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rechain.linking.linkers import Context, Entity, Holders, Kind, Linker
from rechain.text.languages import GERMAN_FUNCTION_WORDS, HEADING_WORDS
from rechain.text.passages import PassageView
from rechain.text.rarity import MAX_PHRASE_IDF, idf, words_below
from rechain.text.words import is_unspaced

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
            if second != first + 1:
                continue
            pair = text.words[first : second + 1]
            if not common.issuperset(pair):
                rarities = [idf(word) for word in pair]
                is_name = min(rarities) >= _FUNCTION_WORD and _weigh(rarities) >= least
                if is_name and not HEADING_WORDS.issuperset(pair):
                    pairs[f" {pair[0]} {pair[1]} "] = None
    yield from pairs
    for word in frozenset().union(*(view.vocabulary for view in ends)) - words_below(least) - HEADING_WORDS:
        if not word.isdigit() and not is_unspaced(word):
            yield f" {word} "


def name_weight(words: Sequence[str]) -> float:
    """Return what a name of some words weighs."""
    return _weigh([idf(word) for word in words])


def _weigh(rarities: Sequence[float]) -> float:
    rarest = max(rarities)
    return NAME.bonus + min(_OTHER_WORDS * sum(rarities) + (1 - _OTHER_WORDS) * rarest, MAX_PHRASE_IDF)


def find(context: Context, holders: Holders) -> Iterator[Entity]:
    """Yield what two passages hold, as a name where it is capitalised, a single word also where it is not.

    Single words of German are left to `nouns`.
    """
    german = context.german
    for name, held_by in holders.items():
        words = name.split()
        numbers = [number for number in held_by if number not in german] if german and len(words) == 1 else held_by
        if len(numbers) < 2 or (german and not GERMAN_FUNCTION_WORDS.isdisjoint(words)):
            continue
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
