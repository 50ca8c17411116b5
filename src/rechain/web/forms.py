"""Forms that browsers send, and the question that somebody pastes into one."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import orjson
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError

from rechain.datasets import Entry
from rechain.datasets.inputs import as_entry
from rechain.errors import QuestionError
from rechain.schema import Passage
from rechain.web.queries import PageNumber, PageQuery

MOST_PASSAGES, MOST_CHARACTERS = 2_000, 500_000
"""limits of a question that somebody sends: it is recovered in one piece, and a larger one would keep others waiting"""
_NAME = "pasted"

Form = TypeVar("Form", bound=PageQuery)


async def read_form(request: Request, kind: type[Form]) -> Form:
    """Return the form that a browser has sent; FastAPI's own reading would need one more library (python-multipart)."""
    body = (await request.body()).decode("utf-8", "replace")
    try:
        return kind.model_validate(dict(parse_qsl(body, keep_blank_values=True)))
    except ValidationError as error:
        raise RequestValidationError([{**one, "loc": ("form", *one["loc"])} for one in error.errors()]) from error


class PastedQuestion(PageQuery):
    """A question as somebody pastes it: its parts as text, or all of it as JSON in the field of the question."""

    question: str = ""
    answer: str = ""
    passages: str = ""
    hops: str = ""
    """kept as text: anything but a small number counts as none"""
    number: PageNumber = Field(default=1, alias="chain")
    """which candidate is shown, from 1"""

    def entry(self, collection: Mapping[str, Passage] | None = None) -> Entry:
        """Return the question, or why it cannot be read; passages may lack where a collection finds them."""
        if self.question.lstrip().startswith("{"):
            record = _from_json(self.question)
            return of_bounded_size(as_entry("the question", _NAME, record, collection=collection))
        hops = {"hops": int(self.hops)} if re.fullmatch("[0-9]{1,3}", self.hops) else {}
        record = {"question": self.question.strip(), "answer": self.answer.strip(), **hops}
        return of_bounded_size(as_entry("the form", _NAME, {**record, "passages": split_passages(self.passages)}))


def of_bounded_size(entry: Entry) -> Entry:
    """Return a question that somebody sends, or that it is too large."""
    if isinstance(entry.content, QuestionError):
        return entry
    passages = entry.content.passages
    characters = sum(len(passage.text) + len(passage.title) for passage in passages)
    if len(passages) <= MOST_PASSAGES and characters <= MOST_CHARACTERS:
        return entry
    most = f"{MOST_PASSAGES:,} passages and {MOST_CHARACTERS:,} characters"
    return entry._replace(content=QuestionError("too_large", f"a question that is sent may have {most} at most."))


def split_passages(text: str) -> list[dict[str, str]]:
    """Cut a text into passages at blank lines; a first line that begins with "#" is the title."""
    blocks = [block.strip() for block in re.split(r"\n[^\S\n]*\n", text.replace("\r\n", "\n")) if block.strip()]
    return [_passage(block) for block in blocks]


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
