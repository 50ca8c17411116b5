import os
import pty
import subprocess
import sys

import pytest

from rechain.system.progress import counted


def test_what_is_counted_comes_through_as_it_is() -> None:
    assert list(counted(iter("abc"), "Spelling", None)) == ["a", "b", "c"]


@pytest.mark.parametrize(("total", "shown"), [(3, "3/3"), (None, "3/?")])
def test_the_bar_tells_count_and_rate_on_standard_error(
    capsys: pytest.CaptureFixture[str], total: int | None, shown: str
) -> None:
    list(counted("abc", "Spelling", total))
    out, err = capsys.readouterr()
    assert out == ""
    assert "Spelling" in err
    assert f"{shown} questions, " in err
    assert "/s" in err


def test_a_bar_that_is_left_early_tells_how_far_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    items = counted("abc", "Spelling", 3)
    next(items)
    items.close()  # type: ignore[attr-defined]
    assert "1/3" in capsys.readouterr().err


PRINTING = "from rechain.system.progress import counted\nfor item in counted('abc', 'Spelling', 3): print(item)"


def test_what_is_printed_under_the_bar_stays_on_standard_output() -> None:
    terminal, screen = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", PRINTING], stderr=screen, stdout=subprocess.PIPE, env=os.environ | {"TERM": "xterm"}
    )
    os.close(screen)
    shown = os.read(terminal, 1 << 16).decode(errors="replace")
    os.close(terminal)
    assert done.stdout == b"a\nb\nc\n"
    assert "3/3" in shown
