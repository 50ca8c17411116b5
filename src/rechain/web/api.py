"""The REST interface: what files hold, asked for and answered as JSON."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import BaseModel, Discriminator, Field, Tag
from starlette.convertors import Convertor, register_url_convertor

from rechain.datasets import Entry
from rechain.datasets.inputs import as_entry
from rechain.recovery import Options
from rechain.schema import WHOLE, Gold, LinkKind, NotBlank, Problem, Question, Recovered
from rechain.version import __version__
from rechain.web.index import PAGE_SIZE, Filter, Order, Verdict
from rechain.web.pages import AtSite
from rechain.web.pasted import MOST_PASSAGES, of_bounded_size
from rechain.web.service import MOST_WAITING
from rechain.web.site import ask

MOST_CHAINS = 1000
PAIR, CHAINS = "a labelled pair", "gold chains"
_ONE, _MANY, _TEXT, _FIELDS = "one question", "many questions", "a text", "a passage's fields"
TAGS = frozenset((_ONE, _MANY, _TEXT, _FIELDS, PAIR, CHAINS))
"""parts of the place of a mistake that say nothing to who made it: which of several forms a thing was taken for"""


class Refused(BaseModel):
    """Why a request was refused."""

    error: Problem


def refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Describe the ways in which a request can be refused."""
    return {code: {"model": Refused} for code in (401, 403, 413, 422, 503, *codes)}


class _Anything(Convertor[str]):
    """The rest of a path, whatever it holds: an id may have slashes and ends of lines."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("anything", _Anything())
router = APIRouter(responses=refusals())


class AskedMention(BaseModel):
    """An entity's occurrence in a passage's text."""

    entity: NotBlank
    start: Annotated[int, Field(ge=0, strict=True), WHOLE]
    end: Annotated[int, Field(ge=1, strict=True), WHOLE]


class AskedPassage(BaseModel):
    """A passage; without an id it is known by its title or its place."""

    id: NotBlank | None = None
    title: str | None = None
    text: NotBlank
    mentions: list[AskedMention] | None = None


def _text_or_fields(passage: Any) -> str:
    return _TEXT if isinstance(passage, str) else _FIELDS


TextOrFields = Annotated[
    Annotated[AskedPassage, Tag(_FIELDS)] | Annotated[NotBlank, Tag(_TEXT)], Discriminator(_text_or_fields)
]


class AskedQuestion(BaseModel):
    """A question as it stands in a file; ids may be left out, and a passage may be its text alone."""

    id: NotBlank | None = None
    question: NotBlank
    answer: NotBlank
    answer_aliases: list[NotBlank] | None = None
    question_entities: list[NotBlank] | None = None
    answer_entity: NotBlank | None = None
    hops: Annotated[int, Field(ge=2, le=8, strict=True), WHOLE] | None = None
    link_types: list[NotBlank] | None = None
    passages: list[TextOrFields] = Field(max_length=MOST_PASSAGES)

    def entry(self, number: int) -> Entry:
        """Return the question, or what is wrong with it."""
        given = self.model_dump(exclude_none=True)
        return of_bounded_size(as_entry(f"questions[{number}]", str(number), given))


def _one_or_many(body: Any) -> str:
    return _MANY if isinstance(body, list) else _ONE


Asked = Annotated[
    Annotated[AskedQuestion, Tag(_ONE)]
    | Annotated[list[AskedQuestion], Field(min_length=1, max_length=MOST_WAITING), Tag(_MANY)],
    Discriminator(_one_or_many),
]


@router.post("/recover", response_model=Recovered | list[Recovered], responses=refusals(409, 429))
async def recover(
    site: AtSite,
    asked: Annotated[Asked, Body()],
    top: Annotated[int, Query(ge=1, le=MOST_CHAINS, description="how many chains a question")] = 1,
    explain: Annotated[bool, Query(description="tell what adds up to each score")] = False,
    min_confidence: Annotated[float | None, Query(ge=0, le=1, description="drop chains of less confidence")] = None,
) -> Response:
    """Recover the chains of one question, or of many at once.

    One question is answered by one record, a list by a list in its order. A question that has no chain has its error
    in its record. Requests that come at the same time are scored together; past a limit the answer is 429, and its
    header Retry-After says when to ask again. To demand confidence of a model that tells none is answered with 409.
    """
    questions = asked if isinstance(asked, list) else [asked]
    entries = await run_in_threadpool(_entries, questions)
    found = await ask(site.recovery, entries, Options(top, explain, min_confidence))
    rows = [recovered.to_json() for recovered in found]
    return _json(f"[{','.join(rows)}]" if isinstance(asked, list) else rows[0])


def _entries(questions: Sequence[AskedQuestion]) -> list[Entry]:
    return [question.entry(number) for number, question in enumerate(questions)]


class Listed(BaseModel):
    """A question in a list."""

    id: str
    question: str
    answer: str
    confidence: float | None
    verdict: Verdict | None
    error: str | None
    chain: str | None
    """the best chain in one line"""


class Listing(BaseModel):
    """A page of questions, and how many there are on all pages."""

    total: int
    page: int
    page_size: int
    questions: list[Listed]


class Known(BaseModel):
    """A question, what was found for it, and its gold chains where they are known."""

    question: Question
    recovered: Recovered | None
    gold: Gold | None


SourceNumber = Annotated[int, Query(ge=1, le=1000, description="which source of chains, from 1")]


@router.get("/questions", responses=refusals(404))
async def questions(
    site: AtSite,
    text: Annotated[str, Query(max_length=300)] = "",
    min_confidence: Annotated[float | None, Query(ge=0, le=1)] = None,
    max_confidence: Annotated[float | None, Query(ge=0, le=1)] = None,
    verdict: Verdict | None = None,
    kind: LinkKind | None = None,
    chain: bool | None = None,
    order: Order = "file",
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    source: SourceNumber = 1,
) -> Listing:
    """List questions, with the best chain of each."""
    wanted = Filter(text, min_confidence, max_confidence, verdict, kind, chain, order)
    found = site.index.select(site.source(source).number, wanted, page)
    rows = [
        Listed(
            id=row.id,
            question=row.question,
            answer=row.answer,
            confidence=row.confidence,
            verdict=row.verdict,
            error=row.error,
            chain=row.summary,
        )
        for row in found.rows
    ]
    return Listing(total=found.total, page=page, page_size=PAGE_SIZE, questions=rows)


@router.get("/questions/{id:anything}", responses=refusals(404, 429))
async def question(site: AtSite, id: str, source: SourceNumber = 1) -> Known:
    """Return a question of the file with its chains, all that are candidates."""
    stored = site.question(id)
    return Known(
        question=site.readable(stored), recovered=await site.found(site.source(source), stored), gold=stored.gold
    )


class Health(BaseModel):
    """That the server is well."""

    status: Literal["ok"]


@router.get("/health")
async def health() -> Health:
    """Tell that the server answers. It needs no token."""
    return Health(status="ok")


class Version(BaseModel):
    """What is running."""

    version: str
    questions: int
    sources: list[str]


@router.get("/version")
async def version(site: AtSite) -> Version:
    """Tell the version, and what is served."""
    names = [source.name for source in site.sources]
    return Version(version=__version__, questions=len(site.index), sources=names)


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")
