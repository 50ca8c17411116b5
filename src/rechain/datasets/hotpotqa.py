"""HotpotQA, distractor and fullwiki, as published and as on the Hugging Face Hub."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from rechain.datasets.formats import Format, join_sentences, make_passages
from rechain.schema import Gold, GoldChain, NotBlank, Question
from rechain.text.answers import AnswerMatcher


def as_pairs(first: str, second: str) -> BeforeValidator:
    """Turn the Hub's columns, {"title": […], "sentences": […]}, into the published list of pairs."""

    def pair(value: Any) -> Any:
        if not isinstance(value, dict) or not all(isinstance(value.get(name), list) for name in (first, second)):
            return value
        if len(value[first]) != len(value[second]):
            raise PydanticCustomError("columns", "its columns are of different lengths")
        return list(map(list, zip(value[first], value[second], strict=True)))

    return BeforeValidator(pair)


Context = Annotated[list[tuple[str, list[str]]], as_pairs("title", "sentences")]
SupportingFacts = Annotated[list[tuple[str, int]], as_pairs("title", "sent_id")]


class HotpotQuestion(BaseModel):
    """The fields of a question, without its gold."""

    id: NotBlank = Field(validation_alias=AliasChoices("_id", "id"))
    question: str
    answer: str
    type: Any = None
    context: Context

    def to_question(self) -> Question:
        """Return the question; a passage's id is its title."""
        passages = make_passages(
            "context",
            ({"id": title, "title": title, "text": join_sentences(sentences)} for title, sentences in self.context),
        )
        return Question(
            id=self.id, question=self.question, answer=self.answer, hops=2, type=self.type, passages=passages
        )


class _Gold(BaseModel):
    supporting_facts: SupportingFacts = []

    def titles(self) -> list[str]:
        return list(dict.fromkeys(title for title, _ in self.supporting_facts))


class HotpotQA(Format):
    """Two gold passages; the one that holds the answer, where just one does, is the tail (Section 4.1)."""

    name = "hotpotqa"
    _fields: ClassVar[type[HotpotQuestion]] = HotpotQuestion

    def recognises(self, record: dict[str, Any]) -> bool:
        return "context" in record and "question" in record

    def question(self, record: dict[str, Any]) -> Question:
        return self._fields.model_validate(record).to_question()

    def sentences(self, record: dict[str, Any]) -> Mapping[str, Sequence[str]]:
        return dict(self._fields.model_validate(record).context)

    def gold(self, record: dict[str, Any]) -> Gold | None:
        titles = _Gold.model_validate(record).titles()
        if not titles:
            return None
        question = self.question(record)
        answer = AnswerMatcher(question)
        tails = {p.id for p in question.passages if p.id in titles and answer.is_held_by(p)}
        chain = GoldChain(passages=sorted(titles, key=tails.__contains__), ordered=len(tails) == 1)
        return Gold(id=question.id, chains=[chain], same=self.same)
