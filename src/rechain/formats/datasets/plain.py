"""The plain format of docs/formats.md, and records whose fields `--map` names.

    question=user_input,answer=output.text,passages=run.documents,passage.text=page_content

A path leads through objects by their fields and through lists by position (from 0, or -1 for the last); a field's name
after a list means that field of every item. What is mapped wins over what a format would recognise.
"""

import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from rechain.errors import InputError, QuestionError, RechainError
from rechain.formats.datasets.formats import Format, MissingFieldsError, items_of, make_passages
from rechain.formats.datasets.records import without_nulls
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
        names = record.keys() | ({"passages"} if "passage_ids" in record else set())
        if missing := [name for name in _NEEDED if name not in names]:
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
                short = reprlib.repr(ids[number])  # which is short, however long or deep the key is
                raise QuestionError("unknown_passage", f"passage_ids[{number}] ({short}) is not among the passages")
        return [self.passages[key] for key in names]


def _with_passages(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with passages that have ids; most have, and are left to the schema, which is quicker."""
    passages = record["passages"]
    if isinstance(passages, list) and all(
        type(p) is dict and type(p.get("id")) is str and "text" in p for p in passages
    ):
        return record
    return {**record, "passages": make_passages("passages", items_of("passages", passages))}


_ABSENT = object()
_OF_PASSAGES = "passage."
_POSITION = re.compile("-?[0-9]{1,9}")
TARGETS = (*Question.model_fields, "passage_ids", *(_OF_PASSAGES + name for name in Passage.model_fields))
"""what a map can name"""


@dataclass(frozen=True, slots=True)
class FieldMap:
    """The paths of fields by what they hold."""

    paths: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, source: "str | Mapping[str, str] | FieldMap") -> "FieldMap":
        """Return the map that a text or a dict says; raises RechainError for what is none."""
        if isinstance(source, FieldMap):
            return source
        if isinstance(source, str):
            pairs = [pair.partition("=")[::2] for pair in source.split(",") if pair.strip()]
        elif isinstance(source, Mapping):
            pairs = [(str(target), str(path)) for target, path in source.items()]
        else:
            raise RechainError(f"a map should be a text or a dict, not {source!r:.80}.")
        paths = tuple((target.strip(), path.strip()) for target, path in pairs)
        for target, path in paths:
            if target not in TARGETS:
                raise RechainError(f"--map names '{target:.80}', which is none of {', '.join(TARGETS)}.")
            if not path:
                raise RechainError(f"--map names no field for {target}; write {target}=FIELD.")
        if not paths or len(dict(paths)) < len(paths):
            raise RechainError(
                "--map names each thing once, and one at least: question=FIELD,answer=FIELD,passages=FIELD."
            )
        return cls(paths)

    def __str__(self) -> str:
        """Return the map as `--map` takes it."""
        return ",".join(f"{target}={path}" for target, path in self.paths)

    def values(self, record: Mapping[str, Any], of_passage: bool = False) -> dict[str, Any]:
        """Return what a record has of what the map names: of a question or, if it is a passage, of that."""
        paths = [(target, path) for target, path in self.paths if target.startswith(_OF_PASSAGES) == of_passage]
        values = {target.removeprefix(_OF_PASSAGES): _follow(path, record) for target, path in paths}
        return {name: value for name, value in values.items() if value is not _ABSENT}

    def applied(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record with the fields of the plain format; raises QuestionError where it lacks a needed one."""
        values = self.values(record)
        if missing := [path for target, path in self.paths if target in _NEEDED and target not in values]:
            raise MissingFieldsError(missing)
        used = {path for _, path in self.paths} - dict(self.paths).keys()
        rest = {name: value for name, value in record.items() if name not in used}
        if "id" in values:
            values["id"] = number_as_text(values["id"])
        if values.get("passages", ()) is None:
            values["passages"] = []  # none were retrieved
        return cast(dict[str, Any], without_nulls({**rest, **values}))

    def applied_to_passage(self, item: Any) -> Any:
        """Return the fields of a passage by their names in the plain format."""
        return {**item, **self.values(item, of_passage=True)} if isinstance(item, Mapping) else item


def _follow(path: str, value: Any) -> Any:
    """Return what a path leads to, None if a null is on the way, or _ABSENT.

    A field may have dots in its name, as columns of flat tables do.
    """
    if value is None or value == []:
        return value
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):  # JSON, as a cell of a table
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return _ABSENT
    if isinstance(value, Mapping) and path in value:
        return value[path]
    first, dot, rest = path.partition(".")
    if isinstance(value, list):
        if not _POSITION.fullmatch(first):
            items = [_follow(path, item) for item in value if isinstance(item, Mapping)]
            return [item for item in items if item is not _ABSENT] or _ABSENT
        value = {first: value[int(first)]} if -len(value) <= int(first) < len(value) else {}
    if not isinstance(value, Mapping) or first not in value:
        return _ABSENT
    return _follow(rest, value[first]) if dot else value[first]


@dataclass(frozen=True)
class Mapped(Plain):
    """Records whose fields a map names; otherwise the plain format."""

    name = "mapped"

    fields: FieldMap = field(kw_only=True)

    def recognises(self, record: dict[str, Any]) -> bool:
        return bool(self.fields.values(record))

    def without_passages(self, record: dict[str, Any]) -> dict[str, Any] | None:
        has_passages = {"passages", "passage_ids"} & {*self.fields.values(record), *record}
        return {**record, "passages": []} if self.recognises(record) and not has_passages else None

    def question(self, record: dict[str, Any]) -> Question:
        record = self.fields.applied(record)
        if "passages" in record:
            items = map(self.fields.applied_to_passage, items_of("passages", record["passages"]))
            record["passages"] = make_passages("passages", map(without_nulls, items), logged=True)
        return super().question(record)
