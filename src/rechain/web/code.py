"""A question that was tried in the browser as code that asks the same: Python, and curl for the server."""

from pprint import pformat
from typing import Any

import orjson

from rechain.schema import Question
from rechain.scoring.model import BUNDLED

MOST_INLINE = 60_000
"""characters of a question that are written into the code; a longer one comes from a file beside it"""
FILE = "question.json"
_LEFT_OUT = {"id"}


def fields_of(question: Question, own: frozenset[str] | None) -> dict[str, Any]:
    """Return the fields with which the same is asked: where an index finds passages, those that came with it."""
    passages = [passage for passage in question.passages if own is None or passage.id in own]
    return question.model_copy(update={"passages": passages}).model_dump(
        mode="json", exclude=_LEFT_OUT, exclude_defaults=True
    )


def as_json(fields: dict[str, Any]) -> str:
    """Return a question as one line of JSON."""
    return orjson.dumps(fields).decode()


def as_python(fields: dict[str, Any], model: str, has_index: bool) -> str:
    """Return Python code that recovers a question with the model of the server."""
    name = "" if model == BUNDLED else f"{model!r}, "
    index = ', corpus="INDEX"' if has_index else ""
    if len(as_json(fields)) > MOST_INLINE:
        imports, question = "import json\n", f'json.load(open("{FILE}", encoding="utf-8"))'
    else:
        imports, question = "", pformat(fields, width=110, sort_dicts=False)
    return (
        f"{imports}from rechain import Recoverer\n\n"
        f"question = {question}\n"
        f"recovered = Recoverer.from_pretrained({name}top=5{index}).recover(question)\n"
        "print(recovered)\n"
    )


def as_curl(fields: dict[str, Any], address: str, needs_token: bool) -> str:
    """Return a shell command that asks a server at an address; its text is read as it stands, whatever it holds."""
    token = ' -H "Authorization: Bearer $RECHAIN_TOKEN"' if needs_token else ""
    command = f"curl -s '{address}recover?top=5'{token} -H 'Content-Type: application/json' --data-binary"
    text = as_json(fields)  # of one line, so that none of its lines ends the text early
    return f"{command} @{FILE}\n" if len(text) > MOST_INLINE else f"{command} @- <<'JSON'\n{text}\nJSON\n"
