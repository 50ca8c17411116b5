"""A few kills of `rechain index`; `make kills` kills everything, and more often."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc"),
]


def test_an_index_that_is_killed_is_the_old_or_the_new_one() -> None:
    kills = Path(__file__).with_name("kills.py")
    ended = subprocess.run(
        [sys.executable, kills, "--seed", "3", "--kills", "12", "--only", "index"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout[-10_000:]
    assert "12 kills, no failures" in ended.stdout
