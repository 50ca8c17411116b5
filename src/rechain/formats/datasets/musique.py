"""MuSiQue: 2 to 4 hops, twenty paragraphs, ordered decomposition."""

import re
from typing import Any

from pydantic import BaseModel

from rechain.formats.datasets.formats import Format, make_passages
from rechain.schema import Answer, Gold, GoldChain, NotBlank, Question

_REFERENCE = re.compile(r"#(\d+)")


class _Paragraph(BaseModel):
    idx: int
    title: str = ""
    paragraph_text: str


class _Question(BaseModel):
    id: NotBlank
    question: str
    answer: Answer
    answer_aliases: list[str] = []
    paragraphs: list[_Paragraph]


class _SubQuestion(BaseModel):
    question: str
    answer: str
    paragraph_support_idx: int | None = None


class _Gold(BaseModel):
    id: NotBlank
    question_decomposition: list[_SubQuestion] = []

    def is_linear(self) -> bool:
        """Return whether every subquestion refers to the answer of the one before ("#1"), and to no other."""
        references = [set(map(int, _REFERENCE.findall(part.question))) for part in self.question_decomposition]
        return all(numbers == {number} for number, numbers in enumerate(references[1:], start=1))


class MuSiQue(Format):
    """The number of hops is gold, so questions do not carry it; their type is the prefix of their id ("3hop1")."""

    name = "musique"

    def recognises(self, record: dict[str, Any]) -> bool:
        return "paragraphs" in record and "question" in record

    def question(self, record: dict[str, Any]) -> Question:
        fields = _Question.model_validate(record)
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
        gold = _Gold.model_validate(record)
        parts = gold.question_decomposition
        if not parts or any(part.paragraph_support_idx is None for part in parts):
            return None
        linear = gold.is_linear()
        chain = GoldChain(
            passages=[str(part.paragraph_support_idx) for part in parts],
            links=[part.answer for part in parts[:-1]] if linear else None,
            ordered=linear,
        )
        return Gold(id=gold.id, chains=[chain], same=self.same)
