"""The process that reads PDFs: pdfium, in a process of its own with limits on its time and memory.

A PDF of a few kilobytes can keep any reader busy for years (forms that draw forms that draw forms), or crash it. Here
that costs one process, which is started again for the next file. It opens nothing: it is handed open files.
"""

import json
import os
import resource
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple

from rechain.errors import InputError

MOST_SECONDS = 120
"""of a core's time for one file: 100,000 pages of prose, and thirty times the longest of books. A limit by the clock
would refuse files because a machine is busy."""
MOST_MEMORY = 1_000_000_000
"""bytes of address space, of which Python and pdfium take a quarter without reading anything"""
MOST_PAGES = 20_000
MOST_CHARACTERS = 20_000_000
_MOST_BOOKMARKS = 10_000
_SIZE = 8
"""bytes that give the length of a reply"""


class Bookmark(NamedTuple):
    """An entry of the outline that viewers show beside the pages."""

    level: int
    """from 0"""
    words: str
    page: int
    """from 0"""


class Contents(NamedTuple):
    """What is read of a PDF."""

    pages: list[str]
    title: str
    bookmarks: list[Bookmark]


class PdfProcess:
    """Reads PDFs in a process that is started when it is first needed, and again after it has died."""

    def __init__(self, seconds: int = MOST_SECONDS, memory: int = MOST_MEMORY) -> None:
        self._limits = seconds, memory
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._owner = 0
        """the process that has started it: a fork of that one needs another"""
        self._lock = threading.Lock()

    def read(self, file: BinaryIO) -> Contents:
        """Return what a PDF holds; raises InputError if it is damaged, locked or a trap."""
        with self._lock:
            channel = self._start()
            try:
                socket.send_fds(channel, [b"f"], [file.fileno()])
                reply = _receive(channel)
            except OSError:
                reply = None
            if reply is None:
                self.close()
                limits = f"over {self._limits[0]} seconds or {self._limits[1] // 1_000_000:,} MB"
                raise InputError(f"is damaged, or too much work to read ({limits}); print it to a new PDF")
        if "error" in reply:
            raise InputError(reply["error"])
        return Contents(reply["pages"], reply["title"], [Bookmark(*bookmark) for bookmark in reply["bookmarks"]])

    def _start(self) -> socket.socket:
        """Return the channel to a process that lives; it ends by itself once this one has gone."""
        if self._channel is not None and self._owner == os.getpid() and self._process and self._process.poll() is None:
            return self._channel
        self._channel, theirs = socket.socketpair()
        with theirs:
            start = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve"
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"{start}({theirs.fileno()}, {self._limits[0]}, {self._limits[1]})"],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self._owner = os.getpid()
        return self._channel

    def close(self) -> None:
        """End the process."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None and self._owner == os.getpid():
            self._process.kill()
            self._process.wait()
        self._process = None


def _receive(channel: socket.socket) -> dict[str, Any] | None:
    """Return the next reply, or None if the process died over it."""
    size = _receive_bytes(channel, _SIZE)
    content = size and _receive_bytes(channel, int.from_bytes(size))
    reply: dict[str, Any] | None = json.loads(content) if content else None
    return reply


def _receive_bytes(channel: socket.socket, size: int) -> bytes | None:
    content = bytearray()
    while len(content) < size:
        part = channel.recv(min(size - len(content), 1 << 20))
        if not part:
            return None
        content += part
    return bytes(content)


def serve(descriptor: int, seconds: int, memory: int) -> None:
    """Read every PDF that is handed over, until the other end is closed. Runs in the process that may die."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with socket.socket(fileno=descriptor) as channel:
        while True:
            _, files, _, _ = socket.recv_fds(channel, 1, 1)
            if not files:
                return
            _limit_time(seconds)
            with os.fdopen(files[0], "rb") as file:
                reply = _reply(file)
            content = json.dumps(reply).encode()
            channel.sendall(len(content).to_bytes(_SIZE) + content)


def _limit_time(seconds: int) -> None:
    """Let the system end this process once it has used so many seconds more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _reply(file: BinaryIO) -> dict[str, Any]:
    try:
        return _read(file)._asdict()
    except InputError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "takes too much memory to read; print it to a new PDF"}
    except ImportError:
        return {"error": "cannot be read: pip install 'rechain[documents]'"}
    except Exception as error:
        words = " ".join(str(error).split())[:200]
        if "password" in words.lower():
            return {"error": "is locked by a password; save it without one"}
        return {"error": f"is a damaged PDF, or none ({words.rstrip('.') or type(error).__name__})"}


def _read(file: BinaryIO) -> Contents:
    import pypdfium2

    with pypdfium2.PdfDocument(file) as document:
        count = len(document)
        if count > MOST_PAGES:
            raise InputError(f"has {count:,} pages; the most are {MOST_PAGES:,}: split it")
        pages: list[str] = []
        length = 0
        for number in range(count):
            pages.append(_read_page(document, number))
            length += len(pages[-1])
            if length > MOST_CHARACTERS:
                raise InputError(f"has more than {MOST_CHARACTERS // 1_000_000} million characters of text; split it")
        if count and not any(pages):
            return Contents([], "", [])
        title, bookmarks = "", []
        with suppress(Exception):  # what says little about the text, and is often damaged
            title = document.get_metadata_dict().get("Title", "")
            bookmarks = _read_bookmarks(document)
        return Contents(pages, title, bookmarks)


def _read_page(document: Any, number: int) -> str:
    """Return the text of a page; nothing of one that is damaged among others that are not."""
    import pypdfium2

    try:
        page = document[number]
        text_page = page.get_textpage()
        text: str = text_page.get_text_range()
        text_page.close()
        page.close()
    except pypdfium2.PdfiumError:
        return ""
    return text


def _read_bookmarks(document: Any) -> list[Bookmark]:
    bookmarks = []
    for bookmark, _ in zip(document.get_toc(max_depth=6), range(_MOST_BOOKMARKS), strict=False):
        target = bookmark.get_dest()
        page = target.get_index() if target else None
        if page is not None:
            bookmarks.append(Bookmark(bookmark.level, bookmark.get_title(), page))
    return bookmarks
