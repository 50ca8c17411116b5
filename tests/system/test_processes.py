"""Worker processes: results in order, none lost and none twice, whatever becomes of the processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rechain.errors import InputError, MissingExtraError, QuestionError, RechainError, ResumableError
from rechain.recoverer import Recoverer
from rechain.system.processes import Service, asking, in_order, usable_cores

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")

# What workers do, as source: the processes need not import this file.
SLEEP = "lambda seconds: (__import__('time').sleep(seconds), seconds)[1]"
TELL_ME = "lambda task: (task, __import__('os').getpid())"
HANG = "lambda task: (task, __import__('os').getpid()) if task < 2 else __import__('time').sleep(600)"
DIE = "lambda task: __import__('os').kill(__import__('os').getpid(), 9)"
DIE_AT_3 = "lambda task: task if task != 3 else __import__('os').kill(__import__('os').getpid(), 9)"
DIE_ONCE = """lambda task: (
    task[0] if not task[1] or __import__('os').path.exists(task[1])
    else (
        __import__('pathlib').Path(task[1]).write_text(str(__import__('os').getpid())),
        __import__('os').kill(__import__('os').getpid(), 9),
    )
)"""


def worker(source: str) -> Callable[[], Callable[[Any], Any]]:
    """Return what makes, in another process, a worker of its source."""
    return partial(eval, source, {})


def is_running(process: int) -> bool:
    """Return whether a process is there and not merely waiting for its end to be noticed."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_until_gone(processes: set[int], seconds: float = 300.0) -> set[int]:
    """Wait for processes to end; return those that have not."""
    limit = time.monotonic() + seconds
    while (left := {process for process in processes if is_running(process)}) and time.monotonic() < limit:
        time.sleep(0.02)
    return left


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_come_in_the_order_of_the_tasks_however_long_each_takes(workers: int) -> None:
    durations = [0.06, 0.0, 0.03, 0.0, 0.0, 0.05, 0.01, 0.0, 0.02, 0.0, 0.04, 0.0]
    assert list(in_order(worker(SLEEP), durations, workers)) == durations


def test_tasks_are_done_in_other_processes_which_then_end() -> None:
    assert list(in_order(worker(DIE), [], 3)) == []
    results = list(in_order(worker(TELL_ME), range(30), 2))
    assert [task for task, _ in results] == list(range(30))
    processes = {process for _, process in results}
    assert 1 <= len(processes) <= 2
    assert os.getpid() not in processes
    assert not wait_until_gone(processes)


def test_few_tasks_are_taken_ahead_of_the_results() -> None:
    taken, workers = [], 2
    source = (taken.append(number) or number for number in range(30))
    for number, result in enumerate(in_order(worker(SLEEP), (0 * task for task in source), workers)):
        assert result == 0
        assert number < len(taken) <= number + 2 * workers
    assert len(taken) == 30


@pytest.mark.parametrize("error", [InputError("f is damaged."), OSError("gone")], ids=["ours", "another"])
def test_an_error_of_the_source_comes_after_all_earlier_results(error: Exception) -> None:
    def tasks() -> Iterator[float]:
        yield from (0.05, 0.0, 0.02)
        raise error

    results = []
    with pytest.raises(type(error)) as failure:
        for result in in_order(worker(SLEEP), tasks(), 2):
            results.append(result)
    assert failure.value is error
    assert results == [0.05, 0.0, 0.02]


IMPORT = "lambda task: task if task < 3 else (_ for _ in ()).throw(__import__('rechain.errors').errors.{})"


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        ("QuestionError('no_link', 'no link')", QuestionError("no_link", "no link")),
        ("MissingExtraError('Reading', 'parquet')", MissingExtraError("Reading", "parquet")),
    ],
)
def test_an_error_in_a_worker_reaches_the_caller_after_the_results_before_it(
    raised: str, expected: RechainError
) -> None:
    results = []
    with pytest.raises(type(expected)) as failure:
        for result in in_order(worker(IMPORT.format(raised)), range(9), 2):
            results.append(result)
    assert vars(failure.value) == vars(expected)
    assert str(failure.value) == str(expected)
    assert results == [0, 1, 2]


def test_a_worker_that_cannot_be_made_tells_why() -> None:
    with pytest.raises(RechainError, match="there is no model 'nonsense'"):
        list(in_order(partial(Recoverer, "nonsense"), range(3), 1))


def test_a_worker_that_is_killed_is_replaced_and_every_task_has_one_result(tmp_path: Path) -> None:
    """Three times, not one after another."""
    tasks = [(number, str(tmp_path / str(number)) if number in (0, 4, 11) else "") for number in range(12)]
    assert list(in_order(worker(DIE_ONCE), tasks, 2)) == list(range(12))
    assert {path.name for path in tmp_path.iterdir()} == {"0", "4", "11"}


