"""An answer of a log after it was audited: its verdict and why, its tags and its day."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from rechain.audit.reasons import reason
from rechain.datasets.reading import Entry
from rechain.errors import QuestionError
from rechain.schema import Question, Recovered, Verdict

TAG_FIELDS = ("tag", "tags", "category", "topic")
DAY_FIELDS = ("day", "date", "timestamp", "created_at")
"""fields of a log by which verdicts are counted, the first that a record has"""
_MOST_TAGS = 20
"""tags of one record that count"""
_LONGEST_TAG = 100
_MILLISECONDS = 1e11
"""a greater number is no time in seconds (that would be the year 5138) but one in milliseconds"""
_ORDER = {"unsupported": 0, "partly": 1, "supported": 2, None: 3, "no_answer": 4}
"""the verdicts by how much they want to be looked at; None: what could not be judged"""


@dataclass(frozen=True)
class AuditedAnswer:
    """A question of a log, or why it cannot be read, and what was recovered of it."""

    where: str
    content: Question | QuestionError
    recovered: Recovered

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None where the question could not be read, or the model gives none."""
        return self.recovered.verdict

    @property
    def confidence(self) -> float | None:
        """That of the best chain, if there is one."""
        return self.recovered.chains[0].confidence if self.recovered.chains else None

    @cached_property
    def reason(self) -> str:
        """Why it has its verdict, in one sentence."""
        if isinstance(self.content, QuestionError):
            return str(self.content)
        return reason(self.content, self.recovered)

    @cached_property
    def tags(self) -> list[str]:
        """What the log files it under."""
        value = _first(self._fields, TAG_FIELDS)
        values = value if isinstance(value, list) else [value]
        tags = [str(one).strip()[:_LONGEST_TAG] for one in values if isinstance(one, str | int) and str(one).strip()]
        return list(dict.fromkeys(tags))[:_MOST_TAGS]

    @cached_property
    def day(self) -> str | None:
        """The day of the log, as 2026-05-14; None where there is none, or none that can be read."""
        return _as_day(_first(self._fields, DAY_FIELDS))

    @property
    def _fields(self) -> Mapping[str, Any]:
        """The fields that the schema does not know."""
        return (self.content.model_extra or {}) if isinstance(self.content, Question) else {}

    @property
    def doubt(self) -> tuple[int, float]:
        """Sorts answers by how much they want to be looked at, the most doubtful first.

        First those that nothing supports, the surest first; then what is partly supported; then what is supported, the
        least sure first.
        """
        chance = self.recovered.verdict_probability
        sureness = 0.5 if chance is None else chance
        return _ORDER[self.verdict], sureness if self.verdict == "supported" else -sureness

    def to_dict(self) -> dict[str, Any]:
        """Return the record of a question, as JSON has it."""
        found = self.recovered.to_dict()
        asked = self.content if isinstance(self.content, Question) else None
        texts = {"question": asked.question, "answer": asked.answer} if asked else {}
        filed = {**({"tags": self.tags} if self.tags else {}), **({"day": self.day} if self.day else {})}
        return {"id": found.pop("id"), **texts, **filed, "reason": self.reason, **found}


def audited(entry: Entry, recovered: Recovered) -> AuditedAnswer:
    """Return an entry of a log with what was recovered of it."""
    return AuditedAnswer(entry.where, entry.content, recovered)


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _as_day(value: Any) -> str | None:
    """Return a day in any form that logs have: ISO 8601, or seconds or milliseconds since 1970."""
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value.strip()).date().isoformat()
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if value > _MILLISECONDS else value
            return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        pass
    return None
