"""How valid things become invalid: records in their structure, files in their bytes."""

import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

Place = tuple[Any, Any]
"""a list or a dict, and where in it"""


class Raw(str):
    """JSON that no value of Python is written as."""


def _nested(draw: Random) -> Raw:
    """Return something that is nested as deeply as some parsers allow, or deeper than any does."""
    depth = draw.choice((20, 100, 200, 240, 300, 500, 600, 1000, 1023, 1025, 5000, 100_000))
    start, end = draw.choice((("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")))
    return Raw(start * depth + draw.choice(("1", "null", '"x"')) + end * depth)


def _long(draw: Random) -> Any:
    """Return a long text or list; a very long one is rare, as it takes long."""
    size = draw.choices((100, 10_000, 200_000, 3_000_000), (10, 10, 3, 0.3))[0]
    kind = draw.randrange(4)
    if kind == 0:
        return draw.choice(("x", "ab ", "é", "a\u0301", "\U0001d518", "Prague and ")) * size
    if kind == 1:
        return [draw.choice(("x", None, 1, {}, []))] * (size // 10)
    if kind == 2:
        return [f"x{number}" for number in range(size // 20)]
    return " ".join(f"Name{number} Surname{number}" for number in range(size // 20))


NUMBERS: Sequence[Any] = (
    *(0, 1, -1, 2, 3, 8, 9, 0.5, -0.0, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1),
    *(1e308, 5e-324, 2.0, 1e16),
    *map(Raw, ("1e999", "-1e999", "NaN", "Infinity", "-Infinity", "1" * 400, "1" * 5000, "0x10", "01", "1.", "-")),
)
TEXTS: Sequence[str] = (
    *("", " ", "\n", "\t", "\u00a0", "\u2028", "\u200b", "\0", "\x01", "\x7f", "\x85", "\x9b31m", "\x1b[2J"),
    *("\x1b]0;title\x07", "\u202egnirts", "\ufeff", "\ud800", "\udfff", "\ud83d", "\U0001d518", "\U0010ffff", "\ufffe"),
    *("é", "e\u0301", "İ", "ß", "ﬁ", "ŉ", "Σς", "٣", "null", "true", "NaN", "[]", "{}", "-", "--", ".", "..", "/"),
    *("../../etc/passwd", "s3://bucket/key", "C:\\x", "0", "00", "1e5", "-1", "<script>alert(1)</script>", "{{7*7}}"),
    *(
        "%s%n",
        "{0}",
        "'; DROP TABLE labels; --",
        '"',
        "\\",
        "\\u0000",
        "[bold]x[/bold]",
        "[/]",
        ":smile:",
        "\r",
        "a\r\nb",
    ),
    *("[SEP]", "[CLS]", "[PAD]", "#", "__", "drug:", ":", "DB00001", "P12345", "interacts_with DB1?"),
)
OTHERS: Sequence[Any] = (None, True, False, [], {}, [[]], [{}], [None], {"": None}, {"a": {"b": [1]}}, [1, "a", None])


def nasty(draw: Random) -> Any:
    """Return a value that few expect."""
    kind = draw.random()
    if kind < 0.08:
        return _nested(draw)
    if kind < 0.16:
        return _long(draw)
    return deepcopy(draw.choice(draw.choice((NUMBERS, TEXTS, TEXTS, OTHERS))))  # as it may be changed in its turn


def places(value: Any) -> Iterator[Place]:
    """Yield every place in a value where another could stand."""
    waiting = [value]
    while waiting:
        inside = waiting.pop()
        keys = list(inside) if isinstance(inside, dict) else range(len(inside))
        for key in keys[:50]:
            yield inside, key
            if isinstance(inside[key], dict | list):
                waiting.append(inside[key])


def mutate(draw: Random, value: Any, times: int) -> Any:
    """Change a value at random places; what is inside it is changed too."""
    for _ in range(times):
        found = list(places(value))
        if not found:
            return nasty(draw)
        inside, key = draw.choice(found)
        draw.choice(_CHANGES)(draw, inside, key, found)
    return value


def _replace(draw: Random, inside: Any, key: Any, _: list[Place]) -> None:
    inside[key] = nasty(draw)


def _remove(_: Random, inside: Any, key: Any, __: list[Place]) -> None:
    del inside[key]


def _graft(draw: Random, inside: Any, key: Any, found: list[Place]) -> None:
    other, place = draw.choice(found)
    inside[key] = deepcopy(other[place])


def _wrap(draw: Random, inside: Any, key: Any, _: list[Place]) -> None:
    value = inside[key]
    inside[key] = draw.choice(([value], {"value": value}, [value, deepcopy(value)], str(value), [[value]]))


def _rename(draw: Random, inside: Any, key: Any, _: list[Place]) -> None:
    value = inside[key]
    if isinstance(inside, dict):
        del inside[key]
        inside[draw.choice((f"{key} ", str(key).upper(), "", "\0", "id", "passages", "\ud800", "x" * 1000))] = value
    else:
        inside.insert(draw.randrange(len(inside) + 1), deepcopy(value))


def _add(draw: Random, inside: Any, _: Any, __: list[Place]) -> None:
    if isinstance(inside, dict):
        names = ("extra", "type", "hops", "link_types", "answer_aliases", "mentions", "_id", "why", "title", "same")
        inside[draw.choice(names)] = nasty(draw)
    else:
        inside.insert(draw.randrange(len(inside) + 1), nasty(draw))


def _change_text(draw: Random, inside: Any, key: Any, _: list[Place]) -> None:
    value = inside[key]
    if isinstance(value, str):
        at = draw.randrange(len(value) + 1)
        inside[key] = draw.choice((value[:at] + draw.choice(TEXTS) + value[at:], value[:at], value[at:], value.upper()))
    elif isinstance(value, int | float):
        inside[key] = draw.choice((value + 1, value - 1, -value, value * 1000, float(value), str(value)))
    else:
        inside[key] = nasty(draw)


_CHANGES: Sequence[Callable[[Random, Any, Any, list[Place]], None]] = (
    *(_replace, _replace, _remove, _graft, _wrap, _rename, _add, _change_text, _change_text),
)


# ---- how values are written


def written(draw: Random, value: Any) -> bytes:
    """Return the JSON of a value, spaced and escaped in one of the ways that are allowed; a key may stand twice."""
    raws: list[Raw] = []

    def marked(value: Any) -> Any:
        if isinstance(value, Raw):
            raws.append(value)
            return f"@raw{len(raws) - 1}@"
        if isinstance(value, dict):
            return {name: marked(field) for name, field in value.items()}
        return list(map(marked, value)) if isinstance(value, list) else value

    separators = draw.choice(((",", ":"), (", ", ": "), (" ,\t", " : ")))
    text = json.dumps(marked(value), ensure_ascii=draw.random() < 0.5, separators=separators)
    text = re.sub('"@raw([0-9]+)@"', lambda match: raws[int(match[1])], text)  # once: there may be many thousands
    if draw.random() < 0.03:
        name = draw.choice(("id", "question", "passages", "text", "chains"))
        text = text.replace(f'"{name}"', f'"{name}": {draw.choice(("null", "[]", "1"))}, "{name}"', 1)
    return text.encode("utf-8", "surrogatepass")


def without_raw(value: Any) -> Any:
    """Return a value with what JSON alone can hold as text, for tables."""
    if isinstance(value, dict):
        return {str(name): without_raw(field) for name, field in value.items()}
    return list(map(without_raw, value)) if isinstance(value, list) else str(value) if isinstance(value, Raw) else value


def as_lines(draw: Random, rows: list[bytes]) -> bytes:
    """Return a file of JSON lines, perhaps with blank lines, other line ends, no last line end."""
    end = draw.choices((b"\n", b"\r\n", b"\n\n", b" \n"), (20, 2, 1, 1))[0]
    return end.join(rows) + draw.choices((end, b"", b"\n\n \n", b"\0"), (20, 4, 1, 0.3))[0]


def as_array(draw: Random, rows: list[bytes]) -> bytes:
    """Return a file that is one array, or objects over several lines, or nearly so."""
    between = draw.choices((b",", b",\n", b" , ", b"\n", b",,", b", 1, "), (10, 10, 3, 0.5, 0.5, 0.5))[0]
    usual, odd = ((b"[", b"]"), (b"[\n", b"\n]\n")), ((b"[", b",]"), (b"[", b""), (b"[[", b"]]"), (b"", b""))
    around = (*usual, *odd, (b'{"data": [', b"]}"))
    start, end = draw.choices(around, (20, 10, 0.5, 1, 0.5, 0.5, 0.5))[0]
    return start + between.join(rows) + end


def spread_out(_: Random, rows: list[bytes]) -> bytes:
    """Return objects that begin with a brace on a line of its own."""
    return b"".join(b"{\n" + row[1:] + b"\n" for row in rows)


# ---- bytes


def damage(draw: Random, content: bytes) -> bytes:
    """Change the bytes of a content once."""
    return draw.choice(_DAMAGES)(draw, content)


def _span(draw: Random, content: bytes) -> tuple[int, int]:
    start = draw.randrange(len(content) + 1)
    return start, min(len(content), start + draw.choice((1, 1, 2, 8, 100, 5000)))


def _flip(draw: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 3, 30)) if content else 0):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _cut(draw: Random, content: bytes) -> bytes:
    return content[: draw.randrange(len(content) + 1)]


def _take_out(draw: Random, content: bytes) -> bytes:
    start, end = _span(draw, content)
    return content[:start] + content[end:]


def _insert(draw: Random, content: bytes) -> bytes:
    at = draw.randrange(len(content) + 1)
    more = draw.choice(
        (b"\0", b"\n", b"\r", b"{", b"}", b"[", b"]", b'"', b"\\", b"\xff", b"\xed\xa0\x80", b"\xc0\x80")
    )
    return content[:at] + draw.choice((more, more, draw.randbytes(draw.choice((1, 16, 1000))))) + content[at:]


def _repeat(draw: Random, content: bytes) -> bytes:
    start, end = _span(draw, content)
    return content[:end] + content[start:end] * draw.choice((1, 2, 50)) + content[end:]


def _swap(draw: Random, content: bytes) -> bytes:
    one, two = sorted((_span(draw, content), _span(draw, content)))
    if one[1] > two[0]:
        return content[::-1]
    return (
        content[: one[0]] + content[slice(*two)] + content[one[1] : two[0]] + content[slice(*one)] + content[two[1] :]
    )


_DAMAGES: Sequence[Callable[[Random, bytes], bytes]] = (_flip, _flip, _cut, _take_out, _insert, _repeat, _swap)


def _packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)  # the same bytes whenever it is made


def encoded(draw: Random, content: bytes) -> bytes:
    """Write a content in another way: marked, in another encoding, gzipped once, twice, in members, or badly."""
    kind = draw.choice(("mark", "utf-16", "utf-16-le", "utf-32", "latin-1", "gzip", "gzip", "twice", "members", "tail"))
    if kind == "mark":
        return b"\xef\xbb\xbf" + content
    if kind.startswith(("utf", "latin")):
        return content.decode("utf-8", "replace").encode(kind, "replace")
    if kind == "members":
        at = draw.randrange(len(content) + 1)
        return _packed(content[:at]) + _packed(content[at:])
    packed = _packed(content)
    if kind == "twice":
        return _packed(packed)
    return packed + (draw.choice((b"\0" * 100, b"rest", b"\x1f\x8b", b"\n")) if kind == "tail" else b"")
