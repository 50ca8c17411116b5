"""HotpotQA, distractor and fullwiki, as published and as on the Hugging Face Hub."""

from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from rechain.answers import AnswerMatcher
from rechain.datasets.formats import Format, join_sentences, without_repeats
from rechain.schema import Gold, GoldChain, NotBlank, Passage, Question


def _as_pairs(value: Any) -> Any:
    """Turn the Hub's columns, {"title": […], "sentences": […]}, into the published list of pairs."""
    return [list(pair) for pair in zip(*value.values(), strict=True)] if _is_columns(value) else value


def _is_columns(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 2 and all(isinstance(column, list) for column in value.values())


Context = Annotated[list[tuple[str, list[str]]], BeforeValidator(_as_pairs)]
SupportingFacts = Annotated[list[tuple[str, int]], BeforeValidator(_as_pairs)]


class _Question(BaseModel):
    id: NotBlank = Field(validation_alias=AliasChoices("_id", "id"))
    question: str
    answer: str
    type: str | None = None
    context: Context

    def to_question(self) -> Question:
        return Question(
            id=self.id, question=self.question, answer=self.answer, hops=2, type=self.type, passages=self.passages()
        )

    def passages(self) -> list[Passage]:
        return without_repeats(
            Passage(id=title, title=title, text=join_sentences(sentences)) for title, sentences in self.context
        )


class _Gold(BaseModel):
    supporting_facts: SupportingFacts = []

    def titles(self) -> list[str]:
        return list(dict.fromkeys(title for title, _ in self.supporting_facts))


class HotpotQA(Format):
    """Two gold passages; the one that holds the answer, where just one does, is the tail (Section 4.1)."""

    name = "hotpotqa"

    def recognises(self, record: dict[str, Any]) -> bool:
        return "context" in record and "question" in record

    def question(self, record: dict[str, Any]) -> Question:
        return _Question.model_validate(record).to_question()

    def gold(self, record: dict[str, Any]) -> Gold | None:
        titles = _Gold.model_validate(record).titles()
        if not titles:
            return None
        question = self.question(record)
        answer = AnswerMatcher(question)
        tails = {p.id for p in question.passages if p.id in titles and answer.is_held_by(p)}
        chain = GoldChain(passages=sorted(titles, key=tails.__contains__), ordered=len(tails) == 1)
        return Gold(id=question.id, chains=[chain], same="passages")
