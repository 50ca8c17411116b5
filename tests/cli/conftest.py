"""What the tests of the commands share: a command, run in this process."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from rechain.cli.main import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def figures(self) -> dict[str, Any]:
        """The figures that were printed as JSON."""
        return {name: figure["value"] for name, figure in json.loads(self.out)["figures"].items()}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The records that were printed, a line each."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def rechain(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run `rechain` with some arguments."""

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr("sys.argv", ["rechain", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Outcome(int(ended.value.code or 0), *capsys.readouterr())

    return run
