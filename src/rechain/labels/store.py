"""Labels, written at once and kept for good: a log of every label ever given, and those that hold now."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from rechain.errors import InputError, RechainError
from rechain.labels.database import CHANGE, EVENT, Database, restore_labels
from rechain.schema import SPACES, GoldChain
from rechain.text.label_units import PAIR_VALUES, VERDICT_VALUES, Mode, Unit, Value

if TYPE_CHECKING:
    import sqlite3

LONGEST_NAME = 80
LONGEST_NOTE = 2000

# A name is shown to other annotators, so it must not be invisible or reorder the text around it: no control characters,
# no line ends, no marks that turn the direction of writing, and not blank.
_UNSEEN = r"\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069"
_NAME = rf"^[^{_UNSEEN}]*[^{SPACES}{_UNSEEN}][^{_UNSEEN}]*$"

Annotator = Annotated[
    str, StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=_NAME), AfterValidator(str.strip)
]
"""an annotator's name"""
Note = Annotated[str, StringConstraints(max_length=LONGEST_NOTE)]
"""an annotator's reason, in words"""

_EVENT = ", ".join(f"e.{column}" for column in EVENT.split(", "))
_CURRENT = f"SELECT {_EVENT} FROM labels JOIN events AS e USING (seq)"
_TO_UNDO = f"SELECT {_EVENT} FROM events AS e WHERE annotator = ? AND undone_at IS NULL ORDER BY seq DESC LIMIT 1"
_NAMES = "SELECT annotator FROM labels UNION SELECT annotator FROM claims"
# What is counted of the questions in ?1, a JSON list: every annotator's values, two annotators' labels of the same
# units, and units with their own labels and the last one that settles.
_OF_SOME = "IN (SELECT value FROM json_each(?1))"
_TALLIES = f"""SELECT labels.annotator, labels.question, IIF(labels.settles, 'settled', value), COUNT(*)
    FROM labels JOIN events USING (seq) WHERE labels.question {_OF_SOME} GROUP BY 1, 2, 3"""
_UNITS = f"""SELECT question, COUNT(*) FROM (SELECT DISTINCT question, passages, entities FROM labels
    WHERE question {_OF_SOME}) GROUP BY question"""
_COMMON = f"""SELECT a.mode, a.annotator, b.annotator, a.question, one.value, two.value, one.evidence, two.evidence,
    COUNT(*)
    FROM labels AS a JOIN labels AS b USING (question, passages, entities)
    JOIN events AS one ON one.seq = a.seq JOIN events AS two ON two.seq = b.seq
    WHERE a.settles = 0 AND b.settles = 0 AND a.annotator < b.annotator AND a.question {_OF_SOME}
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8"""
_DOUBTS = """SELECT question, passages, entities, first, settled IS NULL OR settled = 'unsure' AS is_open FROM (
    SELECT labels.question, labels.passages, labels.entities, MIN(seq) AS first,
        MIN(IIF(labels.settles, NULL, value || COALESCE(evidence, ''))) AS low,
        MAX(IIF(labels.settles, NULL, value || COALESCE(evidence, ''))) AS high,
        MAX(NOT labels.settles AND value = 'unsure') AS is_unsure,
        SUBSTR(MAX(IIF(labels.settles, PRINTF('%020d', seq) || value, NULL)), 21) AS settled
    FROM labels JOIN events USING (seq) {some} GROUP BY labels.question, labels.passages, labels.entities)
    WHERE low IS NULL OR low <> high OR is_unsure OR settled = 'unsure'"""
_COUNTS = f"""SELECT question, COUNT(*), SUM(is_open)
    FROM ({_DOUBTS.format(some=f"WHERE labels.question {_OF_SOME}")}) GROUP BY question"""
# As long as these are the same, so are the labels of a question: a label that is added has a higher number than all
# others, one that is undone leaves a lower one or none.
_STATES = (
    "SELECT question, annotator, COUNT(*), MAX(seq), SUM(seq) FROM labels GROUP BY annotator, mode, settles, question"
)
_IDLE = "annotator = :name AND question NOT IN (SELECT question FROM labels WHERE annotator = :name)"
_SAME = "question = ? AND passages = ? AND entities = ? AND annotator = ? AND settles = ?"


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


