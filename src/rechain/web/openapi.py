"""The page that describes the REST interface, made from its OpenAPI description.

Swagger UI and Redoc are not used: both are megabytes of script that come from elsewhere or would have to be kept here,
and both style elements in place, which this server's Content-Security-Policy forbids. A template does.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse

from rechain.web.responses import page
from rechain.web.site import AtSite

router = APIRouter(include_in_schema=False)


@router.get("/docs")
def describe(request: Request, site: AtSite) -> HTMLResponse:
    """Show every operation, what it takes and what it returns, and the schemas of both."""
    openapi = request.app.openapi()
    paths = openapi["paths"].items()
    operations = [(method.upper(), path, one) for path, methods in paths for method, one in methods.items()]
    schemas = {
        name: orjson.dumps(schema, option=orjson.OPT_INDENT_2).decode()
        for name, schema in openapi["components"]["schemas"].items()
    }
    return page(
        "docs.html",
        here="docs",
        site=site,
        address=request.base_url,
        operations=operations,
        schemas=schemas,
        kind_of=kind_of,
    )


def describe_passages(app: FastAPI, has_index: bool) -> None:
    """Let the description say whether questions need passages, as they do where no index finds them."""
    describe_all = app.openapi

    def describe_own() -> dict[str, Any]:
        description = describe_all()
        schema = description["components"]["schemas"]["QuestionFields"]
        if not has_index and "passages" not in schema["required"]:
            schema["required"].append("passages")
        return description

    app.openapi = describe_own  # type: ignore[method-assign]


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
