"""From a file of any known format to questions; a record that cannot be read takes its place as an error."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from rechain.errors import InputError, QuestionError
from rechain.formats.datasets.chats import Chats
from rechain.formats.datasets.formats import Format, bad_record, listed
from rechain.formats.datasets.json_records import LARGEST_RECORD
from rechain.formats.datasets.plain import FieldMap, Mapped, Plain
from rechain.formats.datasets.published import HotpotQA, MuSiQue, Qangaroo, TwoWiki
from rechain.formats.datasets.records import RawRecord, read_by_id, read_parts
from rechain.formats.datasets.tool_logs import Haystack, LangChain, LlamaIndex, Ragas
from rechain.schema import Gold, Passage, Question, Same, number_as_text
from rechain.system.files import path_of
from rechain.system.processes import batches
from rechain.text.collection import PassageCollection

MappingLike = FieldMap | Mapping[str, str] | str
PassageSource = Mapping[str, Passage] | str | Path | None  # Passages by id, or the file that holds them.

# every known format; the first that recognises a record is taken, so TwoWiki comes before the wider HotpotQA
FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        Plain(),
        Ragas(),
        LangChain(),
        LlamaIndex(),
        Haystack(),
        Chats(),
        TwoWiki(),
        HotpotQA(),
        MuSiQue(),
        Qangaroo(),
    )
}
_IDENTITIES = ("id", "_id")
# A file whose first records are all unknown is given up: the reason comes at once, not after hours of bad lines.
_UNKNOWN_RECORDS = 100


class Entry(NamedTuple):
    """A question, or why it cannot be read; its place, and the share of the input that was read by then."""

    where: str
    id: str | None
    content: Question | QuestionError
    share: float | None = None
    own: frozenset[str] | None = None
    """where passages were found in a collection: the ids of those that the record itself gives; else None"""

    def located(self, error: QuestionError) -> QuestionError:
        """Return an error that names the place; those of the reader do so already."""
        if error is self.content or not self.where:
            return error
        return QuestionError(error.code, f"{self.where}: {error}.")


class Chunk(NamedTuple):
    """Consecutive records of one file, and the name of the file's format, if it is known."""

    form: str | None
    records: Sequence[RawRecord]

    @property
    def where(self) -> str:
        """The places of the first and the last record."""
        first, last = self.records[0].where, self.records[-1].where
        return first if first == last else f"{first} to {last}"


class QuestionReader:
    """Turns raw records into questions."""

    def __init__(
        self,
        passages: PassageSource = None,
        only: Collection[str] = (),
        mapping: FieldMap | None = None,
        needs_passages: bool = True,
    ) -> None:
        """Take the passages that questions name by id; `only` keeps the questions of these types.

        With a mapping it reads chunks of files that were cut with it. Records need no passages where these are found
        in a collection.
        """
        by_id = passages if isinstance(passages, Mapping | None) else read_by_id(path_of(passages), Passage)
        formats = {Mapped.name: Mapped(by_id, fields=mapping)} if mapping else {Plain.name: Plain(by_id)}
        self._formats: Mapping[str, Format] = {**FORMATS, **formats}
        self._only = frozenset(only)
        self._needs_passages = needs_passages

    def entries(self, chunk: Chunk) -> Iterator[Entry]:
        """Yield the questions of a chunk that are of a wanted type, and the errors among them."""
        form = self._formats[chunk.form] if chunk.form else None
        for raw in chunk.records:
            entry = self._entry(raw.parsed(keep_nulls=isinstance(form, Mapped)), form)
            if not self._only or isinstance(entry.content, QuestionError) or entry.content.type in self._only:
                yield entry

    def _entry(self, raw: RawRecord, form: Format | None) -> Entry:
        """Return the question of a parsed record, or why it is none: the nearest format names what an unknown lacks."""
        record: Any = raw.value
        if isinstance(record, QuestionError):  # which names its place already
            return Entry(raw.where, None, record, raw.share)
        try:
            if not isinstance(record, dict):
                raise QuestionError("bad_record", "a question should be an object, in braces")
            if form and not self._needs_passages:
                record = form.without_passages(record) or record
            question = (form or _nearest(record)).question(_with_identity(record, raw.name))
            return Entry(raw.where, question.id, question, raw.share)
        except (ValidationError, QuestionError) as error:
            return Entry(raw.where, _identity(record, raw.name), bad_record(raw.where, error, record), raw.share)


