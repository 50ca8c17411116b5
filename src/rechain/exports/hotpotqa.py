"""Chains as predictions of HotpotQA's answers and supporting facts, for its official hotpot_evaluate_v1.py.

    {"answer": {id: answer, …}, "sp": {id: [[title, sentence number], …], …}}

The answer is the one that was given with the question. The numbers are those of the sentences in the questions file
(HotpotQA, 2WikiMultihopQA); where that gives none, sentences end at a full stop.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rechain.errors import InputError
from rechain.exports.joining import Joined, Step
from rechain.text.answers import AnswerMatcher
from rechain.text.passages import PassageView
from rechain.text.words import Span


class Sentence(NamedTuple):
    """A sentence's number in the questions file, and where it stands in the passage's text."""

    number: int
    span: Span


class Evidence(NamedTuple):
    """What stands where in a passage of a chain: numbers of sentences."""

    sentences: Sequence[int]
    """all that are not blank; there is at least one"""
    linking: Sequence[int]
    """in which a link to the passage before or after stands"""
    answering: Sequence[int]
    """in which the answer stands, in the last passage"""


Rule = Callable[[Evidence], Iterable[int]]
"""says which sentences of a passage are supporting facts"""
Fact = tuple[str, int]
"""a passage's title and the number of a sentence"""


def supporting(evidence: Evidence) -> Iterable[int]:
    """Take the sentences with a link and the first with the answer, or the first of all where there are none.

    Of three rules the best one on HotpotQA: benchmarks/exports.py.
    """
    return [*evidence.linking, *evidence.answering[:1]] or evidence.sentences[:1]


def facts(joined: Joined, rule: Rule = supporting) -> list[Fact]:
    """Return the supporting facts that a chain stands for, passage by passage."""
    answer = AnswerMatcher(joined.question)
    steps = joined.steps
    found: list[Fact] = []
    for place, step in enumerate(steps):
        evidence = _evidence(joined, step, answer if place == len(steps) - 1 else None)
        title = step.passage.title or step.passage.id
        found += [(title, number) for number in sorted(set(rule(evidence)))]
    return list(dict.fromkeys(found))


def row(joined: Joined) -> list[tuple[str, str, list[Fact]]]:
    """Return a question's id, answer and supporting facts, as the one row that it is."""
    return [(joined.question.id, joined.question.answer, facts(joined))]


def prediction(rows: Iterable[tuple[str, str, list[Fact]]]) -> dict[str, Any]:
    """Gather the rows of all questions into the one object that the official evaluation reads."""
    answers: dict[str, str] = {}
    found: dict[str, list[Fact]] = {}
    for name, answer, supported in rows:
        if name in answers:
            raise InputError(f"two questions have the id '{name}', of which predictions can hold only one.")
        answers[name], found[name] = answer, supported
    return {"answer": answers, "sp": found}


def numbered(sentences: Iterable[str]) -> Iterator[Sentence]:
    """Yield where a file's sentences stand in the text that `join_sentences` makes of them; blank ones do not."""
    at = 0
    for number, sentence in enumerate(sentences):
        if length := len(sentence.strip()):
            yield Sentence(number, (at, at + length))
            at += length + 1


def _evidence(joined: Joined, step: Step, answer: AnswerMatcher | None) -> Evidence:
    view = PassageView(step.passage)
    given = joined.sentences.get(step.passage.id)
    sentences = list(numbered(given) if given else map(Sentence, range(len(view.sentences)), view.sentences))
    return Evidence(
        [sentence.number for sentence in sentences],
        _touched(sentences, step.links),
        _touched(sentences, [] if answer is None else _answers(view, answer)),
    )


def _answers(view: PassageView, answer: AnswerMatcher) -> Iterable[Span]:
    """Return where the answer stands in a passage's text."""
    if answer.entity is not None:
        return view.mentions(answer.entity)
    return [span for words in answer.phrases for span in view.text.spans(words)]


def _touched(sentences: Iterable[Sentence], spans: Iterable[Span]) -> list[int]:
    """Return the numbers of the sentences in which some stretches stand, or a part of them."""
    wanted = list(spans)
    return [
        number
        for number, (start, end) in sentences
        if any(start < span_end and span_start < end for span_start, span_end in wanted)
    ]
