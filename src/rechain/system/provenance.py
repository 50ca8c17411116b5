"""What made an output: `OUT.provenance` next to it, sealed lines of JSON.

The first line describes the run that made the output, the last one how it ended; `rechain.run.resume` adds checkpoints
in between. A line ends with its seal: the SHA-256 of the seal of the line before and of the line itself. So every byte
that is changed, and every line that is removed, added or moved, is noticed. Half a line at the end is what a killed
process leaves, and is ignored.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import orjson

from rechain.errors import InputError
from rechain.system.files import (
    SHA256,
    WatchedFile,
    file_digest,
    is_local,
    opened_seal,
    path_of,
    read_json,
    reading,
    regular,
    replacing,
    writing,
)
from rechain.version import __version__

MANIFEST = "_rechain.json"
"""in a folder of parts: what they are made of and how"""
FINISHED = "_SUCCESS"
"""in a folder whose parts are all there, as Spark and others have it"""

Facts = dict[str, Any]

SUFFIX = ".provenance"  # not that of records, which are read from folders by their suffixes
_MADE_BY, _ENDED = "rechain", "ended"
"""the fields by which a first and a last line are known"""
_START = b'{"%s":' % _MADE_BY.encode()
_SEAL = re.compile(rb',"seal":"[0-9a-f]{64}"\}\n')
_SEALED = re.compile(rb'(\{.+),"seal":"([0-9a-f]{64})"\}\n', re.DOTALL)
# Ours have a few kilobytes; a file of another kind may be one line that does not fit into the memory.
_LONGEST_LINE = 1 << 20
_DIGESTS = frozenset({SHA256, "etag"})
_IGNORED = (".", "_")  # files that programs hide by the first character of their names


class DamagedProvenanceError(InputError):
    """A damaged provenance file."""


def sidecar_of(output: Path) -> Path:
    """Return where the provenance of an output file stands."""
    return output.with_name(f"{output.name}{SUFFIX}")


def now() -> str:
    """Return the time as text."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def heading(command: str, **facts: Any) -> Facts:
    """Return the first line: what makes an output, in values as JSON has them."""
    fields = {_MADE_BY: __version__, "command": command, **facts, "began": now()}
    return orjson.loads(orjson.dumps(fields, default=_plain))  # type: ignore[no-any-return]


def describe_input(path: Path | str | None) -> Facts | None:
    """Return name, size and SHA-256 of a file or of the files in a folder, else the name alone.

    An object in a store such as S3 has its own digest, the ETag. What cannot be read gets its error later.
    """
    if path is None:
        return None
    try:
        path = path_of(path)
        if store := getattr(path, "fs", None):
            details = store.info(path.path)  # type: ignore[attr-defined]
            facts = {"name": str(path), "size": details.get("size"), "etag": details.get("ETag")}
            return {name: value for name, value in facts.items() if value}
        if path.is_file() or path.is_dir():
            return _described(path, _contents(path))
    except Exception as error:  # of libraries that read stores, which are no dependency
        if not (isinstance(error, OSError) or hasattr(path, "fs")):
            raise
    return {"name": str(path)}


def contains_input(path: Path, now: Facts | None, before: Facts | None) -> bool:
    """Return whether an input is what it was, or has only grown at its end; a pipe cannot be compared."""
    if not now or not before or not now.keys() & before.keys() & _DIGESTS:
        return False
    if _is_same(before, now):
        return True
    if "files" in before and path.is_dir():
        first = dict(islice(_contents(path).items(), before["files"]))
        return _is_same(before, _described(path, first))
    has_grown = is_local(path) and path.is_file() and before["size"] < now["size"]
    return has_grown and file_digest(path, before["size"]) == before["sha256"]


def _contents(path: Path) -> dict[str, Facts]:
    """Return size and SHA-256 of a file or of the files in a folder, by their names; in a store the sizes alone."""
    if store := getattr(path, "fs", None):
        root: str = path.path.rstrip("/")  # type: ignore[attr-defined]
        sizes = {name[len(root) + 1 :]: file["size"] for name, file in store.find(root, detail=True).items()}
        return {name: {"size": size} for name, size in sizes.items() if not _is_ignored(name)}
    if path.is_file():
        return {path.name: {"size": path.stat().st_size, SHA256: file_digest(path)}}
    files = {file.relative_to(path).as_posix(): file for file in sorted(path.rglob("*")) if file.is_file()}
    return {name: _contents(file)[file.name] for name, file in files.items() if not _is_ignored(name)}


def _is_ignored(name: str) -> bool:
    return name.endswith(SUFFIX) or any(part.startswith(_IGNORED) for part in name.split("/"))


