"""The questions that pass a filter as a file: JSON lines for programs, CSV for tables, made as it is sent."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

import orjson

from rechain.schema import Question, Recovered
from rechain.web.chains import best_chain
from rechain.web.question_index import Index, Row

Format = Literal["jsonl", "csv"]
_AT_ONCE = 100
"""questions that are read together"""
_ASKED = ("id", "question", "answer", "type", "hops")
_ANSWERED = ("chain", "passages", "links", "confidence", "verdict", "judgement", "error")
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n")
"""with what a text begins, maybe after blanks, that spreadsheets take for a formula"""


class Downloaded(NamedTuple):
    """A question, the best chain of a source, and what the list says of them."""

    row: Row
    question: Question | None
    """None where it cannot be read"""
    recovered: Recovered | None


Write = Callable[[Iterable[Downloaded]], Iterator[str]]


def write_lines(items: Iterable[Downloaded]) -> Iterator[str]:
    """Yield JSON lines: the fields of a chains file with the best chain alone, and before them what is listed."""
    for row, question, recovered in items:
        fields: dict[str, Any] = {"id": row.id, **_texts(row, question), "type": row.type, "hops": row.hops}
        fields["judgement"] = row.judgement
        if recovered is not None:
            fields |= recovered.model_copy(update={"id": row.id, "chains": recovered.chains[:1]}).to_dict()
        yield orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE).decode()


def write_table(items: Iterable[Downloaded]) -> Iterator[str]:
    """Yield the lines of a CSV file; an apostrophe stands before what a spreadsheet would take for a formula."""
    yield _csv_line((*_ASKED, *_ANSWERED))
    for row, question, recovered in items:
        chain, fields = best_chain(recovered), {**row._asdict(), **_texts(row, question), "chain": row.summary}
        fields["passages"] = " | ".join(chain.passages) if chain else ""
        fields["links"] = " | ".join(link.entity for link in chain.links) if chain else ""
        yield _csv_line([_harmless(fields[name]) for name in (*_ASKED, *_ANSWERED)])


FORMATS: dict[Format, tuple[str, Write]] = {
    "jsonl": ("application/x-ndjson", write_lines),
    "csv": ("text/csv; charset=utf-8", write_table),
}
"""what a file may be, with its media type"""


def download(index: Index, source: int, positions: Sequence[int], form: Format) -> Iterator[bytes]:
    """Yield a file of the questions at some positions, some at a time, so that it is never whole in memory."""
    lines = FORMATS[form][1](_read(index, source, positions))
    while some := "".join(islice(lines, _AT_ONCE)):
        yield some.encode("utf-8", "surrogatepass")


def _read(index: Index, source: int, positions: Sequence[int]) -> Iterator[Downloaded]:
    for first in range(0, len(positions), _AT_ONCE):
        for row in index.rows(source, positions[first : first + _AT_ONCE]):
            content = index.at(row.position).content
            question = content if isinstance(content, Question) else None
            yield Downloaded(row, question, index.recovered(source, row.position))


def _texts(row: Row, question: Question | None) -> dict[str, str]:
    """Return question and answer, which a list cuts."""
    return {name: getattr(question or row, name) for name in ("question", "answer")}


def _harmless(value: Any) -> Any:
    is_formula = isinstance(value, str) and any(text.startswith(_FORMULA) for text in (value, value.lstrip()))
    return f"'{value}" if is_formula else value


def _csv_line(values: Sequence[Any]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(values)
    return line.getvalue()
