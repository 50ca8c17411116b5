"""SHA-256 of files, and JSON that carries its own: what was damaged since it was written shows when it is read."""

import json
from collections.abc import Mapping
from hashlib import blake2b, sha256
from hashlib import file_digest as digest_of_file
from pathlib import Path
from typing import Any

from rechain.system.files import write_atomically

SHA256 = "sha256"
"""the key under which JSON has the digests of files by their names, itself among them"""
_LARGEST_JSON = 2**26
"""bytes of a file of settings; those that rechain writes have a few thousand, or for every question its id"""


def regular(path: Path) -> Path:
    """Return a path, for one of a file to be opened; raise OSError if something else is there: a pipe may never end."""
    if path.exists() and not path.is_file():
        raise OSError("it is no file")
    return path


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with regular(path).open("rb") as file:
        return digest_of_file(file, SHA256).hexdigest()


def short_hash(text: str) -> int:
    """Return a number of 63 bits that depends on a text alone, unlike Python's own hash: not for secrets."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 1


def json_digest(content: Any) -> str:
    """Return the SHA-256 of what JSON says, however it is laid out."""
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def sealed(content: Mapping[str, Any], name: str, files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the content of the JSON file of a name with the digests of other files and, under its name, its own."""
    whole = {**content, SHA256: dict(files or {})}
    return {**content, SHA256: {**whole[SHA256], name: json_digest(whole)}}


def opened_seal(content: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the digests of other files in content that `sealed` has returned; raise ValueError if it was changed."""
    digests = content.get(SHA256)
    if not isinstance(digests, dict) or not all(isinstance(value, str) for value in digests.values()):
        raise ValueError("it has no SHA-256 of itself")
    files = {file: digest for file, digest in digests.items() if file != name}
    if digests.get(name) != json_digest({**content, SHA256: files}):
        raise ValueError("it is not what its SHA-256 is of")
    return files


def read_json(path: Path) -> Any:
    """Read a JSON file; whatever is wrong with it is an OSError or a ValueError."""
    if regular(path).stat().st_size > _LARGEST_JSON:
        raise ValueError(f"it has more than {_LARGEST_JSON:,} bytes")
    try:
        return json.loads(path.read_bytes())
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file that carries its own digest."""
    write_atomically(path, json.dumps(sealed(content, path.name)).encode())


def read_sealed(path: Path) -> dict[str, Any]:
    """Read what `write_sealed` has written, or an object without a digest; a fault is an OSError or a ValueError."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError("it is no JSON object")
    seals = [name for name, value in content.items() if isinstance(value, dict) and path.name in value]
    if SHA256 in content or seals:  # the latter where the key itself is damaged
        opened_seal(content, path.name)
    return {name: value for name, value in content.items() if name != SHA256}
