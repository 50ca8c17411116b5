"""How a text is seen when names are looked for in it: folded words, and the way back to its offsets.

All matching (answers, titles, names) works on words: case and accents are folded and punctuation is dropped, so that
"St. Louis" and "st louis", "1,234" and "1234", "Dvořák" and "Dvorak" are the same. A text's words are joined to one
string with a blank on either side of each word; a phrase joined the same way is found in it by plain substring
search, and only at whole words.
"""

import re
import unicodedata
from collections.abc import Iterator

Span = tuple[int, int]
"""Start and end of a stretch of text, in code points."""

# Scripts written without blanks: every character is a word of its own.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_THOUSANDS_COMMA = re.compile(r",(?<=\d,)(?=\d{3}(?!\d))")
_KEPT_COMMA = "\x01"
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
_NOT_ASCII_CHARACTER = re.compile(r"[^\x00-\x7f]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
# Maps the bytes of UTF-8: ASCII that belongs to no word becomes a blank. '+' and '#' belong to words ("C++", "C#").
_BLANKED = bytes(
    ord(",") if chr(c) == _KEPT_COMMA else c if c > 127 or chr(c).isalnum() or chr(c) in "_+#" else ord(" ")
    for c in range(256)
)
_BRACKETED_SUFFIX = re.compile(r"\s*\([^()]*\)\s*$")


def fold(text: str) -> str:
    """Remove case and accents; lengths may change ("ß" becomes "ss")."""
    folded = text.casefold()
    return folded if folded.isascii() else _NOT_ASCII.sub(_without_accents, folded)


def _without_accents(match: re.Match[str]) -> str:
    decomposed = unicodedata.normalize("NFKD", match.group())
    return "".join(c for c in decomposed if not unicodedata.combining(c) and not c.isspace())


def strip_suffix(title: str) -> str:
    """Remove a bracketed suffix: "Mercury (planet)" becomes "Mercury"."""
    return _BRACKETED_SUFFIX.sub("", title) or title


def phrase(text: str) -> str:
    """Return the folded words of a text, each with a blank on either side; empty if it has no word."""
    read = Text(text)
    return read.joined if read.words else ""


class Text:
    """A text, its words and where they stand."""

    __slots__ = ("_blanked", "_raw_words", "joined", "original", "words")

    def __init__(self, original: str) -> None:
        self.original = original
        self._blanked = _blank(_composed(original))
        self._raw_words: list[str] | None = None
        folded = fold(self._blanked)
        self.words = (folded.replace(",", "") if "," in folded else folded).split()
        """the folded words"""
        self.joined = f" {' '.join(self.words)} "

    @property
    def raw_words(self) -> list[str]:
        """The words as they stand in the text, with case and accents."""
        if self._raw_words is None:
            self._raw_words = self._blanked.split()
        return self._raw_words

    def find(self, wanted: str) -> int | None:
        """Return the number of the word at which a phrase first occurs, or None."""
        at = self.joined.find(wanted)
        return None if at < 0 else self.joined.count(" ", 0, at)

    def span(self, first_word: int, words: int) -> Span:
        """Return where `words` words, from number `first_word` on, stand in the original text."""
        composed = _composed(self.original)
        start = self._start(composed, first_word)
        end = _walk(composed, start, self.raw_words[first_word : first_word + words])
        if composed == self.original:
            return start, end
        origins = _origins(self.original)
        return origins[start], origins[end]

    def _start(self, composed: str, number: int) -> int:
        """Return where a word starts: at once if it is the first of its kind and easily seen, else by walking there."""
        word = self.raw_words[number]
        start = composed.index(word)
        around = composed[max(start - 1, 0) : start] + composed[start + len(word) : start + len(word) + 1]
        if around.isspace() and self.raw_words.index(word) == number:
            return start
        return composed.index(word, _walk(composed, 0, self.raw_words[:number]))


def _walk(text: str, at: int, words: list[str]) -> int:
    """Return where the last of some words ends that follow one another in a text."""
    for word in words:
        at = text.index(word, at) + len(word)
    return at


def _blank(text: str) -> str:
    """Put blanks in place of all that belongs to no word, and around the words of scripts that are written without."""
    text = _THOUSANDS_COMMA.sub(_KEPT_COMMA, text) if "," in text else text
    if not text.isascii():
        others = set(_NOT_ASCII_CHARACTER.findall(text))
        for character in others:
            if not character.isalnum():
                text = text.replace(character, " ")
        if _UNSPACED_CHARACTER.search("".join(others)):
            text = _UNSPACED_CHARACTER.sub(r" \g<0> ", text)
    return text.encode().translate(_BLANKED).decode()


def _composed(text: str) -> str:
    """Put letters and their combining accents together: words are not cut at an accent."""
    if unicodedata.is_normalized("NFC", text):
        return text
    return "".join(composed for _, composed in _clusters(text))


def _origins(text: str) -> list[int]:
    """For every offset in the composed text, the offset in `text` it comes from."""
    origins: list[int] = []
    for start, composed in _clusters(text):
        origins += [start] * len(composed)
    return [*origins, len(text)]


def _clusters(text: str) -> Iterator[tuple[int, str]]:
    """Yield every character with the accents that follow it, composed, and where it starts."""
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or not unicodedata.combining(text[end]):
            yield start, unicodedata.normalize("NFC", text[start:end])
            start = end
