"""MuSiQue: 2 to 4 hops, twenty paragraphs, ordered decomposition."""

import re
from typing import Any

from pydantic import BaseModel

from rechain.datasets.formats import Format, make_passages
from rechain.schema import Gold, GoldChain, NotBlank, Question

_REFERENCE = re.compile(r"#(\d+)")


class _Paragraph(BaseModel):
    idx: int
    title: str = ""
    paragraph_text: str


class _Question(BaseModel):
    id: NotBlank
    question: str
    answer: str
    answer_aliases: list[str] = []
    paragraphs: list[_Paragraph]

    def to_question(self) -> Question:
        return Question(
            id=self.id,
            question=self.question,
            answer=self.answer,
            answer_aliases=[alias for alias in self.answer_aliases if alias.strip()],
            type=self.id.partition("__")[0],
            passages=make_passages(
                "paragraphs",
                ({"id": str(p.idx), "title": p.title, "text": p.paragraph_text} for p in self.paragraphs),
            ),
        )


class _Step(BaseModel):
    question: str
    answer: str
    paragraph_support_idx: int | None = None


class _Gold(BaseModel):
    id: NotBlank
    question_decomposition: list[_Step] = []

    def is_linear(self) -> bool:
        """Whether every step asks about the answer of the step before, and of no other."""
        references = [set(map(int, _REFERENCE.findall(step.question))) for step in self.question_decomposition]
        return all(referred == {number} for number, referred in enumerate(references[1:], start=1))


class MuSiQue(Format):
    """The number of hops is gold, so questions do not carry it; their type is the prefix of their id ("3hop1")."""

    name = "musique"

    def recognises(self, record: dict[str, Any]) -> bool:
        return "paragraphs" in record and "question" in record

    def question(self, record: dict[str, Any]) -> Question:
        return _Question.model_validate(record).to_question()

    def gold(self, record: dict[str, Any]) -> Gold | None:
        gold = _Gold.model_validate(record)
        steps = gold.question_decomposition
        if not steps or any(step.paragraph_support_idx is None for step in steps):
            return None
        linear = gold.is_linear()
        chain = GoldChain(
            passages=[str(step.paragraph_support_idx) for step in steps],
            links=[step.answer for step in steps[:-1]] if linear else None,
            ordered=linear,
        )
        return Gold(id=gold.id, chains=[chain], same=self.same)
