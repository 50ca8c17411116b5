"""Files in stores such as S3, read like local ones, and folders that all nodes of a cluster can reach.

The command line turns an address into a path of universal-pathlib once; it behaves like a `Path` without being one.
Ray reads and writes through Arrow, in a `Storage`. Keys come from the environment, never from an address, which
logs and messages show.
"""

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from rechain.errors import DamagedInputError, InputError, MissingExtraError, RechainError
from rechain.system.files import write_atomically

# Bytes of a request, which takes tens of milliseconds; s3fs would keep 50 MB of every open file in memory.
_BLOCK = 1 << 22
_BUFFER = 1 << 17
_READ = 1 << 20  # of Arrow, in bytes
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
    return io.BufferedReader(cast(Any, path).open("rb", block_size=_BLOCK), _BUFFER)


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


class Storage:
    """A file, or a folder and what is in it, by its path or its address ("s3://bucket/folder"). It can be pickled."""

    def __init__(self, address: str) -> None:
        """Find the file system of an address, at which nothing need exist yet."""
        try:
            import pyarrow
            from pyarrow import fs
        except ImportError as error:
            raise MissingExtraError("Running on Ray", "ray") from error
        self._is_local = "://" not in address
        self._system: Any
        if self._is_local:
            self._address = str(Path(address))
            self._system, self._root = fs.LocalFileSystem(), str(Path(address).absolute())
            return
        self._address = without_keys(address)
        try:
            self._system, self._root = fs.FileSystem.from_uri(address)
        except (pyarrow.ArrowException, OSError) as error:
            raise RechainError(f"{self._address} cannot be reached: {type(error).__name__}.") from error

    def holds(self, other: "Storage") -> bool:
        """Return whether another file or folder is this one or lies in it."""
        if not self._system.equals(other._system):
            return False
        roots = (os.path.realpath(each._root) if self._is_local else each._root for each in (other, self))
        inner, outer = (f"{root.rstrip('/')}/" for root in roots)
        return inner.startswith(outer)

    def files(self) -> dict[str, int]:
        """Return the sizes of all files in the folder by their names; a single file has the name ''."""
        from pyarrow import fs

        with self._named_errors(""):
            info = self._system.get_file_info(self._root)
            if info.type == fs.FileType.NotFound:
                return {}
            if info.type == fs.FileType.File:
                return {"": info.size}
            entries = self._system.get_file_info(fs.FileSelector(self._root, recursive=True))
        return {os.path.relpath(file.path, self._root): file.size for file in entries if file.is_file}

    def address_of(self, name: str) -> str:
        """Return the address of a file in the folder, as messages name it."""
        if not name:
            return self._address
        return f"{self._address.rstrip('/')}/{name}" if "://" in self._address else str(Path(self._address) / name)

    @contextmanager
    def open(self, name: str) -> Iterator[io.BufferedReader]:
        """Open a file in the folder for reading."""
        with (
            self._named_errors(name),
            io.BufferedReader(self._system.open_input_file(self._path(name)), _READ) as file,
        ):
            yield file

    def read(self, name: str) -> bytes:
        """Return the content of a file in the folder."""
        with self.open(name) as file:
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Write a file in the folder, which is whole or absent, also if other processes write the same one."""
        with self._named_errors(name):
            self._system.create_dir(self._root, recursive=True)
            if self._is_local:
                write_atomically(Path(self._path(name)), content)
                return
            with self._system.open_output_stream(self._path(name)) as file:  # stores show a file once it is whole
                file.write(content)

    def delete(self, name: str) -> None:
        """Delete a file in the folder."""
        with self._named_errors(name):
            self._system.delete_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}" if name else self._root

    @contextmanager
    def _named_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"{self.address_of(name)} cannot be read or written: {reason}.") from error