def test_a_task_that_is_taken_when_a_worker_has_just_died_is_done_too(tmp_path: Path) -> None:
    died = tmp_path / "died"

    def tasks() -> Iterator[tuple[int, str]]:
        yield 0, str(died)
        while not died.exists() or not died.read_text():
            time.sleep(0.01)
        assert not wait_until_gone({int(died.read_text())})
        yield from ((number, "") for number in (1, 2, 3))

    assert list(in_order(worker(DIE_ONCE), tasks(), 2)) == [0, 1, 2, 3]


def test_a_task_at_which_workers_always_die_is_given_up_with_one_sentence_after_all_before_it() -> None:
    results = []
    with pytest.raises(RechainError) as failure:
        for result in in_order(worker(DIE_AT_3), range(9), 2, lambda task: f"line {task}"):
            results.append(result)
    assert results == [0, 1, 2]
    assert "died 3 times at line 3" in str(failure.value)
    assert "\n" not in str(failure.value)


ALWAYS = """
import sys
from functools import partial
from rechain.system.processes import in_order
from rechain.errors import RechainError
from rechain.system.processes import in_order, usable_cores

for _ in range(6):
    try:
        list(in_order(partial(eval, sys.argv[1], {}), range(99), 8))
    except RechainError as error:
        print(error)
"""


@pytest.mark.slow
def test_workers_that_die_at_once_get_one_sentence_though_there_are_many() -> None:
    """Some of them die while the tasks are still being handed out."""
    done = subprocess.run([sys.executable, "-c", ALWAYS, DIE], capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    assert done.stdout.count("a worker process died 3 times at ") == 6
    assert done.returncode == 0


STARTER_KILLED = """
import os
import sys
from functools import partial
from multiprocessing import forkserver
from rechain.system.processes import in_order

for _ in range(6):
    results = in_order(partial(eval, sys.argv[1], {}), [0.02] * 10, 2)
    done = [next(results)]
    os.kill(forkserver._forkserver._forkserver_pid, 9)
    done += results
    print(len(done))
"""


@pytest.mark.slow
def test_the_process_that_starts_workers_is_replaced_as_they_are_if_it_is_killed() -> None:
    """Several times, for it goes wrong only where its end is not yet known."""
    done = subprocess.run([sys.executable, "-c", STARTER_KILLED, SLEEP], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "10\n" * 6), done.stderr[-500:]


@pytest.mark.parametrize("how", ["closed", "an error of the source"])
def test_no_worker_is_left_when_nobody_wants_the_results(how: str) -> None:
    """Those that are busy for long are not waited for."""
    results = in_order(worker(HANG), range(9), 2)
    processes = {next(results)[1], next(results)[1]}

    def end() -> None:
        if how == "closed":
            results.close()
        else:
            with pytest.raises(ValueError):
                results.throw(ValueError("not wanted any more"))

    ending = threading.Thread(target=end, daemon=True)
    ending.start()
    ending.join(timeout=300)  # half as long as the workers would still be busy
    assert not ending.is_alive()
    assert not wait_until_gone(processes)


PARENT = """
import sys
from functools import partial
from rechain.system.processes import in_order

for task, process in in_order(partial(eval, sys.argv[1], {}), range(9), 2):
    print(process, flush=True)
"""


def test_no_worker_outlives_a_process_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, HANG], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        processes = {int(parent.stdout.readline()) for _ in range(2)}
        processes |= descendants(parent.pid)
        assert len(processes) >= 3  # two workers, or one twice, and who starts them
        assert all(map(is_running, processes))
        parent.send_signal(signal.SIGKILL)
    assert not wait_until_gone(processes)


def descendants(process: int) -> set[int]:
    """Return the processes that a process has started, and those that these have."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    found, new = set(), {process}
    while new := {child for child, parent in parents.items() if parent in new} - found:
        found |= new
    return found


IMPORTED_NOWHERE = """
from functools import partial
from rechain.system.processes import in_order

class Task(int): ...

results = in_order(partial(eval, "lambda task: task", {}), [1, Task(2), 3], 2)
print(next(results))
try:
    next(results)
except Exception as error:
    print(type(error).__name__)
"""


def test_a_task_that_other_processes_cannot_read_fails_in_its_turn() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTED_NOWHERE], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == ("1\nAttributeError\n", "")


@pytest.mark.parametrize(
    ("source", "tasks"),
    [
        ("lambda task: (lambda: task) if task == 3 else task", [1, 2, 3]),
        ("lambda task: open('/dev/null') if task == 3 else task", [1, 2, 3]),
        ("lambda task: task", [1, 2, lambda: 3, 4]),
    ],
)
def test_what_cannot_be_sent_is_an_error_after_the_results_before_it(source: str, tasks: list[Any]) -> None:
    results = in_order(worker(source), tasks, 2)
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(Exception, match="pickle"):
        next(results)


WITHIN_THE_GUARD = """
from rechain.system.processes import in_order

if __name__ == "__main__":
    def make(): ...
    list(in_order(make, [1, 2], 2))
"""
UNGUARDED = """
from functools import partial
from rechain.system.processes import in_order

