"""Requests to a server, most of them wrong; whatever they are, it answers, and never with a fault of its own."""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any
from urllib.parse import quote

import examples
import inputs
import mutations

_PATHS = (
    *("/", "/?search={}", "/?verdict={}", "/question?id={}", "/compare", "/try?question={}"),
    *("/label", "/label/next", "/label/question?id={}&annotator={}", "/label?annotator={}"),
    *("/questions", "/questions/{}", "/questions?page={}", "/questions?source={}"),
    *("/labels?question={}", "/labels/agreement", "/labels/export", "/version", "/openapi.json", "/metrics"),
)


def visit(draw: Random, client: Any) -> list[str]:
    """Send a few requests; return what is wrong with the answers."""
    failures = []
    for _ in range(draw.choice((1, 3, 6))):
        method, path, sent = draw.choice(_KINDS)(draw)
        answer = client.request(method, path, **sent)
        if answer.status_code >= 500:
            failures.append(
                f"{method} {path[:200]} is answered {answer.status_code}: {answer.text[:300]} ({sent!r:.600})"
            )
    answer = client.get("/health")
    if answer.status_code != 200:
        failures.append(f"/health is answered {answer.status_code}: {answer.text[:300]}")
    return failures


def _text(draw: Random) -> str:
    text = draw.choice((draw.choice(mutations.TEXTS), str(draw.choice(mutations.NUMBERS)), "q0", "x" * 5000))
    return quote(text.encode("utf-8", "surrogatepass"))


def _get(draw: Random) -> tuple[str, str, dict[str, Any]]:
    return "GET", draw.choice(_PATHS).replace("{}", _text(draw)), {}


def _body(draw: Random, value: Any) -> dict[str, Any]:
    content = mutations.written(draw, value)
    if draw.random() < 0.1:
        content = mutations.damage(draw, content)
    kind = draw.choices(("application/json", "text/plain", "application/json; charset=utf-16"), (20, 1, 1))[0]
    return {"content": content, "headers": {"Content-Type": kind}}


def _recover(draw: Random) -> tuple[str, str, dict[str, Any]]:
    question = examples.plain(draw, 0)
    (row,) = inputs.changed(draw, [question], 0.9)
    value = draw.choices((row, [row], [row, question], [row] * 300), (10, 3, 3, 0.2))[0]
    options = draw.choice(("", "?top=5&explain=true", f"?top={_text(draw)}", "?min_confidence=0.5"))
    return "POST", f"/recover{options}", _body(draw, value)


def _try(draw: Random) -> tuple[str, str, dict[str, Any]]:
    question = examples.plain(draw, 0)
    form = {"question": question["question"], "answer": question["answer"], "passages": "\n\n".join(_texts(question))}
    if draw.random() < 0.5:
        (row,) = inputs.changed(draw, [question], 0.9)
        form["question"] = mutations.written(draw, row).decode("utf-8", "surrogateescape")
    fields = {name: _as_text(value) for name, value in mutations.mutate(draw, form, draw.choice((0, 1, 2))).items()}
    content = "&".join(f"{quote(name.encode('utf-8', 'surrogatepass'))}={value}" for name, value in fields.items())
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return "POST", "/try", {"content": content.encode(), "headers": headers}


def _texts(question: examples.Record) -> list[str]:
    return [f"# {passage['title']}\n{passage['text']}" for passage in question["passages"]]


def _as_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return quote(text.encode("utf-8", "surrogatepass"))


def _label(draw: Random) -> tuple[str, str, dict[str, Any]]:
    evidence = [{"shape": "parallel", "passages": ["work"]}]
    rows = [{"annotator": "Ada", "question": "q0", "value": "supported", "evidence": evidence}]
    path = draw.choice(("/labels", "/labels", "/labels/undo", "/labels/import?annotator=Ada"))
    if "import" in path:
        rows = [examples.gold(draw, examples.plain(draw, 0))]
    if "undo" in path:
        return "POST", path, _body(draw, mutations.mutate(draw, {"annotator": "Ada"}, 1))
    return "POST", path, _body(draw, mutations.mutate(draw, rows, draw.choice((0, 1, 2))))


_KINDS: Sequence[Callable[[Random], tuple[str, str, dict[str, Any]]]] = (_get, _recover, _recover, _try, _label)
