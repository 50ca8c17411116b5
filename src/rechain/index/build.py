"""From files to an index, and from an index to one that is up to date.

An index contains what its SOURCES contain: a build adds what is new or changed and drops what is gone. It writes a new
generation (see `index`), in which unchanged files of the old one are linked, not copied.

Results depend on the collection alone, not on its history. The search engine counts dropped passages until it merges
their segment, which changes the scores; so if a passage is dropped, all are written again. An id that several files
have belongs to the first of them; if such files come or go, everything is read again.
"""

import fcntl
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from pathlib import Path

from rechain.errors import InputError, RechainError
from rechain.formats.documents import Extract, Refusal, Source, SplitSettings, find_sources, read_source
from rechain.index.engine import REMEDY, EngineWriter
from rechain.index.index import ENGINE, FORMAT, MANIFEST, POINTER, IndexInfo, check_files, read_info
from rechain.index.manifest import Manifest, compare
from rechain.system.files import write_sealed
from rechain.system.processes import in_order, usable_cores

_GENERATION = "generation-"
_LOCK = ".lock"
_OURS = re.compile(rf"{re.escape(_LOCK)}|{_GENERATION}\d+|\.{re.escape(POINTER)}\.[0-9a-f]+")
"""what builds create in the folder next to the pointer, and the pointer before it is complete"""

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""codes of SQLite for a manifest that is no database, or one without our tables; a full disk has others"""

Report = Callable[[float, int], None]
"""takes the share of the input that was read, and the number of passages"""


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How an index is built."""

    split: SplitSettings | None = None
    """how documents are cut; None: as those of the index are, or as `SplitSettings` has it"""
    workers: int | None = 0
    """processes that convert documents; None: one a core; 0: none but this one, since a script that starts others must
    be guarded by `if __name__ == "__main__":`"""


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
    new_files: Sequence[str] = ()
    changed_files: Sequence[str] = ()
    """those whose size or time is another since the index was built before, whether their passages are or not"""
    gone_files: Sequence[str] = ()


def build_index(
    sources: Sequence[str | Path] | str | Path,
    folder: str | Path,
    settings: BuildSettings | None = None,
    refuse: Callable[[Refusal], object] = lambda refusal: None,
    report: Report = lambda share, passages: None,
) -> Build:
    """Build an index of sources, or bring the one in the folder up to date.

    `refuse` is called with everything that is left out. Whatever happens, the folder has the old index or the new one.
    """
    folder = Path(folder)
    settings = settings or BuildSettings()
    paths = [Path(sources)] if isinstance(sources, str | Path) else [Path(source) for source in sources]
    for path in paths:
        with suppress(OSError, RuntimeError):  # links in a circle, which are named where files are found
            if path.resolve().is_relative_to(folder.resolve()):  # nothing would be found, and all be dropped
                raise RechainError(f"{path} lies in {folder}, where the index goes; name another folder for the index.")
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
                return _Builder(folder, generation, old, settings, reporter).build(paths)
            except _UnsettledError:
                shutil.rmtree(generation)
                return _Builder(folder, generation, old, settings, reporter, keeps=False).build(paths)
        finally:  # if Ctrl+C came just after the pointer was replaced, the new generation is current
            _remove_remains(folder, but=read_info(folder) if (folder / POINTER).exists() else None)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder of an index, which may be new; two builds at the same time would undo each other's work."""
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
    """Remove what a killed build or an older generation has left; open files stay readable."""
    for path in folder.iterdir():
        if path.name == _LOCK or (but and path.name == but.generation) or not _OURS.fullmatch(path.name):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class _UnsettledError(Exception):
    """Files with the same ids came or went, so passages would have other ids if everything were read again."""


@dataclass
class _Reporter:
    """Reports what is left out, each thing once, and the progress of a build."""

    on_refusal: Callable[[Refusal], object]
    report: Report
    refusals: set[int] = field(default_factory=set)
    """hashes, as a file may have millions of bad rows"""

    def refuse(self, refusal: Refusal) -> None:
        if hash(refusal) not in self.refusals:
            self.refusals.add(hash(refusal))
            self.on_refusal(refusal)


