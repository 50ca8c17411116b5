"""One process that answers the requests of others, all that are waiting at once. Standard library alone."""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import AuthenticationError, current_process
from multiprocessing.connection import Client, Connection, Listener, Pipe
from pathlib import Path
from queue import SimpleQueue
from shutil import rmtree
from tempfile import mkdtemp
from typing import Generic, Self, TypeVar, cast
from weakref import finalize

from rechain.errors import ResumableError
from rechain.system.processes import (
    Answers,
    Outcome,
    Requests,
    answer_requests,
    interrupts_blocked,
    load_worker,
    receive,
)

Request = TypeVar("Request")
Answer = TypeVar("Answer")
MakeAnswers = Callable[[], Callable[[Sequence[Request]], Sequence[Answer]]]
"""makes, in the process, the function that answers requests, several or one"""

_MOST_TOGETHER = 256
"""requests that are answered together; a process that asks waits for its answer, so there are no more than processes"""
_DIED = "the process that computes for all workers has died; it may need more memory than there is."


class Service(Generic[Request, Answer]):
    """A process that answers requests; it is started when it is needed, and again after it has died.

    What it loads, such as a network on a GPU, exists once, however many processes use it. It is a new interpreter and
    no fork, so that any process can start one: a worker too, and a script that is not written to be imported.
    """

    def __init__(self, make_answers: MakeAnswers[Request, Answer], is_shared: bool = False) -> None:
        """Take what makes its function. If it is shared, other processes reach it by an `Asker` of its address."""
        self._make_answers = pickle.dumps(make_answers)
        self._is_shared = is_shared
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        """how often the process was started"""
        self.address = ""

    def __call__(self, request: Request) -> Answer:
        """Return the answer to a request or raise its error; raises ResumableError if the process dies over it."""
        with self._lock:
            # a process that was forked from the one that has started it needs another
            if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
                self.start()
            try:
                outcome = _ask(self._connection, request)
            except ResumableError:
                self.close()
                raise
        return cast(Answer, outcome.unwrap())

    def start(self) -> None:
        """Start the process; raises why it cannot do its work."""
        with self._lock:
            self.close()
            folder = mkdtemp(prefix="rechain-") if self._is_shared else ""
            self.address = folder and str(Path(folder, "requests"))
            self._connection, theirs = Pipe()
            serve = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve({theirs.fileno()})"
            with interrupts_blocked():
                self._process = subprocess.Popen(
                    [sys.executable, "-c", serve], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
                )
            theirs.close()
            self.starts += 1
            self._owner = os.getpid()
            self._end = finalize(self, _end_service, self._connection, self._process, folder)
            try:
                _ask(self._connection, (self._make_answers, self.address, bytes(current_process().authkey))).unwrap()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process = None
            self._end()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _end_service(connection: Connection, process: "subprocess.Popen[bytes]", folder: str) -> None:
    connection.close()
    process.kill()
    process.wait()
    if folder:
        rmtree(folder, ignore_errors=True)


class Asker(Generic[Request, Answer]):
    """Asks a shared Service that another process of the same program has started."""

    def __init__(self, address: str) -> None:
        """Connect."""
        try:
            self._connection = Client(address, authkey=current_process().authkey)
        except (EOFError, OSError) as error:
            raise ResumableError(_DIED) from error

    def __call__(self, request: Request) -> Answer:
        """Return the answer to a request, or raise its error."""
        return cast(Answer, _ask(self._connection, request).unwrap())


def _ask(connection: Connection, request: object) -> Outcome:
    try:
        connection.send(request)
        return cast(Outcome, connection.recv())
    except (EOFError, OSError) as error:
        raise ResumableError(_DIED) from error


def serve(descriptor: int) -> None:
    """Answer requests: the body of the process."""
    parent = Connection(descriptor)
    make_answers, address, authkey = parent.recv()
    current_process().authkey = authkey
    requests: Requests = SimpleQueue()

    def load() -> Answers:
        answers = load_worker(make_answers)
        if address:
            listener = Listener(address, backlog=256, authkey=authkey)
            threading.Thread(target=_accept, args=(listener, requests), daemon=True).start()
        return answers

    answer_requests(parent, requests, load, _MOST_TOGETHER, folder=address and str(Path(address).parent))


def _accept(listener: Listener, requests: Requests) -> None:
    while True:
        with suppress(OSError, EOFError, AuthenticationError):  # a process that died while it connected
            threading.Thread(target=receive, args=(listener.accept(), requests), daemon=True).start()
