"""What addresses and forms may say, as models that FastAPI reads: which questions are listed, from which source."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from rechain.schema import LinkKind, Shape, Verdict

Judgement = Literal["right", "wrong"]
Order = Literal[
    "file",
    "id",
    "question",
    "answer",
    "chain",
    "verdict",
    "least confident",
    "most confident",
    "judgement",
    "type",
    "hops",
]
Scope = Literal["questions", "passages"]

Share = Annotated[float, Field(ge=0, le=1)]
Hops = Annotated[int, Field(ge=1, le=10_000)]
ShortText = Annotated[str, StringConstraints(max_length=300)]
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
    scope: Scope = Field(default="questions", description="passages: the words may also all stand in one passage")
    min_confidence: Share | None = None
    max_confidence: Share | None = None
    tenth: Annotated[int, Field(ge=0, le=9)] | None = Field(
        default=None, description="confidence by tenths: 3 is from 0.3 to below 0.4, and 9 has 1 too"
    )
    judgement: Judgement | None = None
    verdict: Verdict | None = Field(default=None, description="whether the passages support the answer")
    shape: Shape | None = Field(default=None, description="the shape of the best chain")
    kind: LinkKind | None = Field(default=None, description="a kind of link that the best chain has")
    length: Hops | None = Field(default=None, description="how many passages the best chain has")
    hops: Hops | None = Field(default=None, description="how many passages its chain has by the data, or by gold")
    type: ShortText | None = Field(default=None, description="the question's type, as the data names it")
    reason: ShortText | None = Field(default=None, description="why there is no chain, as the code of an error")
    has_chain: bool | None = Field(default=None, alias="chain", description="whether there is a chain")
    order: Order = "file"
    reverse: bool = Field(default=False, description="in the opposite order; what has no value comes last in either")

    @property
    def chosen(self) -> "Filters":
        """The filters alone, without any order: what decides which questions are listed."""
        names = Filters.model_fields.keys() - {"order", "reverse"}
        return Filters.model_construct(**{name: getattr(self, name) for name in names})


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
        return self.but()

    def of_source(self, number: int, has_confidence: bool) -> dict[str, Any]:
        """Return the query of an address with the same filters for another source, but for confidence it lacks."""
        fields: dict[str, Any] = {"source": number}
        if not has_confidence:
            fields |= {"min_confidence": None, "max_confidence": None, "tenth": None}
            fields |= {"order": "file", "reverse": False} if self.order.endswith("confident") else {}
        return self.but(**fields)

    def but(self, **fields: Any) -> dict[str, Any]:
        """Return the query of an address with other filters in some fields."""
        values = {name: fields.get(name, value) for name, value in self if name in _DEFAULTS}
        return {
            _PARAMETERS[name]: _YES_OR_NO[value] if isinstance(value, bool) else value
            for name, value in values.items()
            if value != _DEFAULTS[name]
        }


_DEFAULTS = {name: field.default for name, field in PageFilters.model_fields.items()}
_PARAMETERS = {name: field.alias or name for name, field in PageFilters.model_fields.items()}
_YES_OR_NO = {True: "yes", False: "no"}
