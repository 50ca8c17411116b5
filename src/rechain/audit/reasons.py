"""Why an answer has its verdict, in one plain sentence."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from rechain.answers.claims import read_answer
from rechain.schema import MATCHES, Chain, Question, Recovered
from rechain.text.passages import PassageView
from rechain.text.rarity import naming_words
from rechain.text.words import Text

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
    if not best.links:
        return ""
    weakest = _quoted(min(best.links, key=lambda link: link.weight).entity)
    if len(best.links) == 1:
        return f"; {names[0]} leads to it by {weakest}"
    return f"; {names[0]} leads to it over {len(best.links)} links, of which {weakest} is the weakest"


class _Term(NamedTuple):
    """A word or number of an answer or question: as it stands there, and what a text that holds it has in it."""

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
    asked = [term for term in _named(question.question) if any(map(term.is_in, passages))]
    names = [term for term in asked if term.surface[0].isupper()]
    for others in (names, [*asked, *terms]):  # what a name does not stand with says more than what a word does not
        for what, texts in (("passage", passages), ("sentence", sentences)):
            if apart := _first_apart(terms, others, texts):
                return f"No {what} holds {apart}."
    return "The passages hold its words, but not what it says with them."


def _first_apart(terms: Sequence[_Term], others: Sequence[_Term], texts: Sequence[str]) -> str | None:
    """Return the first term, with the other one, that no text holds together, in words."""
    for one, other in product(terms, others):
        if one.pattern != other.pattern and not any(one.is_in(text) and other.is_in(text) for text in texts):
            return f"{_quoted(one.surface)} together with {_quoted(other.surface)}"
    return None


def _named(question: str) -> list[_Term]:
    """Return what a question names: its names and other rare words."""
    read = Text(question)
    named = naming_words(read)
    return list(_terms(raw for raw, word in zip(read.raw_words, read.words, strict=False) if word in named))


def _telling(question: str, answer: str) -> list[_Term]:
    """Return what is telling in an answer beyond its question, numbers first; in scripts without blanks, phrases."""
    claims = read_answer(question, answer).claims
    words = {word for claim in claims for word in claim.words}
    read = Text(answer)
    numbers = [match[0] for match in _NUMBER.finditer(answer) if words & set(Text(match[0]).words)]
    raw = [raw for raw, word in zip(read.raw_words, read.words, strict=False) if word in words]
    if terms := [*_terms(numbers), *_terms(word for word in raw if not _NUMBER.search(word))]:
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
