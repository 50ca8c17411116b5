"""Files and folders that all nodes of a cluster can reach: on a shared disk, or in a store such as S3."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rechain.errors import InputError, MissingExtraError, RechainError
from rechain.system.files import write_atomically
from rechain.system.stores import without_keys

# Bytes of a read: a store such as S3 answers each by a request, which takes tens of milliseconds.
_BUFFER = 1 << 20


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
            io.BufferedReader(self._system.open_input_file(self._path(name)), _BUFFER) as file,
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
