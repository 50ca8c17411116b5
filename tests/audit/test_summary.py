"""Counts of verdicts, worked by hand."""

from datetime import date, timedelta
from typing import Any

import pytest

from rechain.audit import summary as counting
from rechain.audit.summary import Summary


def of(*answers: Any) -> Summary:
    summary = Summary()
    for answer in answers:
        summary.add(answer)
    return summary


def test_shares_are_of_the_answers_that_were_given(answered: Any) -> None:
    summary = of(*map(answered, ["supported", "supported", "supported", "unsupported", "no_answer", None]))
    assert (summary.answers, summary.given, summary.errors) == (6, 4, {"no_verdict": 1})
    assert summary.supported is not None
    assert (summary.supported.value, summary.supported.questions) == (0.75, 4)
    told = summary.to_dict()
    assert told["verdicts"] == {"supported": 3, "partly": 0, "unsupported": 1, "no_answer": 1}
    assert told["shares"]["supported"]["value"] == 0.6
    assert of().supported is None
    assert of().to_dict()["shares"]["partly"] is None


def test_confidence_is_that_of_the_best_chain(answered: Any, chain: Any) -> None:
    made = [answered(chains=[chain | {"confidence": value}]) for value in (0.0, 0.05, 0.83, 1.0, None)]
    assert of(*made).confidences == [2, 0, 0, 0, 0, 0, 0, 0, 1, 1]


def test_tags_beyond_a_number_are_counted_together(answered: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_MOST_NAMES", 2)
    summary = of(*(answered("partly", tag=tag) for tag in "abacdd"))
    assert {tag: counts["partly"] for tag, counts in summary.by_tag.items()} == {"a": 2, "b": 1, "other": 3}


@pytest.mark.parametrize(("days", "first", "periods"), [(60, "2024-01-01", 60), (61, "2024-01", 3), (2200, "2024", 7)])
def test_many_days_are_counted_by_month_and_many_months_by_year(
    answered: Any, days: int, first: str, periods: int
) -> None:
    start = date(2024, 1, 1)
    summary = of(*(answered(day=(start + timedelta(number)).isoformat()) for number in reversed(range(days))))
    assert (next(iter(summary.by_day)), len(summary.by_day)) == (first, periods)
    assert sum(counts.total() for counts in summary.by_day.values()) == days
    assert len(summary.to_dict()["by_day"]) == days
