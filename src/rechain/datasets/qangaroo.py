"""MedHop and WikiHop (QAngaroo), as published, masked or not."""

import re
from typing import Any

from pydantic import BaseModel

from rechain.datasets.formats import Format, make_passages
from rechain.schema import NotBlank, Question
from rechain.text.identifiers import identifier

_MEDHOP_QUERY = re.compile(r"interacts_with (\S+?)\?")


class _Question(BaseModel):
    id: NotBlank
    query: NotBlank
    answer: str
    supports: list[str]

    def to_question(self) -> Question:
        return Question(
            id=self.id,
            question=self.query,
            answer=self.answer,
            answer_entity=identifier(self.answer),
            passages=make_passages("supports", ({"id": str(n), "text": text} for n, text in enumerate(self.supports))),
            **self._medhop_fields(),
        )

    def _medhop_fields(self) -> dict[str, Any]:
        """Return the fields that MedHop has beyond WikiHop.

        Its chains are drug, protein, protein, drug: three passages, two proteins (Section 4.1).
        """
        if not (query := _MEDHOP_QUERY.fullmatch(self.query)):
            return {}
        return {
            "question_entities": [identifier(query[1]) or query[1]],
            "hops": 3,
            "link_types": ["protein", "protein"],
        }


class Qangaroo(Format):
    """A passage's id is its position in `supports`. The published files have no gold chains."""

    name = "qangaroo"
    same = "links"

    def recognises(self, record: dict[str, Any]) -> bool:
        return "supports" in record and "query" in record

    def question(self, record: dict[str, Any]) -> Question:
        return _Question.model_validate(record).to_question()
