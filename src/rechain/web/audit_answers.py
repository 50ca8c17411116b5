"""An answer of a log after it was audited: its verdict and the reason in one sentence, its tags and its day."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from rechain.errors import QuestionError
from rechain.formats.datasets.questions import Entry
from rechain.schema import MATCHES, Chain, Question, Recovered, Verdict
from rechain.text.answers.claims import read_answer
from rechain.text.languages import naming_words
from rechain.text.passage_views import PassageView
from rechain.text.words import Text

TAG_FIELDS = ("tag", "tags", "category", "topic")
DAY_FIELDS = ("day", "date", "timestamp", "created_at")
"""fields of a log by which verdicts are counted, the first that a record has"""
_MOST_TAGS = 20
"""tags of one record that count"""
_LONGEST_TAG = 100
_MILLISECONDS = 1e11
"""a greater number is no time in seconds (that would be the year 5138) but one in milliseconds"""
_ORDER = {"unsupported": 0, "partly": 1, "supported": 2, None: 3, "no_answer": 4}
"""the verdicts by how much they want to be looked at; None: what could not be judged"""


@dataclass(frozen=True)
class AuditedAnswer:
    """A question of a log, or why it cannot be read, and what was recovered of it."""

    where: str
    content: Question | QuestionError
    recovered: Recovered

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None where the question could not be read, or the model gives none."""
        return self.recovered.verdict

    @property
    def confidence(self) -> float | None:
        """That of the best chain, if there is one."""
        return self.recovered.chains[0].confidence if self.recovered.chains else None

    @cached_property
    def reason(self) -> str:
        """Why it has its verdict, in one sentence."""
        if isinstance(self.content, QuestionError):
            return str(self.content)
        return reason(self.content, self.recovered)

    @cached_property
    def tags(self) -> list[str]:
        """What the log files it under."""
        value = _first(self._fields, TAG_FIELDS)
        values = value if isinstance(value, list) else [value]
        tags = [str(one).strip()[:_LONGEST_TAG] for one in values if isinstance(one, str | int) and str(one).strip()]
        return list(dict.fromkeys(tags))[:_MOST_TAGS]

    @cached_property
    def day(self) -> str | None:
        """The day of the log, as 2026-05-14; None where there is none, or none that can be read."""
        return _as_day(_first(self._fields, DAY_FIELDS))

    @property
    def _fields(self) -> Mapping[str, Any]:
        """The fields that the schema does not know."""
        return (self.content.model_extra or {}) if isinstance(self.content, Question) else {}

    @property
    def doubt(self) -> tuple[int, float]:
        """Sorts answers by how much they want to be looked at, the most doubtful first.

        First those that nothing supports, the surest first; then what is partly supported; then what is supported, the
        least sure first.
        """
        chance = self.recovered.verdict_probability
        sureness = 0.5 if chance is None else chance
        return _ORDER[self.verdict], sureness if self.verdict == "supported" else -sureness

    def to_dict(self) -> dict[str, Any]:
        """Return the record of a question, as JSON has it."""
        found = self.recovered.to_dict()
        asked = self.content if isinstance(self.content, Question) else None
        texts = {"question": asked.question, "answer": asked.answer} if asked else {}
        filed = {**({"tags": self.tags} if self.tags else {}), **({"day": self.day} if self.day else {})}
        return {"id": found.pop("id"), **texts, **filed, "reason": self.reason, **found}


def audited(entry: Entry, recovered: Recovered) -> AuditedAnswer:
    """Return an entry of a log with what was recovered of it."""
    return AuditedAnswer(entry.where, entry.content, recovered)


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _as_day(value: Any) -> str | None:
    """Return a day in any form that logs have: ISO 8601, or seconds or milliseconds since 1970."""
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value.strip()).date().isoformat()
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if value > _MILLISECONDS else value
            return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        pass
    return None


_MOST_NAMED = 3
"""words that a sentence names as missing: more do not make it clearer"""
_SHORT_WORD = 3
"""letters: shorter words are mostly units and currencies ("EUR"), which documents write in other ways"""
_ENDING = 2
"""letters at the end of a word that inflection may change, so that "Mondays" is held where "Monday" stands"""
_SHORTEST_STEM = 4
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_LONGEST_QUOTE = 80
"""characters of a title or phrase in a sentence"""


def reason(question: Question, recovered: Recovered) -> str:
    """Return why an answer has its verdict, or why it has none."""
    if recovered.verdict == "no_answer":
        return "The answer says that there is none." if question.answer.strip() else "No answer was given."
    if recovered.verdict == "supported":
        return _held(question, recovered)
    if recovered.verdict == "partly":
        held, all_of_them = sum(c.verdict == "supported" for c in recovered.claims), len(recovered.claims)
        missing = _missing(question, recovered)
        is_split = 0 < held < all_of_them
        return f"{held} of {all_of_them} claims held: {missing[0].lower()}{missing[1:]}" if is_split else missing
    if recovered.verdict == "unsupported":
        return _missing(question, recovered) if question.passages else "There is no passage that could support it."
    return recovered.error.message if recovered.error else "The model gives no verdict."


