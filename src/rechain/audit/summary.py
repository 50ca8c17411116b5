"""How many answers of a log have which verdict: in all, by tag, by day, and how confident the chains are."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from rechain.audit.answers import AuditedAnswer
from rechain.evaluation.statistics import Figure, share_with_interval
from rechain.schema import Verdict

BINS = 10
"""of the histogram of confidence"""
GIVEN: tuple[Verdict, ...] = ("supported", "partly", "unsupported")
"""verdicts on answers that were given"""
_MOST_NAMES = 10_000
"""tags that are counted apart: a log may have one of its own for every record"""
OTHER = "other"
"""stands for tags beyond that number"""
_MOST_BARS = 60
"""days that a chart has room for; more are counted by month, and more months by year"""

Counts = Counter[str]


class Summary:
    """Counts that grow with the answers; its memory does not."""

    def __init__(self) -> None:
        self.answers = 0
        self.verdicts: Counts = Counter()
        self.errors: Counts = Counter()
        """questions without a verdict, by the code of their error"""
        self.confidences = [0] * BINS
        """best chains by confidence"""
        self.by_tag: dict[str, Counts] = {}
        self._by_day: dict[str, Counts] = {}

    def add(self, answer: AuditedAnswer) -> None:
        """Count an answer."""
        self.answers += 1
        if answer.verdict is None:
            error = answer.recovered.error
            self.errors[error.code if error else "no_verdict"] += 1
            return
        self.verdicts[answer.verdict] += 1
        if (confidence := answer.confidence) is not None:
            self.confidences[min(int(confidence * BINS), BINS - 1)] += 1
        for tag in answer.tags:
            name = tag if tag in self.by_tag or len(self.by_tag) < _MOST_NAMES else OTHER
            self.by_tag.setdefault(name, Counter())[answer.verdict] += 1
        if answer.day:
            self._by_day.setdefault(answer.day, Counter())[answer.verdict] += 1

    @property
    def given(self) -> int:
        """How many answers were given and judged."""
        return sum(self.verdicts[verdict] for verdict in GIVEN)

    @property
    def supported(self) -> Figure | None:
        """The share of the answers given that are supported."""
        return share_with_interval(self.verdicts["supported"], self.given)

    @property
    def by_day(self) -> Mapping[str, Counts]:
        """Verdicts by day in their order, by month or year where there are many days."""
        for length in (len("2026-05-14"), len("2026-05"), len("2026")):
            periods = _gathered((day[:length], counts) for day, counts in sorted(self._by_day.items()))
            if len(periods) <= _MOST_BARS:
                break
        return periods

    def to_dict(self) -> dict[str, Any]:
        """Return all counts, as JSON has them."""
        total = sum(self.verdicts.values())
        shares = {verdict: share_with_interval(self.verdicts[verdict], total) for verdict in get_args(Verdict)}
        return {
            "answers": self.answers,
            "verdicts": {verdict: self.verdicts[verdict] for verdict in get_args(Verdict)},
            "shares": {verdict: share and share._asdict() for verdict, share in shares.items()},
            "supported of the answers given": self.supported and self.supported._asdict(),
            "errors": dict(self.errors),
            "confidence": [
                {"from": number / BINS, "to": (number + 1) / BINS, "chains": count}
                for number, count in enumerate(self.confidences)
            ],
            "by_tag": {tag: dict(counts) for tag, counts in sorted(self.by_tag.items())},
            "by_day": {day: dict(counts) for day, counts in sorted(self._by_day.items())},
        }


def _gathered(counted: Iterable[tuple[str, Counts]]) -> dict[str, Counts]:
    periods: dict[str, Counts] = {}
    for period, counts in counted:
        periods.setdefault(period, Counter()).update(counts)
    return periods
