"""From files to an index, and from an index to one that is up to date.

An index holds what its SOURCES hold: a build takes in what is new or changed, drops what is gone, and leaves alone what
is as it was. It writes a new generation (see `index`), in which files of the old one that stay are linked, not copied.

The search engine counts dropped passages until it merges what holds them, so that the same collection would be weighed
in different ways; a shard that loses a passage is therefore written anew, from what it holds. An id that several files
have belongs to the first of them; where such files come or go, all is read anew. Then results depend on the collection
alone, not on its history.
"""

import fcntl
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import tantivy

from rechain.documents import Extract, Refusal, Source, SplitSettings, find_sources, read_source
from rechain.errors import InputError, RechainError
from rechain.retrieval.fields import document, order_of, schema
from rechain.retrieval.index import (
    FORMAT,
    MANIFEST,
    POINTER,
    IndexInfo,
    check_files,
    read_info,
    read_passage,
    shard_name,
)
from rechain.retrieval.manifest import Changes, Manifest, NewPassage, compare, mark_of, read_refusals
from rechain.retrieval.shard import Ask, Condition, LocalShard, record_at
from rechain.retrieval.vectors import Embedder, VectorWriter, key_of, remove_vectors
from rechain.schema import Passage
from rechain.system.digests import write_sealed
from rechain.system.processes import in_order, usable_cores

_HEAP = 200_000_000
"""bytes in which the engine gathers passages before it writes a segment: more are no faster, and fewer make more work
of merging"""
_LEAST_HEAP = 15_000_000
"""bytes a thread, the least that the engine takes"""
_MOST_SHARDS = 64
_GENERATION = "generation-"
_LOCK = ".lock"
_OURS = re.compile(rf"{re.escape(_LOCK)}|{_GENERATION}\d+|\.{re.escape(POINTER)}\.[0-9a-f]+")
"""what builds make in the folder beside the pointer, and the pointer before it is whole"""
_COPIED = (".json",)
"""what the engine replaces; its other files never change, so that two generations can share them"""

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""codes of SQLite for a manifest that is no database, or one without our tables; a full disk has others"""

Report = Callable[[float, int], None]
"""takes the share of the input that was read, and the number of passages"""


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How an index is built."""

    split: SplitSettings | None = None
    """how documents are cut; None: as those of the index are, or as `SplitSettings` has it"""
    shards: int | None = None
    """parts that can be read on different machines; None: as the index has, or 1"""
    workers: int | None = 0
    """processes that convert documents; None: one a core; 0: none but this one, since a script that starts others must
    be guarded by `if __name__ == "__main__":`"""
    vectors: bool | None = None
    """whether passages have vectors, by which those near a question are found; None: as the index has, or not"""

    def __post_init__(self) -> None:
        """Say which setting is wrong."""
        if self.shards is not None and not 1 <= self.shards <= _MOST_SHARDS:
            raise RechainError(f"an index has 1 to {_MOST_SHARDS} shards, not {self.shards}.")


@dataclass
class Build:
    """What came of building."""

    info: IndexInfo
    added: int
    dropped: int
    files: int
    """files that were read, as they are new or changed"""
    refusals: int
    """files and rows that were left out"""


def build_index(
    sources: Sequence[str | Path] | str | Path,
    folder: str | Path,
    settings: BuildSettings | None = None,
    refuse: Callable[[Refusal], object] = lambda refusal: None,
    report: Report = lambda share, passages: None,
    embed: Embedder | None = None,
) -> Build:
    """Build an index of what sources hold, or bring the one in the folder up to date.

    `refuse` is told what was left out, as it is met. `embed` makes the vectors, where there are to be any; questions
    are embedded by `rechain.reader.embedding.BundledEncoder`. Whatever happens, the folder has the old index or the new
    one.
    """
    folder = Path(folder)
    settings = settings or BuildSettings()
    paths = [Path(sources)] if isinstance(sources, str | Path) else [Path(source) for source in sources]
    _check_apart(paths, folder)
    with _writing(folder), _locked(folder):
        old = read_info(folder) if (folder / POINTER).exists() else None
        if old:
            check_files(folder, old)
        _remove_remains(folder, but=old)
        number = int(old.generation.removeprefix(_GENERATION)) + 1 if old else 1
        generation = folder / f"{_GENERATION}{number}"
        reporter = _Reporter(refuse, report)
        try:
            try:
                build = _Builder(folder, generation, old, settings, reporter, embed).build(paths)
            except _UnsettledError:
                shutil.rmtree(generation)
                build = _Builder(folder, generation, old, settings, reporter, embed, keeps=False).build(paths)
        finally:  # also where Ctrl+C comes just after the pointer was replaced, which then says what counts
            _remove_remains(folder, but=read_info(folder) if (folder / POINTER).exists() else None)
    return build


