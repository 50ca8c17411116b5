"""German nouns and names that passages share, inflected or within compounds.

In German every noun is a capitalised word, and the table of rarities knows few of them: how many of the question's own
passages hold a noun says how telling it is.
"""

import re
from collections.abc import Iterator, Mapping
from math import log

from rechain.linking.linkers import Context, Entity, Holders, Linker
from rechain.linking.names import NAME
from rechain.text.languages import GERMAN_FUNCTION_WORDS, HEADING_WORDS
from rechain.text.passages import PassageView
from rechain.text.rarity import idf
from rechain.text.words import fold

_UNKNOWN = ""
"""a word that no table has: as rare as the rarest"""
_HALVING = 2.0
"""what a noun loses whenever e times as many other passages hold it: two of four others leave it just above the least
weight of a link, 7"""
_PART = 1.0
"""what a link by a part of a compound weighs less than one by the whole"""
_SHORTEST_STEM, _SHORTEST_PART = 4, 5
"""letters: shorter ones are parts of words by chance"""
_INFLECTION = re.compile(r"(?:ern|en|em|er|es|e|n)?(?<![aeious])s?$|(?:ern|en|em|er|es|e|n)$")
_LINKING_SOUND = re.compile(r"^(?:es|s|en|n|e)?(?=\w{4})")


def find(context: Context, _: Holders) -> Iterator[Entity]:
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
    weight = NAME.bonus + idf(_UNKNOWN) - _HALVING * log(len(holders) - 1) - loss
    return Entity(
        f" {stem} ", NAME.name, weight, holders, forms={number: f" {form} " for number, form in forms.items()}
    )


def _nouns(view: PassageView) -> dict[str, str]:
    """Return the capitalised words that stand nowhere in lower case, folded, by their stems."""
    raw = dict.fromkeys((*view.title.raw_words, *view.text.raw_words))
    lower = {fold(word) for word in raw if word[0].islower()}
    forms = {fold(word) for word in raw if word[0].isupper() and len(word) > _SHORTEST_STEM}
    kept = sorted(forms - lower - GERMAN_FUNCTION_WORDS - HEADING_WORDS)
    return {_stem(form): form for form in reversed(kept)}


def _stem(word: str) -> str:
    """Return a folded noun without its ending: "mullers" and "muller" have one stem, "amtes" and "amt" too."""
    stem = _INFLECTION.sub("", word, count=1)
    return stem if len(stem) >= _SHORTEST_STEM else word


def _parts(stem: str, known: Mapping[str, object]) -> Iterator[str]:
    """Yield the nouns of these passages that a compound begins or ends with."""
    for length in range(_SHORTEST_PART, len(stem) - _SHORTEST_STEM + 1):
        for part in {stem[:length], _stem(stem[:length])}:
            if part in known and _LINKING_SOUND.match(stem[length:]):
                yield part
        if stem[-length:] in known:
            yield stem[-length:]


LINKER = Linker("nouns", (NAME,), find)