def checked_annotator(name: str) -> str:
    """Return a name without blanks around it; raises RechainError where it cannot be an annotator's."""
    try:
        return TypeAdapter(Annotator).validate_python(name.strip())
    except ValidationError as error:
        limits = f"1 to {LONGEST_NAME} visible characters"
        raise RechainError(f"an annotator's name has {limits}, so {name[:100]!r} is not one.") from error


class Label(BaseModel):
    """An annotator's judgement of a unit; or, if it settles, what was agreed on after annotators differed."""

    model_config = ConfigDict(frozen=True)

    annotator: Annotator
    unit: Unit
    value: Value
    evidence: Annotated[tuple[GoldChain, ...], Field(validate_default=True)] = ()
    """of an answer: the passages that were picked, as one chain or, if imported, every correct one"""
    note: Note | None = None
    settles: bool = False
    at: AwareDatetime = Field(default_factory=now)

    @field_validator("note")
    @classmethod
    def _blank_is_none(cls, note: str | None) -> str | None:
        return note if note and not note.isspace() else None

    @field_validator("at")
    @classmethod
    def _in_utc(cls, at: datetime) -> datetime:
        return at.astimezone(UTC)

    @field_validator("evidence")
    @classmethod
    def _fits_the_verdict(cls, evidence: tuple[GoldChain, ...], info: ValidationInfo) -> tuple[GoldChain, ...]:
        """Check it, and sort what has no order, so that the same evidence is stored alike."""
        unit, value = info.data.get("unit"), info.data.get("value")
        if unit is None or value is None:
            return evidence
        values = PAIR_VALUES if unit.mode == "pairs" else VERDICT_VALUES
        if value not in values:
            context = {"mode": unit.mode, "values": " or ".join(values)}
            raise PydanticCustomError("bad_value", "{mode} are labelled {values}", context)
        if unit.mode == "pairs" and evidence:
            raise PydanticCustomError("bad_value", "pairs have no evidence besides their passage")
        if value in ("supported", "partly") and not evidence:
            message = "'{value}' needs the passages that support the answer"
            raise PydanticCustomError("bad_value", message, {"value": value})
        chains = [
            one if one.has_order else one.model_copy(update={"passages": sorted(one.passages)}) for one in evidence
        ]
        return tuple(sorted({_chain_json(one): one for one in chains}.values(), key=_chain_json))

    @property
    def judgement(self) -> tuple[Value, str]:
        """What two labels of a unit have in common if they agree: the value, and the evidence as JSON."""
        return self.value, f"[{','.join(map(_chain_json, self.evidence))}]"


class Tally(NamedTuple):
    """How many units of a question an annotator gave a value to, or settled."""

    annotator: str
    question: str
    value: Value | Literal["settled"]
    units: int


class Event(NamedTuple):
    """A label of the log, whether it holds or not."""

    number: int
    label: Label
    undone_at: datetime | None


class Change(NamedTuple):
    """An annotator was renamed or, where there is no new name, removed."""

    at: datetime
    annotator: str
    name: str | None
    events: Sequence[int]
    """the numbers of the events that had the old name, or that a removal has undone"""


class Common(NamedTuple):
    """How many units of a question two annotators both labelled, one with the first value and one with the second."""

    mode: Mode
    one: str
    two: str
    question: str
    first: Value
    second: Value
    first_evidence: str | None
    """as JSON, of answers"""
    second_evidence: str | None
    units: int


class DoubtCount(NamedTuple):
    """How many units of a question are in doubt, and how many of them wait to be settled."""

    question: str
    doubts: int
    open: int


@dataclass
class _Counted:
    """What was counted of a question, and of which labels."""

    state: list[tuple[Any, ...]]
    units: int = 0
    """units that anybody labelled"""
    tallies: list[Tally] = field(default_factory=list)
    common: list[Common] = field(default_factory=list)
    doubts: list[DoubtCount] = field(default_factory=list)


