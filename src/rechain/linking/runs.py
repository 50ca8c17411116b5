"""Words that passages share in scripts without blanks, never single characters."""

from collections.abc import Iterator, Sequence
from math import log

from rechain.linking.linkers import Context, Entity, Holders, Linker, find_holders
from rechain.linking.names import NAME
from rechain.linking.titles import TITLE_PART
from rechain.text.segments import find_words
from rechain.text.words import phrase

_HALVING = 1.0
"""what a word loses whenever e times as many other passages hold it; its own rarity is better known than in German"""


def find(context: Context, _: Holders) -> Iterator[Entity]:
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
        weight = names[name] - _HALVING * log(len(holders) - 1)
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


LINKER = Linker("runs", (NAME, TITLE_PART), find)
