"""Which passages hold the answer."""

from collections.abc import Iterable, Sequence

from rechain.errors import QuestionError
from rechain.schema import Passage, Question
from rechain.text.passages import PassageView
from rechain.text.words import phrase

_JUDGEMENTS = ("yes", "no")


class AnswerMatcher:
    """Looks for a question's answer or one of its aliases: whole words, case and accents folded."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.entity = question.answer_entity
        phrases = {text: phrase(text) for text in (question.answer, *question.answer_aliases)}
        self.phrases = frozenset(filter(None, phrases.values()))
        self._symbols = [text.strip() for text, words in phrases.items() if not words]

    def is_held_by(self, passage: Passage | PassageView) -> bool:
        """Return whether a passage holds the answer; where the data names the answer's entity, that decides."""
        view = passage if isinstance(passage, PassageView) else PassageView(passage)
        if self.entity is not None:
            return bool(view.mentions(self.entity))
        return self.is_in(view.joined) or (self._symbols != [] and self._holds_symbols(view.passage))

    def is_in(self, joined: str) -> bool:
        """Return whether folded words, joined by blanks, hold the answer."""
        return any(words in joined for words in self.phrases)

    def _holds_symbols(self, passage: Passage) -> bool:
        """An answer without any letter or digit ("!!!") is looked for as it stands."""
        return any(text in passage.title or text in passage.text for text in self._symbols)

    def find_tails(self, views: Sequence[PassageView]) -> list[int]:
        """Return the positions of the passages that hold the answer, or say why there are none."""
        tails = [number for number, view in enumerate(views) if self.is_held_by(view)]
        if tails and not _is_judgement(self._question):
            return tails
        raise QuestionError("no_tail", _why_no_tail(self._question))


def _is_judgement(question: Question) -> bool:
    return question.answer_entity is None and phrase(question.answer).strip() in _JUDGEMENTS


def _why_no_tail(question: Question) -> str:
    if _is_judgement(question):
        return f"no tail: the answer '{question.answer}' judges and is not a text that a passage could hold"
    if question.answer_entity is not None:
        return f"no tail: no passage mentions the answer's entity '{question.answer_entity}'"
    named = _quoted((question.answer, *question.answer_aliases))
    return f"no tail: no passage holds the answer {named} as whole words"


def _quoted(texts: Iterable[str]) -> str:
    return " or ".join(f"'{text if len(text) <= 80 else text[:79] + '…'}'" for text in texts)
