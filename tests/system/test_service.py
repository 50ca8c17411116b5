"""One process that answers the requests of others: every request once, errors to whom they belong, no process left."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rechain.errors import ResumableError
from rechain.system.processes import in_order
from rechain.system.service import Asker, Service

# What the process does, as source: it need not import this file.
SQUARE = "lambda requests: [request * request for request in requests]"
WHO = "lambda requests: [__import__('os').getpid() for _ in requests]"
TOGETHER = """lambda requests: (__import__('time').sleep(0.1), [len(requests)] * len(requests))[1]"""
NO_SEVEN = "lambda requests: [1 // (7 - request) for request in requests]"
DIE = "lambda requests: __import__('os').kill(__import__('os').getpid(), 9)"


def service(source: str) -> Service[Any, Any]:
    return Service(partial(eval, source, {}), is_shared=True)


def ask_all(address: str, requests: list[Any]) -> list[Any]:
    """Ask from a thread each, and return answers or errors."""
    answers: list[Any] = [None] * len(requests)

    def ask(number: int) -> None:
        try:
            answers[number] = Asker[Any, Any](address)(requests[number])
        except Exception as error:
            answers[number] = error

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    return answers


def make_asker(address: str) -> Callable[[int], Any]:
    """Make, in a worker process, what asks for each task."""
    return Asker[int, Any](address)


def test_many_ask_one_process_and_each_has_its_own_answer() -> None:
    with service(SQUARE) as one:
        ask = Asker[int, int](one.address)
        assert [ask(number) for number in range(5)] == [0, 1, 4, 9, 16]
        assert ask_all(one.address, list(range(20))) == [number**2 for number in range(20)]
    with service(WHO) as one:
        (process,) = set(ask_all(one.address, [0, 1, 2]))
        assert process != os.getpid()


def test_what_waits_is_answered_together() -> None:
    with service(TOGETHER) as one:
        # what has arrived while the first was answered; on a busy machine that may be nothing
        assert any(max(ask_all(one.address, list(range(8)))) > 1 for _ in range(20))


def test_an_error_goes_to_whom_it_belongs_though_others_were_asked_with_it() -> None:
    with service(NO_SEVEN) as one:
        answers = ask_all(one.address, [6, 7, 6, 5])
    assert [answers[0], answers[2], answers[3]] == [1, 1, 0]
    assert isinstance(answers[1], ZeroDivisionError)


def test_workers_ask_it() -> None:
    with service(SQUARE) as one:
        assert list(in_order(partial(make_asker, one.address), range(8), 2)) == [number**2 for number in range(8)]


def test_a_process_that_cannot_do_its_work_says_why() -> None:
    with pytest.raises(ZeroDivisionError), service("1 // 0"):
        pass


def test_its_death_is_one_sentence_that_lets_the_work_go_on_later() -> None:
    with service(DIE) as one:
        ask = Asker[int, int](one.address)
        for _ in range(2):
            with pytest.raises(ResumableError, match=r"^the process that computes for all workers has died; "):
                ask(1)
        with pytest.raises(ResumableError):
            Asker[int, int](one.address)


def test_nothing_is_left_after_it() -> None:
    with service(WHO) as one:
        process, place = Asker[int, int](one.address)(0), Path(one.address)
        assert place.exists()
    assert not Path(f"/proc/{process}").exists()
    assert not place.parent.exists()


def test_another_program_is_not_answered() -> None:
    source = "import sys; from rechain.system.service import Asker; Asker(sys.argv[1])(1)"
    with service(SQUARE) as one:
        done = subprocess.run([sys.executable, "-c", source, one.address], capture_output=True, text=True, timeout=300)
        assert done.returncode == 1
        assert "AuthenticationError" in done.stderr
        assert Asker[int, int](one.address)(3) == 9  # and it is not disturbed


PARENT = """
import sys
from functools import partial
from rechain.system.service import Asker, Service

with Service(partial(eval, sys.argv[1], {}), is_shared=True) as one:
    print(Asker(one.address)(0), one.address, flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
def test_it_does_not_outlive_a_process_that_is_killed() -> None:
    command = [sys.executable, "-c", PARENT, WHO]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        number, place = parent.stdout.readline().split()
        process = int(number)
        os.kill(process, signal.SIGINT)  # Ctrl-C goes to all processes, and the first one decides
        os.kill(process, 0)
        parent.send_signal(signal.SIGKILL)
    for _ in range(3000):
        if not Path(f"/proc/{process}").exists() or Path(f"/proc/{process}/stat").read_text().split()[2] == "Z":
            assert not Path(place).parent.exists()
            return
        threading.Event().wait(0.1)
    raise AssertionError("it still runs")