def _check_apart(sources: Sequence[Path], folder: Path) -> None:
    """Raise RechainError for a SOURCE that is the index or part of it: nothing would be found, and all be dropped."""
    for source in sources:
        try:
            is_within = source.resolve().is_relative_to(folder.resolve())
        except (OSError, RuntimeError):  # links in a circle, which are named where files are found
            continue
        if is_within:
            raise RechainError(f"{source} lies in {folder}, where the index goes; name another folder for the index.")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder of an index, which may be new; two builds at the same time would undo each other's work."""
    if folder.exists() and not folder.is_dir():
        raise RechainError(f"{folder} is a file; name a folder for the index.")
    if folder.exists() and not (folder / POINTER).exists():
        names = {path.name for path in folder.iterdir()}
        others = [name for name in names if _LOCK not in names or not _OURS.fullmatch(name)]
        if others:
            raise RechainError(f"{folder} is no index and holds {min(others)}; name a new or an empty folder.")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RechainError(f"another process builds {folder} at this moment; wait until it is done.") from error
        except OSError as error:  # a file system of a network may have no locks
            raise RechainError(
                f"{folder} cannot be locked: {error.strerror}; name a folder on another disk."
            ) from error
        yield


def _remove_remains(folder: Path, but: IndexInfo | None) -> None:
    """Remove what a killed build or an older generation has left; who has it open goes on reading it."""
    for path in folder.iterdir():
        if path.name == _LOCK or (but and path.name == but.generation) or not _OURS.fullmatch(path.name):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class _UnsettledError(Exception):
    """Files with the same ids came or went, so that passages would have other ids if all were read anew."""


class _Reporter:
    """Tells the caller what is left out, each thing once, and how far a build has come."""

    def __init__(self, refuse: Callable[[Refusal], object], report: Report) -> None:
        self._refuse = refuse
        self._refusals: set[int] = set()
        """hashes, as a file may have millions of bad rows"""
        self.report = report

    @property
    def refusals(self) -> int:
        """How many things were left out."""
        return len(self._refusals)

    def refuse(self, refusal: Refusal) -> None:
        """Say what is left out."""
        if hash(refusal) not in self._refusals:
            self._refusals.add(hash(refusal))
            self._refuse(refusal)


