"""What goes in and what comes out: the records of docs/formats.md, used alike by files, Python and web."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, Self, TypeVar, overload

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError, from_json

from rechain.errors import QuestionError

SPACES = r"\u0009-\u000d\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""the characters that str.strip removes; \\s differs between Python, Rust and JavaScript"""
NOT_BLANK = f"[^{SPACES}]"
NotBlank = Annotated[str, StringConstraints(pattern=NOT_BLANK)]
Item = TypeVar("Item")
Many = Annotated[list[Item], Field(fail_fast=True)]
"""a list that fails at its first wrong item: pydantic would collect gigabytes of errors, of which one is shown"""
# Limits of a question, hundreds of times what any published data set has, so that one question takes seconds and not
# minutes: the time of a request is limited, but the work on a question cannot be stopped.
Name = Annotated[str, StringConstraints(pattern=NOT_BLANK, max_length=10_000)]
Sentences = Annotated[str, StringConstraints(pattern=NOT_BLANK, max_length=100_000)]
Names = Annotated[Many[Name], Field(max_length=1_000)]
MOST_PASSAGES = 10_000
MOST_MENTIONS = 10_000
"""of a passage"""
MOST_GOLD = 10_000
"""gold chains of a question, and passages of one of them"""
WHOLE = BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)
"""accepts 2.0 for 2, which some writers of JSON do not distinguish"""
JSON_TEXT = BeforeValidator(lambda value: from_json(value) if isinstance(value, str) else value)
"""parses JSON text, which tables use for fields of any type"""
DEEPEST = 100
"""levels of lists and objects in a field that may hold anything; far below 200, where pydantic and, at 254, orjson give
up, so that whatever is read can also be stored, sent and written"""


_LARGEST_NUMBER = 10**1000
"""Python refuses to write numbers of more than 4,300 digits"""


def number_as_text(value: Any) -> Any:
    """Return a number as text: 7 and, as tables with gaps have it, 7.0 are "7"; anything else stays as it is."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number and abs(value) < _LARGEST_NUMBER else value


def _as_answer(value: Any) -> Any:
    """Return the answer that a number, a boolean or nothing is, as tables and models with typed output give them."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else number_as_text(value)


Answer = Annotated[str, StringConstraints(max_length=100_000), BeforeValidator(_as_answer)]
"""an answer; null is one that was not given"""


def _of_limited_depth(value: Any) -> Any:
    """Check level by level: a recursive function would itself fail at a field that is nested too deeply."""
    level = [value]
    for _ in range(DEEPEST + 1):
        inner = (
            one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list | tuple)
        )
        level = list({id(item): item for items in inner for item in items}.values())  # each once, also in a cycle
        if not level:
            return value
    raise PydanticCustomError("too_deep", "is nested more than {deepest} levels deep", {"deepest": DEEPEST})


Anything = Annotated[Any, AfterValidator(_of_limited_depth)]
"""the value of a field that rechain does not read"""
Same = Literal["passages", "links"]
Shape = Literal["single", "chain", "parallel", "graph"]
"""one passage that suffices; passages that link one to the next; passages side by side, as for a comparison; lines of
evidence that meet or stand side by side"""
SHAPES: dict[Shape, str] = {"single": "one passage", "chain": "a chain", "parallel": "side by side", "graph": "a graph"}
"""the shapes in words for people"""
UNORDERED: frozenset[Shape] = frozenset(("parallel", "graph"))
"""shapes whose passages count in any order"""
Match = Literal["phrase", "normalised", "words", "meaning"]
"""how an answer appears in a passage, best first: word for word; with numbers, dates, units or plurals in another
notation; the key words of a longer answer; by its meaning"""
Verdict = Literal["supported", "partly", "unsupported", "no_answer"]
MATCHES: dict[Match, str] = {
    "phrase": "word for word",
    "normalised": "in another notation",
    "words": "in its key words",
    "meaning": "in other words",
}
"""how the answer appears in a passage, in words for people"""
VERDICTS: dict[Verdict, str] = {
    "supported": "supported",
    "partly": "partly supported",
    "unsupported": "unsupported",
    "no_answer": "no answer given",
}
"""the verdicts in words for people"""
LinkKind = Literal["mention", "identifier", "title", "title part", "name", "word"]
GIVEN_KINDS = ("mention", "identifier")
"""kinds of links whose entity is an id of the data's and not a text found in the passages"""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class Mention(_Record):
    """An entity's occurrence in a passage's text."""

    entity: Name
    start: int = Field(ge=0, strict=True)
    end: int = Field(ge=1, strict=True)