class _Builder:
    """One build."""

    def __init__(
        self,
        folder: Path,
        generation: Path,
        old: IndexInfo | None,
        settings: BuildSettings,
        reporter: _Reporter,
        keeps: bool = True,
    ) -> None:
        self._folder, self._generation, self._old = folder, generation, old
        self._settings = settings
        self._reporter = reporter
        self._split = settings.split or (SplitSettings(**old.settings) if old else SplitSettings())
        is_alike = old is not None and dict(old.settings) == asdict(
            self._split
        )  # cut in another way, all is read again
        self._before = folder / old.generation if old and keeps and is_alike else None
        self._files = self._read_bytes = 0

    def build(self, sources: Sequence[Path]) -> Build:
        """Build the new generation and activate it; if nothing has changed, the old one stays."""
        before = self._before and self._before / MANIFEST
        found: list[Source] = []
        for source in find_sources(sources):
            if isinstance(source, Refusal):
                self._reporter.refuse(source)
            else:
                found.append(source)
        if not found and self._old and self._old.passages:  # a share that is not mounted, say
            raise RechainError(
                f"no file that can be read was found, and {self._folder} has {self._old.passages} passages; "
                "it is as it was before. Remove it to start again."
            )
        changes = compare(before, found)
        since = changes if before or not self._old else compare(self._folder / self._old.generation / MANIFEST, found)
        changed = [source.name for source in since.changed]
        files = {
            "new_files": [name for name in changed if name in since.new],
            "changed_files": [name for name in changed if name not in since.new],
            "gone_files": since.gone,
        }
        for refusal in changes.refusals:
            self._reporter.refuse(refusal)
        may_stay = self._old if self._before else None
        if may_stay and not changes.changed and not changes.gone:
            return Build(may_stay, 0, 0, 0, len(self._reporter.refusals))
        self._generation.mkdir()
        with closing(Manifest(self._generation / MANIFEST, before)) as manifest:
            with closing(EngineWriter(self._generation / ENGINE, self._before and self._before / ENGINE)) as writer:
                manifest.drop_sources(changes.gone)
                self._take_in(changes.changed, manifest, writer)
                if self._before and not manifest.is_settled:
                    raise _UnsettledError
                if may_stay and not manifest.has_changed:  # such as a file that still may not be read
                    return Build(may_stay, 0, 0, self._files, len(self._reporter.refusals), **files)
                writer.finish(manifest.finish(), (self._generation / MANIFEST).stat().st_mode)
            info = self._info(manifest)
        # After a power cut the pointer must not name missing files.
        _sync(*self._generation.rglob("*"), self._generation)
        write_sealed(self._folder / POINTER, {"format": FORMAT, **info._asdict()})
        _sync(self._folder)  # before the old generation is removed
        gone = self._old.passages if self._old and not self._before else manifest.dropped
        return Build(info, manifest.added, gone, self._files, len(self._reporter.refusals), **files)

    def _take_in(self, changed: Sequence[Source], manifest: Manifest, writer: EngineWriter) -> None:
        """Read every file that is new or changed, and add its passages."""
        total = sum(source.size for source in changed) or 1
        for source, outcomes in self._read(changed):
            with manifest.taking(source) as take:
                for outcome in outcomes:
                    if isinstance(outcome, Refusal):
                        self._reporter.refuse(outcome)
                        take.refuse(outcome)
                        continue
                    for new in take(outcome):
                        writer.add(*new)
                    self._reporter.report(self._read_bytes / total, manifest.added)
            self._files += 1
            self._read_bytes += source.size
            self._reporter.report(self._read_bytes / total, manifest.added)

    def _read(self, sources: Sequence[Source]) -> Iterator[tuple[Source, Iterable[Extract | Refusal]]]:
        """Yield files with their content: documents are converted by other processes, collections are streamed."""
        documents = [source for source in sources if source.kind != "collection"]
        for source in sources:
            if source.kind == "collection":
                yield source, read_source(source)
        workers = usable_cores() if self._settings.workers is None else self._settings.workers
        if workers and len(documents) > 1:
            make = partial(partial, _convert, self._split)
            describe = attrgetter("name")
            done = in_order(make, documents, workers, describe, preload=[__name__], substitute=_refuse_deadly)
            yield from zip(documents, done, strict=True)
        else:
            yield from ((source, _convert(self._split, source)) for source in documents)

    def _info(self, manifest: Manifest) -> IndexInfo:
        sizes = {
            path.relative_to(self._generation).as_posix(): path.stat().st_size
            for path in sorted(self._generation.rglob("*"))
            if path.is_file()
        }
        passages, files, stamp = manifest.summary()
        built = datetime.now(UTC).isoformat(timespec="seconds")
        return IndexInfo(self._generation.name, stamp, passages, files, built, asdict(self._split), sizes)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn errors while an index is written, such as a full disk, into one sentence."""
    try:
        yield
    except (OSError, ValueError, sqlite3.Error) as error:  # the engine raises ValueError for all that it meets
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
            raise InputError(f"{folder} is damaged: {MANIFEST}: {reason}; {REMEDY}.") from error
        raise RechainError(f"{folder} cannot be written: {reason}; the index is as it was before.") from error


def _refuse_deadly(source: Source, how: str) -> list[Extract | Refusal]:
    message = f"{source.name} cannot be read: it ends the process that converts it ({how})."
    return [Refusal(source.name, message, may_pass=True)]  # memory may have been short for another reason


def _convert(settings: SplitSettings, source: Source) -> list[Extract | Refusal]:
    return list(read_source(source, settings))


def _sync(*paths: Path) -> None:
    """Write files and folders to the disk."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