class _Builder:
    """One build."""

    def __init__(
        self,
        folder: Path,
        generation: Path,
        old: IndexInfo | None,
        settings: BuildSettings,
        reporter: _Reporter,
        embed: Embedder | None,
        keeps: bool = True,
    ) -> None:
        self._folder, self._generation, self._old = folder, generation, old
        self._settings = settings
        self._reporter = reporter
        self._shards = settings.shards or (old.shards if old else 1)
        self._split = settings.split or (SplitSettings(**old.settings) if old else SplitSettings())
        # Cut in another way or dealt to other shards, all is read again.
        is_alike = old is not None and old.shards == self._shards and dict(old.settings) == asdict(self._split)
        self._before = folder / old.generation if old and keeps and is_alike else None
        self._files = self._read_bytes = 0
        has_vectors = settings.vectors if settings.vectors is not None else bool(old and old.vectors)
        if has_vectors and embed is None:
            raise RechainError(f"the vectors of {folder} need an encoder: pass embed, or BuildSettings(vectors=False).")
        self._embed = embed if has_vectors else None

    def build(self, sources: Sequence[Path]) -> Build:
        """Build the new generation and let it count; where nothing has changed, the old one goes on to count."""
        before = self._before and self._before / MANIFEST
        found = self._find(sources)
        if not found and self._old and self._old.passages:  # a share that is not mounted, say
            raise RechainError(
                f"no file that can be read was found, and {self._folder} has {self._old.passages} passages; "
                "it is as it was before. Remove it to begin anew."
            )
        changes = compare(before, found)
        for refusal in read_refusals(before, found):
            self._reporter.refuse(refusal)
        embedder = self._embed.name if self._embed else None
        may_stay = self._old if self._before and self._old and self._old.vectors == embedder else None
        if may_stay and not any(changes):
            return Build(may_stay, 0, 0, 0, self._reporter.refusals)
        self._generation.mkdir()
        with closing(Manifest(self._generation / MANIFEST, before)) as manifest:
            with _Shards(self._generation, self._shards, self._before) as shards:
                manifest.drop_sources(changes.gone)
                self._take_in(changes, manifest, shards)
                if self._before and not manifest.is_settled:
                    raise _UnsettledError
                if may_stay and not manifest.has_changed:  # such as a file that still may not be read
                    return Build(may_stay, 0, 0, self._files, self._reporter.refusals)
                manifest.finish(shards)
                shards.finish()
            self._write_vectors(manifest)
            info = self._info(manifest)
        _sync(self._generation)
        write_sealed(self._folder / POINTER, {"format": FORMAT, **info._asdict()})
        _sync_one(self._folder)  # before the old generation is removed
        gone = self._old.passages if self._old and not self._before else manifest.dropped
        return Build(info, manifest.added, gone, self._files, self._reporter.refusals)

    def _find(self, sources: Sequence[Path]) -> list[Source]:
        """Return the files of all SOURCEs."""
        found: list[Source] = []
        for source in find_sources(sources):
            if isinstance(source, Refusal):
                self._reporter.refuse(source)
            else:
                found.append(source)
        return found

    def _take_in(self, changes: Changes, manifest: Manifest, shards: "_Shards") -> None:
        """Read every file that is new or changed, and put its passages into the index."""
        total = sum(source.size for source in changes.changed) or 1
        for source, outcomes in self._read(changes.changed):
            with manifest.taking(source) as take:
                for outcome in outcomes:
                    if isinstance(outcome, Refusal):
                        self._reporter.refuse(outcome)
                        take.refuse(outcome)
                        continue
                    for taken in take(outcome):
                        shards.add(taken)
                    self._reporter.report(self._read_bytes / total, manifest.added)
            self._files += 1
            self._read_bytes += source.size
            self._reporter.report(self._read_bytes / total, manifest.added)

    def _read(self, sources: Sequence[Source]) -> Iterator[tuple[Source, Iterable[Extract | Refusal]]]:
        """Yield files with what they hold: documents are converted by other processes, collections stream through."""
        documents = [source for source in sources if source.kind != "collection"]
        for source in sources:
            if source.kind == "collection":
                yield source, read_source(source)
        workers = usable_cores() if self._settings.workers is None else self._settings.workers
        convert = _Converter(self._split)
        if workers and len(documents) > 1:
            make = partial(_Converter, self._split)
            names = in_order(make, documents, workers, _name_of, preload=[__name__], substitute=_refuse_deadly)
            yield from zip(documents, names, strict=True)
        else:
            yield from ((source, convert(source)) for source in documents)

    def _write_vectors(self, manifest: Manifest) -> None:
        """Embed the passages that are new; or remove the vectors that came with the shards of the old generation."""
        folders = [self._generation / shard_name(number) for number in range(self._shards)]
        if self._embed is None:
            for folder in folders:
                remove_vectors(folder)
            return
        names: list[dict[int, str]] = [{} for _ in folders]
        for name, digest in manifest.digests():
            names[order_of(name) % len(folders)][key_of(digest)] = name
        counter = _Counter(sum(map(len, names)), self._reporter.report)
        writer = VectorWriter(self._embed, self._old_vectors(self._embed.name), counter)
        for folder, of_shard in zip(folders, names, strict=True):
            writer.write(folder, of_shard, _Reader(folder))

    def _old_vectors(self, embedder: str) -> list[Path]:
        """Return the folders with vectors that may stay, also where passages are dealt to other shards now."""
        old = self._old
        if old is None or old.vectors != embedder:
            return []
        return [self._folder / old.generation / shard_name(number) for number in range(old.shards)]

    def _info(self, manifest: Manifest) -> IndexInfo:
        sizes = {
            path.relative_to(self._generation).as_posix(): path.stat().st_size
            for path in sorted(self._generation.rglob("*"))
            if path.is_file()
        }
        passages, files, stamp = manifest.summary()
        if self._shards > 1:  # each weighs words by its own counts, so that their number makes a difference
            stamp = f"{stamp}-{self._shards}"
        if self._embed:  # with them other passages are found
            stamp = f"{stamp}-v"
        built = datetime.now(UTC).isoformat(timespec="seconds")
        vectors = self._embed.name if self._embed else None
        split = asdict(self._split)
        return IndexInfo(self._generation.name, stamp, passages, files, self._shards, built, split, sizes, vectors)


class _Counter:
    """Reports how many of all passages have their vectors."""

    def __init__(self, total: int, report: Report) -> None:
        self._total, self._report, self._number = total, report, 0

    def __call__(self, number: int) -> None:
        self._number += number
        self._report(self._number / self._total, self._number)


class _Reader:
    """Reads passages of a shard by their ids; the shard is opened when the first is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shard: LocalShard | None = None

    def __call__(self, name: str) -> Passage:
        self._shard = self._shard or LocalShard(self._folder)
        ((hit,),) = self._shard.search([Ask((), (Condition("id", (name,)),), limit=1)])
        return read_passage(hit.record)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn what goes wrong while an index is written, a full disk say, into one sentence."""
    try:
        yield
    except (OSError, ValueError, sqlite3.Error) as error:  # the engine raises ValueError for all that it meets
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
            message = f"{folder} is damaged: {MANIFEST}: {reason}; remove the folder and build the index again."
            raise InputError(message) from error
        raise RechainError(f"{folder} cannot be written: {reason}; the index is as it was before.") from error


