"""From a source file to passages: the way through all converters, on which nothing that goes wrong stops the rest."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from rechain.errors import InputError, MissingExtraError
from rechain.formats.documents.characters import LARGEST_TEXT, clean, decode, read_bytes
from rechain.formats.documents.html import declared_encoding, read_html
from rechain.formats.documents.layout import Document
from rechain.formats.documents.passage_files import read_collection
from rechain.formats.documents.pdf import read_pdf
from rechain.formats.documents.plain_text import read_markdown, read_plain
from rechain.formats.documents.source_files import Refusal, Source
from rechain.formats.documents.splitting import SplitSettings, split
from rechain.formats.documents.word import LARGEST_PACKED, read_word
from rechain.schema import Passage

_DEFAULTS = SplitSettings()


class Extract(NamedTuple):
    """What is read of a source: a whole document, or some passages of a collection."""

    text: str | None
    """the readable text of a document, which `start` and `end` of its passages count in; None for a collection"""
    passages: list[Passage]
    """those of a document have the fields source, start and end and, of a PDF, page (from 1)"""


def read_source(source: Source, settings: SplitSettings = _DEFAULTS) -> Iterator[Extract | Refusal]:
    """Yield what a source holds: a document as one Extract, a collection in several, and what is wrong as Refusals."""
    if source.kind == "collection":
        for batch in read_collection(source):
            yield batch if isinstance(batch, Refusal) else Extract(None, batch)
        return
    try:
        yield _read_document(source, settings)
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


def _read_document(source: Source, settings: SplitSettings) -> Extract:
    document = CONVERTERS[source.kind](source)
    if len(document.text) > LARGEST_TEXT:
        raise InputError(f"has more than {LARGEST_TEXT // 1_000_000} million characters of text; split it")
    passages: list[Passage] = []
    for number, (title, start, end) in enumerate(split(document, PurePosixPath(source.name).stem, settings), 1):
        fields = {"id": f"{source.name}#{number}", "title": title, "text": document.text[start:end]}
        place = {"source": source.name, "start": start, "end": end}
        page = {"page": bisect_right(document.pages, start)} if document.pages else {}
        passages.append(Passage.model_validate({**fields, **place, **page}))
    if not passages:
        raise InputError(
            "holds no text" + ("; if its pages are pictures, OCR makes text of them" * (source.kind == "pdf"))
        )
    return Extract(document.text, passages)


def _read_text(source: Source, declared: Callable[[bytes], str] = lambda _: "") -> str:
    content = read_bytes(source, LARGEST_TEXT)
    return clean(decode(content, declared(content)))


# by the kind of a source; the endings of names are in `source_files.KINDS`
CONVERTERS: dict[str, Callable[[Source], Document]] = {
    "text": lambda source: read_plain(_read_text(source)),
    "markdown": lambda source: read_markdown(_read_text(source)),
    "html": lambda source: read_html(_read_text(source, declared_encoding)),
    "pdf": read_pdf,
    "word": lambda source: read_word(read_bytes(source, LARGEST_PACKED)),
}
