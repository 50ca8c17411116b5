"""Forms that browsers send, the question that a user pastes into one, and its result, which has an address."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import orjson
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from rechain.errors import QuestionError, RechainError
from rechain.formats.datasets import Entry
from rechain.formats.datasets.formats import make_passages
from rechain.formats.datasets.inputs import as_entry, read_pasted
from rechain.schema import Passage, Question, Recovered
from rechain.web.filters import PageNumber, PageQuery
from rechain.web.question_index import TemporaryDatabase

MOST_PASSAGES, MOST_CHARACTERS = 2_000, 250_000
"""limits of a question that somebody sends: it is recovered in one piece, and a larger one would keep others waiting"""
_MOST_FIELDS = 100
"""of a form; ours have fewer than ten"""
_NAME = "pasted"
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
MOST_RESULTS, MOST_BYTES = 1_000, 200_000_000
"""results that are kept, and their bytes on the disk; the largest question with all its chains takes a megabyte"""

Form = TypeVar("Form", bound=PageQuery)


async def read_form(request: Request, kind: type[Form]) -> Form:
    """Return the form that a browser has sent; FastAPI's own reading would need one more library (python-multipart)."""
    body = await request.body()
    if body.count(b"&") >= _MOST_FIELDS:  # millions of them would take seconds and gigabytes
        raise RechainError(f"a form has {_MOST_FIELDS} fields at most.")
    try:
        return kind.model_validate(dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)))
    except ValidationError as error:
        raise RequestValidationError([{**one, "loc": ("form", *one["loc"])} for one in error.errors()]) from error


class PastedQuestion(PageQuery):
    """A question as somebody pastes it: its parts, or a whole record of a tool in the field of passages or question."""

    question: str = ""
    answer: str = ""
    passages: str = ""
    """text, JSON or a table; see `read_pasted`"""
    hops: str = ""
    """kept as text: anything but a small number counts as none"""
    record: PageNumber = 1
    """of several records, which one"""

    def entry(self, collection: Mapping[str, Passage] | None = None) -> Entry:
        """Return the question, or why it cannot be read; passages may lack where a collection finds them."""
        try:
            return of_bounded_size(self._entry(collection))
        except QuestionError as error:
            return Entry("", _NAME, error)

    @property
    def key(self) -> str:
        """What stands for these fields in an address: the same fields have the same one."""
        return urlsafe_b64encode(sha256(self.model_dump_json().encode("utf-8", "replace")).digest()[:16]).decode()[:22]

    def _entry(self, collection: Mapping[str, Passage] | None) -> Entry:
        if self.question.lstrip().startswith("{"):
            return as_entry("the question", _NAME, _from_json(self.question), collection=collection)
        pasted = read_pasted(self.passages, self.record, needs_passages=collection is None)
        if pasted is None:
            return as_entry("the form", _NAME, {**self._typed(), "passages": split_passages(self.passages)})
        if pasted.record is None:
            passages = make_passages("passages", pasted.passages, logged=True)
            fields = [passage.model_dump(exclude_defaults=True) for passage in passages]
            return as_entry("the form", _NAME, {**self._typed(), "passages": fields})
        # An answer that was typed stands in for one that the record lacks; then what was typed comes before the record.
        typed = {name: value for name, value in self._typed().items() if value}
        answer = {"answer": typed["answer"]} if "answer" in typed else {}
        entry = as_entry("the record", _NAME, {**answer, **pasted.record}, collection=collection)
        if isinstance(entry.content, QuestionError) or not typed:
            return entry
        fields_of_record = entry.content.model_dump(exclude_defaults=True)
        return as_entry("the form", _NAME, {**fields_of_record, **typed})._replace(own=entry.own)

    def _typed(self) -> dict[str, Any]:
        hops = {"hops": int(self.hops)} if re.fullmatch("[0-9]{1,3}", self.hops) else {}
        return {"question": self.question.strip(), "answer": self.answer.strip(), **hops}

    @property
    def records(self) -> int:
        """How many records were pasted."""
        pasted = read_pasted(self.passages, needs_passages=False) if self.passages else None
        return pasted.records if pasted else 1


class Result(BaseModel):
    """What a user pasted, the question that was read from it, and its chains."""

    form: PastedQuestion
    question: Question
    """with all passages among which its chain was sought"""
    own: frozenset[str] | None
    """if an index was searched, the ids of the passages that were pasted; else None"""
    recovered: Recovered


class Results:
    """The latest results by their keys, so that each has an address; they live as long as the server."""

    def __init__(self, most: int = MOST_RESULTS, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._database = TemporaryDatabase(
            "CREATE TABLE results (number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE, json TEXT, size INTEGER)"
        )
        self.close = self._database.close

    def add(self, result: Result) -> str:
        """Keep a result, in place of the oldest ones if there is no room; return its key."""
        key, json = result.form.key, result.model_dump_json()
        sizes = "SELECT number, sum(size) OVER (ORDER BY number DESC) AS total FROM results"
        with self._database.transaction() as database:
            row = key, json, len(json)
            database.execute("INSERT OR REPLACE INTO results (key, json, size) VALUES (?, ?, ?)", row)
            database.execute(
                f"DELETE FROM results WHERE number <= (SELECT max(number) FROM results) - ? OR number IN "
                f"(SELECT number FROM ({sizes}) WHERE total > ?)",
                (self._most, self._most_bytes),
            )
        return key

    def get(self, key: str) -> Result | None:
        """Return a result, or None if it is not kept."""
        rows = self._database.read("SELECT json FROM results WHERE key = ?", key)
        return Result.model_validate_json(rows[0][0]) if rows else None


def of_bounded_size(entry: Entry) -> Entry:
    """Return a question that somebody sends, or that it is too large."""
    if isinstance(entry.content, QuestionError):
        return entry
    question, passages = entry.content, entry.content.passages
    texts = [question.question, question.answer, *question.answer_aliases, *question.question_entities]
    characters = sum(map(len, texts)) + sum(len(passage.text) + len(passage.title) for passage in passages)
    if len(passages) <= MOST_PASSAGES and characters <= MOST_CHARACTERS:
        return entry
    return entry._replace(content=_too_large())


def _too_large() -> QuestionError:
    most = f"{MOST_PASSAGES:,} passages and {MOST_CHARACTERS:,} characters"
    return QuestionError("too_large", f"a question that is sent may have {most} at most.")


def split_passages(text: str) -> list[dict[str, str]]:
    """Cut a text into passages at blank lines; a first line that begins with "#" is the title.

    Raises QuestionError if there are too many, before millions are made of them.
    """
    blocks = _BLANK_LINES.split(text.replace("\r\n", "\n").strip(), maxsplit=MOST_PASSAGES)
    if len(blocks) > MOST_PASSAGES:
        raise _too_large()
    return [_passage(block.strip()) for block in blocks if block.strip()]


def _passage(block: str) -> dict[str, str]:
    first, _, rest = block.partition("\n")
    if block.startswith("#"):
        return {"title": first.lstrip("#").strip(), "text": rest.strip()}
    return {"text": block}


def _from_json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise QuestionError("bad_json", f"the question begins like JSON but is not valid JSON ({error}).") from error
