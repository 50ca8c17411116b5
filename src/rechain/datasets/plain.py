"""The plain format of docs/formats.md: questions with their passages, or with ids into a separate passages file."""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rechain.datasets.formats import Format
from rechain.datasets.passages import items_of, make_passages
from rechain.datasets.validation import MissingFieldsError
from rechain.errors import InputError, QuestionError
from rechain.schema import Passage, Question, number_as_text

_NEEDED = ("question", "answer", "passages")


@dataclass(frozen=True)
class Plain(Format):
    """The project's own format. Its gold, if any, is in a separate file."""

    name = "plain"
    same = "links"

    passages: Mapping[str, Passage] | None = None
    """by id, for questions that name their passages by id"""

    def recognises(self, record: dict[str, Any]) -> bool:
        return "question" in record and ("passages" in record or "passage_ids" in record)

    def without_passages(self, record: dict[str, Any]) -> dict[str, Any] | None:
        is_whole = "question" not in record or self.recognises(record)
        return None if is_whole else {**record, "passages": []}

    def question(self, record: dict[str, Any]) -> Question:
        given = record.keys() | ({"passages"} if "passage_ids" in record else set())
        if missing := [name for name in _NEEDED if name not in given]:
            raise MissingFieldsError(missing)
        if "passages" in record:
            return Question.model_validate(_with_passages(record))
        return Question.model_validate({**record, "passages": self._look_up(record["passage_ids"])})

    def _look_up(self, ids: Any) -> list[Passage]:
        if self.passages is None:
            raise InputError(
                "the questions name their passages by id; give them with --passages FILE or --corpus INDEX."
            )
        if not isinstance(ids, list):
            raise QuestionError("bad_field", "passage_ids should be a list of passage ids")
        names = [number_as_text(key) for key in ids]
        for number, key in enumerate(names):
            if not isinstance(key, str) or key not in self.passages:
                shown = reprlib.repr(ids[number])  # which is short, however long or deep the key is
                raise QuestionError("unknown_passage", f"passage_ids[{number}] ({shown}) is not among the passages")
        return [self.passages[key] for key in names]


def _with_passages(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with passages that have ids; most have, and are left to the schema, which is quicker."""
    passages = record["passages"]
    if isinstance(passages, list) and all(
        type(p) is dict and type(p.get("id")) is str and "text" in p for p in passages
    ):
        return record
    return {**record, "passages": make_passages("passages", items_of("passages", passages))}
