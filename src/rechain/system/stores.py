"""Files in stores such as S3, read as local ones are.

The command line turns an address into a path of universal-pathlib once; below that it behaves as a `Path`, of whose
class it is not. Keys come from the environment, never from an address, which logs and messages show.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from rechain.errors import DamagedInputError, InputError, MissingExtraError, RechainError

# Bytes of a request, which takes tens of milliseconds; s3fs would keep 50 MB of every open file in memory.
_BLOCK = 1 << 22
_BUFFER = 1 << 17
# The kinds of stores whose addresses have a form in which keys can be told from names, and the library of each, beside
# s3fs of the extra. Others that fsspec knows run commands, chain addresses, or carry keys anywhere (https://…?Signature).
_LIBRARIES = {"s3": "", "gs": "gcsfs", "az": "adlfs"}
# User, and secret, which may hold a slash; or user alone.
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
    """Return a path, or an address without the keys and options that Arrow's may hold, to show it."""
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
        name = type(error).__name__  # its text may hold what was sent, with its keys
        raise InputError(f"{path} cannot be read: {_REASONS.get(name) or f'the store has failed ({name})'}.") from error
