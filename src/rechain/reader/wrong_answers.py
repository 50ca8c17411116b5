"""Wrong answers to questions, from which a judge learns: each is in the passages and of the right kind.

Some answer other questions; others are names, values and words of the passages themselves, most of them from those
with the right answer or much of the question, so that no word count distinguishes them from it.
"""

import re
from calendar import month_name
from collections.abc import Iterable, Iterator, Sequence
from math import fsum
from random import Random
from typing import Literal

from rechain.schema import Question
from rechain.text.languages import idf, rarities
from rechain.text.passage_views import PassageView
from rechain.text.words import Text, phrase

Kind = Literal["judgement", "date", "year", "number", "name", "phrase"]

_JUDGEMENTS = {"yes": "no", "no": "yes"}
_MONTHS = frozenset(month.casefold() for month in month_name if month)
_YEAR = re.compile(r"(?:1\d|20)\d\d")
_CLOSE_PASSAGES = 3
"""passages with the most of the question from which hard answers are taken: others are seldom mistaken for evidence"""
_FUNCTION_WORD = 1.5
"""words of less rarity (of, the, in …) make no difference between two answers"""
_CONTENT_WORD = 3.0
"""a stretch of words that begins or ends with one of less rarity (the, was, his …) is no answer"""
# Stricter than `PassageView.sentences`: a capital before the full stop (John F. Kennedy) ends no sentence.
_SENTENCE_END = re.compile(r"(?<=[a-z0-9)\]\"'][.!?])\s+(?=[A-Z\"(\[])")
_MONTH = f"(?:{'|'.join(filter(None, month_name))})"
_CAPITALISED = r"[A-ZÀ-ÖØ-Þ][\w'’&-]*(?:\.(?=\s[A-Z]))?"
_NAME_OR_VALUE = re.compile(
    rf"\b(?:(?P<date>\d{{1,2}} {_MONTH} \d{{4}}|{_MONTH} \d{{1,2}}, \d{{4}}|{_MONTH} \d{{4}})"
    r"|(?P<year>(?:1[0-9]|20)\d\d(?![\d,.]\d))"
    r"|(?P<number>\d[\d,]*(?:\.\d+)?(?: (?:million|billion|percent|miles|km|metres|feet|people))?)"
    rf"|(?P<name>{_CAPITALISED}(?:(?: (?:of|the|of the|de|von|van|for))? {_CAPITALISED})*))(?!\w)"
)
_LEADING_WORD = 2.0
"""words of less rarity (the, in, his …) are cut off the beginning of an answer"""
_LEAST_RARITY = {"name": 2.8, "number": 2.0, "year": 0.0, "date": 0.0}
"""of the rarest word of an answer: common names and small numbers are in too many passages"""
_MOST_ANSWER_WORDS = 7


def kind_of(answer: str) -> Kind:
    """Return what an answer looks like, by its form alone."""
    text = Text(answer)
    if len(text.words) == 1 and text.words[0] in _JUDGEMENTS:
        return "judgement"
    if _YEAR.fullmatch(answer.strip()):
        return "year"
    if any(character.isdigit() for character in answer):
        return "number" if _MONTHS.isdisjoint(text.words) else "date"
    return "name" if answer.strip()[:1].isupper() else "phrase"


