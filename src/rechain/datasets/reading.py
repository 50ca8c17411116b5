"""From a file of any known format to questions; a record that cannot be read takes its place as an error."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from rechain.datasets.files import RawRecord, read_records, without_nulls
from rechain.datasets.formats import Format
from rechain.datasets.hotpotqa import HotpotQA
from rechain.datasets.musique import MuSiQue
from rechain.datasets.plain import Plain
from rechain.datasets.qangaroo import Qangaroo
from rechain.datasets.rows import read_by_id
from rechain.datasets.twowiki import TwoWiki
from rechain.errors import InputError, QuestionError
from rechain.schema import Gold, Passage, Question, Same
from rechain.validation import bad_record

PassageSource = Mapping[str, Passage] | str | Path | None
"""Passages by id, or the file that they stand in."""

_UNKNOWN_RECORDS = 100
"""so many records of no known format, and none of a known one before them, end the reading"""


class Entry(NamedTuple):
    """A question, or why it cannot be read; where it stands, and what share of the file was read by then."""

    where: str
    id: str | None
    content: Question | QuestionError
    share: float | None = None

    def located(self, error: QuestionError) -> QuestionError:
        """Return an error that names the place; those of the reader do so already."""
        if error is self.content or not self.where:
            return error
        return QuestionError(error.code, f"{self.where}: {error}.")


def read_entries(path: str | Path, *, passages: PassageSource = None, only: Collection[str] = ()) -> Iterator[Entry]:
    """Yield what stands in a file, question by question; `only` keeps the questions of these types."""
    for raw, form in _records_with_format(Path(path), passages):
        entry = _entry(raw, form)
        if not only or isinstance(entry.content, QuestionError) or entry.content.type in only:
            yield entry


def read_questions(
    path: str | Path, *, passages: PassageSource = None, only: Collection[str] = ()
) -> Iterator[Question]:
    """Yield the questions of a file; the first that cannot be read raises QuestionError."""
    for entry in read_entries(path, passages=passages, only=only):
        if isinstance(entry.content, QuestionError):
            raise entry.content
        yield entry.content


def read_record(where: str, record: Mapping[str, Any]) -> Entry:
    """Read a dict with the fields of a question as a line of a file is read."""
    return _entry(RawRecord(where, without_nulls(dict(record)), None), Plain({}))


def read_gold_of_questions(path: str | Path) -> Iterator[Gold]:
    """Yield the gold chains that stand in a questions file. Only `rechain.gold` calls this."""
    for raw, form in _records_with_format(Path(path), None):
        try:
            gold = form.gold(raw.value) if form and isinstance(raw.value, dict) else None
        except (ValidationError, QuestionError):
            gold = None
        if gold:
            yield gold


def same_chain(path: str | Path) -> Same:
    """Return what counts as the same chain in the data set of a questions file."""
    return next(form.same for _, form in _records_with_format(Path(path), None) if form)


def _formats(passages: PassageSource) -> list[Format]:
    known = read_by_id(Path(passages), Passage) if isinstance(passages, str | Path) else passages
    return [Plain(known), TwoWiki(), HotpotQA(), MuSiQue(), Qangaroo()]


def _records_with_format(path: Path, passages: PassageSource) -> Iterator[tuple[RawRecord, Format | None]]:
    """Yield every record with the file's format, which the first recognised record decides."""
    formats = _formats(passages)
    form: Format | None = None
    waiting: list[RawRecord] = []
    for raw in read_records(path):
        if form is None and isinstance(raw.value, dict):
            form = next((candidate for candidate in formats if candidate.recognises(raw.value)), None)
        waiting.append(raw)
        if form is not None or len(waiting) == _UNKNOWN_RECORDS:
            yield from ((record, form) for record in waiting)
            waiting.clear()
        if form is None and not waiting:
            break
    yield from ((record, form) for record in waiting)
    if form is None:
        names = ", ".join(candidate.name for candidate in formats)
        raise InputError(f"{path} holds no question in a format that rechain reads ({names}).")


def _entry(raw: RawRecord, form: Format | None) -> Entry:
    return Entry(raw.where, _identity(raw.value), _content(raw.where, raw.value, form), raw.share)


def _content(where: str, record: Any, form: Format | None) -> Question | QuestionError:
    if isinstance(record, QuestionError):
        return record
    try:
        if not isinstance(record, dict):
            raise QuestionError("bad_record", "a question should be an object, in braces")
        if form is None:
            raise QuestionError("missing_field", "the field passages (or passage_ids) is missing")
        return form.question(record)
    except ValidationError as error:
        return bad_record(where, error)
    except QuestionError as error:
        return QuestionError(error.code, f"{where}: {error}.")


def _identity(record: Any) -> str | None:
    identity = (record.get("id") or record.get("_id")) if isinstance(record, dict) else None
    return identity if isinstance(identity, str) else None