print(list(in_order(partial(eval, "lambda task: task", {}), [1, 2], 2)))
"""


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (WITHIN_THE_GUARD, "worker processes cannot load what they are to do: Can't get attribute 'make'"),
        (UNGUARDED, "worker processes cannot start: they import the script that starts them"),
    ],
)
def test_a_script_whose_workers_cannot_start_gets_one_sentence(tmp_path: Path, script: str, message: str) -> None:
    path = tmp_path / "script.py"
    path.write_text(script)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert f"\nrechain.errors.RechainError: {message}" in done.stderr


PRELOADED = """
from functools import partial
from rechain.system.processes import in_order

loaded = "lambda name: name in __import__('sys').modules"
print(list(in_order(partial(eval, loaded, {}), ["fractions"], 1, preload=["fractions"])))
"""


def test_modules_are_loaded_before_workers_are_forked() -> None:
    done = subprocess.run([sys.executable, "-c", PRELOADED], capture_output=True, text=True, timeout=300)
    assert done.stdout == "[True]\n", done.stderr[-500:]


SHARED_TORCH = """
from functools import partial
from rechain.system.processes import in_order, usable_cores

threads = "lambda _: __import__('torch').get_num_threads()"
print(set(in_order(partial(eval, threads, {}), range(4), usable_cores(), preload=["torch"])))
"""


@pytest.mark.torch
@pytest.mark.parametrize(("wanted", "found"), [(None, 1), ("2", min(2, usable_cores()))])
def test_a_library_that_workers_share_computes_with_their_threads(wanted: str | None, found: int) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment |= {} if wanted is None else {"OMP_NUM_THREADS": wanted}
    command = [sys.executable, "-c", SHARED_TORCH]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout == f"{{{found}}}\n", done.stderr[-500:]


ALONE = """
import sys
for name in ("numpy", "orjson", "pydantic", "torch", "typer"):
    sys.modules[name] = None
from functools import partial
from rechain.system.processes import in_order

print(sum(in_order(partial(eval, "lambda task: 'pydantic' not in __import__('sys').modules", {}), range(3), 2)))
"""


def test_the_pool_needs_the_standard_library_alone() -> None:
    """`python -m rechain.paper.plays` uses it on machines that have little else."""
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=300)
    assert done.stdout == "3\n", done.stderr[-500:]


# ---- one process that answers the requests of others

# What the process does, as source: it need not import this file.
SQUARE = "lambda requests: [request * request for request in requests]"
WHO = "lambda requests: [__import__('os').getpid() for _ in requests]"
TOGETHER = """lambda requests: (__import__('time').sleep(0.1), [len(requests)] * len(requests))[1]"""
NO_SEVEN = "lambda requests: [1 // (7 - request) for request in requests]"


def service(source: str) -> Service[Any, Any]:
    return Service(partial(eval, source, {}), is_shared=True)


def ask_all(address: str, requests: list[Any]) -> list[Any]:
    """Ask from a thread each, and return answers or errors."""
    answers: list[Any] = [None] * len(requests)

    def ask(number: int) -> None:
        try:
            answers[number] = asking(address)(requests[number])
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
    return asking(address)


def test_many_ask_one_process_and_each_has_its_own_answer() -> None:
    with service(SQUARE) as one:
        ask = asking(one.address)
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
        ask = asking(one.address)
        for _ in range(2):
            with pytest.raises(ResumableError, match=r"^the process that computes for all workers has died; "):
                ask(1)
        with pytest.raises(ResumableError):
            asking(one.address)


def test_nothing_is_left_after_it() -> None:
    with service(WHO) as one:
        process, place = asking(one.address)(0), Path(one.address)
        assert place.exists()
    assert not Path(f"/proc/{process}").exists()
    assert not place.parent.exists()


def test_another_program_is_not_answered() -> None:
    source = "import sys; from rechain.system.processes import asking; asking(sys.argv[1])(1)"
    with service(SQUARE) as one:
        done = subprocess.run([sys.executable, "-c", source, one.address], capture_output=True, text=True, timeout=300)
        assert done.returncode == 1
        assert "AuthenticationError" in done.stderr
        assert asking(one.address)(3) == 9  # and it is not disturbed


SERVING_PARENT = """
import sys
from functools import partial
from rechain.system.processes import Service, asking

with Service(partial(eval, sys.argv[1], {}), is_shared=True) as one:
    print(asking(one.address)(0), one.address, flush=True)
    sys.stdin.read()
"""


def test_it_does_not_outlive_a_process_that_is_killed() -> None:
    command = [sys.executable, "-c", SERVING_PARENT, WHO]
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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_service_that_lets_no_other_thread_run_ends_with_its_parent() -> None:
    script = (
        "import os, threading; from functools import partial; from rechain.system.processes import Service\n"
        "stuck = \"lambda requests: __import__('ctypes').PyDLL(None).sleep(600)\"\n"  # it keeps Python's lock
        "service = Service(partial(eval, stuck)); service.start(); print(service._process.pid, flush=True)\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), 9)).start(); service(1)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    status = Path(f"/proc/{parent.stdout.readline().strip()}/stat")
    assert status.exists()
    parent.wait()
    end = time.monotonic() + 300  # it ends at once; by itself it would run for twice as long
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < end
        time.sleep(0.01)
