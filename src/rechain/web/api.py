"""The REST interface: questions and chains as JSON, with the fields that they have in files."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Body, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, BeforeValidator, Discriminator, Field, Tag
from starlette.convertors import PathConvertor, register_url_convertor

from rechain.formats.datasets import Entry
from rechain.formats.datasets.inputs import as_entry
from rechain.schema import (
    MOST_MENTIONS,
    WHOLE,
    Answer,
    Gold,
    Many,
    Name,
    Names,
    NotBlank,
    Passage,
    Problem,
    Question,
    Recovered,
    Sentences,
    Shape,
    Verdict,
    number_as_text,
)
from rechain.scoring.results import Options
from rechain.version import __version__
from rechain.web.filters import Filters, Judgement, PageNumber, SourceNumber
from rechain.web.forms import MOST_PASSAGES, of_bounded_size
from rechain.web.passages import Place, place_of
from rechain.web.question_index import PAGE_SIZE
from rechain.web.service import MOST_WAITING, State
from rechain.web.site import Answered, AtSite, Origin, ask_for

MOST_CHAINS = 1000
"""chains of a question that one request may ask for"""
PAIR, CHAINS = "a labelled pair", "gold chains"
_ONE, _MANY, _TEXT, _FIELDS = "one question", "many questions", "a text", "a passage's fields"
TAGS = frozenset((_ONE, _MANY, _TEXT, _FIELDS, PAIR, CHAINS))
"""names of the forms that a value may take; pydantic puts them into the place of an error, where they help nobody"""

MISSING_PASSAGES = "missing_passages"
"""the kind of error of a question without passages, beside those of pydantic"""


class Refused(BaseModel):
    """Why a request was refused."""

    error: Problem


def refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return the descriptions of the status codes with which a request can be refused."""
    return {code: {"model": Refused} for code in (401, 403, 413, 422, 503, *codes)}


class _Anything(PathConvertor):
    """The rest of a path, whatever it contains: an id may have slashes and line ends."""

    regex = r"[\s\S]*"


register_url_convertor("anything", _Anything())
router = APIRouter(responses=refusals())


NameOrNumber = Annotated[Name, BeforeValidator(number_as_text)]
"""an id"""


class MentionFields(BaseModel):
    """An entity's occurrence in a passage's text."""

    entity: Name
    start: Annotated[int, Field(ge=0, strict=True), WHOLE]
    end: Annotated[int, Field(ge=1, strict=True), WHOLE]


class PassageFields(BaseModel):
    """A passage; without an id it is named after its title or its position."""

    id: NameOrNumber | None = None
    title: Annotated[str, Field(coerce_numbers_to_str=True)] | None = None
    text: NotBlank
    mentions: Annotated[Many[MentionFields], Field(max_length=MOST_MENTIONS)] | None = None


def _text_or_fields(passage: Any) -> str:
    return _TEXT if isinstance(passage, str) else _FIELDS


TextOrFields = Annotated[
    Annotated[PassageFields, Tag(_FIELDS)] | Annotated[NotBlank, Tag(_TEXT)], Discriminator(_text_or_fields)
]


class QuestionFields(BaseModel):
    """A question as it is in a file; ids may be left out, and a passage may be its text alone."""

    id: NameOrNumber | None = None
    question: Sentences
    answer: Answer
    answer_aliases: Names | None = None
    question_entities: Names | None = None
    answer_entity: Name | None = None
    hops: Annotated[int, Field(ge=2, le=8, strict=True), WHOLE] | None = None
    link_types: Names | None = None
    passages: Annotated[Many[TextOrFields], Field(max_length=MOST_PASSAGES)] = []
    """may be left out where the server has an index, which finds them"""
    passage_ids: Names | None = None
    """passages of the server's index among which the chain is sought, instead of `passages`"""

    @property
    def lacks_passages(self) -> bool:
        """Whether nothing is said of passages."""
        return "passages" not in self.model_fields_set

    def entry(self, number: int, collection: Mapping[str, Passage] | None) -> Entry:
        """Return the question, or what is wrong with it; a collection has the passages that are named by id."""
        left_out = {"passages"} if self.passage_ids is not None and self.lacks_passages else None
        record = self.model_dump(exclude_none=True, exclude=left_out)
        return of_bounded_size(as_entry(f"questions[{number}]", str(number), record, collection=collection))


