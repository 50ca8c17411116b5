"""From a source file to passages: the way through all converters, on which nothing that goes wrong stops the rest."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from operator import itemgetter
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from rechain.errors import InputError, MissingExtraError
from rechain.formats.documents.characters import LARGEST_PACKED, LARGEST_TEXT, clean, decode, read_bytes
from rechain.formats.documents.html import declared_encoding, read_html
from rechain.formats.documents.layout import Document
from rechain.formats.documents.limits import Limited
from rechain.formats.documents.manual import read_manual
from rechain.formats.documents.passage_files import read_collection
from rechain.formats.documents.pdf import read_pdf
from rechain.formats.documents.plain_text import read_markdown, read_plain, read_restructured
from rechain.formats.documents.source_files import Refusal, Source
from rechain.formats.documents.splitting import Piece, SplitSettings, is_navigation, split
from rechain.formats.documents.word import read_word
from rechain.schema import Passage
from rechain.text.passage_views import HEADINGS

Fields = dict[str, Any]
Task = tuple[Source, SplitSettings]
_LONG_REPEAT = 60  # words
_LIBRARIES = {"html": ("HTML", "lxml"), "pdf": ("PDF", "pypdfium2"), "word": ("Word", "docx")}
_DEFAULTS = SplitSettings()


class Extract(NamedTuple):
    """What is read of a source: a whole document, or some passages of a collection."""

    text: str | None
    """the readable text of a document, which `start` and `end` of its passages count in; None for a collection"""
    passages: list[Passage]
    """those of a document have the fields source, start and end and, where there is one, page (of a PDF, from 1),
    anchor (of an HTML page: the id of the heading or term above) or line (of a text, from 1)"""


@cache
def converter() -> Limited[Task, tuple[str, list[Fields]]]:
    """Return the process that converts documents."""
    return Limited(convert)


def read_source(
    source: Source,
    settings: SplitSettings = _DEFAULTS,
    converting: Callable[[Task], tuple[str, list[Fields]]] | None = None,
) -> Iterator[Extract | Refusal]:
    """Yield what a source holds: a document as one Extract, a collection in several, and what is wrong as Refusals."""
    if source.kind == "collection":
        for batch in read_collection(source):
            yield batch if isinstance(batch, Refusal) else Extract(None, batch)
        return
    try:
        name, library = _LIBRARIES.get(source.kind, ("", "re"))
        if find_spec(library) is None:
            raise MissingExtraError(f"Reading {name}", "documents")
        text, rows = (converting or converter())((replace(source, path=source.path.absolute()), settings))
        yield Extract(text, [Passage.model_validate(row) for row in rows])
    except MissingExtraError as error:
        message = f"{source.name} is left out: {str(error)[0].lower()}{str(error)[1:]}"
        yield Refusal(source.name, message, may_pass=True)
    except InputError as error:
        yield Refusal(source.name, f"{source.name} {error}.")
    except OSError as error:
        yield Refusal(source.name, f"{source.name} cannot be read: {error.strerror or error}.", may_pass=True)
    except Exception as error:  # converters meet files that their authors never thought of
        words = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
        reason = f"it is damaged, or not what its name says ({words})"
        yield Refusal(source.name, f"{source.name} cannot be read as {source.kind}: {reason}.")


def repeat_key(passage: Passage) -> bytes:
    """Return what a passage shares with those that repeat it in other files, such as a notice that all pages have.

    A short one repeats another if its headings below the title of the document are the same; of a long one the title
    must be the same as well, as two manuals may explain an option in the same words.
    """
    document, *path = passage.title.split(HEADINGS)
    words = passage.text.casefold().split()
    if len(words) < _LONG_REPEAT:
        name = set(document.casefold().split())
        path = [heading for heading in path if not name <= set(heading.casefold().split())]
        document = ""
    return blake2b("\n".join((document, *path, *words)).encode(), digest_size=16).digest()


def convert(task: Task) -> tuple[str, list[Fields]]:
    """Return the text of a document, and the fields of its passages."""
    source, settings = task
    document = CONVERTERS[source.kind](source)
    if len(document.text) > LARGEST_TEXT:
        raise InputError(f"has more than {LARGEST_TEXT // 1_000_000} million characters of text; split it")
    stem = PurePosixPath(source.name).stem if not source.name.endswith(".gz") else PurePosixPath(source.name[:-3]).stem
    pieces = list(split(document, stem, settings))
    if not pieces:
        raise InputError(
            "holds no text" + ("; if its pages are pictures, OCR makes text of them" * (source.kind == "pdf"))
        )
    pieces = [piece for piece in pieces if not is_navigation(document, piece)]
    if not pieces:
        raise InputError("holds nothing but links to other pages")
    rows: list[Fields] = []
    for number, (piece, place) in enumerate(zip(pieces, _places(document, pieces), strict=True), 1):
        fields = {"id": f"{source.name}#{number}", "title": piece.title, "text": document.text[piece.start : piece.end]}
        rows.append({**fields, "source": source.name, "start": piece.start, "end": piece.end, **place})
    return document.text, rows


def _places(document: Document, pieces: Sequence[Piece]) -> Iterator[Fields]:
    """Yield where each piece is in its file, as a reader of the file counts: page, anchor or line."""
    line, counted = 0, 0
    for piece in pieces:
        if document.pages:
            yield {"page": bisect_right(document.pages, piece.start)}
        elif document.lines:
            line += document.text.count("\n", counted, piece.start)
            counted = piece.start
            yield {"line": document.lines[line]}
        elif number := bisect_right(document.anchors, piece.start, key=itemgetter(0)):
            yield {"anchor": document.anchors[number - 1][1]}
        else:
            yield {}


def _read_text(source: Source, declared: Callable[[bytes], str] = lambda _: "") -> str:
    content = read_bytes(source, LARGEST_TEXT)
    return clean(decode(content, declared(content)))


# by the kind of a source; the endings of names are in `source_files.KINDS`
CONVERTERS: dict[str, Callable[[Source], Document]] = {
    "text": lambda source: read_plain(_read_text(source)),
    "markdown": lambda source: read_markdown(_read_text(source)),
    "restructured": lambda source: read_restructured(_read_text(source)),
    "manual": lambda source: read_manual(_read_text(source)),
    "html": lambda source: read_html(_read_text(source, declared_encoding)),
    "pdf": read_pdf,
    "word": lambda source: read_word(read_bytes(source, LARGEST_PACKED)),
}
