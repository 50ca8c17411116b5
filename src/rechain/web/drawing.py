"""Pages drawn in processes of their own: one interpreter keeps one core busy, and a server has several.

The server's process reads requests and sends answers; it asks another for a page by a function, such as those of
`explorer`, and its query. Without such processes, or when they have died, pages are drawn in threads.
"""

import asyncio
import logging
import os
import pickle
import signal
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from threading import Lock, Thread
from typing import Any, Concatenate, ParamSpec, cast

from fastapi.concurrency import run_in_threadpool

from rechain.system.processes import Outcome, pickled_error, process_context, relax_collector, start_process
from rechain.web.contents import Contents, GoneError
from rechain.web.responses import load_templates

MOST_PROCESSES = 4
"""beyond these the server's own process, which reads and sends, is what others wait for"""
_AT_ONCE = 2
"""pages that a process draws at the same time, so that one that takes long does not hold all that come after it"""
_MOST_PASSED = 8
"""how many who come later may be served first, as the free process knows what they ask for"""
_HEADER = struct.Struct("!i")
"""the length of a message, as `multiprocessing` writes it before one"""
_MOST_DEATHS = 2
"""processes that may die over one page: it would take the next one too"""
_MOST_REPLACED = 3
"""processes that are started for those that died: where more do, something is wrong that another one does not mend"""
_START_S = 60
"""seconds after which a process that does not answer is given up"""
_marking = Lock()
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
        self._replaced = 0
        self._starting: set[asyncio.Task[None]] = set()
        """what starts processes for those that died"""
        self._is_closed = False

    async def start(self, processes: int) -> None:
        """Start processes; until they are there, pages are drawn in threads."""
        self._is_closed = False
        for process in range(min(processes, MOST_PROCESSES) if hasattr(socket, "AF_UNIX") else 0):
            await self._add_process(process)

    async def _add_process(self, process: int) -> None:
        """Start a process; one that cannot be started is logged, and the others draw."""
        lines: list[_Line] = []
        is_ready = False
        try:
            async with asyncio.timeout(_START_S):
                for one in await run_in_threadpool(_start_process, self._contents):
                    lines.append(_Line(process, *await asyncio.open_unix_connection(sock=one)))
                    await lines[-1].ask(None)  # answered when the process can draw
            is_ready = not self._is_closed
        except Exception as error:
            _log.error("a process that draws pages could not be started: %s", str(error) or type(error).__name__)
        finally:  # also when the server ends meanwhile
            if not is_ready:
                _close(lines)
        for line in lines if is_ready else ():
            self._lines.add(line)
            self._give(line)

    def close(self) -> None:
        """End the processes: each exits when a line of it is closed; who still waits for a page gets none."""
        self._is_closed = True
        _close(self._lines)
        self._lines.clear()
        self._idle.clear()
        self._wake()

    def _wake(self) -> None:
        """Tell those who wait that there is no process any more."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.line.done():  # who waited may have gone away
                waiter.line.set_result(None)

    async def draw(
        self, subject: str, draw: Draw[Parameters], *args: Parameters.args, **options: Parameters.kwargs
    ) -> bytes:
        """Return the HTML of a page; nothing where the function returns None.

        Pages of one subject, if it is named, are drawn by one process where possible, which remembers it.
        """
        for _ in range(_MOST_DEATHS):
            line = await self._take_line(subject)
            if self._is_closed:
                raise GoneError
            if line is None:
                return await run_in_threadpool(_drawn, self._contents, draw, args, options)
            request = self._contents.index.marks, draw, args, options
            # whoever goes away leaves the answer on the line, which somebody has to take
            outcome = await asyncio.shield(asyncio.ensure_future(self._ask(line, request)))
            if outcome is None:
                continue
            if outcome.error:
                raise outcome.error
            return cast(bytes, outcome.result)
        raise GoneError if self._is_closed else RuntimeError(f"{_MOST_DEATHS} processes have died over the same page")

    async def _ask(self, line: "_Line", request: object) -> Outcome | None:
        """Return what is answered on a line, or None if its process has died."""
        try:
            outcome = await line.ask(request)
        except (OSError, EOFError):
            if line in self._lines:  # else another of its lines was first to notice, or the server ends
                self._replace(line.process)
            return None
        if line in self._lines:
            self._give(line)
        return outcome

    def _replace(self, process: int) -> None:
        """Drop the lines of a process that has died, and start another beside the requests."""
        _log.error("a process that draws pages has died; it may need more memory than there is.")
        dead = {line for line in self._lines if line.process == process}
        _close(dead)
        self._lines -= dead
        self._idle = [line for line in self._idle if line not in dead]
        if not self._lines:
            self._wake()
        if self._replaced < _MOST_REPLACED:
            self._replaced += 1
            task = asyncio.ensure_future(self._add_process(process))
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

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
            if given is not None and given in self._lines:
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


def _close(lines: Iterable[_Line]) -> None:
    for line in lines:
        line.close()


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
    relax_collector(full=50)  # as the server itself does
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
        with _marking:
            if marks.change > contents.index.marks.change:  # not an older one, as requests may overtake each other
                contents.index.marks = marks
        return pickle.dumps(Outcome(_drawn(contents, draw, args, options)))
    except Exception as error:
        return pickled_error(error)
