"""A question that somebody pastes into the form."""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from rechain.datasets import Entry
from rechain.datasets.inputs import as_entry
from rechain.errors import QuestionError

MOST_PASSAGES, MOST_CHARACTERS = 10_000, 2_000_000
"""so much may a question have that somebody sends: more would keep the others waiting"""
_NAME = "pasted"


def pasted_entry(form: Mapping[str, str]) -> Entry:
    """Read a form: question, answer and passages as text, or the question as JSON, as it stands in a file."""
    return of_bounded_size(_entry(form))


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


def _entry(form: Mapping[str, str]) -> Entry:
    if form.get("question", "").lstrip().startswith("{"):
        return as_entry("the question", _NAME, _from_json(form["question"]))
    passages = split_passages(form.get("passages", ""))
    record = {"question": form.get("question", "").strip(), "answer": form.get("answer", "").strip()}
    hops = {"hops": int(form["hops"])} if re.fullmatch("[0-9]{1,3}", form.get("hops", "")) else {}
    return as_entry("the form", _NAME, {**record, **hops, "passages": passages})


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
