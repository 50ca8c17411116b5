"""The page that describes the REST interface, made from its OpenAPI description."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from rechain.web.pages import AtSite
from rechain.web.responses import page

router = APIRouter(include_in_schema=False)
_METHODS = ("get", "post", "put", "delete", "patch")


class Parameter(NamedTuple):
    """A parameter of an operation."""

    name: str
    place: str
    kind: str
    is_required: bool
    description: str


class Operation(NamedTuple):
    """Something that can be asked of the interface."""

    method: str
    path: str
    summary: str
    description: str
    parameters: list[Parameter]
    body: str | None
    answers: Mapping[str, str]


@router.get("/docs")
async def describe(request: Request, site: AtSite) -> HTMLResponse:
    """Show every operation, what it takes and what it gives, and the schemas of both."""
    described = request.app.openapi()
    schemas = {name: _written(schema) for name, schema in described["components"]["schemas"].items()}
    return page("docs.html", here="docs", site=site, operations=list(_operations(described)), schemas=schemas)


def _operations(described: Mapping[str, Any]) -> Iterator[Operation]:
    for path, methods in described["paths"].items():
        for method in _METHODS:
            if method in methods:
                yield _operation(method, path, methods[method])


def _operation(method: str, path: str, told: Mapping[str, Any]) -> Operation:
    body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    return Operation(
        method.upper(),
        path,
        told.get("summary", ""),
        told.get("description", ""),
        [_parameter(one) for one in told.get("parameters", ())],
        None if body is None else kind_of(body),
        {code: _answer(answer) for code, answer in sorted(told["responses"].items())},
    )


def _parameter(told: Mapping[str, Any]) -> Parameter:
    kind = kind_of(told["schema"])
    return Parameter(told["name"], told["in"], kind, told.get("required", False), told.get("description", ""))


def _answer(told: Mapping[str, Any]) -> str:
    contents = told.get("content", {})
    schema = contents.get("application/json", {}).get("schema")
    return kind_of(schema) if schema else ", ".join(contents) or str(told.get("description", ""))


def kind_of(schema: Mapping[str, Any]) -> str:
    """Return in a few words what a schema allows."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema or "const" in schema:
        return " | ".join(orjson.dumps(value).decode() for value in schema.get("enum", [schema.get("const")]))
    for joined in ("anyOf", "oneOf"):
        if joined in schema:
            return " or ".join(kind_of(one) for one in schema[joined])
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}))}"
    limits = [f"{word} {schema[name]}" for name, word in (("minimum", "from"), ("maximum", "to")) if name in schema]
    return " ".join([str(schema.get("type", "anything")), *limits])


def _written(schema: Any) -> str:
    return orjson.dumps(schema, option=orjson.OPT_INDENT_2).decode()
