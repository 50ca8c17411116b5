"""The linkers that come with the package, and the registry of all linkers.

A new linker is a module that ends with its `LINKER`, and a line in LINKERS.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from rechain.errors import MissingExtraError, RechainError
from rechain.schema import LinkKind
from rechain.text.languages import GERMAN_FUNCTION_WORDS, HEADING_WORDS
from rechain.text.linking.foreign import NOUNS, RUNS
from rechain.text.linking.linkers import (
    IDENTIFIER,
    MENTION,
    NAME,
    TITLE,
    TITLE_PART,
    WORD,
    Context,
    Entity,
    Holders,
    Kind,
    Linker,
)
from rechain.text.passage_views import PassageView
from rechain.text.rarity import MAX_PHRASE_IDF, idf, phrase_idf, words_below
from rechain.text.words import is_unspaced, phrase


def _find_given(context: Context, _: Holders) -> Iterator[Entity]:
    """Yield every given entity that two passages hold; a passage also holds the entity that is its id or title."""
    views = context.views
    holders: dict[str, list[int]] = {}
    for number, view in enumerate(views):
        for entity in view.given:
            holders.setdefault(entity, []).append(number)
    for number, view in enumerate(views):
        for entity in {view.passage.id, view.passage.title} & holders.keys():
            if number not in holders[entity]:
                holders[entity].append(number)
    for entity, numbers in holders.items():
        if len(numbers) > 1:
            first = views[numbers[0]]
            start, end = first.given[entity][0]
            rarity = phrase_idf(phrase(first.passage.text[start:end]).split())
            yield Entity(entity, MENTION.name, MENTION.bonus + rarity, numbers)


ANCHORS = Linker("anchors", (MENTION,), _find_given)


def _find_identifiers(context: Context, _: Holders) -> Iterator[Entity]:
    """Yield every identifier that two passages hold; where the data gives mentions, they decide instead."""
    holders: dict[str, list[int]] = {}
    for number, view in enumerate(context.views):
        for entity in () if view.passage.mentions else view.identifiers:
            holders.setdefault(entity, []).append(number)
    for entity, numbers in holders.items():
        if len(numbers) > 1:
            # An identifier has no rarity in the table of words: it counts as the rarest of phrases.
            yield Entity(entity, IDENTIFIER.name, IDENTIFIER.bonus + MAX_PHRASE_IDF, numbers)


IDENTIFIERS = Linker("identifiers", (IDENTIFIER,), _find_identifiers)


def _title_phrases(context: Context) -> Iterator[str]:
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


def _find_titles(context: Context, holders: Holders) -> Iterator[Entity]:
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


TITLES = Linker("titles", (TITLE, TITLE_PART), _find_titles, _title_phrases)


# "In The", "of New": a word this common (idf) is part of a sentence or of a longer name, not half of a name.
_FUNCTION_WORD = 1.0
# The words of a name are anything but independent ("Anton" makes "Quillfeather" likelier), so that the rarest counts
# in full and the others by half.
_OTHER_WORDS = 0.5


def _name_phrases(context: Context) -> Iterator[str]:
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


def _find_names(context: Context, holders: Holders) -> Iterator[Entity]:
    """Yield what two passages hold, as a name where it is capitalised, a single word also where it is not.

    Single words of German are left to the linker `nouns`.
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


NAMES = Linker("names", (NAME, WORD), _find_names, _name_phrases)


DEFAULT_SPACY_MODEL = "en_core_web_sm"


def _spacy_phrases(context: Context) -> list[str]:
    """Return the text of every named entity."""
    texts = (context.views[end].passage.text for end in context.ends)
    entities = (entity.text for document in _load(context.spacy_model).pipe(texts) for entity in document.ents)
    return list(dict.fromkeys(filter(None, map(phrase, entities))))


def _find_spacy_names(context: Context, holders: Holders) -> Iterator[Entity]:
    """Yield every name that two passages hold, capitalised."""
    return (entity for entity in _find_names(context, holders) if entity.kind == NAME.name)


@cache
def _load(model: str) -> Any:
    try:
        import spacy
    except ImportError as error:
        raise MissingExtraError("The linker spacy", "spacy") from error
    try:
        return spacy.load(model, exclude=["parser", "tagger", "lemmatizer", "attribute_ruler"])
    except (OSError, ValueError) as error:
        raise RechainError(
            f"spaCy's model '{model}' cannot be loaded: python -m spacy download {model}, or name another."
        ) from error


SPACY = Linker("spacy", (NAME,), _find_spacy_names, _spacy_phrases, is_default=False)


LINKERS: dict[str, Linker] = {
    linker.name: linker for linker in (ANCHORS, IDENTIFIERS, TITLES, NAMES, NOUNS, RUNS, SPACY)
}
DEFAULT_LINKERS = frozenset(name for name, linker in LINKERS.items() if linker.is_default)
KINDS: Mapping[LinkKind, Kind] = {kind.name: kind for linker in LINKERS.values() for kind in linker.kinds}
