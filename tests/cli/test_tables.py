import pytest

from rechain.cli.tables import print_figures, print_json
from rechain.evaluation.statistics import Figure


def test_figures_are_never_cut_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_figures("[a] title", {"links, where passages are right": Figure(1.0, 0.5, 1.0, 12345)})
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert all(part in printed for part in ("[a] title", "100.0 %", "50.0 % to 100.0 %", "12345"))


def test_counts_are_no_percentages(capsys: pytest.CaptureFixture[str]) -> None:
    print_figures("", {"chains a question": Figure(6.58, 6.0, 7.0, 10)})
    assert "6.58" in capsys.readouterr().out


def test_json_has_the_fields_of_a_figure(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"x": Figure(0.5, 0.25, 0.75, 4)})
    assert '"questions": 4' in capsys.readouterr().out
