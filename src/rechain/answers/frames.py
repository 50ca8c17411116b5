"""What an answer wraps around what it says: polite frames, words without content, and ways to say "I don't know".

The words and patterns are data: `data/frames.toml`.
"""

import re
import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from rechain.text.words import Text

READ = 1000
"""characters of a sentence that are read; a longer one is no sentence"""
_ANY = r"(\w+ ){0,12}?"
_ANSWERS = frozenset(("answer", "antwort", "答", "response"))


@lru_cache(64)  # of the sentences of one answer, each is looked at for several kinds of frames and then for phrases
def read(sentence: str) -> Text:
    """Return the beginning of a sentence as words."""
    return Text(sentence[:READ])


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(files("rechain").joinpath("data/frames.toml").read_text("utf-8"))


@cache
def words(name: str) -> frozenset[str]:
    """Return a set of words: function, linking, clause, joints, relative, yes, no or abbreviations."""
    return frozenset(_tables()["words"][name].split())


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of a kind of frame over words with one blank between them."""
    alternatives = []
    for line in _tables()["frames"][name]:
        expanded = _expand(line)
        ending = " ?$" if line.endswith("$") else r"(?!\w)"
        alternatives.append(f"(?:{expanded.removesuffix('$')}){ending}")
    return re.compile("|".join(alternatives))


def _expand(line: str) -> str:
    """Return a pattern with what its {parts} stand for; groups capture nothing."""
    for _ in range(3):  # parts may name parts
        for name, part in _tables()["parts"].items():
            line = line.replace(f"{{{name}}}", part)
    return line.replace("{any}", _ANY).replace("(", "(?:")


@cache
def _unspaced(name: str) -> re.Pattern[str]:
    return re.compile("|".join(line.replace("(", "(?:") for line in _tables()["unspaced"][name]))


def matches(name: str, sentence: str) -> bool:
    """Return whether a sentence is or begins with a kind of frame: idle, refusal or beside_refusal."""
    return matches_words(name, read(sentence))


def matches_words(name: str, sentence: Text) -> bool:
    """Return what `matches` does for a sentence that is read already."""
    # The patterns of refusals take longer than all else that is done with a short answer.
    is_possible = name != "refusal" or not words("signs").isdisjoint(sentence.words)
    return bool(
        (is_possible and _pattern(name).match(sentence.joined, 1))
        or (not sentence.original.isascii() and _unspaced(name).match(sentence.original))
    )


def strip_openings(sentence: str) -> str:
    """Return a sentence without the frames before what it says; nothing if it is all frame."""
    for _ in range(4):  # "Sure! Based on the documents, the answer is that …"
        rest = _after_opening(sentence)
        if rest is None:
            break
        sentence = rest
    return sentence


def _after_opening(sentence: str) -> str | None:
    """Return what stands behind the frame that a sentence begins with; None if there is no frame."""
    opening = read(sentence)
    if found := _pattern("opening").match(opening.joined, 1):
        return sentence[_start_behind(opening, found.end()) :]
    if found := _pattern("adverb").match(opening.joined, 1):
        start = _start_behind(opening, found.end())
        if not _is_title(sentence, start):
            return sentence[start:]
    if not sentence.isascii() and (unspaced := _unspaced("opening").match(sentence)):
        return sentence[unspaced.end() :].strip()
    return None


def _start_behind(opening: Text, end: int) -> int:
    """Return where the word starts that follows so many characters of the joined words."""
    number = opening.joined.count(" ", 0, end + 1) - 1
    return opening.places[number][0] if number < len(opening.words) else len(opening.original)


def _is_title(sentence: str, start: int) -> bool:
    """Return whether a capital follows without any mark: "So Free Am I"."""
    before, following = sentence[:start][-2:], sentence[start : start + 2]
    return before[1:] == " " and before[0].isalnum() and following[:1].isupper() and following != "I "


def names_answer(sentence: str, rest: str) -> bool:
    """Return whether a frame that was taken away says that what is left is the answer itself."""
    return not _ANSWERS.isdisjoint(Text(sentence[: len(sentence) - len(rest)]).words)
