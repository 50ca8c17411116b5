import os
import pty
import subprocess
import sys
from importlib.resources import files

DEMO = str(files("rechain").joinpath("data/demo.jsonl"))
COMMAND = [sys.executable, "-m", "rechain.cli.main", "candidates", DEMO]


def test_a_bar_is_shown_on_a_terminal() -> None:
    terminal, screen = pty.openpty()
    with subprocess.Popen(COMMAND, stderr=screen, stdout=subprocess.DEVNULL, env=os.environ | {"TERM": "xterm"}) as run:
        assert run.wait(timeout=60) == 0
    os.close(screen)
    shown = os.read(terminal, 1 << 16).decode(errors="replace")
    os.close(terminal)
    assert "Building candidates" in shown


def test_nothing_is_shown_elsewhere() -> None:
    assert subprocess.run(COMMAND, capture_output=True, check=True).stderr == b""
