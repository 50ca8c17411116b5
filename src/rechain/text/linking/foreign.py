"""The linkers of other languages: German nouns, and words of scripts that are written without blanks.

In German every noun is a capitalised word, and the table of rarities knows few of them: how many of the question's own
passages contain a noun shows how telling it is.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import log

from rechain.text.languages import GERMAN_FUNCTION_WORDS, HEADING_WORDS, find_words
from rechain.text.linking.linkers import NAME, TITLE_PART, Context, Entity, Holders, Linker, find_holders
from rechain.text.passage_views import PassageView
from rechain.text.rarity import idf
from rechain.text.stems import SHORTEST_NOUN, stem_german_noun
from rechain.text.words import fold, phrase

_UNKNOWN = ""
"""a word that no table has: as rare as the rarest"""
_HALVING_OF_NOUNS = 2.0
"""what a noun loses whenever e times as many other passages hold it: two of four others leave it just above the least
weight of a link, 7"""
_PART = 1.0
"""what a link by a part of a compound weighs less than one by the whole"""
_SHORTEST_STEM, _SHORTEST_PART = SHORTEST_NOUN, 5
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
    weight = NAME.bonus + idf(_UNKNOWN) - _HALVING_OF_NOUNS * log(len(holders) - 1) - loss
    return Entity(
        f" {stem} ", NAME.name, weight, holders, forms={number: f" {form} " for number, form in forms.items()}
    )


def _nouns(view: PassageView) -> dict[str, str]:
    """Return the capitalised words that stand nowhere in lower case, folded, by their stems."""
    raw = dict.fromkeys((*view.title.raw_words, *view.text.raw_words))
    lower = {fold(word) for word in raw if word[0].islower()}
    forms = {fold(word) for word in raw if word[0].isupper() and len(word) > _SHORTEST_STEM}
    kept = sorted(forms - lower - GERMAN_FUNCTION_WORDS - HEADING_WORDS)
    return {stem_german_noun(form): form for form in reversed(kept)}


def _parts(stem: str, known: Mapping[str, object]) -> Iterator[str]:
    """Yield the nouns of these passages that a compound begins or ends with."""
    for length in range(_SHORTEST_PART, len(stem) - _SHORTEST_STEM + 1):
        for part in {stem[:length], stem_german_noun(stem[:length])}:
            if part in known and _LINKING_SOUND.match(stem[length:]):
                yield part
        if stem[-length:] in known:
            yield stem[-length:]


NOUNS = Linker("nouns", (NAME,), _find_nouns)


_HALVING_OF_RUNS = 1.0
"""what a word loses whenever e times as many other passages hold it; its own rarity is better known than in German"""


def _find_runs(context: Context, _: Holders) -> Iterator[Entity]:
    """Yield every word, or row of words, that two passages hold, as part of a title where it stands in one."""
    views = [view for view in context.views if view.text.has_unspaced or view.title.has_unspaced]
    if len(views) < 2:
        return
    rarities: dict[str, float] = {}
    for view in views:
        rarities.update(find_words(f"{view.title.original}\n{view.text.original}"))
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


RUNS = Linker("runs", (NAME, TITLE_PART), _find_runs)
