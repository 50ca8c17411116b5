"""Which stretch of the input became which stretch of the output: a line of the provenance file for every chunk.

    {"records": 32, "lines": 32, "input": SHA-256 of the raw records, "output": SHA-256 of the lines}

It stands there after the lines are in the output. So a run that is resumed can tell that the questions and the chains
before it are still what they were, whatever the size of its own chunks.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rechain.datasets.files import RawRecord
from rechain.datasets.reading import Chunk
from rechain.errors import QuestionError, RechainError, ResumableError
from rechain.system.files import Remedies, WatchedFile, replacing
from rechain.system.provenance import (
    Facts,
    Sealer,
    differences,
    is_first_line,
    read_lines,
    sidecar_of,
)

_WITHOUT_IT = "remove it and go on with --resume"
# Without a provenance file a run is resumed, and its lines compared; with a damaged one it is not.
_REMEDIES = Remedies(removed="go on with --resume", replaced=_WITHOUT_IT, cut=_WITHOUT_IT, grown=_WITHOUT_IT)
_OVERWRITE = "name another file, or replace it with --overwrite."


class Stretch(NamedTuple):
    """Consecutive records of the input and the lines that they became."""

    records: int
    lines: int
    input: str
    output: str

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "Stretch | None":
        """Return the stretch of which a line of the provenance file tells, if it tells of one."""
        return cls(**fields) if "records" in fields else None


def input_digest(records: Iterable[RawRecord]) -> str:
    """Return the digest of raw records."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(_framed(record))
    return digest.hexdigest()


def output_digest(lines: bytes) -> str:
    """Return the digest of lines."""
    return hashlib.sha256(lines).hexdigest()