def _name_of(source: Source) -> str:
    return source.name


def _refuse_deadly(source: Source, how: str) -> list[Extract | Refusal]:
    message = f"{source.name} cannot be read: it ends the process that converts it ({how})."
    return [Refusal(source.name, message, may_pass=True)]  # memory may have been short for another reason


class _Converter:
    """Converts documents, in a process of its own."""

    def __init__(self, settings: SplitSettings) -> None:
        self._settings = settings

    def __call__(self, source: Source) -> list[Extract | Refusal]:
        return list(read_source(source, self._settings))


def _sync(folder: Path) -> None:
    """Wait until all files of a folder are on the disk: a power cut must not leave a pointer to what is not there."""
    for path in (*folder.rglob("*"), folder):
        _sync_one(path)


def _sync_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Shards:
    """The search engine's folders of a new generation; they begin with what those of the old one hold."""

    def __init__(self, generation: Path, number: int, before: Path | None) -> None:
        self._generation = generation
        self._before = before
        self._folders = [generation / shard_name(n) for n in range(number)]
        self._writers: dict[int, tantivy.IndexWriter] = {}
        self._dropped: dict[int, set[bytes]] = {}
        """marks of the records that each shard loses: an id may come back with another text"""

    def __enter__(self) -> "_Shards":
        for folder in self._folders:
            if self._before is not None:
                _link_folder(self._before / folder.name, folder)
            else:
                folder.mkdir()
                tantivy.Index(schema(), path=str(folder))
        return self

    def __exit__(self, *error: object) -> None:
        self._writers.clear()

    def add(self, taken: NewPassage) -> None:
        """Put a passage into its shard."""
        self._writer(self._number(taken.passage.id)).add_document(document(*taken))

    def drop(self, name: str, mark: bytes) -> None:
        """Leave out a passage."""
        self._dropped.setdefault(self._number(name), set()).add(mark)

    def finish(self) -> None:
        """Write all that was added; and anew, without what was dropped, the shards that lose something."""
        for writer in self._writers.values():
            _commit(writer)
        self._writers.clear()
        for number in self._dropped:
            self._write_anew(number)
        for folder in self._folders:
            for lock in folder.glob(".tantivy*.lock"):
                lock.unlink()
            for path in folder.iterdir():
                if path.suffix in _COPIED:  # the engine lets nobody but their owner read these
                    path.chmod((self._generation / MANIFEST).stat().st_mode)

    def _number(self, name: str) -> int:
        return order_of(name) % len(self._folders)

    def _writer(self, number: int) -> tantivy.IndexWriter:
        if number not in self._writers:
            self._writers[number] = self._open_writer(self._folders[number])
        return self._writers[number]

    def _open_writer(self, folder: Path) -> tantivy.IndexWriter:
        threads = max(1, usable_cores() // len(self._folders))
        heap = max(_HEAP // len(self._folders), threads * _LEAST_HEAP)
        return tantivy.Index.open(str(folder)).writer(heap, threads)

    def _write_anew(self, number: int) -> None:
        folder, dropped = self._folders[number], self._dropped[number]
        whole = folder.with_name(f"{folder.name}.whole")
        folder.replace(whole)
        folder.mkdir()
        tantivy.Index(schema(), path=str(folder))
        writer = self._open_writer(folder)
        for record in _records(whole):
            if mark_of(record) not in dropped:
                writer.add_document(document(read_passage(record), record))
        _commit(writer)
        shutil.rmtree(whole)


def _commit(writer: tantivy.IndexWriter) -> None:
    writer.commit()
    writer.wait_merging_threads()


def _records(folder: Path) -> Iterator[bytes]:
    """Yield the records of all passages in a folder of the engine."""
    searcher = tantivy.Index.open(str(folder)).searcher()
    hits = searcher.search(tantivy.Query.all_query(), max(searcher.num_docs, 1), count=False).hits
    for _, address in hits:
        yield record_at(searcher, address)


def _link_folder(old: Path, new: Path) -> None:
    """Make a folder of the engine that shares the files of another, as far as the engine never changes them."""
    new.mkdir()
    for path in old.iterdir():
        if path.suffix in _COPIED:
            shutil.copyfile(path, new / path.name)
            continue
        try:
            os.link(path, new / path.name)
        except OSError:  # a file system without links
            shutil.copyfile(path, new / path.name)