class Passage(_Record):
    """A piece of text that may be part of a chain."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Anything] = Field(init=False)

    id: Name
    title: Annotated[str, Field(coerce_numbers_to_str=True, max_length=10_000)] = ""
    text: NotBlank
    mentions: Annotated[Many[Mention], Field(max_length=MOST_MENTIONS)] = []

    @model_validator(mode="after")
    def _mentions_lie_in_the_text(self) -> Self:
        for number, mention in enumerate(self.mentions):
            if not mention.start < mention.end <= len(self.text):
                raise PydanticCustomError(
                    "bad_span",
                    "mentions[{number}] ({start} to {end}) is not a stretch of the {length} characters of text",
                    {"number": number, "start": mention.start, "end": mention.end, "length": len(self.text)},
                )
        return self


class Question(_Record):
    """A question, its answer and the passages among which its chain is searched. It never contains gold evidence."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Anything] = Field(init=False)

    id: Name
    question: Sentences
    answer: Answer
    """as people and chatbots write it; a blank one is no answer"""
    answer_aliases: Names = []
    question_entities: Names = []
    answer_entity: Name | None = None
    hops: int | None = Field(default=None, ge=1, le=8, strict=True)
    link_types: Annotated[Many[Name], Field(max_length=7)] | None = None
    type: Annotated[str | None, Field(coerce_numbers_to_str=True, max_length=10_000)] = None
    passages: Annotated[Many[Passage], Field(max_length=MOST_PASSAGES)]

    @model_validator(mode="after")
    def _ids_differ_and_types_fit(self) -> Self:
        seen: set[str] = set()
        for number, passage in enumerate(self.passages):
            if passage.id in seen:
                raise PydanticCustomError(
                    "repeated_id", "passages[{number}].id repeats the id '{id}'", {"number": number, "id": passage.id}
                )
            seen.add(passage.id)
        if self.hops and self.link_types and len(self.link_types) != self.hops - 1:
            raise PydanticCustomError(
                "link_types",
                "link_types names {named} links, but a chain of {hops} passages has {links}",
                {"named": len(self.link_types), "hops": self.hops, "links": self.hops - 1},
            )
        return self