class LabelStore(AbstractContextManager["LabelStore"]):
    """The labels in one file. Threads and processes may share it; the file is made at the first write."""

    def __init__(self, path: str | Path) -> None:
        """Open a file of labels, if there is one; raises InputError where it, or its place, cannot be used."""
        self.path = Path(path)
        self._database = Database(self.path)
        self.written = 0
        """labels written since the file was opened here"""
        self._known: tuple[tuple[int, int] | None, Mapping[str, _Counted]] = None, {}
        """what was counted when somebody asked last, by question, and of which state of the file; replaced as a whole,
        so that threads may share it"""

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()
        self._known = None, {}  # the next connection counts its changes anew

    def add(self, labels: Sequence[Label]) -> None:
        """Write labels, all or none; they are on the disk when this returns. The newest label of a unit holds."""
        if not labels:
            return
        with self._database.writing() as database:
            last = database.execute("SELECT COALESCE(MAX(seq), 0) FROM events").fetchone()[0]
            for seq, label in enumerate(labels, start=last + 1):
                evidence = None if label.unit.mode == "pairs" else label.judgement[1]
                judgement = label.value, evidence, label.note, int(label.settles), None
                event = seq, _timestamp(label.at), label.annotator, *_columns(label.unit), *judgement
                database.execute(f"INSERT INTO events VALUES ({', '.join('?' * 11)})", event)
                _set_current(database, label, seq)
        self.written += len(labels)

    def undo(self, annotator: str) -> Label | None:
        """Take an annotator's latest label back, so that the one before it holds again; return the label taken back."""
        if not self._database.rows(_TO_UNDO, annotator):
            return None
        with self._database.writing() as database:
            row = database.execute(_TO_UNDO, (annotator,)).fetchone()  # again: another process may have undone it
            if row is None:
                return None
            label = self._event(row).label
            database.execute("UPDATE events SET undone_at = ? WHERE seq = ?", (_timestamp(now()), row[0]))
            before = f"SELECT MAX(seq) FROM events WHERE {_SAME} AND undone_at IS NULL"
            _set_current(database, label, database.execute(before, _key(label)).fetchone()[0])
        return label

    def of_question(self, question: str) -> list[Label]:
        """Return the labels of a question that hold, in the order in which they were added."""
        rows = self._database.rows(f"{_CURRENT} WHERE labels.question = ? ORDER BY seq", question)
        return [self._event(row).label for row in rows]

    def of_annotator(self, question: str, annotator: str) -> dict[Unit, Label]:
        """Return the labels that an annotator gave to the units of a question, settling apart."""
        labels = self.of_question(question)
        return {label.unit: label for label in labels if label.annotator == annotator and not label.settles}

    def all(self) -> Iterator[Label]:
        """Yield all labels that hold, in the order in which they were added."""
        return (self._event(row).label for row in self._database.rows(f"{_CURRENT} ORDER BY seq"))

    def annotators(self) -> list[str]:
        """Return the names of all who labelled or claimed something, sorted."""
        return sorted(name for (name,) in self._database.rows(_NAMES))

    def questions(self) -> set[str]:
        """Return the ids of the questions that have labels."""
        return {question for (question,) in self._database.rows("SELECT DISTINCT question FROM labels")}

    def latest(self, annotator: str, mode: Mode) -> dict[str, int]:
        """Return the questions that an annotator labelled, and the number of the latest event of each that holds.

        As long as that number is the same, so are the labels: a label that is added has a higher one, and one that is
        undone had the highest.
        """
        statement = "SELECT question, MAX(seq) FROM labels WHERE annotator = ? AND mode = ? AND settles = 0"
        return dict(self._database.rows(f"{statement} GROUP BY question", annotator, mode))

    def tallies(self) -> list[Tally]:
        """Return how many units of each question every annotator labelled with each value, or settled."""
        return sorted(tally for one in self._counted().values() for tally in one.tallies)

    def common(self) -> list[Common]:
        """Return what every two annotators, in the order of their names, gave to the units that both labelled."""
        return [row for one in self._counted().values() for row in one.common]

    def count_units(self) -> dict[str, int]:
        """Return how many units of each question anybody labelled."""
        return {name: one.units for name, one in self._counted().items()}

    def count_doubts(self) -> list[DoubtCount]:
        """Return how many units of each question are in doubt (see `agreement.Doubt`), of those where any is."""
        return [count for one in self._counted().values() for count in one.doubts]

    def _counted(self) -> Mapping[str, _Counted]:
        """Return what is counted of every question, in the order of their ids; again where its labels changed."""
        file, (known_file, before) = self._database.state(), self._known
        if file is None or file == known_file:
            return before if file else {}
        states: dict[str, list[tuple[Any, ...]]] = {}
        for question, *state in self._database.rows(_STATES):
            states.setdefault(question, []).append(tuple(state))
        known = {name: one for name, one in before.items() if states.get(name) == one.state}
        new = {name: _Counted(state) for name, state in states.items() if name not in known}
        some = json.dumps(list(new))
        for name, units in self._database.rows(_UNITS, some) if new else ():
            new[name].units = units
        for tally in map(Tally._make, self._database.rows(_TALLIES, some) if new else ()):
            new[tally.question].tallies.append(tally)
        for row in map(Common._make, self._database.rows(_COMMON, some) if new else ()):
            new[row.question].common.append(row)
        for count in map(DoubtCount._make, self._database.rows(_COUNTS, some) if new else ()):
            new[count.question].doubts.append(count)
        counted = dict(sorted((known | new).items()))
        self._known = file, counted  # of the file as it was before it was read: what was written since is read again
        return counted

    def doubtful_units(self) -> list[tuple[Unit, bool]]:
        """Return the units in doubt, in the order of their first labels, and whether each waits to be settled."""
        rows = self._database.rows(_DOUBTS.format(some="") + " ORDER BY first")
        return [(_unit(*parts), bool(is_open)) for *parts, _, is_open in rows]

    def has_idle_claims(self, annotator: str) -> bool:
        """Return whether an annotator has claimed a question and labelled nothing of it."""
        statement = f"SELECT EXISTS (SELECT 1 FROM claims WHERE {_IDLE.replace(':name', '?1')})"
        return any(is_idle for (is_idle,) in self._database.rows(statement, annotator))

    def claims(self) -> dict[str, str]:
        """Return the annotator of every question that was claimed."""
        return dict(self._database.rows("SELECT question, annotator FROM claims ORDER BY at, question"))

    def claim(self, question: str, annotator: str) -> str:
        """Give a question to an annotator unless somebody has it; return who has it then."""
        with self._database.writing() as database:
            claim = question, annotator, _timestamp(now())
            database.execute("INSERT OR IGNORE INTO claims VALUES (?, ?, ?)", claim)
            owner = database.execute("SELECT annotator FROM claims WHERE question = ?", (question,))
            return str(owner.fetchone()[0])

    def release(self, annotator: str) -> list[str]:
        """Give back the questions that an annotator claimed and has not labelled; return their ids."""
        if annotator not in self.claims().values():
            return []
        with self._database.writing() as database:
            rows = database.execute(f"SELECT question FROM claims WHERE {_IDLE} ORDER BY at", {"name": annotator})
            questions = [question for (question,) in rows]
            database.execute(f"DELETE FROM claims WHERE {_IDLE}", {"name": annotator})
        return questions

    def rename(self, annotator: str, name: str) -> int:
        """Give everything of an annotator another name; return how many labels that hold bear it then.

        Somebody who has that name already becomes the same annotator, of whose labels of a unit the newest holds.
        """
        name = checked_annotator(name)
        if name == annotator:
            raise RechainError(f"the annotator has the name '{name}' already.")
        with self._database.writing() as database:
            numbers = self._to_change(database, annotator, "1")
            database.execute("UPDATE events SET annotator = ? WHERE annotator = ?", (name, annotator))
            database.execute("UPDATE claims SET annotator = ? WHERE annotator = ?", (name, annotator))
            for one in (annotator, name):
                restore_labels(database, one)
            _note_change(database, annotator, name, numbers)
            held = database.execute("SELECT COUNT(*) FROM labels WHERE annotator = ?", (name,)).fetchone()
        return int(held[0])

    def remove(self, annotator: str) -> int:
        """Take back all labels and claims of an annotator; return how many labels held. The log keeps them all."""
        with self._database.writing() as database:
            held = database.execute("SELECT COUNT(*) FROM labels WHERE annotator = ?", (annotator,)).fetchone()
            numbers = self._to_change(database, annotator, "undone_at IS NULL")
            undone = "UPDATE events SET undone_at = ? WHERE annotator = ? AND undone_at IS NULL"
            database.execute(undone, (_timestamp(now()), annotator))
            database.execute("DELETE FROM claims WHERE annotator = ?", (annotator,))
            restore_labels(database, annotator)
            _note_change(database, annotator, None, numbers)
        return int(held[0])

    def _to_change(self, database: "sqlite3.Connection", annotator: str, condition: str) -> list[int]:
        """Return the numbers of an annotator's events; raises RechainError if nobody has this name."""
        rows = database.execute(f"SELECT seq FROM events WHERE annotator = ? AND {condition}", (annotator,))
        numbers = [seq for (seq,) in rows]
        if not numbers and (annotator,) not in database.execute(_NAMES).fetchall():
            raise RechainError(f"there is no annotator '{annotator}'.")
        return numbers

    def changes(self) -> list[Change]:
        """Return which annotators were renamed or removed, in order."""
        return list(map(self._change, self._database.rows(f"SELECT {CHANGE} FROM changes ORDER BY number")))

    def name_now(self, annotator: str, changes: int) -> str | None:
        """Return what an annotator is called who had a name after so many changes; None: the annotator was removed."""
        name: str | None = annotator
        statement = "SELECT annotator, name FROM changes WHERE number > ? ORDER BY number"
        for old, new in self._database.rows(statement, changes):
            name = new if name == old else name
        return name

    def count_changes(self) -> int:
        """Return how often an annotator was renamed or removed."""
        rows = self._database.rows("SELECT COUNT(*) FROM changes")
        return int(rows[0][0]) if rows else 0

    def history(self) -> Iterator[Event]:
        """Yield every label ever given, also those that were undone, in the order in which they were added."""
        return map(self._event, self._database.rows(f"SELECT {_EVENT} FROM events AS e ORDER BY seq"))

    @property
    def is_in_place(self) -> bool:
        """Whether the file is where it was opened, or may still be created there; it waits for no other thread."""
        return self._database.is_in_place

    def check(self) -> None:
        """Raise InputError if the file is damaged."""
        self._database.check()

    def _event(self, row: Sequence[Any]) -> Event:
        seq, at, annotator, question, passages, entities, value, evidence, note, settles, undone_at = row
        with self._naming(f"event {seq}"):
            judgement = {
                "value": value,
                "evidence": json.loads(evidence or "[]"),
                "note": note,
                "settles": bool(settles),
            }
            unit = _unit(question, passages, entities)
            label = Label.model_validate({"annotator": annotator, "unit": unit, "at": at, **judgement})
            return Event(seq, label, undone_at and datetime.fromisoformat(undone_at))

    def _change(self, row: Sequence[Any]) -> Change:
        number, at, annotator, name, events = row
        with self._naming(f"change {number} of an annotator"):
            return Change(datetime.fromisoformat(at), annotator, name, json.loads(events))

    @contextmanager
    def _naming(self, row: str) -> Iterator[None]:
        """Turn the error of a row that cannot be parsed into one sentence."""
        try:
            yield
        except (ValueError, TypeError) as error:
            raise InputError(f"{self.path} is damaged ({row} cannot be read); put a backup in its place.") from error


