"""A short run of the fuzzer; `make fuzz` runs a long one."""

import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).with_name("fuzz.py")
pytestmark = pytest.mark.slow


def test_no_file_makes_a_command_fail_lose_a_line_or_hang(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, FUZZ, "--seed", "14", "--count", "1000", "--keep", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout[-10_000:]
    assert "1000 cases" in ended.stdout


def test_a_number_makes_the_same_case_again(tmp_path: Path) -> None:
    for place in ("one", "two"):
        subprocess.run([sys.executable, "-c", MAKE, FUZZ.parent, tmp_path / place], check=True)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / place).iterdir()} for place in ("one", "two"))
    assert one == two
    assert len(one) == 30


MAKE = """
import sys
from pathlib import Path
from random import Random
sys.path.insert(0, sys.argv[1])
import inputs
folder = Path(sys.argv[2])
folder.mkdir()
for number in range(30):
    draw = Random(f"1/{number}")
    inputs.write(draw, folder, f"questions{number}", inputs.changed(draw, inputs.questions(draw)))
"""
