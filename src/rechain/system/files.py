"""Files: written whole or not at all, sealed with their SHA-256, and read here or from a store such as S3.

`replacing` writes a file as a whole, whatever kills the process; a `WatchedFile` grows and notices other programs that
change it. Sealed JSON contains its own digest and those of the files that belong to it.

The command line turns an address of a store into a path of universal-pathlib once; it behaves like a `Path` without
being one. Keys come from the environment, never from an address, which logs and messages show.
"""

import hashlib
import io
import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from rechain.errors import DamagedInputError, InputError, MissingExtraError, RechainError, ResumableError

SHA256 = "sha256"
"""the key under which JSON has the digests of files by their names, its own among them"""
_LARGEST_JSON = 2**26
"""bytes of a file of settings; those that rechain writes have a few thousand, or the id of every question"""
_BLOCK = 1 << 20
# Bytes of a request, which takes tens of milliseconds; s3fs would keep 50 MB of every open file in memory.
_REQUEST = 1 << 22
_BUFFER = 1 << 17
# The kinds of stores in whose addresses keys differ from names, and the library that each needs in addition to s3fs.
# Others that fsspec knows run commands, chain addresses, or carry keys anywhere (https://…?Signature).
_LIBRARIES = {"s3": "", "gs": "gcsfs", "az": "adlfs"}
# A user and a secret, which may contain a slash; or a user alone.
_KEYS = re.compile(r"\A(?:[^:/@?]*:[^@]*@|[^/@?]*@)")
# What a user can do about the errors of boto and fsspec, by their names: the libraries need not be there.
_REASONS = {
    "FileNotFoundError": "there is no such file or bucket",
    "PermissionError": "access is denied; check the keys (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)",
    "NoCredentialsError": "there are no keys; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "EndpointConnectionError": "the store does not answer; check the network and AWS_ENDPOINT_URL",
}


class LostOutputError(RechainError):
    """An output file that another program has removed, replaced or changed while it was written."""


@contextmanager
def replacing(path: Path, previous: Path | None = None) -> Iterator[BinaryIO]:
    """Open a new file that replaces another once it is whole and on the disk.

    The other is kept as `previous` if that is given: at any moment one of both is there and whole.
    A device or a pipe is written to as it is, and a link stays one.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    place = path.resolve()
    # hidden, so that readers of a folder pass it over, and in the same folder, as only there a rename is atomic
    temporary = place.with_name(f".{place.name}.{os.urandom(8).hex()}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # else a power cut could leave an empty file under the new name
            is_whole = os.fstat(file.fileno()).st_size == file.tell()
        if not (is_whole and temporary.exists()):
            raise LostOutputError(f"{path} was removed or cut by another program while it was written; start again.")
        if previous is not None and place.exists():
            place.replace(previous)
        temporary.replace(place)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # the error of a full disk names no file
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file by a new one; the old one stays until the new one is whole and on the disk."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what goes wrong while a file grows into one sentence."""
    try:
        yield
    except OSError as error:
        raise ResumableError(f"{path} cannot be written: {error.strerror}.") from error


class WatchedFile:
    """A file that is only added to, without a buffer: what was written is in it, whatever kills this process.

    A device or a pipe is written to as it is, and not watched.
    """

    def __init__(self, path: Path, is_new: bool = False) -> None:
        """Open a file that exists, or create one."""
        self.path = path
        if path.exists() and not path.is_file():
            self.file = io.FileIO(path, "w")
        else:  # appending: after another program has cut the file, a hole of zero bytes would have the right size
            self.file = io.FileIO(
                path.resolve(),
                "x+" if is_new else "r+",
                opener=lambda name, flags: os.open(name, flags | os.O_APPEND, 0o666),
            )
        status = os.fstat(self.file.fileno())
        self.size, self.is_regular = status.st_size, stat.S_ISREG(status.st_mode)

    def append(self, content: bytes) -> None:
        """Add bytes; if that fails, what was there before stays."""
        self.check()
        rest = memoryview(content)
        with writing(self.path):
            try:
                while rest:
                    rest = rest[self.file.write(rest) :]
            except OSError:
                if self.is_regular:
                    self.file.truncate(self.size)
                raise
        self.size += len(content)

    def truncate(self, size: int) -> None:
        """Cut the file."""
        self.check()
        if self.is_regular and size != self.size:
            self.file.truncate(size)
            self.size = size

    def check(self) -> None:
        """Raise LostOutputError if this is no longer the file of its name, or not as long as what was written."""
        if not self.is_regular:
            return
        mine = os.fstat(self.file.fileno())
        try:
            how = "changed" if os.path.samestat(self.path.stat(), mine) else "replaced"
        except OSError:
            how = "removed or moved"
        if how != "changed" or mine.st_size != self.size:
            raise LostOutputError(
                f"{self.path} was {how} by another program while it was written; start again with --overwrite."
            )

    def sync(self) -> None:
        """Wait until the file is on the disk, and check it."""
        if self.is_regular:
            with writing(self.path):
                os.fsync(self.file.fileno())
            self.check()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def regular(path: Path) -> Path:
    """Return the path of a file to be opened; raise OSError if something else is there: a pipe may never end."""
    if path.exists() and not path.is_file():
        raise OSError("it is not a file")
    return path


