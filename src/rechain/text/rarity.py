"""How rare words are, by a fixed table of document frequencies that comes with the package.

The table is built by `research/build_idf.py`, never from the file that is read: a question's chains do not depend on
the questions beside it.
"""

import gzip
from collections.abc import Iterable, Set
from functools import cache
from importlib.resources import files
from math import log

import orjson

from rechain.text.words import Text, fold

# The rarest word of the table has 9.4; beyond 12 more words no longer make a name less ambiguous.
MAX_PHRASE_IDF = 12.0
# In a question, a word in at most 1 of 400 passages (e^6) names something whatever its case; a capitalised one also if
# it is more common, but not like "The" or "American" (more than 1 of 7, e^2).
_RARE, _UNCOMMON = 6.0, 2.0
_FOREIGN = 2
"""function words of another language that show that a text is in it: one alone may be English, as "die" or "war" """
_FUNCTION_WORD = 0.5
"""the rarity of a function word, as that of "of" in English"""


@cache
def _table() -> tuple[dict[str, float], float]:
    """Return the idf of every word in the table, and that of all others, which are rarer."""
    packed = files("rechain").joinpath("data/idf.json.gz").read_bytes()
    table = orjson.loads(gzip.decompress(packed))
    passages = table["passages"]
    idf = {word: log(passages / count) for word, count in table["counts"].items()}
    return idf, log(passages / table["min_count"])


def idf(word: str) -> float:
    """Return the inverse document frequency of a folded word."""
    known, rare = _table()
    return known.get(word, rare)


def phrase_idf(words: Iterable[str]) -> float:
    """Return the rarity of several words together, as if they were independent, up to a ceiling."""
    known, rare = _table()
    return min(sum(known.get(word, rare) for word in words), MAX_PHRASE_IDF)


@cache
def words_below(bound: float) -> frozenset[str]:
    """Return the words of the table whose idf is below a bound."""
    known, _ = _table()
    return frozenset(word for word, value in known.items() if value < bound)


def naming_words(question: Text) -> set[str]:
    """Return the words of a question that name something: rare ones, and capitalised ones but for the first."""
    capitalised = {fold(word) for word in question.raw_words[1:] if word[0].isupper()}
    rare = rarities(question)
    if not all(map(str.isascii, capitalised)):
        # The table knows no word of another script: in one that has case, case alone tells names.
        rare.update((word, 0.0) for word in rare if not word.isascii() and word not in capitalised)
    return {w for w in question.terms if rare[w] >= _RARE or (w in capitalised and rare[w] >= _UNCOMMON)}


def rarities(text: Text) -> dict[str, float]:
    """Return the distinct terms of a text, and how rare each is.

    The table is of English, in which the function words of other languages are rare.
    """
    rare = {word: idf(word) for word in text.terms}
    if _is_foreign(rare.keys()):
        rare.update(dict.fromkeys(function_words() & rare.keys(), _FUNCTION_WORD))
    return rare


def is_foreign(text: Text) -> bool:
    """Return whether a text is not English: by its function words, or since it is written without blanks."""
    return text.has_unspaced or _is_foreign(frozenset(text.words))


def _is_foreign(words: Set[str]) -> bool:
    """Return whether the function words show another language: not "in" and "was", nor "man" and "war" alone."""
    signs = [idf(word) for word in function_words() & words]
    return sum(rarity >= _UNCOMMON for rarity in signs) >= _FOREIGN and max(signs) >= _RARE


@cache
def function_words() -> frozenset[str]:
    """Return function words of languages other than English."""
    return frozenset(files("rechain").joinpath("data/function_words.txt").read_text("utf-8").split())
