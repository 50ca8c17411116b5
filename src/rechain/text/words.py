"""How a text is seen when names are looked for in it: folded words, and the way back to its offsets.

All matching (answers, titles, names) works on words: case and accents are folded and punctuation is dropped, so that
"St. Louis" and "st louis", "1,234" and "1234", "Dvořák" and "Dvorak" are the same. A text's words are joined to one
string with a blank on either side of each word; a phrase joined the same way is found in it by plain substring
search, and only at whole words.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Span = tuple[int, int]
"""Start and end of a stretch of text, in code points."""

# Scripts written without blanks: every character is a word of its own.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_FIRST_UNSPACED = _UNSPACED[0]
_THOUSANDS_COMMA = re.compile(r",(?<=\d,)(?=\d{3}(?!\d))")
_KEPT_COMMA = "\x01"
_NO_WORD_BEFORE = re.compile(r"(?<![\w+#])[+#]+")
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
_NOT_ASCII_CHARACTER = re.compile(r"[^\x00-\x7f]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
# Maps the bytes of UTF-8: ASCII that belongs to no word becomes a blank. '+' and '#' belong to the word before ("C++").
_BLANKED = bytes(
    ord(",") if chr(c) == _KEPT_COMMA else c if c > 127 or chr(c).isalnum() or chr(c) in "_+#" else ord(" ")
    for c in range(256)
)
# Soft hyphens, joiners and byte order marks: nobody sees them, and they part no words. (A blank of no width does.)
_INVISIBLE = "\u00ad\u200c\u200d\u2060\ufeff"
_BRACKETED_SUFFIX = re.compile(r"\([^()]*\)$")
# Up to this many different characters are quicker replaced one by one than by str.translate, which looks at every one.
_MANY = 20
# Words: up to this many, a search through the text is quicker than an index of it. A longer text has so many names that
# a search for each would take minutes.
_LONG = 2000


def fold(text: str) -> str:
    """Remove case and accents; lengths may change ("ß" becomes "ss")."""
    folded = text.casefold()
    if folded.isascii():
        return folded
    return _NOT_ASCII.sub(lambda match: "".join(map(_folded_character, match.group())), folded)


@cache
def _folded_character(character: str) -> str:
    decomposed = unicodedata.normalize("NFKD", character).casefold()
    return "".join(c for c in decomposed if not (unicodedata.combining(c) or c.isspace() or c in _INVISIBLE))


def is_unspaced(text: str) -> bool:
    """Return whether a text begins with a character of a script that is written without blanks."""
    return text >= _FIRST_UNSPACED and _UNSPACED_CHARACTER.match(text) is not None


def strip_suffix(title: str) -> str:
    """Remove a bracketed suffix: "Mercury (planet)" becomes "Mercury"."""
    return (_BRACKETED_SUFFIX.sub("", title.rstrip()).rstrip() or title) if ")" in title else title


def phrase(text: str) -> str:
    """Return the folded words of a text, each with a blank on either side; empty if it has no word."""
    read = Text(text)
    return read.joined if read.words else ""


class Text:
    """A text, its words and where they stand."""

    __slots__ = ("_blanked", "_numbers", "_places", "_raw_words", "joined", "original", "words")

    def __init__(self, original: str) -> None:
        self.original = original
        self._blanked = _blank(original)
        self._raw_words: list[str] | None = None
        self._places: list[Span] | None = None
        self._numbers: dict[str, list[int]] | None = None
        self.words = fold(self._blanked).replace(",", "").split()
        """the folded words"""
        self.joined = f" {' '.join(self.words)} "

    @property
    def has_unspaced(self) -> bool:
        """Whether it has characters of scripts without blanks: they alone make a text longer, by two blanks each."""
        return len(self._blanked) > len(self.original)

    @property
    def raw_words(self) -> list[str]:
        """The words as they stand in the text, with case and accents."""
        if self._raw_words is None:
            self._raw_words = self._blanked.split()
        return self._raw_words

    @property
    def terms(self) -> list[str]:
        """The words by which texts are compared: one character of a script without blanks says nothing, two do."""
        if self.original.isascii() or not _UNSPACED_CHARACTER.search(self.joined):
            return self.words
        spaced = [word for word in self.words if not is_unspaced(word)]
        return spaced + [one + two for one, two in pairwise(self.words) if is_unspaced(one) and is_unspaced(two)]

    def find(self, wanted: str) -> int | None:
        """Return the number of the word at which a phrase first occurs, or None."""
        if len(self.words) > _LONG:
            return self._look_up(wanted.split())
        at = self.joined.find(wanted)
        return None if at < 0 else self.joined.count(" ", 0, at)

    def _look_up(self, wanted: list[str]) -> int | None:
        """Return what `find` does, by an index from every word to its numbers."""
        if self._numbers is None:
            self._numbers = {}
            for number, word in enumerate(self.words):
                self._numbers.setdefault(word, []).append(number)
        numbers = [self._numbers.get(word, []) for word in wanted]
        rarest = min(range(len(wanted)), key=lambda place: len(numbers[place]))
        firsts = (number - rarest for number in numbers[rarest])
        return next((first for first in firsts if self.words[first : first + len(wanted)] == wanted), None)

    @property
    def places(self) -> list[Span]:
        """Where each word stands in the original text."""
        if self._places is None:
            self._places = list(_places(self.original, 0, self.raw_words))
        return self._places

    def spans(self, wanted: str) -> Iterator[Span]:
        """Yield where a phrase stands in the original text, each time it occurs."""
        last, word, seen = wanted.count(" ") - 2, 0, 0
        at = self.joined.find(wanted)
        while at >= 0:
            word += self.joined.count(" ", seen, at)
            yield self.places[word][0], self.places[word + last][1]
            seen, at = at, self.joined.find(wanted, at + 1)

    def span(self, first_word: int, words: int) -> Span:
        """Return where `words` words, from number `first_word` on, stand in the original text."""
        if len(self.words) > _LONG:
            return self.places[first_word][0], self.places[first_word + words - 1][1]
        start = self._start(first_word)
        return start, _walk(self.original, start, self.raw_words[first_word : first_word + words])

    def _start(self, number: int) -> int:
        """Return where a word starts: at once if it is the first of its kind and easily seen, else by walking there."""
        word, text = self.raw_words[number], self.original
        start = text.index(word)
        around = text[max(start - 1, 0) : start] + text[start + len(word) : start + len(word) + 1]
        if around.isspace() and self.raw_words.index(word) == number:
            return start
        return text.index(word, _walk(text, 0, self.raw_words[:number]))


def _places(text: str, at: int, words: list[str]) -> Iterator[Span]:
    """Yield where some words stand that follow one another in a text."""
    for word in words:
        start = text.index(word, at)
        at = start + len(word)
        yield start, at


def _walk(text: str, at: int, words: list[str]) -> int:
    """Return where the last of some words ends that follow one another in a text."""
    for _, end in _places(text, at, words):
        at = end
    return at


def _blank(text: str) -> str:
    """Put blanks in place of all that belongs to no word, and around the words of scripts that are written without."""
    text = text.replace(_KEPT_COMMA, " ")
    text = _THOUSANDS_COMMA.sub(_KEPT_COMMA, text) if "," in text else text
    text = text if text.isascii() else _blank_beyond_ascii(text)
    text = _NO_WORD_BEFORE.sub(" ", text) if "#" in text or "+" in text else text
    return text.encode().translate(_BLANKED).decode()


def _blank_beyond_ascii(text: str) -> str:
    others = set(_NOT_ASCII_CHARACTER.findall(text))
    marks = "".join(filter(_is_mark, others))
    strange = [character for character in others if not _is_in_words(character)]
    if len(strange) > _MANY:
        text = text.translate(dict.fromkeys(map(ord, strange), " "))
    else:
        for character in strange:
            text = text.replace(character, " ")
    if marks:  # an accent belongs to the word before it, if there is one
        text = re.sub(rf"(?<![\w{marks}])[{marks}]+", " ", text)
    if unspaced := list(filter(is_unspaced, others)):
        if marks:
            text = re.sub(rf"(?![{marks}])[{_UNSPACED}][{marks}]*", r" \g<0> ", text)
        else:  # three times as fast
            text = text.translate({ord(character): f" {character} " for character in unspaced})
    return text


@cache
def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M") or character in _INVISIBLE


@cache
def _is_in_words(character: str) -> bool:
    return _is_mark(character) or (character.isalnum() and fold(character) != "")


class lazy(Generic[T]):  # noqa: N801 - used like functools.cached_property
    """As functools.cached_property, without the lock that it takes before Python 3.12, which costs more than the work.

    Once computed, the value stands in the instance's dictionary, where Python finds it before this descriptor.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        if instance is None:
            return self  # type: ignore[return-value]
        value = self._compute(instance)
        instance.__dict__[self._name] = value
        return value
