"""Chains as predictions of HotpotQA's answers and supporting facts, for its official hotpot_evaluate_v1.py.

    {"answer": {id: answer, …}, "sp": {id: [[title, sentence number], …], …}}

The answer is that of the question. The numbers are those of the sentences in the questions file (HotpotQA,
2WikiMultihopQA); if that has none, the text is split at full stops.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rechain.errors import InputError
from rechain.formats.exports.joining import Joined
from rechain.text.answers.matcher import AnswerMatcher
from rechain.text.passage_views import PassageView
from rechain.text.words import Span


class Evidence(NamedTuple):
    """Numbers of the sentences of a passage of a chain, by what they hold."""

    sentences: Sequence[int]
    """all that are not blank; there is at least one"""
    linking: Sequence[int]
    """those with a link to another passage"""
    answering: Sequence[int]
    """those with the answer, in the last passage of a chain or of each line of evidence"""


Rule = Callable[[Evidence], Iterable[int]]  # returns the sentences of a passage that are supporting facts
Sentence = tuple[int, Span]  # a sentence's number in the questions file, and its span in the passage's text
Fact = tuple[str, int]  # a passage's title and the number of a sentence


def supporting(evidence: Evidence) -> Iterable[int]:
    """Return the sentences with a link and the first with the answer or, without either, the first of all.

    It is the best of three rules on HotpotQA: benchmarks/exports.py.
    """
    return [*evidence.linking, *evidence.answering[:1]] or evidence.sentences[:1]


def facts(joined: Joined, rule: Rule = supporting) -> list[Fact]:
    """Return the supporting facts of a question's chain, passage by passage."""
    passages, answer = joined.passages, AnswerMatcher(joined.question)
    pairs: list[Fact] = []
    for place, (passage, links) in enumerate(passages):
        view = PassageView(passage)
        answers = _answers(view, answer, joined) if place in joined.best.ends else []
        texts = joined.sentences.get(passage.id)
        sentences = list(numbered(texts) if texts else enumerate(view.sentences))
        every = [number for number, _ in sentences]
        numbers = rule(Evidence(every, _overlapping(sentences, links), _overlapping(sentences, answers)))
        pairs += [(passage.title or passage.id, number) for number in sorted(set(numbers))]
    return list(dict.fromkeys(pairs))


def _answers(view: PassageView, answer: AnswerMatcher, joined: Joined) -> Sequence[Span]:
    """Return where a passage contains the answer: word for word or, if nowhere, by the chain and the claims."""
    if answer.entity is not None:
        return view.mentions(answer.entity)
    spans = [span for words in answer.phrases for span in view.text.spans(words)]
    return spans or [span for name, span in joined.evidence if span and name == view.passage.id]


def row(joined: Joined) -> list[tuple[str, str, list[Fact]]]:
    """Return the one row of a question: its id, answer and supporting facts."""
    return [(joined.question.id, joined.question.answer, facts(joined))]


def prediction(rows: Iterable[tuple[str, str, list[Fact]]]) -> dict[str, Any]:
    """Gather the rows of all questions into the one object that the official evaluation reads."""
    answers: dict[str, str] = {}
    supporting_facts: dict[str, list[Fact]] = {}
    for name, answer, pairs in rows:
        if name in answers:
            raise InputError(f"two questions have the id '{name}', of which predictions can hold only one.")
        answers[name], supporting_facts[name] = answer, pairs
    return {"answer": answers, "sp": supporting_facts}


def numbered(sentences: Iterable[str]) -> Iterator[Sentence]:
    """Yield the spans of a file's sentences in the text that `join_sentences` makes of them, which lacks blank ones."""
    at = 0
    for number, sentence in enumerate(sentences):
        if length := len(sentence.strip()):
            yield number, (at, at + length)
            at += length + 1


def _overlapping(sentences: Iterable[Sentence], spans: Sequence[Span]) -> list[int]:
    """Return the numbers of the sentences that overlap one of some spans."""
    return [
        number
        for number, (start, end) in sentences
        if any(start < span_end and span_start < end for span_start, span_end in spans)
    ]