class Link(_Record):
    """The entity that two passages share, and its span in each (None: in the title alone)."""

    entity: str
    kind: LinkKind
    weight: float
    mentions: tuple[tuple[int, int] | None, tuple[int, int] | None]
    between: tuple[int, int] | None = None
    """of a graph: the places of the two in the chain's passages; None: each passage and the next"""

    @model_serializer(mode="wrap")
    def _without_absent(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what only the links of a graph have."""
        fields: dict[str, Any] = write(self)
        return fields if self.between else {name: value for name, value in fields.items() if name != "between"}


class HeldAnswer(_Record):
    """Which passage of a chain contains the answer, how, and where in its text (None: in its title alone)."""

    match: Match
    passage: str
    span: tuple[int, int] | None = None


class PassageSource(_Record):
    """Where a passage of an index comes from: what a reader needs to open it."""

    passage: str
    file: str
    page: int | None = None
    """of a PDF, from 1"""
    anchor: str | None = None
    """of an HTML page: the id of the heading or term above"""
    line: int | None = None
    """of a text, from 1"""
    heading: str = ""
    """the path of headings"""

    @classmethod
    def of(cls, passage: Passage) -> Self | None:
        """Return the source of a passage; None if it does not come from a document."""
        extra = passage.model_extra or {}
        if type(extra.get("source")) is not str:
            return None
        page, line = (value if type(value) is int else None for value in (extra.get("page"), extra.get("line")))
        anchor = extra.get("anchor")
        return cls(
            passage=passage.id,
            file=extra["source"],
            page=page,
            anchor=anchor if type(anchor) is str else None,
            line=line,
            heading=passage.title,
        )


class Chain(_Record):
    """Passages in order, the last of which contains the answer, and the links between them.

    A single is one passage and has no link. The passages of a parallel have no links, and the question's order; those
    of a graph come after the ones that lead to them, and its links name the two that they join.
    """

    shape: Shape = "chain"
    passages: Many[str] = Field(min_length=1)
    links: Many[Link]
    answer: HeldAnswer | None = None
    own: Many[str] = []
    """of a chain from an index: the passages that the record itself gave"""
    sources: list[PassageSource] = []
    """of a chain from an index: where those of its passages come from that are parts of documents"""
    score: float
    confidence: float | None = Field(default=None, ge=0, le=1)
    why: Annotated[dict[str, Anything] | None, JSON_TEXT] = None

    @model_validator(mode="after")
    def _check_between(self) -> Self:
        """Check that the links of a graph lead from one of its passages to a later one."""
        if self.shape == "graph":
            for before, after in self.between:
                if not 0 <= before < after < len(self.passages):
                    raise PydanticCustomError(
                        "bad_graph",
                        "a link between the places {before} and {after} of {count} passages does not lead on",
                        {"before": before, "after": after, "count": len(self.passages)},
                    )
        return self

    @property
    def between(self) -> list[tuple[int, int]]:
        """The places in `passages` that each link joins; passages side by side have no links, whatever a file says."""
        if self.shape == "graph":
            return [link.between or (number, number + 1) for number, link in enumerate(self.links)]
        return [] if self.shape == "parallel" else list(pairwise(range(len(self.passages))))[: len(self.links)]

    @property
    def joining_links(self) -> list[Link]:
        """The links between the passages, one for each of `between`."""
        return self.links[: len(self.between)]

    @property
    def lines(self) -> list[list[int]]:
        """The lines of evidence, as places in `passages`: one of a chain; a line of a graph may end in a later one."""
        places = list(range(len(self.passages)))
        if self.shape not in UNORDERED:
            return [places]
        leads, reached = dict(self.between), {after for _, after in self.between}
        lines, drawn = list[list[int]](), set[int]()
        for place in reversed([place for place in places if place not in reached]):
            line = [place]
            while line[-1] in leads and line[-1] not in drawn:
                drawn.add(line[-1])
                line.append(leads[line[-1]])
            drawn.add(line[-1])
            lines.insert(0, line)
        return lines

    @property
    def ends(self) -> frozenset[int]:
        """The places in `passages` at which evidence ends: the last of a chain, all that stand side by side."""
        return frozenset(line[-1] for line in self.lines)

    @property
    def identity(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The identity of a chain: the passages, and the entities if the data gives them."""
        given = (link.entity if link.kind in GIVEN_KINDS else "" for link in self.links)
        passages = sorted(self.passages) if self.shape in UNORDERED else self.passages
        return tuple(passages), tuple(given)

    def to_dict(self) -> dict[str, Any]:
        """Return the chain as a dict of JSON values."""
        return self.model_dump(mode="json", exclude=self._absent)

    @property
    def _absent(self) -> set[str]:
        """The optional fields without a value, which are not written."""
        return {name for name in ("answer", "own", "sources", "why") if getattr(self, name) in (None, [])}

    def __str__(self) -> str:
        """Return one line for people: confidence, or score without one, passages and links."""
        links = {ends: f" --[{link.entity}]--> " for ends, link in zip(self.between, self.joining_links, strict=True)}
        value = self.score if self.confidence is None else self.confidence
        return f"{value:.2f}  {_on_one_line(self.write_lines(self.passages, links, ' --> '))}"

    def write_lines(self, names: Sequence[str], links: Mapping[tuple[int, int], str], to: str) -> str:
        """Return the lines of evidence in one: names of the passages, and what stands for the links between them."""
        lines = (
            names[line[0]] + "".join(links.get(ends, to) + names[ends[1]] for ends in pairwise(line))
            for line in self.lines
        )
        return " | ".join(lines)


class Problem(_Record):
    """Why a question has no chains."""

    code: str
    message: str

    @classmethod
    def of(cls, error: QuestionError) -> Self:
        """Return the record of an error."""
        return cls(code=error.code, message=str(error))


class Claim(_Record):
    """One thing that an answer says, and the sentence that contains it, if any."""

    text: str
    verdict: Verdict
    passage: str | None = None
    span: tuple[int, int] | None = None


class Recovered(_Record):
    """A question's chains, best first, or why there are none. It is a sequence of its chains, and false without any.

    The verdict is on whether the passages support the answer; `verdict_probability` is the calibrated probability that
    the verdict is right. `collection` is the stamp of the collection that the passages come from, if there is one.
    """

    id: str | None = None
    collection: str | None = None
    verdict: Verdict | None = None
    verdict_probability: float | None = Field(default=None, ge=0, le=1)
    claims: Many[Claim] = []
    chains: Many[Chain]
    error: Problem | None = None

    def to_json(self) -> str:
        """Return one line of a chains file."""
        return self.model_dump_json(exclude=self._absent)

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes as a dict."""
        return self.model_dump(mode="json", exclude=self._absent)

    @property
    def _absent(self) -> dict[str, Any]:
        """The optional fields that it and its chains do not have, which are not written: lines stay short."""
        names = ("collection", "verdict", "verdict_probability", "claims")
        absent: dict[str, Any] = {name: True for name in names if getattr(self, name) in (None, [])}
        return {**absent, "chains": {number: chain._absent for number, chain in enumerate(self.chains)}}

    def __len__(self) -> int:
        return len(self.chains)

    def __iter__(self) -> Iterator[Chain]:  # type: ignore[override]  # pydantic's would yield the fields
        return iter(self.chains)

    @overload
    def __getitem__(self, place: int) -> Chain: ...

    @overload
    def __getitem__(self, place: slice) -> list[Chain]: ...

    def __getitem__(self, place: int | slice) -> Chain | list[Chain]:
        return self.chains[place]

    def __str__(self) -> str:
        """Return the verdict, if there is one, and a line for every chain, or the error in one."""
        lines = list(map(str, self.chains)) or ["no chain"]
        if self.error and not self.chains:
            lines = [_on_one_line(f"no chain ({self.error.code}): {self.error.message}")]
        if self.verdict is not None:
            chance = "" if self.verdict_probability is None else f" ({self.verdict_probability:.2f})"
            lines.insert(0, f"{VERDICTS[self.verdict]}{chance}")
        return "\n".join(lines)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


class GoldChain(_Record):
    """A correct chain; `ordered` and `links` are optional, since not all data has them.

    A chain of one passage is a single; the shape of a parallel has to be given, as its passages have no order.
    """

    shape: Shape | None = None
    passages: Many[NotBlank] = Field(min_length=1, max_length=MOST_GOLD)
    links: Annotated[Many[str], Field(max_length=MOST_GOLD)] | None = None
    ordered: bool = Field(default=True, strict=True)

    @property
    def has_order(self) -> bool:
        """Whether the order of its passages is known."""
        return self.ordered and self.shape not in UNORDERED


class Gold(_Record):
    """Every correct chain of a question; only evaluation takes it.

    `same` defines what counts as the same chain: its passages or, also if it is None, its passages in order and the
    linking entities. `verdict`, if an annotator judged it, is on whether the passages support the answer.
    """

    id: NotBlank
    chains: Many[GoldChain] = Field(max_length=MOST_GOLD)
    same: Same | None = None
    verdict: Verdict | None = None