def read_chunks(
    path: str | Path, size: int, mapping: FieldMap | None = None, needs_passages: bool = True
) -> Iterator[Chunk]:
    """Cut a file, or every file of a folder, into chunks of `size` records.

    The last of each file may be shorter, and one of very long records, of which several chunks are in memory at once.
    """
    for part, records in read_parts(path_of(path)):
        yield from chunks_of(part, records, size, LARGEST_RECORD, mapping, needs_passages)


def chunks_of(
    path: str | Path,
    records: Iterable[RawRecord],
    size: int,
    most_bytes: float = inf,
    mapping: FieldMap | None = None,
    needs_passages: bool = True,
) -> Iterator[Chunk]:
    """Cut the records of one file, whose format the first recognised record decides, into chunks.

    A chunk ends with the record that brings it to `most_bytes`. What was read before an error is yielded before it is
    raised.
    """
    remaining = iter(records)
    first: list[RawRecord] = []
    form: Format | None = None
    formats = (Mapped(fields=mapping),) if mapping else tuple(FORMATS.values())
    for raw in islice(remaining, _UNKNOWN_RECORDS):
        first.append(raw)
        value = raw.parsed(keep_nulls=mapping is not None).value
        if isinstance(value, dict) and (form := _recognised(value, formats, needs_passages)):
            break
    for batch in batches(chain(first, remaining if form else ()), size, lambda record: record.size, most_bytes):
        yield Chunk(form.name if form else None, batch)
    if first and form is None:
        raise _no_format(path, first, mapping)


def _recognised(record: dict[str, Any], formats: Sequence[Format], needs_passages: bool) -> Format | None:
    """Return the format of a record; one whose passages are null is of a format only if it is of no other."""
    for fields in (record, {name: [] if value is None else value for name, value in record.items()}):
        if form := next((form for form in formats if form.recognises(fields)), None):
            return form
    return None if needs_passages else next((form for form in formats if form.without_passages(record)), None)


def is_record(value: dict[str, Any], needs_passages: bool = True) -> bool:
    """Return whether an object is a question of a known format, by its fields."""
    return _recognised(value, tuple(FORMATS.values()), needs_passages) is not None


def _nearest(record: dict[str, Any]) -> Format:
    """Return the format that says best what a record of no known format lacks."""
    return next((form for form in FORMATS.values() if form.without_passages(record)), FORMATS[Plain.name])


def _no_format(path: str | Path, records: Sequence[RawRecord], mapping: FieldMap | None) -> InputError:
    """Return the error for a file none of whose first records is recognised."""
    fields = next((value for raw in records if isinstance(value := raw.parsed().value, dict)), None)
    has = f"; its first record has {listed(fields)}" if fields else ""
    if mapping:
        return InputError(f"{path} has none of the fields that --map names ({mapping}){has}.")
    hint = ": name those of question, answer and passages with --map" if fields else ""
    if fields and any(form.without_passages(fields) for form in FORMATS.values()):
        hint = ": name the field of passages with --map, or an index that finds them with --corpus"
    return InputError(f"{path} holds no question in a format that rechain reads ({', '.join(FORMATS)}){has}{hint}.")


def read_entries(
    path: str | Path,
    *,
    passages: PassageSource = None,
    only: Collection[str] = (),
    mapping: MappingLike | None = None,
    needs_passages: bool = True,
) -> Iterator[Entry]:
    """Yield every question of a file, or why it cannot be read; `only` keeps the questions of these types.

    A mapping names the fields of question, answer and passages, as `--map` does: a text, or a dict. Questions need
    no passages where these are found in a collection.
    """
    fields = FieldMap.of(mapping) if mapping else None
    reader = QuestionReader(passages, only, fields, needs_passages)
    for chunk in read_chunks(path, 1, fields, needs_passages):
        yield from reader.entries(chunk)


