"""Texts with Markdown or HTML in them, as people read them: plain blocks, and which of them are items of a list."""

import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

BlockKind = Literal["text", "item", "row", "heading"]

# Characters without which a text of one line is neither Markdown nor HTML.
_SIGNS = re.compile(r"[*_`#<>\[\]&|~\n\r\\•]")
_BULLET = re.compile(r"^[ \t]*[•‣◦▪●·–—][ \t]+", re.MULTILINE)
_LETTERED = re.compile(r"^[ \t]*\(?(?:[a-z]|\d{1,2})\)[ \t]+", re.MULTILINE)
# Only names that HTML knows are tags, so that "List<String>" stays. 500 characters of attributes are plenty, and keep
# the search linear in a text full of "<a".
_INVISIBLE = re.compile(r"<(script|style)\b[^<>]{0,500}>.{0,2000}?</\1>", re.IGNORECASE | re.DOTALL)
_ITEM_TAG = re.compile(r"<li\b[^<>]{0,500}>", re.IGNORECASE)
_BLOCK_TAG = re.compile(r"</?(?:p|div|ul|ol|li|tr|table|h[1-6]|section|blockquote|br|hr)\b[^<>]{0,500}>", re.IGNORECASE)
_CELL_TAG = re.compile(r"</t[dh]>", re.IGNORECASE)
_INLINE_TAG = re.compile(
    r"</?(?:a|abbr|b|body|cite|code|del|em|font|head|html|i|img|ins|kbd|mark|pre|q|s|small|span|strong|sub|sup|tbody|td"
    r"|tfoot|th|thead|u)\b[^<>]{0,500}>",
    re.IGNORECASE,
)
# "[1]", "[1, 2]", "[^3]", "【4†source】", "(source: …)": where an answer says that it has something from.
_CITATION = re.compile(
    r" ?(?:\[\^?\d{1,3}(?:\s*[,;–-]\s*\d{1,3}){0,9}\]|\[(?:source|doc|document|citation|quelle|来源)[^\[\]]{0,60}\]"
    r"|【[^【】]{0,80}】|\((?:source|quelle|来源)s?:?\s[^()]{0,80}\))",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"[ \t\u00a0\u3000]+")


class Block(NamedTuple):
    """A paragraph, an item of a list, a row of a table or a heading, without any markup."""

    kind: BlockKind
    text: str


def read_blocks(text: str) -> list[Block]:
    """Return the blocks of a text; one without markup is one block."""
    if not _SIGNS.search(text):
        plain = tidy(text)
        return [Block("text", plain)] if plain else []
    return [Block(kind, plain) for kind, content in _parse(_strip_tags(text)) if (plain := tidy(content))]


def tidy(text: str) -> str:
    """Return a text without citations and without blanks too many."""
    return _CITATION.sub("", _BLANKS.sub(" ", text)).strip()


def _strip_tags(text: str) -> str:
    """Return a text in which Markdown stands for HTML."""
    if "<" in text:
        if "</s" in text:
            text = _INVISIBLE.sub(" ", text)
        text = _ITEM_TAG.sub("\n- ", text)
        text = _BLOCK_TAG.sub("\n\n", text)
        text = _INLINE_TAG.sub("", _CELL_TAG.sub("  ", text))
    return _LETTERED.sub("- ", _BULLET.sub("- ", text))


def _parse(text: str) -> Iterator[Block]:
    """Yield the blocks of Markdown."""
    lists = headings = 0
    row: list[str] | None = None
    for token in _markdown().parse(text):
        lists += token.nesting if token.type.startswith("list_item") else 0
        headings += token.nesting if token.type.startswith(("heading", "thead")) else 0
        if token.type == "tr_open":
            row = []
        elif token.type == "tr_close" and row is not None:
            yield Block("heading" if headings else "row", ", ".join(filter(None, row)))
            row = None
        elif token.type == "inline" and row is not None:
            row.append(_inline_text(token))
        elif token.type == "inline":
            yield Block("heading" if headings else "item" if lists else "text", _inline_text(token))
        elif token.type in ("fence", "code_block", "html_block"):
            yield Block("text", token.content)


def _inline_text(token: "Token") -> str:
    parts = []
    for child in token.children or []:
        if child.type in ("softbreak", "hardbreak"):
            parts.append("\n")
        elif child.type == "image":
            parts.append(unescape(child.content))
        else:
            parts.append(child.content)
    return "".join(parts)


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # takes 0.1 s, and most answers have no markup

    # Chatbots indent lists by four blanks and do not mean code; HTML is gone before.
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable(["code", "html_block", "html_inline"])