def _note_change(database: "sqlite3.Connection", annotator: str, name: str | None, numbers: Sequence[int]) -> None:
    last = database.execute("SELECT COALESCE(MAX(number), 0) FROM changes").fetchone()[0]
    change = last + 1, _timestamp(now()), annotator, name, json.dumps(numbers)
    database.execute("INSERT INTO changes VALUES (?, ?, ?, ?, ?)", change)


def _set_current(database: "sqlite3.Connection", label: Label, seq: int | None) -> None:
    """Set which event of an annotator holds for a unit; None: no label is left."""
    if seq is None:
        database.execute(f"DELETE FROM labels WHERE {_SAME}", _key(label))
    else:
        values = *_key(label), label.unit.mode, seq
        database.execute("INSERT OR REPLACE INTO labels VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def _key(label: Label) -> tuple[object, ...]:
    return *_columns(label.unit), label.annotator, label.settles


def _columns(unit: Unit) -> tuple[str, str, str]:
    return unit.question, _json(unit.passages), _json(unit.entities)


def _unit(question: str, passages: str, entities: str) -> Unit:
    return Unit(question=question, passages=json.loads(passages), entities=json.loads(entities))


def _chain_json(chain: GoldChain) -> str:
    return chain.model_dump_json(exclude_none=True, exclude_defaults=True)


def _json(names: Sequence[str]) -> str:
    return json.dumps(names, ensure_ascii=False, separators=(",", ":"))


def _timestamp(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")