def read_questions(
    path: str | Path,
    *,
    passages: PassageSource = None,
    only: Collection[str] = (),
    mapping: MappingLike | None = None,
) -> Iterator[Question]:
    """Yield the questions of a file; the first that cannot be read raises QuestionError."""
    for entry in read_entries(path, passages=passages, only=only, mapping=mapping):
        if isinstance(entry.content, QuestionError):
            raise entry.content
        yield entry.content


def no_question(path: str | Path, only: Collection[str]) -> InputError:
    """Return the error for a file in which there is no question, or none of a wanted type."""
    types = f" of type {' or '.join(only)}" if only else ""
    return InputError(f"{path} holds no question{types}.")


def read_collection(source: PassageSource) -> PassageCollection | None:
    """Return passages that questions name by id, or the file of them, as a collection; None if there are none."""
    if source is None or isinstance(source, PassageCollection):
        return source
    return PassageCollection(source if isinstance(source, Mapping) else read_by_id(path_of(source), Passage))


def read_record(
    where: str,
    record: Mapping[str, Any],
    name: str = "",
    mapping: FieldMap | None = None,
    collection: Mapping[str, Passage] | None = None,
) -> Entry:
    """Read a dict with the fields of a question, in any known format, like a line of a file.

    `name` is the id of a question that has none. `collection` finds passages and has those that are named by id.
    """
    needs_passages = collection is None
    raw = RawRecord(where, dict(record), name=name)
    chunk = next(chunks_of(where, [raw], 1, mapping=mapping, needs_passages=needs_passages))
    return next(QuestionReader(collection or {}, (), mapping, needs_passages).entries(chunk))


def read_gold_of_questions(path: str | Path) -> Iterator[tuple[Gold, Question | None]]:
    """Yield the gold of a questions file, and the question where its answer decides the order of the gold passages.

    Only `rechain.evaluation.gold` calls this.
    """
    for record, form in _records_with_format(path):
        with suppress(ValidationError, QuestionError):
            if form and (gold := form.gold(record)):
                yield gold, form.question(record) if form.gold_tail_holds_answer else None


def read_sentences(path: str | Path) -> Iterator[tuple[str | None, Mapping[str, Sequence[str]]]]:
    """Yield the id of every question and, of formats that give them, the sentences of its passages."""
    for record, form in _records_with_format(path):
        sentences: Mapping[str, Sequence[str]] = {}
        with suppress(ValidationError, QuestionError):
            sentences = form.sentences(record) if form else {}
        yield _identity(record, ""), sentences


def same_chain(path: str | Path) -> Same:
    """Return what counts as the same chain in the data set of a questions file."""
    return next((form.same for _, form in _records_with_format(path) if form), "links")


def _records_with_format(path: str | Path) -> Iterator[tuple[dict[str, Any], Format | None]]:
    """Yield every record that is an object, with its id and the format of its file."""
    for chunk in read_chunks(path, 1, needs_passages=False):  # gold and format are known without them
        raw = chunk.records[0].parsed()
        if isinstance(raw.value, dict):
            record = _with_identity(raw.value, raw.name)
            yield record, FORMATS.get(chunk.form or "")


def _with_identity(record: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a record with an id that is a text, if it can be: a number as text, and a name for want of any."""
    field = next((field for field in _IDENTITIES if field in record), None)
    if field is None:
        return {**record, "id": name} if name else record
    value = record[field]
    return record if isinstance(value, str) else {**record, field: number_as_text(value)}


def _identity(record: Any, name: str) -> str | None:
    """Return the id of a record that may be bad, if it is an object."""
    fields = _with_identity(record, name) if isinstance(record, dict) else {}
    values = (fields.get(field) for field in _IDENTITIES)
    return next((value for value in values if isinstance(value, str) and value), None)
