"""MedHop and WikiHop (QAngaroo), as published, masked or not."""

import re
from typing import Any

from pydantic import BaseModel

from rechain.formats.datasets.formats import Format, make_passages
from rechain.schema import Answer, NotBlank, Question
from rechain.text.passage_views import identifier

_MEDHOP_QUERY = re.compile(r"interacts_with (\S+?)\?")


class _Question(BaseModel):
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
        fields = _Question.model_validate(record)
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