def file_digest(path: Path, size: int = sys.maxsize) -> str:
    """Return the SHA-256 of a file, or of its first bytes."""
    digest = hashlib.sha256()
    with regular(path).open("rb") as file:
        while block := file.read(min(_BLOCK, size)):
            digest.update(block)
            size -= len(block)
    return digest.hexdigest()


def check_digests(folder: Path, digests: Mapping[str, str], record: str, advice: str) -> None:
    """Raise InputError with the first file of a folder that has changed since its digest was put on record."""
    for name, expected in digests.items():
        try:
            digest = file_digest(folder / name)
        except OSError as error:
            raise InputError(f"{folder / name} cannot be read: {error.strerror or error}; {advice}.") from error
        if digest != expected:
            raise InputError(f"{folder / name} is damaged: its SHA-256 is not the one in {record}; {advice}.")


def short_hash(text: str) -> int:
    """Return a number of 63 bits that depends on a text alone, unlike Python's own hash: not for secrets."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def _json_digest(content: Any) -> str:
    """Return the SHA-256 of the values of JSON, however it is laid out."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def sealed(content: Mapping[str, Any], name: str, files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the content of the JSON file of a name with the digests of other files and, under its name, its own."""
    whole = {**content, SHA256: dict(files or {})}
    return {**content, SHA256: {**whole[SHA256], name: _json_digest(whole)}}


def opened_seal(content: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the digests of other files in content that `sealed` has returned; raise ValueError if it was changed."""
    digests = content.get(SHA256)
    if not isinstance(digests, dict) or not all(isinstance(value, str) for value in digests.values()):
        raise ValueError("it has no SHA-256 of itself")
    files = {file: digest for file, digest in digests.items() if file != name}
    if digests.get(name) != _json_digest({**content, SHA256: files}):
        raise ValueError("its SHA-256 is another")
    return files


def read_json(path: Path) -> Any:
    """Read a JSON file; every fault is an OSError or a ValueError."""
    if regular(path).stat().st_size > _LARGEST_JSON:
        raise ValueError(f"it has more than {_LARGEST_JSON:,} bytes")
    try:
        return json.loads(path.read_bytes())
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file that contains its own digest."""
    write_atomically(path, json.dumps(sealed(content, path.name)).encode())


def read_sealed(path: Path) -> dict[str, Any]:
    """Read what `write_sealed` has written; every fault is an OSError or a ValueError."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    opened_seal(content, path.name)
    return {name: value for name, value in content.items() if name != SHA256}


# Reading, here or from a store


def path_of(address: str | Path) -> Path:
    """Return the path of a file here or, of an address such as s3://bucket/file, in a store."""
    if not isinstance(address, str) or "://" not in address:
        return Path(address) if isinstance(address, str) else address
    scheme, _, rest = address.partition("://")
    if re.search("[@:]", rest.partition("/")[0]) or "@" in scheme:
        raise RechainError("an address should hold no keys; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead.")
    if scheme not in _LIBRARIES or "::" in rest:
        known = ", ".join(f"{scheme}://" for scheme in _LIBRARIES)
        raise RechainError(f"{scheme}://… is no address of a known kind of store ({known}), such as s3://bucket/file.")
    try:
        from upath import UPath

        path = UPath(address)
        if f"{address}/".startswith("s3:///"):
            raise RechainError(f"{address} names no bucket; an address of a file is such as s3://bucket/file.")
        _ = cast(Any, path).fs  # imports the library of this kind of store
    except ImportError as error:
        if library := _LIBRARIES[scheme]:
            raise RechainError(f"Reading {address} needs more: pip install 'rechain[stores]' {library}.") from error
        raise MissingExtraError(f"Reading {address}", "stores") from error
    except ValueError as error:
        raise RechainError(f"{address} is no address of a file, such as s3://bucket/file.") from error
    return cast(Path, path)


def without_keys(address: str) -> str:
    """Return a path, or an address without the keys and options that Arrow's may contain, to show it."""
    scheme, mark, rest = address.partition("://")
    return f"{scheme}://{_KEYS.sub('', rest, count=1).partition('?')[0]}" if mark else address


def is_local(path: Path) -> bool:
    """Return whether a path is one of this machine's."""
    return isinstance(path, Path)


def open_binary(path: Path) -> io.BufferedReader:
    """Open a file for reading."""
    if is_local(path):
        return path.open("rb")
    return io.BufferedReader(cast(Any, path).open("rb", block_size=_REQUEST), _BUFFER)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong with a file, or with the store in which it is, into one sentence."""
    try:
        yield
    except RechainError:
        raise
    except OSError as error:
        reason = error.strerror or error
        if not is_local(path):
            reason = _REASONS.get(type(error).__name__) or reason
        raise DamagedInputError(f"{path} cannot be read: {reason}.") from error
    except Exception as error:
        if is_local(path):
            raise
        name = type(error).__name__  # its text may contain the request, with its keys
        raise InputError(f"{path} cannot be read: {_REASONS.get(name) or f'the store has failed ({name})'}.") from error
