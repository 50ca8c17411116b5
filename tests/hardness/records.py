"""What records a file holds, found in another way than the package does: slow, simple, as exact as is certain."""

import zlib
from typing import Any, NamedTuple

import orjson

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Held(NamedTuple):
    """The records of a file: how many there are, and their ids where every one of them is on a line of its own."""

    fewest: int
    most: int
    ids: list[str | None] | None = None
    is_whole: bool = True
    """whether the file can be read to its end"""


def records_of(content: bytes) -> Held:
    """Return what records a file of JSON holds, which may be gzipped."""
    plain, is_whole = _gunzipped(content) if content.startswith(b"\x1f\x8b") else (content, True)
    start = plain.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if start.startswith(b"[") or start.split(b"\n", 1)[0].strip() == b"{":
        held = _objects(start)
    elif start.startswith(b"{"):
        held = _lines(plain.removeprefix(_BYTE_ORDER_MARK))
    else:
        held = Held(0, 0)
    if is_whole:
        return held
    # what was unpacked together with the damage is lost with it, so little is certain
    return held._replace(fewest=0, is_whole=False)


def _gunzipped(content: bytes) -> tuple[bytes, bool]:
    """Unpack all members; return what came before any damage, and whether there was none."""
    parts: list[bytes] = []
    rest = content
    while rest.startswith(b"\x1f\x8b"):
        member = zlib.decompressobj(31)
        for at in range(len(rest)):  # byte by byte: what comes out together with an error is lost
            try:
                parts.append(member.decompress(rest[at : at + 1]))
            except zlib.error:
                return b"".join(parts), False
            if member.eof:
                rest = rest[at + 1 :].lstrip(b"\0")
                break
        else:
            return b"".join(parts), False
    return b"".join(parts), not rest


def _lines(plain: bytes) -> Held:
    lines = [line for line in plain.split(b"\n") if line.strip()]
    return Held(len(lines), len(lines), list(map(_id, lines)))


def _id(line: bytes) -> str | None:
    """Return the id of a question, where the line is JSON and has one; of two the format decides which counts."""
    try:
        record: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    identities = [record[name] for name in ("id", "_id") if record.get(name)] if isinstance(record, dict) else []
    identity = identities[0] if len(identities) == 1 else None
    return identity if isinstance(identity, str) else None


def _objects(plain: bytes) -> Held:
    """Count the outermost objects, and what stands between them that is no separator."""
    depth = objects = strays = 0
    in_string = is_escaped = is_stray = False
    for byte in plain:
        if in_string:
            in_string = is_escaped or byte != ord('"')
            is_escaped = not is_escaped and byte == ord("\\")
            continue
        if byte == ord('"'):
            in_string, is_stray = True, depth == 0 or is_stray
        elif byte == ord("{"):
            if depth == 0:
                strays, is_stray = strays + is_stray, False
            depth += 1
        elif byte == ord("}") and depth:
            depth -= 1
            objects += depth == 0
        elif depth == 0 and byte not in b" \t\r\n,[]":
            is_stray = True
    is_whole = depth == 0 and not in_string
    return Held(objects, objects + strays + is_stray, None, is_whole)