def _held(question: Question, recovered: Recovered) -> str:
    """Say which passage holds the answer, how, and by what it was reached."""
    if not recovered.chains:
        return "The passages hold what it says."
    best = recovered.chains[0]
    titles = {passage.id: _quoted(passage.title or passage.id) for passage in question.passages}
    names = [titles.get(name, _quoted(name)) for name in best.passages]
    holder = titles.get(best.answer.passage, names[-1]) if best.answer else names[-1]
    how = f" {MATCHES[best.answer.match]}" if best.answer else ""
    return f"{holder} holds the answer{how}{_reached(best, names)}."


def _reached(best: Chain, names: Sequence[str]) -> str:
    if best.shape == "parallel":
        return f"; it stands side by side with {' and '.join(names[:-1])}"
    if best.shape == "graph":
        lines = (" leads to ".join(names[place] for place in line) for line in best.lines)
        return f"; {', and '.join(lines)}"
    if not best.links:
        return ""
    weakest = _quoted(min(best.links, key=lambda link: link.weight).entity)
    if len(best.links) == 1:
        return f"; {names[0]} leads to it by {weakest}"
    return f"; {names[0]} leads to it over {len(best.links)} links, of which {weakest} is the weakest"


class _Term(NamedTuple):
    """A word or number of an answer or question: as it is written, and what a joined `Text` with it contains."""

    surface: str
    pattern: str

    def is_in(self, joined: str) -> bool:
        """Return whether a text, joined as `Text` does it, holds the term."""
        return self.pattern in joined


def _missing(question: Question, recovered: Recovered) -> str:
    """Say what no passage holds, or what no passage or sentence holds together."""
    views = [PassageView(passage) for passage in question.passages]
    passages = [view.joined for view in views]
    doubtful = [claim.text for claim in recovered.claims if claim.verdict != "supported"] or [question.answer]
    terms = [term for text in doubtful for term in _telling(question.question, text)]
    if absent := [term for term in terms if not any(map(term.is_in, passages))]:
        surfaces = list(dict.fromkeys(_quoted(term.surface) for term in absent))
        return f"No passage holds {' or '.join(surfaces[:_MOST_NAMED])}."
    sentences = [Text(view.passage.text[slice(*span)]).joined for view in views for span in view.sentences]
    text = Text(question.question)
    asked = [term for term in _terms(_words_in(text, naming_words(text))) if any(map(term.is_in, passages))]
    names = [term for term in asked if term.surface[0].isupper()]
    for others in (names, [*asked, *terms]):  # what a name does not stand with says more than what a word does not
        for what, texts in (("passage", passages), ("sentence", sentences)):
            for one, other in product(terms, others):
                if one.pattern != other.pattern and not any(one.is_in(text) and other.is_in(text) for text in texts):
                    return f"No {what} holds {_quoted(one.surface)} together with {_quoted(other.surface)}."
    return "The passages hold its words, but not what it says with them."


def _words_in(text: Text, words: Collection[str]) -> list[str]:
    """Return the words of a text that are among some folded words, as they are written."""
    return [raw for raw, word in zip(text.raw_words, text.words, strict=False) if word in words]


def _telling(question: str, answer: str) -> list[_Term]:
    """Return what is telling in an answer beyond its question, numbers first; in scripts without blanks, phrases."""
    claims = read_answer(question, answer).claims
    words = {word for claim in claims for word in claim.words}
    read = Text(answer)
    numbers = [match[0] for match in _NUMBER.finditer(answer) if words & set(Text(match[0]).words)]
    others = (word for word in _words_in(read, words) if not _NUMBER.search(word))
    if terms := [*_terms(numbers), *_terms(others)]:
        return terms
    phrases = [phrase for claim in claims for phrase in claim.phrases]
    spans = (next(read.spans(phrase), None) for phrase in phrases)
    return [_Term(answer[slice(*span)], phrase) for phrase, span in zip(phrases, spans, strict=True) if span]


def _terms(words: Iterable[str]) -> Iterator[_Term]:
    for raw in dict.fromkeys(words):
        joined = Text(raw).joined
        word = joined.strip()
        if _NUMBER.search(word):
            yield _Term(raw, joined)
        elif len(word) > _SHORT_WORD:
            yield _Term(raw, f" {word[: max(len(word) - _ENDING, _SHORTEST_STEM)]}")


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    return f"'{text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + '…'}'"