def _described(path: Path, contents: Mapping[str, Facts]) -> Facts:
    """Return name, size and SHA-256 of a file or folder whose contents are known."""
    if path.is_file():
        return {"name": path.name, **contents[path.name]}
    listing = [[name, facts["size"], facts[SHA256]] for name, facts in contents.items()]
    digest = hashlib.sha256(orjson.dumps(listing)).hexdigest()
    return {"name": path.name, "files": len(listing), "size": sum(size for _, size, _ in listing), SHA256: digest}


@dataclass
class Sealer:
    """Makes lines, each sealed together with all before it."""

    seal: str = ""
    """that of the last line"""

    def line(self, fields: Mapping[str, Any]) -> bytes:
        """Return the next line."""
        text = orjson.dumps(fields, default=_plain)
        self.seal = _seal(self.seal, text)
        return b'%s,"seal":"%s"}\n' % (text[:-1], self.seal.encode())


class ProvenanceFile(WatchedFile):
    """The provenance file of an output that grows."""

    def __init__(self, output: Path, lines: Iterable[Mapping[str, Any]]) -> None:
        """Write a file that begins with lines, all or none of them."""
        path, self._sealer = sidecar_of(output), Sealer()
        with writing(path):
            with replacing(path) as file:
                file.writelines(map(self._sealer.line, lines))
            super().__init__(path)

    def add(self, fields: Mapping[str, Any]) -> None:
        """Add a line."""
        self.append(self._sealer.line(fields))


def read_lines(path: Path) -> Iterator[Facts]:
    """Yield the fields of every line of a provenance file; raises DamagedProvenanceError at a damaged one.

    Half a line at the end is passed over.
    """
    seal, number = "", 0
    try:
        with regular(path).open("rb") as file:
            while (line := file.readline(_LONGEST_LINE)).endswith(b"\n"):
                number += 1
                match = _SEALED.fullmatch(line)
                if not match or _seal(seal, match[1] + b"}") != (seal := match[2].decode()):
                    raise _damaged(path, f"at line {number}")
                fields = orjson.loads(match[1] + b"}")
                if number == 1 and not is_first_line(fields):
                    raise _damaged(path, "at line 1")
                yield fields
    except (OSError, orjson.JSONDecodeError) as error:
        raise _damaged(path, str(error)) from error
    if not number or len(line) == _LONGEST_LINE:
        raise _damaged(path, f"at line {number + 1}")


def _damaged(path: Path, where: str) -> DamagedProvenanceError:
    return DamagedProvenanceError(
        f"{path} is damaged ({where}), so nobody can tell what made {path.stem}; delete it to do without it, "
        f"or make {path.stem} again."
    )


def _seal(before: str, text: bytes) -> str:
    return hashlib.sha256(before.encode() + text).hexdigest()


def _plain(value: Any) -> Any:
    """Return a value that JSON has no form for as one that it has, always the same way."""
    return sorted(value) if isinstance(value, set | frozenset) else str(value)


def is_first_line(fields: Mapping[str, Any]) -> bool:
    """Return whether a line describes a run: the first line, or that of a resumed run."""
    return _MADE_BY in fields


def is_provenance(path: Path) -> bool:
    """Return whether a file is a provenance file, though it may be damaged; an empty one is nothing else."""
    try:
        if not path.is_file():  # a pipe would never end
            return False
        with path.open("rb") as file:
            start = file.read(_LONGEST_LINE)
    except OSError:
        return False
    return not start or start.startswith(_START) or _SEAL.search(start) is not None


def ending(output: Path, size: int, digest: str, counts: Mapping[str, Any]) -> Facts:
    """Return the last line: the counts and the output."""
    return {**counts, "output": {"name": output.name, "size": size, "sha256": digest}, _ENDED: now()}


def write_provenance(output: Path, head: Mapping[str, Any], counts: Mapping[str, Any]) -> None:
    """Write the provenance of a file that is finished; devices and pipes have none."""
    if not output.is_file():
        return
    end = ending(output, output.stat().st_size, file_digest(output), counts)
    with replacing(sidecar_of(output)) as file:
        file.writelines(map(Sealer().line, (head, end)))


