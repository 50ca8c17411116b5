"""The linkers, each of which finds entities that passages share, and their registry.

A linker that looks for names says which (`phrases`) and gets back which passages hold them, so that all linkers share
one scan of the texts. A new one is a function that finds entities, its `Linker`, and a name in LINKERS.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from math import log
from typing import Any, NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation

from rechain.errors import MissingExtraError, RechainError
from rechain.schema import GIVEN_KINDS, LinkKind
from rechain.text.languages import (
    GERMAN_FUNCTION_WORDS,
    HEADING_WORDS,
    MAX_PHRASE_IDF,
    SHORTEST_NOUN,
    find_german,
    find_words,
    idf,
    is_chinese,
    phrase_idf,
    stem_german_noun,
    words_below,
)
from rechain.text.passage_views import HEADINGS, PassageView
from rechain.text.words import fold, is_unspaced, lazy, phrase

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


class Linker(NamedTuple):
    """One way to find entities."""

    name: str
    """what settings and the command line call it"""
    kinds: tuple[Kind, ...]
    """the kinds of links that it makes"""
    find: Callable[[Context, Holders], Iterable[Entity]]
    """yields the entities, given which passages hold the phrases, for those that two passages or more do"""
    phrases: Callable[[Context], Iterable[str]] = lambda context: ()
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
        if whole and not HEADING_WORDS.issuperset(words) and not _is_mere_heading(words, whole, views):
            yield Entity(name, TITLE.name, TITLE.bonus + phrase_idf(words), numbers, whole)
        if len(words) == 1 and words[0] not in HEADING_WORDS and not is_unspaced(words[0]):
            titled = frozenset(number for number in numbers if words[0] in views[number].title.words)
            is_number = words[0].isdigit() and _is_mere_heading(words, titled, views)
            if is_number or (titled & context.german and words[0] in GERMAN_FUNCTION_WORDS):
                continue
            yield Entity(name, TITLE_PART.name, TITLE_PART.bonus + idf(words[0]), numbers, titled)


def _is_mere_heading(words: Sequence[str], titled: Iterable[int], views: Sequence[PassageView]) -> bool:
    """Return whether a name is a number or one common word, such as "Set", and only heads parts of documents."""
    is_plain = all(map(str.isdigit, words)) or (len(words) == 1 and idf(words[0]) < _RARE_HEADING)
    return is_plain and all(HEADINGS in views[number].passage.title for number in titled)


_RARE_HEADING = 6.0
"""idf"""
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
                is_name = min(rarities) >= _FUNCTION_WORD and name_weight(rarities) >= least
                if is_name and not HEADING_WORDS.issuperset(pair):
                    pairs[f" {pair[0]} {pair[1]} "] = None
    yield from pairs
    for word in frozenset().union(*(view.vocabulary for view in ends)) - words_below(least) - HEADING_WORDS:
        if not word.isdigit() and not is_unspaced(word):
            yield f" {word} "


def name_weight(rarities: Sequence[float]) -> float:
    """Return what a name weighs, by the rarity of each of its words."""
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
            yield Entity(name, NAME.name, name_weight([idf(word) for word in words]), capitalised)
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


# --- Other languages --------------------------------------------------------------------------------------------------
#
# In German every noun is a capitalised word, and the table of rarities knows few of them: how many of the question's
# own passages contain a noun shows how telling it is. `languages.find_words` finds words of scripts without blanks.

_HALVING_OF_NOUNS = 2.0
"""what a noun loses whenever e times as many other passages hold it: two of four others leave it just above the least
weight of a link, 7"""
_PART = 1.0
"""what a link by a part of a compound weighs less than one by the whole"""
_SHORTEST_PART = 5
"""letters: shorter ones are parts of words by chance"""
_LINKING_SOUND = re.compile(r"^(?:es|s|en|n|e)?(?=\w{4})")


def _find_nouns(context: Context, _: Holders) -> Iterator[Entity]:
    """Yield every noun, or part of a compound, that two German passages hold, with the form it has in each."""
    if len(context.german) < 2:
        return
    nouns = {number: _nouns(context.views[number]) for number in sorted(context.german)}
    whole: dict[str, dict[int, str]] = {}
    for number, forms in nouns.items():
        for stem, form in forms.items():
            whole.setdefault(stem, {})[number] = form
    within: dict[str, dict[int, str]] = {}
    for stem, holders in whole.items():
        for part in _parts(stem, whole):
            for number, form in holders.items():
                within.setdefault(part, {}).setdefault(number, form)
    for stem, holders in whole.items():
        if len(holders) > 1:
            yield _entity(stem, holders, 0.0)
        if stem in within and len(together := within[stem] | holders) > 1:
            yield _entity(stem, together, _PART)


def _entity(stem: str, forms: Mapping[int, str], loss: float) -> Entity:
    holders = sorted(forms)
    weight = NAME.bonus + idf("") - _HALVING_OF_NOUNS * log(len(holders) - 1) - loss
    return Entity(
        f" {stem} ", NAME.name, weight, holders, forms={number: f" {form} " for number, form in forms.items()}
    )


def _nouns(view: PassageView) -> dict[str, str]:
    """Return the capitalised words that stand nowhere in lower case, folded, by their stems."""
    raw = dict.fromkeys((*view.title.raw_words, *view.text.raw_words))
    lower = {fold(word) for word in raw if word[0].islower()}
    forms = {fold(word) for word in raw if word[0].isupper() and len(word) > SHORTEST_NOUN}
    kept = sorted(forms - lower - GERMAN_FUNCTION_WORDS - HEADING_WORDS)
    return {stem_german_noun(form): form for form in reversed(kept)}


def _parts(stem: str, known: Mapping[str, object]) -> Iterator[str]:
    """Yield the nouns of these passages that a compound begins or ends with."""
    for length in range(_SHORTEST_PART, len(stem) - SHORTEST_NOUN + 1):
        for part in {stem[:length], stem_german_noun(stem[:length])}:
            if part in known and _LINKING_SOUND.match(stem[length:]):
                yield part
        if stem[-length:] in known:
            yield stem[-length:]


_HALVING_OF_RUNS = 1.0
"""what a word loses whenever e times as many other passages hold it; its own rarity is better known than in German"""


def _find_runs(context: Context, _: Holders) -> Iterator[Entity]:
    """Yield every word, or row of words, that two passages hold, as part of a title where it stands in one."""
    views = [view for view in context.views if view.text.has_unspaced or view.title.has_unspaced]
    if len(views) < 2:
        return
    texts = [f"{view.title.original}\n{view.text.original}" for view in views]
    segment, rarities = any(map(is_chinese, texts)), dict[str, float]()
    for text in texts:
        rarities.update(find_words(text, segment))
    least = context.min_weight - TITLE_PART.bonus
    names = {phrase(text): rarity for text, rarity in rarities.items() if rarity >= least}
    for name, holders in _longest(find_holders(names, context.views)):
        weight = names[name] - _HALVING_OF_RUNS * log(len(holders) - 1)
        yield Entity(name, NAME.name, NAME.bonus + weight, holders)
        if titled := frozenset(n for n in holders if name in context.views[n].title.joined):
            yield Entity(name, TITLE_PART.name, TITLE_PART.bonus + weight, holders, titled)


def _longest(found: Holders) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield what two passages hold, without the fragments of what the same passages hold."""
    kept: dict[tuple[int, ...], list[str]] = {}
    for name, holders in sorted(found.items(), key=lambda item: (-len(item[0]), item[0])):
        longer = kept.setdefault(tuple(holders), [])
        if len(holders) > 1 and not any(name in other for other in longer):
            longer.append(name)
            yield name, holders


LINKERS: dict[str, Linker] = {
    linker.name: linker
    for linker in (
        Linker("anchors", (MENTION,), _find_given),
        Linker("identifiers", (IDENTIFIER,), _find_identifiers),
        Linker("titles", (TITLE, TITLE_PART), _find_titles, _title_phrases),
        Linker("names", (NAME, WORD), _find_names, _name_phrases),
        Linker("nouns", (NAME,), _find_nouns),
        Linker("runs", (NAME, TITLE_PART), _find_runs),
        Linker("spacy", (NAME,), _find_spacy_names, _spacy_phrases, is_default=False),
    )
}
DEFAULT_LINKERS = frozenset(name for name, linker in LINKERS.items() if linker.is_default)
KINDS: Mapping[LinkKind, Kind] = {kind.name: kind for linker in LINKERS.values() for kind in linker.kinds}
