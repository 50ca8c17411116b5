"""Which passages hold the answer."""

from collections.abc import Sequence

from rechain.errors import QuestionError
from rechain.schema import Passage, Question
from rechain.text.passages import PassageView
from rechain.text.words import phrase

_JUDGEMENTS = ("yes", "no")
"""answers that many passages hold as words, and none as an answer"""


class AnswerMatcher:
    """Looks for a question's answer or one of its aliases: whole words, case and accents folded."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.entity = question.answer_entity
        phrases = {text: phrase(text) for text in (question.answer, *question.answer_aliases)}
        self.phrases = frozenset(filter(None, phrases.values()))
        # An answer without any letter or digit ("!!!") is looked for as it stands.
        self._symbols = [text.strip() for text, words in phrases.items() if not words]
        self._is_judgement = self.entity is None and phrases[question.answer].strip() in _JUDGEMENTS

    def is_held_by(self, passage: Passage | PassageView) -> bool:
        """Return whether a passage holds the answer; where the data names the answer's entity, that decides."""
        view = passage if isinstance(passage, PassageView) else PassageView(passage)
        if self.entity is not None:
            return bool(view.mentions(self.entity))
        return any(words in view.joined for words in self.phrases) or any(
            text in view.passage.title or text in view.passage.text for text in self._symbols
        )

    def find_tails(self, views: Sequence[PassageView]) -> list[int]:
        """Return the positions of the passages that hold the answer, or say why there are none."""
        tails = [number for number, view in enumerate(views) if self.is_held_by(view)]
        if tails and not self._is_judgement:
            return tails
        raise QuestionError("no_tail", f"no tail: {self._why_no_tail()}")

    def _why_no_tail(self) -> str:
        question = self._question
        if self._is_judgement:
            return f"the answer '{question.answer}' judges and is not a text that a passage could hold"
        if self.entity is not None:
            return f"no passage mentions the answer's entity '{self.entity}'"
        texts = (question.answer, *question.answer_aliases)
        quoted = " or ".join(f"'{text if len(text) <= 80 else text[:79] + '…'}'" for text in texts)
        return f"no passage holds the answer {quoted} as whole words"
