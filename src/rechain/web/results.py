"""Chains of questions that people tried, so that each has an address that can be loaded again and shared.

They live as long as the server, the latest of them: a bounded number, of a bounded size.
"""

from json import dumps, loads
from typing import NamedTuple

from rechain.schema import Question, Recovered
from rechain.web.forms import PastedQuestion
from rechain.web.temporary import TemporaryDatabase

MOST_RESULTS = 1_000
"""results that are kept"""
MOST_BYTES = 200_000_000
"""what they take on the disk together; the largest question with all its chains takes about a megabyte"""
_SCHEMA = """CREATE TABLE results (number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE, form TEXT, question TEXT,
    own TEXT, recovered TEXT, size INTEGER)"""


class Result(NamedTuple):
    """What somebody pasted, the question that was read from it, and its chains."""

    form: PastedQuestion
    question: Question
    """with all passages among which its chain was sought"""
    own: frozenset[str] | None
    """where passages were found in an index: the ids of those that were pasted; else None"""
    recovered: Recovered


class Results:
    """The latest results by their keys."""

    def __init__(self, most: int = MOST_RESULTS, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._database = TemporaryDatabase(_SCHEMA)
        self.close = self._database.close

    def add(self, result: Result) -> str:
        """Keep a result, in place of the oldest ones if there is no room; return its key."""
        key, own = result.form.key, None if result.own is None else dumps(sorted(result.own))
        texts = result.form.model_dump_json(), result.question.model_dump_json(exclude_defaults=True), own
        row = key, *texts, result.recovered.model_dump_json()
        with self._database.transaction() as database:
            statement = "INSERT OR REPLACE INTO results (key, form, question, own, recovered, size) VALUES"
            database.execute(f"{statement} (?, ?, ?, ?, ?, ?)", (*row, sum(len(text or "") for text in row)))
            sizes = "SELECT number, sum(size) OVER (ORDER BY number DESC) AS total FROM results"
            database.execute(
                f"DELETE FROM results WHERE number <= (SELECT max(number) FROM results) - ? OR number IN "
                f"(SELECT number FROM ({sizes}) WHERE total > ?)",
                (self._most, self._most_bytes),
            )
        return key

    def get(self, key: str) -> Result | None:
        """Return a result, or None where it is not kept."""
        rows = self._database.read("SELECT form, question, own, recovered FROM results WHERE key = ?", key)
        if not rows:
            return None
        form, question, own, recovered = rows[0]
        return Result(
            PastedQuestion.model_validate_json(form),
            Question.model_validate_json(question),
            None if own is None else frozenset(loads(own)),
            Recovered.model_validate_json(recovered),
        )
