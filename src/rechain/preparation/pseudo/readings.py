"""What a passage offers to a question: its sentences, and the names, numbers and dates that could be an answer."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from rechain.text.passages import PassageView
from rechain.text.rarity import idf
from rechain.text.words import Text, lazy, phrase

AnswerKind = Literal["date", "year", "number", "place", "person", "name"]

_SENTENCE_END = re.compile(r"(?<=[a-z0-9)\]\"'][.!?])\s+(?=[A-Z\"(\[])")
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_ONLY_A_MONTH = re.compile(_MONTH.lower())
_CAPITALISED = r"[A-ZÀ-ÖØ-Þ][\w'’&-]*(?:\.(?=\s[A-Z]))?"
_ANSWER = re.compile(
    rf"\b(?:(?P<date>\d{{1,2}} {_MONTH} \d{{4}}|{_MONTH} \d{{1,2}}, \d{{4}}|{_MONTH} \d{{4}})"
    r"|(?P<year>(?:1[0-9]|20)\d\d(?![\d,.]\d))"
    r"|(?P<number>\d[\d,]*(?:\.\d+)?(?: (?:million|billion|percent|miles|km|metres|feet|people))?)"
    rf"|(?P<name>{_CAPITALISED}(?:(?: (?:of|the|of the|de|von|van|for))? {_CAPITALISED})*))(?!\w)"
)
_BEFORE_PLACES = frozenset(("in", "at", "near", "from", "to"))
_BEFORE_PERSONS = frozenset(("by", "with", "starring", "and", "actor", "actress", "singer", "director", "featuring"))
_FUNCTION_WORD = 2.0
_LEAST_RARITY = {"name": 2.8, "number": 2.0, "year": 0.0, "date": 0.0}
_MOST_ANSWER_WORDS = 7


class Answer(NamedTuple):
    """A stretch of a sentence that could be asked for."""

    text: str
    phrase: str
    """its folded words, as they are looked for in passages"""
    kind: AnswerKind
    sentence: int


class PassageReading:
    """A passage's view with what a question can be made of."""

    def __init__(self, view: PassageView) -> None:
        self.view = view

    @lazy
    def sentences(self) -> list[Text]:
        """The sentences that have words, each cut into words."""
        texts = map(Text, _SENTENCE_END.split(self.view.passage.text))
        return [text for text in texts if text.words]

    @lazy
    def answers(self) -> list[Answer]:
        """All that could be asked for, in the order of the text."""
        return [answer for number, text in enumerate(self.sentences) for answer in _answers(number, text)]


def _answers(number: int, sentence: Text) -> Iterator[Answer]:
    for match in _ANSWER.finditer(sentence.original):
        text = _trimmed(match.group())
        words = phrase(text)
        at = sentence.find(words) if words else None
        is_mere_beginning = at == 0 and words.count(" ") == 2
        if at is not None and not is_mere_beginning and _is_telling(words.split(), str(match.lastgroup)):
            before = sentence.words[at - 1] if at else ""
            yield Answer(text, words, _kind(str(match.lastgroup), words, before), number)


def _trimmed(text: str) -> str:
    """Leave out function words at the beginning, and the genitive at the end."""
    first, blank, rest = text.partition(" ")
    while blank and idf(first.casefold()) < _FUNCTION_WORD:
        first, blank, rest = rest.partition(" ")
    return (first + blank + rest).removesuffix("'s")


def _is_telling(words: list[str], form: str) -> bool:
    if len(words) == 1 and _ONLY_A_MONTH.fullmatch(words[0]):
        return False
    return len(words) <= _MOST_ANSWER_WORDS and max(map(idf, words)) >= _LEAST_RARITY[form]


def _kind(form: str, words: str, before: str) -> AnswerKind:
    match form:
        case "date" | "year" | "number":
            return form
    if before in _BEFORE_PLACES:
        return "place"
    is_full_name = 2 <= words.count(" ") - 1 <= 3 and " of " not in words
    return "person" if is_full_name and before in _BEFORE_PERSONS else "name"
