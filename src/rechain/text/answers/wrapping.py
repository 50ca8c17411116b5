"""What an answer wraps around what it says: polite frames, words without content, and ways to say "I don't know".

The words and patterns are data: `data/frames.toml`.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from html import unescape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rechain.text.words import Text

READ = 1000
"""characters of a sentence that are read; a longer one is no sentence"""
_ANY = r"(\w+ ){0,12}?"
_ANSWERS = frozenset(("answer", "antwort", "答", "response"))


@lru_cache(64)  # of the sentences of one answer, each is looked at for several kinds of frames and then for phrases
def read(sentence: str) -> Text:
    """Return the beginning of a sentence as words."""
    return Text(sentence[:READ])


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(files("rechain").joinpath("data/frames.toml").read_text("utf-8"))


@cache
def words(name: str) -> frozenset[str]:
    """Return a set of words: function, linking, clause, joints, relative, yes, no or abbreviations."""
    return frozenset(_tables()["words"][name].split())


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of a kind of frame over words with one blank between them."""
    alternatives = []
    for line in _tables()["frames"][name]:
        expanded = _expand(line)
        ending = " ?$" if line.endswith("$") else r"(?!\w)"
        alternatives.append(f"(?:{expanded.removesuffix('$')}){ending}")
    return re.compile("|".join(alternatives))


def _expand(line: str) -> str:
    """Return a pattern with what its {parts} stand for; groups capture nothing."""
    for _ in range(3):  # parts may name parts
        for name, part in _tables()["parts"].items():
            line = line.replace(f"{{{name}}}", part)
    return line.replace("{any}", _ANY).replace("(", "(?:")


@cache
def _unspaced(name: str) -> re.Pattern[str]:
    return re.compile("|".join(line.replace("(", "(?:") for line in _tables()["unspaced"][name]))


def matches(name: str, sentence: str) -> bool:
    """Return whether a sentence is or begins with a kind of frame: idle, refusal or beside_refusal."""
    return matches_words(name, read(sentence))


def matches_words(name: str, sentence: Text) -> bool:
    """Return what `matches` does for a sentence that is read already."""
    # The patterns of refusals take longer than all else that is done with a short answer.
    is_possible = name != "refusal" or not words("signs").isdisjoint(sentence.words)
    return bool(
        (is_possible and _pattern(name).match(sentence.joined, 1))
        or (not sentence.original.isascii() and _unspaced(name).match(sentence.original))
    )


def strip_openings(sentence: str) -> str:
    """Return a sentence without the frames before what it says; nothing if it is all frame."""
    for _ in range(4):  # "Sure! Based on the documents, the answer is that …"
        rest = _after_opening(sentence)
        if rest is None:
            break
        sentence = rest
    return sentence


def _after_opening(sentence: str) -> str | None:
    """Return what stands behind the frame that a sentence begins with; None if there is no frame."""
    opening = read(sentence)
    if found := _pattern("opening").match(opening.joined, 1):
        return sentence[_start_behind(opening, found.end()) :]
    if found := _pattern("adverb").match(opening.joined, 1):
        start = _start_behind(opening, found.end())
        if not _is_title(sentence, start):
            return sentence[start:]
    if not sentence.isascii() and (unspaced := _unspaced("opening").match(sentence)):
        return sentence[unspaced.end() :].strip()
    return None


def _start_behind(opening: Text, end: int) -> int:
    """Return where the word starts that follows so many characters of the joined words."""
    number = opening.joined.count(" ", 0, end + 1) - 1
    return opening.places[number][0] if number < len(opening.words) else len(opening.original)


def _is_title(sentence: str, start: int) -> bool:
    """Return whether a capital follows without any mark: "So Free Am I"."""
    before, following = sentence[:start][-2:], sentence[start : start + 2]
    return before[1:] == " " and before[0].isalnum() and following[:1].isupper() and following != "I "


def names_answer(sentence: str, rest: str) -> bool:
    """Return whether a frame that was taken away says that what is left is the answer itself."""
    return not _ANSWERS.isdisjoint(Text(sentence[: len(sentence) - len(rest)]).words)


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
