"""From the bytes of a file to clean text: how much is read, in which encoding, and which characters stay."""

import os
import re
import stat
import unicodedata
import zlib
from contextlib import suppress
from gzip import BadGzipFile, GzipFile
from io import BufferedReader, BytesIO
from typing import IO

from rechain.errors import InputError
from rechain.formats.documents.source_files import Source

LARGEST_TEXT = 20_000_000
"""bytes of a text, and characters of any document: four times the Bible. Python takes up to four bytes for a character
and copies are made, so that such a text, whatever is in it, fits into a gigabyte. More is a log or a dump."""
LARGEST_PACKED = 200_000_000
"""bytes of a file that is more than text, such as pictures; it is in memory while it is read"""
_BINARY_SAMPLE = 1 << 16
"""bytes in which a zero byte shows that a file is no text; text in the middle of a program is none either"""
# byte order marks; that of UTF-32 begins like that of UTF-16 and comes first
_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
_FEWEST_VALID = 20
"""characters of UTF-8 for each bad byte: UTF-8 with a few damaged bytes has more, other encodings have none"""
_MOSTLY_ASCII = 0.75
"""share of bytes: a line of French has 0.84 or more; Russian and Chinese in their own encodings have few but blanks"""
_GUESS_SAMPLE = 1 << 16  # bytes by which an encoding is guessed, which takes milliseconds a kilobyte
# Python's own name of Windows-1252, which is what texts without any hint are most often in.
_FALLBACK = "cp1252"
# What no reader sees or can use: control characters but for tabs, line breaks and form feeds, soft hyphens, blanks of
# no width, byte order marks, halves of surrogate pairs, and code points that are no characters.
_UNSEEN = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\x80-\x84\x86-\x9f\u00ad\u200b\u2060\ufeff\ufffe\uffff\ud800-\udfff]")
_LINE_BREAKS = re.compile("\r\n?|[\x85\u2028\u2029]")
# Letters that printers draw as one; their parts are what people search for.
_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_LIGATURE = re.compile("[\ufb00-\ufb06]")


def open_source(source: Source) -> BufferedReader:
    """Open a file; raises InputError if it is no longer the file that was found.

    A link that has taken its place is not followed, and a pipe is not waited for.
    """
    file = os.fdopen(os.open(source.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise InputError("is no longer a regular file; it was replaced while files were read")
    return file


def unpacked(source: Source, file: BufferedReader, largest: int) -> IO[bytes]:
    """Return a file or, of one whose name ends in .gz, what it holds; raises InputError if that is too large."""
    if not source.path.name.casefold().endswith(".gz"):
        return file
    try:
        with GzipFile(fileobj=file) as packed:
            content = packed.read(largest + 1)
    except (EOFError, zlib.error, BadGzipFile) as error:
        raise InputError(f"is damaged ({error}); pack it again") from error
    _check_size(len(content), largest)
    return BytesIO(content)


def read_bytes(source: Source, largest: int) -> bytes:
    """Read a file that holds a document; raises InputError if it is too large."""
    with open_source(source) as file:
        _check_size(os.fstat(file.fileno()).st_size, largest)
        content = unpacked(source, file, largest).read(largest + 1)
    _check_size(len(content), largest)  # it may grow meanwhile
    return content


def _check_size(size: int, largest: int) -> None:
    if size > largest:
        raise InputError(
            f"is larger than {largest // 1_000_000} MB, the most that is read of one document; split it, "
            "or give its passages as a collection in JSON lines"
        )


def decode(content: bytes, declared: str = "") -> str:
    """Return the text that bytes spell; raises InputError if they are no text.

    UTF-8, with or without a mark, and what marks itself as UTF-16 or 32 is certain; else `declared` is believed, if it
    names an encoding that fits; else it is guessed.
    """
    if mark := next((mark for mark in _MARKS if content.startswith(mark)), None):
        return content.decode(_MARKS[mark], "replace")
    if b"\0" in content[:_BINARY_SAMPLE]:
        raise InputError("is a binary file, not text")
    with suppress(UnicodeDecodeError):
        return content.decode()
    text = content.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    if len(text) - bad - _count_ascii(content) >= _FEWEST_VALID * bad:
        return text
    for encoding in filter(None, (declared, _guess(content))):
        with suppress(UnicodeDecodeError, LookupError, ValueError):
            return content.decode(encoding)
    return content.decode(_FALLBACK, "replace")


def _count_ascii(content: bytes) -> int:
    return sum(map(content.count, (bytes([byte]) for byte in range(128))))


def _guess(content: bytes) -> str:
    """Return the most probable encoding; nothing without the library that knows.

    Nothing either for a text that is ASCII but for some letters, as Western European ones are: of a short one too few
    letters show which it is, and Windows-1252 is right more often than a guess.
    """
    sample = content[:_GUESS_SAMPLE]
    if _count_ascii(sample) > _MOSTLY_ASCII * len(sample):
        return ""
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return ""
    best = from_bytes(sample).best()
    return best.encoding if best else ""


def clean(text: str) -> str:
    """Return a text with one kind of line break, composed characters, and nothing that nobody sees."""
    text = _LINE_BREAKS.sub("\n", text)
    text = _UNSEEN.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        if _LIGATURE.search(text):
            text = text.translate(_LIGATURES)
    return text