def _framed(record: RawRecord) -> bytes:
    """Return the bytes of a record after their number, so that two records differ from one made of both."""
    value = record.value
    if isinstance(value, QuestionError):
        content = value.code.encode()  # not its message, which names the path
    elif isinstance(value, bytes):
        content = value.strip()  # the last line of a file has no end until more is added
    else:  # a row of a table
        try:
            content = orjson.dumps(value, default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
        except TypeError:
            content = repr(value).encode("utf-8", "replace")
    return b"%d:%s" % (len(content), content)


class Journal:
    """What the provenance file of an output that exists says; nothing, if there is none."""

    def __init__(self, output: Path) -> None:
        """Read the file once and check its seals; raises DamagedProvenanceError."""
        self.path = sidecar_of(output)
        self.exists = self.path.is_file() and output.stat().st_size > 0  # what stands beside an empty file says nothing
        self.made_by: Facts = {}
        for fields in self._read():
            self.made_by = fields if is_first_line(fields) else self.made_by

    def _read(self) -> Iterator[Facts]:
        return read_lines(self.path) if self.exists else iter(())

    def stretches(self) -> Iterator[Stretch]:
        """Yield the stretches of the output, in their order."""
        return (stretch for fields in self._read() if (stretch := Stretch.of(fields)))

    def covered(self, lines: int) -> int:
        """Return how many of so many first lines of the output are in whole stretches."""
        total = 0
        for stretch in self.stretches():
            if total + stretch.lines > lines:
                break
            total += stretch.lines
        return total

    def lines_of(self, stretches: int) -> Iterator[Facts]:
        """Yield the first line and all others up to the end of so many stretches."""
        for number, fields in enumerate(self._read()):
            if number and not stretches:
                return
            yield fields
            stretches -= "records" in fields

    def check_work(self, head: Facts, output: Path) -> None:
        """Raise RechainError if the output was begun with another model, setting or passages."""
        if self.exists and (difference := next(differences(self.made_by, head), None)):
            raise RechainError(f"{output} was begun with {difference}; resume it with the same, {_OVERWRITE}")


class KeptJournal(NamedTuple):
    """The part of a journal that still holds, and what of the output follows it and is kept as well."""

    journal: Journal
    stretches: int
    rest: Stretch | None


class Audit:
    """Compares records and lines, as they are passed again, with the stretches of a journal."""

    def __init__(self, output: Path, journal: Journal, lines: int) -> None:
        """Begin with the first record and the first line; `lines` of the output are there."""
        self._output = output
        self._journal = journal
        records = ((stretch.records, stretch.input) for stretch in journal.stretches())
        self._records = _Side(
            records,
            f"these questions were changed, swapped or written differently after their chains were written to {output}",
        )
        covered = _within(journal.covered(lines), ((stretch.lines, stretch.output) for stretch in journal.stretches()))
        self._lines = _Side(covered, "these chains were changed after they were written")

    def add(self, chunk: Chunk, first: int, lines: Iterable[bytes]) -> None:
        """Pass a chunk and its lines, of which the first has this number; raises RechainError if they were changed."""
        for record in chunk.records:
            self._records.add(_framed(record), record.where)
            self._records.settle()
        for number, line in enumerate(lines, start=first):
            self._lines.settle()
            self._lines.add(line, f"{self._output}, line {number}")
        self._lines.settle(self._records.passed)  # no further: the records after its last line belong to a stretch too

    def settle(self) -> None:
        """Check the last stretch of lines, also where the records at its end, which have no line, were not passed."""
        self._lines.settle()

    def kept(self) -> KeptJournal:
        """Return what holds of the journal, and what was passed after that."""
        records, lines = self._records, self._lines
        rest = Stretch(records.count, lines.count, records.digest, lines.digest)
        return KeptJournal(self._journal, records.passed, rest if records.count else None)


def _within(lines: int, stretches: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the first stretches that have so many lines together."""
    for count, digest in stretches:
        lines -= count
        if lines < 0:
            return
        yield count, digest


class _Side:
    """Digests one item after another, and compares them with the digests of stretches."""

    def __init__(self, stretches: Iterable[tuple[int, str]], problem: str) -> None:
        self._stretches = iter(stretches)
        self._problem = problem
        self.passed = -1
        self._next()

    def _next(self) -> None:
        self._expected = next(self._stretches, None)
        self.passed += 1
        self._digest = hashlib.sha256()
        self.count = 0
        self._first = self._last = ""

    def add(self, item: bytes, where: str) -> None:
        """Add an item."""
        self._first = self._first or where
        self._last = where
        self._digest.update(item)
        self.count += 1

    def settle(self, most: float = inf) -> None:
        """Pass the stretches that are complete, until so many are passed; raises RechainError if one has changed."""
        while self._expected and self.count == self._expected[0] and self.passed < most:
            if self.digest != self._expected[1]:
                raise RechainError(f"{self._where}: {self._problem}; {_OVERWRITE}")
            self._next()

    @property
    def digest(self) -> str:
        """The digest of the items of the stretch that is not passed yet."""
        return self._digest.hexdigest()

    @property
    def _where(self) -> str:
        """The places of the first and the last item of the stretch."""
        start, _, number = self._last.rpartition(" ")
        if self._first == self._last:
            return self._first
        return f"{self._first} to {number if self._first.startswith(f'{start} ') else self._last}"


class JournalFile:
    """The provenance file of an output that grows; it is made, or made anew, when the first line is written."""

    def __init__(self, output: Path, head: Facts, kept: KeptJournal | None = None) -> None:
        """Begin a file, or keep the part that still holds of the one that is there."""
        self._path = sidecar_of(output)
        self._head = head
        self._kept = kept
        self._sealer = Sealer()
        self._file: WatchedFile | None = None

    def add(self, fields: Mapping[str, Any]) -> None:
        """Add a line."""
        self.begin().append(self._sealer.line(fields))

    def begin(self) -> WatchedFile:
        """Write what is to stand before the first new line, all at once, if that is not done yet."""
        if self._file is None:
            try:
                with replacing(self._path) as file:
                    file.writelines(map(self._sealer.line, self._lines_before()))
                self._file = WatchedFile(self._path, remedies=_REMEDIES)
            except OSError as error:
                raise ResumableError(f"{self._path} cannot be written: {error.strerror}.") from error
        return self._file

    def _lines_before(self) -> Iterator[Mapping[str, Any]]:
        """Yield the lines of earlier runs that still hold, what follows them, and what makes the output from here."""
        if not self._kept:
            yield self._head
            return
        journal, stretches, rest = self._kept
        if journal.exists:
            yield from journal.lines_of(stretches)
        else:
            yield {**self._head, "unchecked": rest.lines if rest else 0}
        if rest:
            yield rest._asdict()
        if journal.exists:
            yield self._head

    def sync(self) -> None:
        """Wait until the file is on the disk."""
        self.begin().sync()

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()