def _one_or_many(body: Any) -> str:
    return _MANY if isinstance(body, list) else _ONE


OneOrMany = Annotated[
    Annotated[QuestionFields, Tag(_ONE)]
    | Annotated[Many[QuestionFields], Field(min_length=1, max_length=MOST_WAITING), Tag(_MANY)],
    Discriminator(_one_or_many),
]


class FoundPassage(BaseModel):
    """A passage that was found in the index."""

    id: str
    title: str
    text: str
    place: Place | None
    """where it stands in its document; null for a row of a collection"""


class RecoveredHere(Recovered):
    """A question's chains and, where the server has an index, the passages of theirs that it found."""

    passages: list[FoundPassage] = Field(default_factory=list)
    """those of the chains but for the request's own, which a chain names in `own`"""


@router.post("/recover", response_model=RecoveredHere | list[RecoveredHere], responses=refusals(409, 429))
async def recover(
    site: AtSite,
    request: Request,
    body: Annotated[OneOrMany, Body()],
    top: Annotated[int, Query(ge=1, le=MOST_CHAINS, description="how many chains a question")] = 1,
    explain: Annotated[bool, Query(description="say what adds up to each score")] = False,
    min_confidence: Annotated[float | None, Query(ge=0, le=1, description="drop chains of less confidence")] = None,
) -> Response:
    """Recover the chains of one question, or of many at once.

    One question is answered by one record, a list by a list in its order. A question that has no chain has its error
    in its record. Requests that come at the same time are scored together; past a limit the answer is 429, and its
    header Retry-After says when to ask again. Confidence demanded of a model that has none is answered with 409.

    A server with an index finds passages itself, beside those of the request, which may then be left out. Its records
    have the found passages that their chains use.
    """
    questions = body if isinstance(body, list) else [body]
    for number, one in enumerate(questions if site.corpus is None else ()):
        if one.lacks_passages:
            place = (number,) if isinstance(body, list) else ()
            raise RequestValidationError([{"type": MISSING_PASSAGES, "loc": ("body", *place, "passages")}])
    entries = await run_in_threadpool(lambda: [one.entry(n, site.collection) for n, one in enumerate(questions)])
    answers = await ask_for(request, site, entries, Options(top, explain, min_confidence))
    return await run_in_threadpool(_records, answers, site.corpus is not None, isinstance(body, list))


def _records(answers: Sequence[Answered], has_index: bool, are_many: bool) -> Response:
    rows = [_with_passages(entry, one) if has_index else one.to_json() for entry, one in answers]
    return _json(f"[{','.join(rows)}]" if are_many else rows[0])


def _json(text: str) -> Response:
    """Return an answer that was written already; FastAPI would write that of a coroutine between other requests."""
    return Response(text, media_type="application/json")


def _with_passages(entry: Entry, recovered: Recovered) -> str:
    """Return the record of a question with the passages of its chains that were found in the index."""
    used = {name for chain in recovered.chains for name in chain.passages} - (entry.own or frozenset())
    passages = entry.content.passages if isinstance(entry.content, Question) else ()
    rows = [
        FoundPassage(id=one.id, title=one.title, text=one.text, place=place_of(one)).model_dump()
        for one in passages
        if one.id in used
    ]
    return orjson.dumps({**recovered.to_dict(), "passages": rows}).decode()


