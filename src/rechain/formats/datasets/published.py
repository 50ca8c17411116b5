"""Published data sets: HotpotQA, 2WikiMultihopQA, MuSiQue and QAngaroo, as published and as on the Hugging Face Hub."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

import orjson
from pydantic import AliasChoices, BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from rechain.formats.datasets.formats import Format, join_sentences, make_passages
from rechain.schema import Answer, Gold, GoldChain, NotBlank, Question
from rechain.text.passage_views import identifier

# ---- HotpotQA, distractor and fullwiki


def _as_pairs(first: str, second: str, value: Any) -> Any:
    """Turn the Hub's columns, {"title": […], "sentences": […]}, into the published list of pairs."""
    if not isinstance(value, dict) or not all(isinstance(value.get(name), list) for name in (first, second)):
        return value
    if len(value[first]) != len(value[second]):
        raise PydanticCustomError("columns", "its columns are of different lengths")
    return list(map(list, zip(value[first], value[second], strict=True)))


Context = Annotated[list[tuple[str, list[str]]], BeforeValidator(partial(_as_pairs, "title", "sentences"))]
SupportingFacts = Annotated[list[tuple[str, int]], BeforeValidator(partial(_as_pairs, "title", "sent_id"))]


class _HotpotQuestion(BaseModel):
    """The fields of a question, without its gold."""

    id: NotBlank = Field(validation_alias=AliasChoices("_id", "id"))
    question: str
    answer: Answer
    type: Any = None
    context: Context


class _HotpotGold(BaseModel):
    id: NotBlank = Field(validation_alias=AliasChoices("_id", "id"))
    supporting_facts: SupportingFacts = []


class HotpotQA(Format):
    """Two gold passages, without their order; the one that contains the answer is the tail (Section 4.1).

    Those of a comparison stand side by side. A passage's id is its title.
    """

    name = "hotpotqa"
    gold_tail_holds_answer = True
    _fields: ClassVar[type[_HotpotQuestion]] = _HotpotQuestion

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
        gold = _HotpotGold.model_validate(record)
        chain = _unordered(record, gold.supporting_facts)
        return Gold(id=gold.id, chains=[chain], same=self.same) if chain else None


def _unordered(record: dict[str, Any], facts: SupportingFacts) -> GoldChain | None:
    """Return the passages of some facts, if there are any."""
    titles = list(dict.fromkeys(title for title, _ in facts))
    shape: Any = "parallel" if record.get("type") == "comparison" else None
    return GoldChain(shape=shape, passages=titles, ordered=False) if titles else None


# ---- 2WikiMultihopQA, in HotpotQA's layout

_CHAIN_TYPES = ("compositional", "inference")  # the others compare, or compare two chains


def _parsed(value: Any) -> Any:
    """Parse JSON text, as which the Hub's Parquet files have the nested fields."""
    return orjson.loads(value) if isinstance(value, str) else value


class _TwoWikiQuestion(_HotpotQuestion):
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
        chain = _unordered(record, gold.supporting_facts)
        if chain and record.get("type") in _CHAIN_TYPES:
            chain = GoldChain(passages=chain.passages, links=[triple[2] for triple in gold.evidences[:-1]])
        return Gold(id=self.question(record).id, chains=[chain], same=self.same) if chain else None


# ---- MuSiQue: 2 to 4 hops, twenty paragraphs, ordered decomposition

_REFERENCE = re.compile(r"#(\d+)")


class _Paragraph(BaseModel):
    idx: int
    title: str = ""
    paragraph_text: str


class _MuSiQueQuestion(BaseModel):
    id: NotBlank
    question: str
    answer: Answer
    answer_aliases: list[str] = []
    paragraphs: list[_Paragraph]


class _SubQuestion(BaseModel):
    question: str
    answer: str
    paragraph_support_idx: int | None = None


class _MuSiQueGold(BaseModel):
    id: NotBlank
    question_decomposition: list[_SubQuestion] = []


class MuSiQue(Format):
    """The number of hops is gold, so questions do not carry it; their type is the prefix of their id ("3hop1")."""

    name = "musique"

    def recognises(self, record: dict[str, Any]) -> bool:
        return "paragraphs" in record and "question" in record

    def question(self, record: dict[str, Any]) -> Question:
        fields = _MuSiQueQuestion.model_validate(record)
        items = ({"id": str(p.idx), "title": p.title, "text": p.paragraph_text} for p in fields.paragraphs)
        return Question(
            id=fields.id,
            question=fields.question,
            answer=fields.answer,
            answer_aliases=[alias for alias in fields.answer_aliases if alias.strip()],
            type=fields.id.partition("__")[0],
            passages=make_passages("paragraphs", items),
        )

    def gold(self, record: dict[str, Any]) -> Gold | None:
        gold = _MuSiQueGold.model_validate(record)
        parts = gold.question_decomposition
        if not parts or any(part.paragraph_support_idx is None for part in parts):
            return None
        # A chain, if every subquestion refers to the answer of the one before ("#1"), and to no other.
        references = [set(map(int, _REFERENCE.findall(part.question))) for part in parts]
        is_chain = all(numbers == {number} for number, numbers in enumerate(references[1:], start=1))
        chain = GoldChain(
            passages=[str(part.paragraph_support_idx) for part in parts],
            links=[part.answer for part in parts[:-1]] if is_chain else None,
            ordered=is_chain,
        )
        return Gold(id=gold.id, chains=[chain], same=self.same)


# ---- QAngaroo: MedHop and WikiHop, masked or not

_MEDHOP_QUERY = re.compile(r"interacts_with (\S+?)\?")


class _QangarooQuestion(BaseModel):
    id: NotBlank
    query: NotBlank
    answer: Answer
    supports: list[str]


class Qangaroo(Format):
    """A passage's id is its position in `supports`. The published files have no gold chains."""

    name = "qangaroo"
    same = "links"

    def recognises(self, record: dict[str, Any]) -> bool:
        return "supports" in record and "query" in record

    def question(self, record: dict[str, Any]) -> Question:
        fields = _QangarooQuestion.model_validate(record)
        items = ({"id": str(number), "text": text} for number, text in enumerate(fields.supports))
        medhop: dict[str, Any] = {}
        if query := _MEDHOP_QUERY.fullmatch(fields.query):
            # MedHop's chains are drug, protein, protein, drug: three passages, two proteins (Section 4.1).
            drug = identifier(query[1]) or query[1]
            medhop = {"question_entities": [drug], "hops": 3, "link_types": ["protein", "protein"]}
        return Question(
            id=fields.id,
            question=fields.query,
            answer=fields.answer,
            answer_entity=identifier(fields.answer),
            passages=make_passages("supports", items),
            **medhop,
        )
