"""Entities that are a passage's title, whole or in part, and stand in another passage."""

from collections.abc import Iterator

from rechain.linking.linkers import Context, Entity, Holders, Kind, Linker
from rechain.text.languages import GERMAN_FUNCTION_WORDS, HEADING_WORDS
from rechain.text.rarity import idf, phrase_idf, words_below
from rechain.text.words import is_unspaced

TITLE = Kind("title", 6.0, "the title of one passage stands in the other")
TITLE_PART = Kind("title part", 4.0, "a word of one passage's title stands in the other")


def phrases(context: Context) -> Iterator[str]:
    """Yield every title without its bracketed suffix, the last heading of a path, and the words of titles.

    Words that are too common to weigh enough as a part of a title are left out.
    """
    title_words: set[str] = set()
    for view in context.views:
        yield from view.names
        title_words.update(view.title.words)
    at_ends = frozenset().union(*(context.views[end].vocabulary for end in context.ends))
    for word in (title_words & at_ends) - HEADING_WORDS - words_below(context.min_weight - TITLE_PART.bonus):
        if not is_unspaced(word):
            yield f" {word} "


def find(context: Context, holders: Holders) -> Iterator[Entity]:
    """Yield every title, and every word of one, that another passage holds.

    A word is a part of a title: a surname, or 'Tropicana' of 'Tropicana Las Vegas'.
    """
    views = context.views
    for name, numbers in holders.items():
        words = name.split()
        whole = frozenset(number for number in numbers if name in views[number].names)
        if whole and not HEADING_WORDS.issuperset(words):
            yield Entity(name, TITLE.name, TITLE.bonus + phrase_idf(words), numbers, whole)
        if len(words) == 1 and words[0] not in HEADING_WORDS and not is_unspaced(words[0]):
            titled = frozenset(number for number in numbers if words[0] in views[number].title.words)
            if titled & context.german and words[0] in GERMAN_FUNCTION_WORDS:
                continue
            yield Entity(name, TITLE_PART.name, TITLE_PART.bonus + idf(words[0]), numbers, titled)


LINKER = Linker("titles", (TITLE, TITLE_PART), find, phrases)