class Listed(BaseModel):
    """A question in a list."""

    id: str
    question: str
    answer: str
    confidence: float | None
    judgement: Judgement | None
    """whether the best chain is a gold chain"""
    verdict: Verdict | None
    """whether the passages support the answer, as the source says"""
    shape: Shape | None
    """the shape of the best chain"""
    error: str | None
    chain: str | None
    """the best chain in one line"""


class Listing(BaseModel):
    """A page of questions, and how many there are on all pages."""

    total: int
    page: int
    page_size: int
    questions: list[Listed]


class QuestionWithChains(BaseModel):
    """A question, its chains from a source, and its gold chains where they are known."""

    question: Question
    recovered: Recovered | None
    gold: Gold | None


class Selection(Filters):
    """Which questions are listed, by the best chains of which source, and which page of them."""

    page: PageNumber = 1
    source: SourceNumber = 1


@router.get("/questions", responses=refusals(404))
def questions(site: AtSite, selection: Annotated[Selection, Query()]) -> Listing:
    """List questions, with the best chain of each."""
    listing = site.index.select(site.source(selection.source).number, selection, selection.page)
    rows = [
        Listed(chain=row.summary, **{name: getattr(row, name) for name in Listed.model_fields if name != "chain"})
        for row in listing.rows
    ]
    return Listing(total=listing.total, page=selection.page, page_size=PAGE_SIZE, questions=rows)


@router.get("/questions/{id:anything}", response_model=QuestionWithChains, responses=refusals(404, 429))
async def question(site: AtSite, id: str, source: Annotated[SourceNumber, Query()] = 1) -> Response:
    """Return a question of the file with its chains, all that are candidates."""
    stored = await run_in_threadpool(site.question, id)
    content, recovered = site.readable(stored), await site.chains_of(site.source(source), stored)
    record = QuestionWithChains(question=content, recovered=recovered, gold=stored.gold)
    return await run_in_threadpool(lambda: _json(record.model_dump_json()))


_UNKNOWN = Origin(summary=None)


class SourceDescription(BaseModel):
    """Where chains come from, and what is known of how they were made."""

    number: int
    """by which requests name it, from 1"""
    name: str
    kind: Literal["file", "model"]
    summary: str | None
    """what made the chains, in one line; null where nothing says it"""
    warnings: list[str]
    """why they may not be what one takes them for"""
    made_by: dict[str, Any] | None
    end: dict[str, Any] | None
    """how the run that made them ended"""


@router.get("/sources")
async def sources(site: AtSite) -> list[SourceDescription]:
    """Return the sources of chains, with their provenance."""
    return [
        SourceDescription(
            number=source.number + 1,
            name=source.name,
            kind="model" if source.is_model else "file",
            **vars(source.origin or _UNKNOWN),
        )
        for source in site.sources
    ]


class Health(BaseModel):
    """How the server and its parts are."""

    status: Literal["ok", "starting", "failed"]
    """the worst of its parts; starting: a model is being loaded"""
    models: State
    index: State
    """of documents"""
    labels: State
    generation: str | None
    """of the index that answers: each build that changes something has the next one"""


@router.get("/health", responses={503: {"model": Health, "description": "A part has failed."}})
async def health(site: AtSite, response: Response) -> Health:
    """Return how the server and its parts are, with 503 if one has failed. It needs no token."""
    states = site.states
    status = next((state for state in ("failed", "starting") if state in states.values()), "ok")
    response.status_code = 503 if status == "failed" else 200
    generation = None if site.collection is None else site.collection.info.generation
    return Health.model_validate({"status": status, **states, "generation": generation})


class Version(BaseModel):
    """What is running."""

    version: str
    questions: int
    sources: list[str]
    collection: str | None
    """the stamp of the index, if there is one"""


@router.get("/version")
def version(site: AtSite) -> Version:
    """Return the version, and what is served."""
    names = [source.name for source in site.sources]
    collection = None if site.collection is None else site.collection.stamp
    return Version(version=__version__, questions=len(site.index), sources=names, collection=collection)
