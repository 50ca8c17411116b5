"""HotpotQA, distractor and fullwiki, as published and as on the Hugging Face Hub."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from rechain.datasets.formats import Format, join_sentences
from rechain.datasets.passages import make_passages
from rechain.schema import Answer, Gold, GoldChain, NotBlank, Question, Shape


def _as_pairs(first: str, second: str, value: Any) -> Any:
    """Turn the Hub's columns, {"title": […], "sentences": […]}, into the published list of pairs."""
    if not isinstance(value, dict) or not all(isinstance(value.get(name), list) for name in (first, second)):
        return value
    if len(value[first]) != len(value[second]):
        raise PydanticCustomError("columns", "its columns are of different lengths")
    return list(map(list, zip(value[first], value[second], strict=True)))


Context = Annotated[list[tuple[str, list[str]]], BeforeValidator(partial(_as_pairs, "title", "sentences"))]
SupportingFacts = Annotated[list[tuple[str, int]], BeforeValidator(partial(_as_pairs, "title", "sent_id"))]


class HotpotQuestion(BaseModel):
    """The fields of a question, without its gold."""

    id: NotBlank = Field(validation_alias=AliasChoices("_id", "id"))
    question: str
    answer: Answer
    type: Any = None
    context: Context


class _Gold(BaseModel):
    id: NotBlank = Field(validation_alias=AliasChoices("_id", "id"))
    supporting_facts: SupportingFacts = []


class HotpotQA(Format):
    """Two gold passages, without their order; the one that holds the answer is the tail (Section 4.1).

    Those of a comparison stand side by side. A passage's id is its title.
    """

    name = "hotpotqa"
    gold_tail_holds_answer = True
    _fields: ClassVar[type[HotpotQuestion]] = HotpotQuestion

    def recognises(self, record: dict[str, Any]) -> bool:
        return record.get("context") is not None and "question" in record

    def question(self, record: dict[str, Any]) -> Question:
        fields = self._fields.model_validate(record)
        items = ({"id": title, "title": title, "text": join_sentences(texts)} for title, texts in fields.context)
        passages = make_passages("context", items)
        return Question(
            id=fields.id, question=fields.question, answer=fields.answer, hops=2, type=fields.type, passages=passages
        )

    def sentences(self, record: dict[str, Any]) -> Mapping[str, Sequence[str]]:
        return dict(self._fields.model_validate(record).context)

    def gold(self, record: dict[str, Any]) -> Gold | None:
        gold = _Gold.model_validate(record)
        titles = list(dict.fromkeys(title for title, _ in gold.supporting_facts))
        if not titles:
            return None
        shape: Shape | None = "parallel" if record.get("type") == "comparison" else None
        return Gold(id=gold.id, chains=[GoldChain(shape=shape, passages=titles, ordered=False)], same=self.same)
