import os
import pty
import subprocess
import sys
from importlib.resources import files

DEMO = str(files("rechain").joinpath("data/demo.jsonl"))
RECHAIN = [sys.executable, "-m", "rechain.cli.main"]
COMMAND = [*RECHAIN, "candidates", DEMO]


def run_on_terminal(command: list[str]) -> tuple[bytes, str]:
    """Return what a command prints, and what it shows on standard error, which is a terminal."""
    terminal, screen = pty.openpty()
    done = subprocess.run(
        command, stderr=screen, stdout=subprocess.PIPE, env=os.environ | {"TERM": "xterm"}, timeout=60
    )
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
