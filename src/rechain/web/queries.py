"""What addresses and forms may say, as models that FastAPI reads: which questions are listed, from which source."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from rechain.schema import LinkKind, Shape, Verdict

Judgement = Literal["right", "wrong"]
Order = Literal["file", "least confident", "most confident"]

Share = Annotated[float, Field(ge=0, le=1)]
# From 1, as people count; the upper ends only keep numbers within what SQLite can hold.
PageNumber = Annotated[int, Field(ge=1, le=1_000_000)]
SourceNumber = Annotated[int, Field(ge=1, le=1000, description="which source of chains, from 1")]


class Filters(BaseModel):
    """Which questions are listed; None and an empty text let all through."""

    # by name too: tests and older versions of FastAPI fill in fields by their names, not by their aliases
    model_config = ConfigDict(frozen=True, populate_by_name=True)

    text: Annotated[str, StringConstraints(max_length=300, strip_whitespace=True)] = Field(
        default="", description="words of question, answer, id or titles"
    )
    min_confidence: Share | None = None
    max_confidence: Share | None = None
    judgement: Judgement | None = None
    verdict: Verdict | None = Field(default=None, description="whether the passages support the answer")
    shape: Shape | None = Field(default=None, description="the shape of the best chain")
    kind: LinkKind | None = Field(default=None, description="a kind of link that the best chain has")
    has_chain: bool | None = Field(default=None, alias="chain", description="whether there is a chain")
    order: Order = "file"


class PageQuery(BaseModel):
    """What a page's address or a form says; blanks count as absent, as browsers send every field of a form."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_blanks(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if not isinstance(value, str) or value.strip()}


class PageFilters(PageQuery, Filters):
    """Filters and source as the addresses of pages name them; there `chain` is the number of a candidate."""

    has_chain: bool | None = Field(default=None, alias="found")
    source: SourceNumber = 1

    @property
    def address(self) -> dict[str, Any]:
        """The query of an address with these filters; defaults are left out."""
        values = self.model_dump(include=set(PageFilters.model_fields), by_alias=True, exclude_defaults=True)
        return values | ({"found": "yes" if self.has_chain else "no"} if "found" in values else {})

    @property
    def is_filtered(self) -> bool:
        """Whether some questions are left out."""
        return bool(self.address.keys() - {"order", "source"})