def without_times(head: Mapping[str, Any]) -> Facts:
    """Return what made an output without what differs between two runs that make the same."""
    return {name: value for name, value in head.items() if name not in ("began", "run")}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield in what the model, the settings and the passages of two outputs differ, such as "top 2, not 1"."""
    models, settings, passages = (
        [_facts(fields, name) for fields in (before, now)] for name in ("model", "settings", "passages")
    )
    if not _is_same(*models):
        one, two = (facts.get("name") for facts in models)
        yield f"model {one}, not {two}{'; its files have changed' if one == two else ''}"
    for name in dict.fromkeys(chain(*settings)):
        one, two = (facts.get(name) for facts in settings)
        if one != two:
            yield f"{name} {_worded(one)}, not {_worded(two)}"
    if not _is_same(*passages):
        one, two = (facts.get("name", "of the questions alone") for facts in passages)
        yield f"passages {one}, not {two}"


def _facts(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a field that is an object, if it is."""
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two files, folders or models are the same: by their digests if they have them, else by name."""
    for name in _DIGESTS:
        if name in one and name in other:
            return bool(one[name] == other[name])
    return one.get("name") == other.get("name") and one.keys() == other.keys()


def _worded(value: Any) -> str:
    return "unset" if value is None else orjson.dumps(value).decode().replace('"', "")


@dataclass(frozen=True)
class Provenance:
    """What made an output, by the file next to it."""

    path: Path
    """of the output"""
    made_by: Facts = field(default_factory=dict)
    """the first line, or that of the last run that went on with the output"""
    end: Facts | None = None
    """the last line; None: the output is not finished"""
    damage: str | None = None
    """why the file next to the output cannot be trusted, a sentence"""

    @cached_property
    def _found(self) -> dict[str, Facts]:
        """Size and SHA-256 of the output, or of the files in it: read once, as chains may be many gigabytes."""
        with reading(self.path):
            return _contents(self.path)

    def described(self) -> Facts | None:
        """Return the output as `describe_input` does."""
        if getattr(self.path, "fs", None) or not (self.path.is_file() or self.path.is_dir()):
            return describe_input(self.path)
        return _described(self.path, self._found)

    def summary(self) -> str:
        """Return in one line what made the output."""
        if not self.made_by:
            return f"{self.path}: of unknown provenance"
        model, source = (_facts(self.made_by, name).get("name") for name in ("model", "input"))
        text = f"{self.path}: by rechain {self.made_by[_MADE_BY]} {self.made_by.get('command', '')}".rstrip()
        text += (f" with model {model}" if model else "") + (f" from {source}" if source else "")
        if not self.end:
            return f"{text}, begun {self.made_by.get('began')}, not finished"
        errors = _facts(self.end, "errors")
        counts = f", {self.end['questions']} questions" if "questions" in self.end else ""
        counts += f", {sum(errors.values())} with an error" if errors else ""
        return f"{text}, {self.end.get(_ENDED)}{counts}"

    def misfits(self, questions: Path | None = None) -> list[str]:
        """Return why the output should not be taken for what its provenance says, a sentence each."""
        if self.damage:
            return [self.damage]
        found = []
        if self.end is None:
            found.append(f"{self.path} is not finished; `rechain recover` goes on with it with --resume.")
        elif self.path.is_dir():
            found += self._changed_parts(_facts(self.end, "parts"))
        elif self.path.is_file() and not self._found[self.path.name].items() <= _facts(self.end, "output").items():
            found.append(f"{self.path} was changed after it was written.")
        source = _facts(self.made_by, "input")
        if questions is not None and self.made_by.get("command") == "recover" and source.keys() & _DIGESTS:
            given = describe_input(questions) or {}
            if given.keys() & source.keys() & _DIGESTS and not _is_same(source, given):
                found.append(f"{self.path} was recovered from other questions ({source.get('name')}) than {questions}.")
        return found

    def _changed_parts(self, recorded: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong with the parts of a folder, a sentence for each kind of change."""
        found = self._found
        kinds = {
            "is missing": recorded.keys() - found.keys(),
            "was changed after it was written": {
                name for name in found.keys() & recorded.keys() if not found[name].items() <= recorded[name].items()
            },
            "was added after the others were written": found.keys() - recorded.keys(),
        }
        for what, names in kinds.items():
            if names:
                more = f", and so it is with {len(names) - 1} more" if len(names) > 1 else ""
                yield f"{self.path / min(names)} {what}{more}."


def read_provenance(output: Path) -> Provenance | None:
    """Read what made an output; None where nothing says it."""
    with reading(output):
        is_folder = output.is_dir()
    if is_folder:
        return _read_manifest(output)
    if getattr(output, "fs", None) or not sidecar_of(output).is_file():
        return None
    made_by: Facts = {}
    last: Facts = {}
    try:
        for last in read_lines(sidecar_of(output)):
            if is_first_line(last):
                made_by = last
    except DamagedProvenanceError as error:
        return Provenance(output, made_by, damage=str(error))
    return Provenance(output, made_by, last if _ENDED in last else None)


def _read_manifest(folder: Path) -> Provenance | None:
    """Read what made the parts in a folder."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        fields = read_json(path)
        opened_seal(fields, MANIFEST)
    except (OSError, ValueError, AttributeError) as error:
        return Provenance(folder, damage=str(_damaged(path, str(error))))
    return Provenance(folder, fields, (fields.get("end") or {}) if (folder / FINISHED).exists() else None)


def compare(outputs: Iterable[Provenance]) -> list[str]:
    """Return in what the model and settings of outputs differ from the first, a sentence each."""
    first, *others = outputs
    return [
        f"{other.path} was made with {difference} as {first.path}."
        for other in others
        for difference in differences(other.made_by, first.made_by)
    ]
