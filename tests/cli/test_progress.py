import os
import pty
import re
import subprocess
import sys
from importlib.resources import files

DEMO = str(files("rechain").joinpath("data/demo.jsonl"))
RECHAIN = [sys.executable, "-m", "rechain.cli.main"]
COMMAND = [*RECHAIN, "candidates", DEMO]


def run_on_terminal(command: list[str]) -> tuple[bytes, str]:
    """Return what a command prints, and what it shows on standard error, which is a terminal."""
    terminal, screen = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    done = subprocess.run(command, stderr=screen, stdout=subprocess.PIPE, env=environment, timeout=300)
    os.close(screen)
    shown = os.read(terminal, 1 << 16).decode(errors="replace")
    os.close(terminal)
    assert done.returncode == 0
    return done.stdout, shown


def test_a_bar_is_shown_on_a_terminal() -> None:
    assert "Building candidates" in run_on_terminal(COMMAND)[1]


def test_chains_go_to_standard_output_though_a_bar_is_shown() -> None:
    printed, shown = run_on_terminal([*RECHAIN, "recover", DEMO, "--model", "lexical"])
    assert len(printed.splitlines()) == 14
    assert "Recovering" in shown
    assert "passages" not in shown.replace("Reading passages", "")


def test_nothing_is_shown_elsewhere() -> None:
    assert subprocess.run(COMMAND, capture_output=True, check=True).stderr == b""


TALLIES = """
from collections import Counter
from rechain.cli.progress import with_tally
from rechain.bulk.work import Tally, WorkResult

done = [
    WorkResult(b"1", Tally(30, 20, Counter(no_link=10), 15.0, 20), 0.25),
    WorkResult(b"2", Tally(10, 10, Counter(), 9.0, 10), 0.5),
]
tally = Tally()
for each in with_tally(done, tally):
    tally.add(each.tally)
print(tally.questions)
"""


def last_shown(screen: str) -> str:
    """Return the bar as it was shown last, without colours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen).rstrip().split("\r")[-1].strip()


def test_the_bar_tells_what_has_come_of_all_questions_so_far() -> None:
    printed, shown = run_on_terminal([sys.executable, "-c", TALLIES])
    assert printed == b"40\n"
    bar = r"Recovering \S+ +50% 40 questions, \d+/s, 75.0 % with a chain, mean confidence 0.80 +\S+"
    assert re.fullmatch(bar, last_shown(shown).strip("\n"))


def test_the_bar_tells_no_confidence_of_a_model_that_has_none() -> None:
    _, shown = run_on_terminal([*RECHAIN, "recover", DEMO, "--model", "lexical", "--workers", "0"])
    assert re.search(r"100%\S* 14 questions, \d+/s, 100.0 % with a chain", shown)
    assert "confidence" not in shown
