"""Which questions are listed and in which order: what addresses and forms contain, and the SQL conditions of it."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from rechain.schema import LinkKind, Shape, Verdict
from rechain.text.words import Text

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
Scope = Literal["questions", "passages", "documents"]

Share = Annotated[float, Field(ge=0, le=1)]
Hops = Annotated[int, Field(ge=1, le=10_000)]
ShortText = Annotated[str, StringConstraints(max_length=300)]
# From 1, as people count; the upper ends only keep numbers within what SQLite can hold.
PageNumber = Annotated[int, Field(ge=1, le=1_000_000)]
SourceNumber = Annotated[int, Field(ge=1, le=1000, description="which source of chains, from 1")]


T = TypeVar("T")
Several = Annotated[
    tuple[T, ...],
    BeforeValidator(lambda value: () if value is None else value if isinstance(value, list | tuple) else (value,)),
    Field(max_length=100),
]
"""values of which a question has one; none let all through"""


class Filters(BaseModel):
    """Which questions are listed; None, no values and an empty text let all through."""

    # by name too: tests and older versions of FastAPI fill in fields by their names, not by their aliases
    model_config = ConfigDict(frozen=True, populate_by_name=True)

    text: Annotated[str, StringConstraints(max_length=300, strip_whitespace=True)] = Field(
        default="", description="words of question, answer, id or titles"
    )
    scope: Scope = Field(default="questions", description="passages: the words may also all stand in one passage")
    min_confidence: Share | None = None
    max_confidence: Share | None = None
    tenth: Several[Annotated[int, Field(ge=0, le=9)]] = Field(
        default=(), description="confidence by tenths: 3 is from 0.3 to below 0.4, and 9 has 1 too"
    )
    judgement: Several[Judgement] = ()
    verdict: Several[Verdict] = Field(default=(), description="whether the passages support the answer")
    shape: Several[Shape] = Field(default=(), description="the shape of the best chain")
    kind: Several[LinkKind] = Field(default=(), description="a kind of link that the best chain has")
    length: Several[Hops] = Field(default=(), description="how many passages the best chain has")
    hops: Several[Hops] = Field(default=(), description="how many passages its chain has by the data, or by gold")
    type: Several[ShortText] = Field(default=(), description="the question's type, as the data names it")
    reason: Several[ShortText] = Field(default=(), description="why there is no chain, as the code of an error")
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
            fields |= {"min_confidence": None, "max_confidence": None, "tenth": ()}
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


CANNOT = ("unreadable", "no_answer", "too_few_passages")
"""reasons for which chains are not applicable to a question"""
NOT_SOUGHT = "not_sought"
"""the reason where a source has not looked at a question yet"""

TABLES = "questions q LEFT JOIN found f ON f.source = ? AND f.position = q.position"
REASON = (
    f"CASE WHEN f.position IS NULL THEN coalesce(q.obstacle, '{NOT_SOUGHT}') "
    "WHEN f.error IS NOT NULL THEN coalesce(q.obstacle, f.code) END"
)
"""why a question has no chain; NULL where it has one"""

_KEYS: dict[Order, str] = {
    "file": "q.position",
    "id": "q.id",
    "question": "q.question COLLATE NOCASE",
    "answer": "q.answer COLLATE NOCASE",
    "chain": "f.summary COLLATE NOCASE",
    "verdict": "f.verdict",
    "least confident": "f.confidence",
    "most confident": "-f.confidence",
    "judgement": "f.judgement",
    "type": "q.type COLLATE NOCASE",
    "hops": "coalesce(q.hops, f.length)",
}


def condition(filters: Filters) -> tuple[str, Sequence[Any]]:
    """Return the condition of a filter on a question `q` and a source's row of it `f`, and its values."""
    demands = list(_demands(filters))
    return " AND ".join(f"({where})" for where, *_ in demands) or "1", [one for _, *values in demands for one in values]


def ordering(filters: Filters) -> str:
    """Return what questions are ordered by: what has no value comes last, what is equal as in the file."""
    key = _KEYS[filters.order]
    direction = " DESC" if filters.reverse else ""
    return f"q.position{direction}" if filters.order == "file" else f"{key} IS NULL, {key}{direction}, q.position"


def match(text: str) -> str:
    """Return the full-text query of a text's words; the beginnings of words are enough."""
    words: list[str] = []
    for word in sorted(set(Text(text).words), key=lambda word: (-len(word), word)):
        if not any(longer.startswith(word) for longer in words):  # what begins with "parental" begins with "par" too
            words.append(word)
    return " ".join(f'"{word}"*' for word in words)


_EQUAL = {
    "judgement": "f.judgement",
    "verdict": "f.verdict",
    "shape": "f.shape",
    "tenth": "f.tenth",
    "length": "f.length",
    "hops": "q.hops",
    "type": "q.type",
    "reason": REASON,
}
"""filters that demand one of some values, each with what has it"""


def _demands(filters: Filters) -> Iterator[tuple[Any, ...]]:
    """Yield conditions, each with its values."""
    own = "q.position IN (SELECT rowid FROM search WHERE search MATCH ?)"
    passages = "SELECT rowid FROM passage_search WHERE passage_search MATCH ?"
    if query := match(filters.text):
        if filters.scope == "passages":
            yield f"{own} OR q.position IN (SELECT position FROM holds WHERE passage IN ({passages}))", query, query
        else:
            yield own, query
    if filters.min_confidence is not None:
        yield "f.confidence >= ?", filters.min_confidence
    if filters.max_confidence is not None:
        yield "f.confidence <= ?", filters.max_confidence
    for name, column in _EQUAL.items():
        if values := getattr(filters, name):
            yield f"{column} IN ({', '.join('?' * len(values))})", *values
    if filters.kind:
        yield " OR ".join(["instr(f.kinds, ?)"] * len(filters.kind)), *(f"|{kind}|" for kind in filters.kind)
    if filters.has_chain is not None:
        yield (("f.error IS NULL AND f.position IS NOT NULL" if filters.has_chain else "f.error IS NOT NULL"),)
