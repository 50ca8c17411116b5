"""Markdown in passages and answers, as blocks that templates draw; every text stays text and is escaped."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from rechain.text.highlights import Piece

STRONG = "strong"
"""the role of a piece that is emphasised or code"""
_IS_MARKUP = re.compile(r"^[ \t]*(?:\||#{1,6}[ \t]|[-*•][ \t])|\*\*[^*\n]+\*\*|`[^`\n]+`", re.MULTILINE)
_RULE = re.compile(r"[ \t:|]*-[ \t:|-]*")
_START = re.compile(r"[ \t]*(?:(#{1,6})|[-*•])[ \t]+")
_INLINE = re.compile(r"(\*\*|`)")

Kind = Literal["text", "heading", "item", "row"]


class Block(NamedTuple):
    """Lines of a kind in sequence, each of several cells in a table and else of one."""

    kind: Kind
    lines: Sequence[Sequence[Sequence[Piece]]]


def blocks(pieces: Sequence[Piece]) -> list[Block] | None:
    """Return the blocks of a text that is Markdown, None if it is plain; marks stay where they are."""
    if not _IS_MARKUP.search("".join(piece.text for piece in pieces)):
        return None
    parsed = (line for raw in _split(pieces, "\n") if (line := _line(raw)))
    return [Block(kind, [cells for _, cells in lines]) for kind, lines in groupby(parsed, key=lambda line: line[0])]


def plain(text: str) -> str:
    """Return a text that may be Markdown without its signs, on one line."""
    found = blocks([Piece(text, ())])
    if found is None:
        return text
    cells = ["".join(piece.text for piece in cell).strip() for block in found for line in block.lines for cell in line]
    return " · ".join(filter(None, cells)) if any(block.kind == "row" for block in found) else " ".join(cells)


def _line(pieces: Sequence[Piece]) -> tuple[Kind, list[list[Piece]]] | None:
    """Return the kind of a line and its cells; None for a blank one and for the rule below a table's head."""
    text = "".join(piece.text for piece in pieces)
    if not text.strip() or (_RULE.fullmatch(text) and "|" in text):
        return None
    if text.lstrip().startswith("|"):
        cells = [_inline(cell) for cell in _split(pieces, "|")]
        return "row", cells[1:-1] if text.rstrip().endswith("|") else cells[1:]
    start = _START.match(text)
    if start is None:
        return "text", [_inline(pieces)]
    return "heading" if start[1] else "item", [_inline(_without_start(pieces, start.end()))]


def _split(pieces: Iterable[Piece], sign: str) -> Iterator[list[Piece]]:
    part: list[Piece] = []
    for piece in pieces:
        first, *rest = piece.text.split(sign)
        part.append(piece._replace(text=first))
        for text in rest:
            yield part
            part = [piece._replace(text=text)]
    yield part


def _without_start(pieces: Sequence[Piece], length: int) -> Iterator[Piece]:
    for piece in pieces:
        yield piece._replace(text=piece.text[length:])
        length = max(length - len(piece.text), 0)


def _inline(pieces: Iterable[Piece]) -> list[Piece]:
    """Take the signs of emphasis and code away, and give what is between them a role; unpaired ones stay."""
    whole = list(pieces)
    text = "".join(piece.text for piece in whole)
    paired = {sign for sign in ("**", "`") if text.count(sign) % 2 == 0}
    done, is_on = [], dict.fromkeys(("**", "`"), False)
    for piece in whole:
        for part in _INLINE.split(piece.text):
            if part in paired:
                is_on[part] = not is_on[part]
            elif part:
                done.append(Piece(part, (*piece.roles, STRONG) if any(is_on.values()) else piece.roles))
    return done