class WrongAnswers:
    """Finds wrong answers among the answers of many questions and in passages."""

    def __init__(self, questions: Iterable[Question], seed: int = 0) -> None:
        self._seed = seed
        self._texts: dict[str, str] = {}
        """the answers of all questions, by their folded words"""
        self._lengths: dict[str, set[int]] = {}
        """how many words the answers have that begin with a word"""
        for question in questions:
            words = Text(question.answer).words
            if words and words[0] not in _JUDGEMENTS:
                self._texts.setdefault(phrase(question.answer), question.answer)
                self._lengths.setdefault(words[0], set()).add(len(words))

    def choose(self, question: Question, views: Sequence[PassageView], tails: Sequence[int], most: int) -> list[str]:
        """Return up to `most` wrong answers, about half of them other questions' and half from the passages.

        `tails` are the passages with the right answer. The choice depends on seed, question and answers alone.
        """
        if opposite := _JUDGEMENTS.get(phrase(question.answer).strip()):
            return [opposite]
        random = Random(f"{self._seed} {question.id}")
        others = self.of_others(question, views)
        random.shuffle(others)
        own = [answer for answer in _from_passages(question, views, tails, random) if answer not in others[: most // 2]]
        fewer_own = max(most - len(others), most - most // 2)
        chosen = own[:fewer_own]
        return chosen + others[: most - len(chosen)]

    def of_others(self, question: Question, views: Sequence[PassageView]) -> list[str]:
        """Return the answers of other questions, of this one's kind, that are word for word in its passages."""
        is_wrong, found = _Wrong(question), dict[str, None]()
        for view in views:
            for words in (view.title.words, view.text.words):
                for place, first in enumerate(words):
                    for length in self._lengths.get(first, ()):
                        found.setdefault(f" {' '.join(words[place : place + length])} ")
        texts = (self._texts[words] for words in found if words in self._texts)
        return [text for text in texts if is_wrong(text)]


class _Wrong:
    """Decides whether an answer surely differs from the right one and is of its kind."""

    def __init__(self, question: Question) -> None:
        right = (question.answer, *question.answer_aliases)
        self._right = [words for words in map(phrase, right) if words]
        self._kind = kind_of(question.answer)

    def __call__(self, answer: str) -> bool:
        words = phrase(answer)
        if not words or kind_of(answer) != self._kind:
            return False
        return not any(words in right or right in words or _are_alike(words, right) for right in self._right)


def _are_alike(one: str, other: str) -> bool:
    """Return whether two phrases have the same words but for order and function words: "City of New York"."""
    first, second = ({word for word in words.split() if idf(word) >= _FUNCTION_WORD} for words in (one, other))
    return first == second


def _from_passages(
    question: Question, views: Sequence[PassageView], tails: Sequence[int], random: Random
) -> Iterator[str]:
    """Yield names, values or words, in turn from passages with the right answer and from close ones."""
    asked = phrase(question.question)
    if any(words in asked for words in map(phrase, (question.answer, *question.answer_aliases)) if words):
        yield from _rivals(question, views, asked)  # "Which is older, A or B?": B
    words = rarities(Text(question.question))
    overlaps = [fsum(words[word] for word in words.keys() & view.vocabulary) for view in views]
    close = sorted(range(len(views)), key=lambda number: -overlaps[number])[:_CLOSE_PASSAGES]
    groups = [_answers_in(question, [views[number] for number in group], asked) for group in (tails, close)]
    for group in groups:
        random.shuffle(group)
    seen: set[str] = set()
    for place in range(max(map(len, groups))):
        for answer in (group[place] for group in groups if place < len(group)):
            if phrase(answer) not in seen:
                seen.add(phrase(answer))
                yield answer


def _rivals(question: Question, views: Sequence[PassageView], asked: str) -> Iterator[str]:
    """Yield the other things that the question itself names, if the answer is one of them."""
    is_wrong = _Wrong(question)
    for view in views:
        title = view.title.original
        if view.title.words and view.title.joined in asked and is_wrong(title):
            yield title


def _answers_in(question: Question, views: Sequence[PassageView], asked: str) -> list[str]:
    """Return what in some passages could be an answer of the right kind, and is wrong and not named by the question."""
    is_wrong = _Wrong(question)
    if kind_of(question.answer) == "phrase":
        texts = [text for view in views for text in _stretches(view, len(Text(question.answer).words))]
    else:
        texts = [text for view in views for text in _names_and_values(view.passage.text)]
    distinct = {phrase(text): text for text in texts if is_wrong(text)}
    return [text for words, text in distinct.items() if words not in asked]


def _names_and_values(passage: str) -> Iterator[str]:
    """Yield the names, dates and numbers of a passage that are rare enough to answer a question."""
    for sentence in map(Text, _SENTENCE_END.split(passage)):
        for match in _NAME_OR_VALUE.finditer(sentence.original):
            text = _trim(match.group())
            words = phrase(text)
            at = sentence.find(words) if words else None
            is_sentence_start = at == 0 and words.count(" ") == 2
            if at is not None and not is_sentence_start and _is_rare(words.split(), str(match.lastgroup)):
                yield text


def _trim(text: str) -> str:
    """Remove function words at the beginning, and the genitive at the end."""
    first, blank, rest = text.partition(" ")
    while blank and idf(first.casefold()) < _LEADING_WORD:
        first, blank, rest = rest.partition(" ")
    return (first + blank + rest).removesuffix("'s")


def _is_rare(words: list[str], form: str) -> bool:
    if len(words) == 1 and words[0] in _MONTHS:
        return False
    return len(words) <= _MOST_ANSWER_WORDS and max(map(idf, words)) >= _LEAST_RARITY[form]


def _stretches(view: PassageView, length: int) -> Iterator[str]:
    """Yield the stretches of `length` lower-case words that begin and end with a rare one."""
    words, raw = view.text.words, view.text.raw_words
    for first in range(len(words) - length + 1 if length else 0):
        last = first + length - 1
        if raw[first].islower() and min(idf(words[first]), idf(words[last])) >= _CONTENT_WORD:
            yield " ".join(raw[first : last + 1])
