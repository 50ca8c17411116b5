"""HotpotQA, distractor and fullwiki, as published and as on the Hugging Face Hub; and 2WikiMultihopQA in its layout."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

import orjson
from pydantic import AliasChoices, BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from rechain.formats.datasets.formats import Format, join_sentences, make_passages
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
    """Two gold passages, without their order; the one that contains the answer is the tail (Section 4.1).

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


_CHAIN_TYPES = ("compositional", "inference")  # the others compare, or compare two chains


def _parsed(value: Any) -> Any:
    """Parse JSON text, as which the Hub's Parquet files have the nested fields."""
    return orjson.loads(value) if isinstance(value, str) else value


class _TwoWikiQuestion(HotpotQuestion):
    context: Annotated[Context, BeforeValidator(_parsed)]


class _TwoWikiGold(BaseModel):
    supporting_facts: Annotated[SupportingFacts, BeforeValidator(_parsed)] = []
    evidences: Annotated[list[tuple[str, str, str]], BeforeValidator(_parsed)] = []


class TwoWiki(HotpotQA):
    """Compositional and inference questions are chains; the object of the first triple links their passages."""

    name = "2wiki"
    gold_tail_holds_answer = False
    _fields = _TwoWikiQuestion

    def recognises(self, record: dict[str, Any]) -> bool:
        return super().recognises(record) and "evidences" in record

    def gold(self, record: dict[str, Any]) -> Gold | None:
        gold = _TwoWikiGold.model_validate(record)
        titles = list(dict.fromkeys(title for title, _ in gold.supporting_facts))
        if not titles:
            return None
        if record.get("type") in _CHAIN_TYPES:
            chain = GoldChain(passages=titles, links=[triple[2] for triple in gold.evidences[:-1]])
        else:
            shape: Shape | None = "parallel" if record.get("type") == "comparison" else None
            chain = GoldChain(shape=shape, passages=titles, ordered=False)
        return Gold(id=self.question(record).id, chains=[chain], same=self.same)
