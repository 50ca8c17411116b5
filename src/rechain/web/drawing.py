"""Pages drawn in processes of their own: one interpreter keeps one core busy, and a server has several.

The server's process reads requests and sends answers; it asks another for a page by a function, such as those of
`explorer`, and its query. Without such processes, or when they have died, pages are drawn in threads.
"""

import asyncio
import gc
import logging
import os
import pickle
import signal
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, Concatenate, ParamSpec, cast

from fastapi.concurrency import run_in_threadpool

from rechain.system.processes import Outcome, pickled_error, process_context, start_process
from rechain.web.contents import Contents
from rechain.web.responses import load_templates

MOST_PROCESSES = 4
"""beyond these the server's own process, which reads and sends, is what others wait for"""
_AT_ONCE = 2
"""pages that a process draws at the same time, so that one that takes long does not hold all that come after it"""
_MOST_PASSED = 8
"""how many who come later may be served first, as the free process knows what they ask for"""
_HEADER = struct.Struct("!i")
"""the length of a message, as `multiprocessing` writes it before one"""
_log = logging.getLogger("rechain.web")

Parameters = ParamSpec("Parameters")
Draw = Callable[Concatenate[Contents, Parameters], str | None]


class Drawers:
    """Draws pages, in processes once they are started."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._lines: set[_Line] = set()
        self._idle: list[_Line] = []
        """lines on which nothing is asked just now"""
        self._waiting: deque[_Waiter] = deque()
        """those who wait for a line, in the order in which they came"""

    async def start(self, processes: int) -> None:
        """Start processes; until they are there, pages are drawn in threads."""
        for process in range(min(processes, MOST_PROCESSES) if hasattr(socket, "AF_UNIX") else 0):
            for one in await run_in_threadpool(_start_process, self._contents):
                line = _Line(process, *await asyncio.open_unix_connection(sock=one))
                await line.ask(None)  # answered when the process can draw
                self._lines.add(line)
                self._give(line)

    def close(self) -> None:
        """End the processes: each exits when a line of it is closed."""
        for line in self._lines:
            line.close()
        self._lines.clear()

    async def draw(
        self, subject: str, draw: Draw[Parameters], *args: Parameters.args, **options: Parameters.kwargs
    ) -> bytes:
        """Return the HTML of a page; nothing where the function returns None.

        Pages of one subject, if it is named, are drawn by one process where possible, which remembers it.
        """
        line = await self._take_line(subject)
        if line is None:
            return await run_in_threadpool(_drawn, self._contents, draw, args, options)
        request = self._contents.index.marks, draw, args, options
        # whoever goes away leaves the answer on the line, which somebody has to take
        outcome = await asyncio.shield(asyncio.ensure_future(self._ask(line, request)))
        if outcome is None:
            return await self.draw(subject, draw, *args, **options)
        if outcome.error:
            raise outcome.error
        return cast(bytes, outcome.result)

    async def _ask(self, line: "_Line", request: object) -> Outcome | None:
        """Return what is answered on a line, or None if its process has died."""
        try:
            outcome = await line.ask(request)
        except (OSError, EOFError):
            _log.error("a process that draws pages has died; it may need more memory than there is.")
            self._lines.discard(line)
            while not self._lines and self._waiting:
                waiter = self._waiting.popleft()
                if not waiter.line.done():  # who waited may have gone away
                    waiter.line.set_result(None)
            return None
        self._give(line)
        return outcome

    async def _take_line(self, subject: str) -> "_Line | None":
        """Return an idle line, once there is one; None where there is no process."""
        if not self._lines:
            return None
        process = hash(subject) % (1 + max(line.process for line in self._lines)) if subject else None
        if self._idle:
            line = next((one for one in self._idle if one.process == process), self._idle[0])
            self._idle.remove(line)
            return line
        waiter = _Waiter(process, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        try:
            return await waiter.line
        except asyncio.CancelledError:  # whoever goes away just when a line comes leaves it to others
            given = waiter.line.result() if waiter.line.done() and not waiter.line.cancelled() else None
            if given is not None:
                self._give(given)
            raise

    def _give(self, line: "_Line") -> None:
        """Give a line to the first of those who wait for any or for this process; or to who was passed over often."""
        self._waiting = deque(one for one in self._waiting if not one.line.cancelled())
        for waiter in self._waiting:
            if waiter.process in (None, line.process) or waiter.passed == _MOST_PASSED:
                break
            waiter.passed += 1
        else:
            if not self._waiting:
                self._idle.append(line)
                return
            waiter = self._waiting[0]
        self._waiting.remove(waiter)
        waiter.line.set_result(line)


@dataclass(eq=False)
class _Waiter:
    """Somebody who waits for a line."""

    process: int | None
    """the process that would be quickest; None: any"""
    line: "asyncio.Future[_Line | None]"
    passed: int = 0
    """how often others who came later got a line first"""


class _Line:
    """A connection to a process, on which one page is asked for at a time."""

    def __init__(self, process: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.process = process
        self._reader = reader
        self._writer = writer

    async def ask(self, request: object) -> Outcome:
        """Return the answer to a request."""
        message = pickle.dumps(request)
        self._writer.write(_HEADER.pack(len(message)) + message)
        (length,) = _HEADER.unpack(await self._reader.readexactly(_HEADER.size))
        return cast(Outcome, pickle.loads(await self._reader.readexactly(length)))

    def close(self) -> None:
        """Close it, which ends the process."""
        self._writer.close()


def _drawn(contents: Contents, draw: Draw[...], args: Sequence[Any], options: dict[str, Any]) -> bytes:
    return (draw(contents, *args, **options) or "").encode()


def _start_process(contents: Contents) -> list[socket.socket]:
    """Start a process that draws pages of some contents; return the lines to it."""
    context = process_context(contents.preload)
    ours, theirs = zip(*(context.Pipe() for _ in range(_AT_ONCE)), strict=True)
    # without what only the server itself has, such as models and labels
    parts = Contents(contents.index, contents.settings, contents.sources, contents.has_gold, contents.corpus)
    process = context.Process(target=_serve, args=(theirs, pickle.dumps(parts)), daemon=True, name="drawing")
    start_process(process)
    for one in theirs:
        one.close()
    return [socket.socket(fileno=os.dup(one.fileno())) for one in ours]


def _serve(connections: Sequence[Connection], parts: bytes) -> None:
    """Draw pages until a line is closed: the body of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes; the first one then ends the others
    contents: Contents = pickle.loads(parts)
    contents.warm_up()
    load_templates()
    gc.collect()
    gc.freeze()  # as the server itself does
    gc.set_threshold(20_000, 20, 50)
    threads = [Thread(target=_answer, args=(connection, contents), daemon=True) for connection in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _answer(connection: Connection, contents: Contents) -> None:
    with suppress(EOFError, OSError):
        while True:
            connection.send_bytes(_outcome(contents, connection.recv_bytes()))
    os._exit(0)  # the server is gone, or wants it


def _outcome(contents: Contents, message: bytes) -> bytes:
    try:
        request = pickle.loads(message)
        if request is None:
            return pickle.dumps(Outcome(None))
        marks, draw, args, options = request
        if marks.change > contents.index.marks.change:  # not an older one, as requests may overtake each other
            contents.index.marks = marks
        return pickle.dumps(Outcome(_drawn(contents, draw, args, options)))
    except Exception as error:
        return pickled_error(error)
