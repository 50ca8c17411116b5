"""One process that answers the requests of many others, all that wait at once. Standard library alone.

What it keeps, such as a network on a GPU, is there once, however many processes use it. Each of these has one request
under way at a time, so that no more wait than there are processes.
"""

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import AuthenticationError, current_process
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from queue import Empty, SimpleQueue
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any, Generic, Self, TypeVar, cast

from rechain.errors import ResumableError
from rechain.system.processes import Outcome, pickled_error, process_context, relax_collector, start_process

Request = TypeVar("Request")
Answer = TypeVar("Answer")
MakeAnswers = Callable[[], Callable[[Sequence[Request]], Sequence[Answer]]]
"""makes, in the process, the function that answers requests, each of which it may also be asked by itself"""


class Service(Generic[Request, Answer]):
    """A process that answers requests while a `with` block runs; it ends as well if this process does, however."""

    def __init__(self, make_answers: MakeAnswers[Request, Answer], preload: Sequence[str] = ()) -> None:
        """Take what makes its function, and the modules that are imported before the process is forked."""
        self._make_answers = pickle.dumps(make_answers)
        self._context = process_context(preload)
        self._folder = TemporaryDirectory(prefix="rechain-", ignore_cleanup_errors=True)
        self.address = ""
        """where other processes of this program reach it, by `Asker`"""

    def __enter__(self) -> Self:
        """Start the process; raise why it cannot do its work, if so."""
        self._connection, theirs = self._context.Pipe()
        place = str(Path(self._folder.name, "requests")) if os.name == "posix" else None
        self._process = self._context.Process(target=_serve, args=(theirs, place, self._make_answers), daemon=True)
        start_process(self._process)
        theirs.close()
        try:
            ready = cast(Outcome, self._connection.recv())
        except (EOFError, OSError) as error:
            self.__exit__()
            raise ResumableError("the process that computes for all workers has died while it started.") from error
        if ready.error:
            self.__exit__()
            raise ready.error
        self.address = ready.result
        return self

    def __exit__(self, *_: object) -> None:
        """End the process, whatever it is doing: it exits when its connection is closed."""
        self._connection.close()
        self._process.join()
        self._folder.cleanup()


class Asker(Generic[Request, Answer]):
    """Asks a service in another process of the same program."""

    def __init__(self, address: str) -> None:
        """Connect."""
        with _explained():
            self._connection = Client(address, authkey=current_process().authkey)

    def __call__(self, request: Request) -> Answer:
        """Return the answer to a request, or raise its error."""
        with _explained():
            self._connection.send(request)
            outcome = cast(Outcome, self._connection.recv())
        if outcome.error:
            raise outcome.error
        return cast(Answer, outcome.result)


@contextmanager
def _explained() -> Iterator[None]:
    """Say in one sentence that the service is gone, where it does not answer."""
    try:
        yield
    except (EOFError, OSError) as error:
        raise ResumableError(
            "the process that computes for all workers has died; it may need more memory than there is."
        ) from error


def _serve(parent: Connection, place: str | None, make_answers: bytes) -> None:
    """Answer requests until the starting process closes its connection: the body of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes; the first one then ends the others
    threading.Thread(target=_exit_with, args=(parent, place), daemon=True).start()
    try:
        answers: Callable[[Sequence[Any]], Sequence[Any]] = pickle.loads(make_answers)()
        relax_collector()
        listener = Listener(place, backlog=256, authkey=current_process().authkey)
    except Exception as error:
        parent.send_bytes(pickled_error(error))
        return
    requests: SimpleQueue[tuple[Connection, Any]] = SimpleQueue()
    threading.Thread(target=_accept, args=(listener, requests), daemon=True).start()
    parent.send(Outcome(listener.address))
    while True:
        waiting = [requests.get()]
        with suppress(Empty):
            while True:
                waiting.append(requests.get_nowait())
        outcomes = _answer(answers, [request for _, request in waiting])
        for (connection, _), outcome in zip(waiting, outcomes, strict=True):
            with suppress(OSError):  # one that has died does not wait for its answer
                connection.send_bytes(outcome)


def _answer(answers: Callable[[Sequence[Any]], Sequence[Any]], requests: Sequence[Any]) -> list[bytes]:
    """Return the pickled outcomes of requests; where they cannot be answered together, each by itself."""
    try:
        return [pickle.dumps(Outcome(answer)) for answer in answers(requests)]
    except Exception as error:
        if len(requests) == 1:
            return [pickled_error(error)]
        return [outcome for request in requests for outcome in _answer(answers, [request])]


def _accept(listener: Listener, requests: "SimpleQueue[tuple[Connection, Any]]") -> None:
    while True:
        with suppress(OSError, EOFError, AuthenticationError):  # one that died while it connected
            threading.Thread(target=_receive, args=(listener.accept(), requests), daemon=True).start()


def _receive(connection: Connection, requests: "SimpleQueue[tuple[Connection, Any]]") -> None:
    with suppress(OSError, EOFError):
        while True:
            requests.put((connection, connection.recv()))


def _exit_with(parent: Connection, place: str | None) -> None:
    """Exit at once when the starting process is gone, or wants it; leave no socket behind: it may have been killed."""
    with suppress(EOFError, OSError):
        parent.recv()
    if place is not None:
        rmtree(Path(place).parent, ignore_errors=True)
    os._exit(0)
