"""rechain labels: export, import and agreement, as a user sees them."""

import json
from functools import partial
from pathlib import Path

import pytest
from tests.cli.common import Command

from rechain.labels.store import Label, LabelStore
from rechain.text.label_units import Unit

MEDHOP = {
    "id": "MH_1",
    "query": "interacts_with DB00001?",
    "answer": "DB00002",
    "candidates": ["DB00002"],
    "supports": ["DB00001 binds P12345 .", "P12345 activates Q23456 .", "Q23456 is cut by DB00002 ."],
}
ROWS = [
    {"id": "MH_1", "support": 0, "a": "DB00001", "b": "P12345", "interacts": True, "evidence": "binds"},
    {"id": "MH_1", "support": 1, "a": "P12345", "b": "Q23456", "interacts": True},
    {"id": "MH_1", "support": 2, "a": "Q23456", "b": "DB00002", "interacts": True},
]
GOLD = {"id": "MH_1", "chains": [{"passages": ["0", "1", "2"], "links": ["protein:P12345", "protein:Q23456"]}]}


@pytest.fixture
def labels(rechain: Command) -> Command:
    """Run `rechain labels` in this process."""
    return partial(rechain, "labels")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.json"
    path.write_text(json.dumps([MEDHOP, MEDHOP | {"id": "MH_2"}]))
    return path


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "labels.db"


def test_pairs_go_in_and_come_out_as_pairs_and_as_gold(
    labels: Command, rechain: Command, questions: Path, pairs: Path, database: Path, tmp_path: Path
) -> None:
    outcome = labels("import", database, pairs, questions, "--annotator", "paper")
    assert outcome == (0, "", "3 labels imported.\n")
    outcome = labels("export", database, questions, "--to", "pairs")
    assert (outcome.code, outcome.rows, outcome.err) == (0, ROWS, "3 labelled pairs.\n")
    gold = tmp_path / "gold.jsonl"
    outcome = labels("export", database, questions, "--out", gold)
    assert outcome == (0, "", "1 question decided; left out: 1 untouched.\n")
    assert json.loads(gold.read_text()) == GOLD
    chains = tmp_path / "chains.jsonl"
    assert rechain("recover", questions, "--model", "lexical", "--out", chains).code == 0
    outcome = rechain("evaluate", chains, questions, "--gold", gold, "--json")
    assert outcome.figures["chain accuracy"] == 1.0


def test_gold_goes_in(labels: Command, questions: Path, database: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_text(json.dumps(GOLD) + "\n" + json.dumps(GOLD | {"id": "MH_9"}))
    outcome = labels("import", database, gold, questions, "--annotator", "paper")
    assert outcome == (0, "", "2 labels imported, among them 1 of a question not given.\n")
    assert labels("export", database, questions).rows == [GOLD | {"verdict": "supported"}]


def test_labels_of_other_questions_are_told(labels: Command, questions: Path, pairs: Path, database: Path) -> None:
    pairs.write_text(json.dumps(ROWS[0] | {"id": "MH_9"}) + "\n" + json.dumps(ROWS[0] | {"support": 1}))
    outcome = labels("import", database, pairs, questions, "--annotator", "paper")
    told = "1 of a question not given, 1 pair on no candidate chain"
    assert outcome.err == f"2 labels imported, among them {told}.\n"
    outcome = labels("export", database, questions)
    told = "1 undecided, 1 untouched, labels of 1 other question"
    assert outcome == (0, "", f"0 questions decided; left out: {told}.\n")


def test_an_output_file_is_not_replaced_unasked(labels: Command, questions: Path, pairs: Path, database: Path) -> None:
    labels("import", database, pairs, questions, "--annotator", "paper")
    outcome = labels("export", database, questions, "--out", pairs)
    assert (outcome.code, outcome.err) == (
        2,
        f"rechain: {pairs} exists; name another file, or replace it with --overwrite.\n",
    )
    before = database.read_bytes()
    outcome = labels("export", database, questions, "--out", database, "--overwrite")
    assert outcome.code == 2
    assert "is what is read" in outcome.err
    assert database.read_bytes() == before
    assert labels("export", database, questions, "--out", pairs, "--overwrite").code == 0
    assert json.loads(pairs.read_text()) == GOLD


def say(store: LabelStore, name: str, *values: str) -> None:
    for number, value in enumerate(values):
        unit = Unit(question=f"q{number}", passages=("p",), entities=("a", "b"))
        store.add([Label.model_validate({"annotator": name, "unit": unit, "value": value})])


def test_agreement_is_told_as_a_table_and_as_json(labels: Command, database: Path) -> None:
    with LabelStore(database) as store:
        say(store, "[bold]anna", "yes", "yes", "no", "no")
        say(store, "bob", "yes", "no", "no", "no")
        unit = Unit(question="q1", passages=("p",), entities=("a", "b"))
        store.add([Label(annotator="eve", unit=unit, value="yes", settles=True)])
    outcome = labels("agreement", database)
    assert outcome.code == 0
    assert "[bold]anna, bob" in outcome.out
    assert "75.0 %" in outcome.out
    assert "0.50" in outcome.out
    assert outcome.out.endswith("1 disagreement, of which 1 resolved.\n")
    told = json.loads(labels("agreement", database, "--json").out)
    assert (told["disagreements"], told["settled"]) == (1, 1)
    assert told["agreements"][0]["kappa"]["value"] == pytest.approx(0.5)


def test_one_annotator_agrees_with_nobody(labels: Command, database: Path) -> None:
    with LabelStore(database) as store:
        say(store, "anna", "yes")
    assert labels("agreement", database) == (0, f"No two annotators in {database} labelled the same question.\n", "")


@pytest.mark.parametrize("command", ["export", "agreement"])
def test_labels_that_are_not_there_are_a_mistake(
    labels: Command, questions: Path, database: Path, command: str
) -> None:
    outcome = labels(command, database, *([questions] if command == "export" else []))
    message = f"rechain: {database} does not exist; name the file that the labels were written to.\n"
    assert outcome == (2, "", message)
    assert not database.exists()


def test_what_cannot_be_imported_leaves_no_file(labels: Command, questions: Path, database: Path) -> None:
    for file, name, what in [
        (questions, "paper", "holds neither"),
        (questions.parent / "no", "paper", "cannot be read"),
    ]:
        outcome = labels("import", database, file, questions, "--annotator", name)
        assert outcome.code == 2
        assert what in outcome.err
        assert outcome.err.count("\n") == 1
    assert "an annotator's name" in labels("import", database, questions, questions, "--annotator", " ").err
    assert not database.exists()
    assert labels("import", questions, questions, questions, "--annotator", "paper").err.startswith(
        f"rechain: {questions} is not a file of labels"
    )


def test_a_damaged_file_is_refused_by_every_command(
    labels: Command, questions: Path, pairs: Path, database: Path, tmp_path: Path
) -> None:
    labels("import", database, pairs, questions, "--annotator", "ann")
    database.write_bytes(database.read_bytes()[:-4096])
    arguments = {"export": (questions,), "import": (pairs, questions, "--annotator", "bob"), "agreement": ()}
    for command, rest in arguments.items():
        outcome = labels(command, database, *rest)
        assert (outcome.code, outcome.out) == (2, "")
        assert f"{database} is damaged (" in outcome.err
        assert outcome.err.count("\n") == 1


def test_annotators_are_renamed_and_removed_and_the_history_tells(labels: Command, database: Path) -> None:
    with LabelStore(database) as store:
        say(store, "ana", "yes", "no")
        say(store, "eve", "unsure")
    assert labels("rename", database, "ana", "Anna") == (0, "", "ana is Anna now, with 2 labels.\n")
    assert labels("rename", database, "Anna", "Anna L.") == (0, "", "Anna is Anna L. now, with 2 labels.\n")
    assert labels("remove", database, "eve") == (0, "", "1 label of eve removed.\n")
    told = json.loads(labels("annotators", database, "--json").out)
    assert told["annotators"] == {"Anna L.": {"yes": 1, "no": 1}}
    assert [(one["annotator"], one["name"]) for one in told["changes"]] == [
        ("ana", "Anna"),
        ("Anna", "Anna L."),
        ("eve", None),
    ]
    table = labels("annotators", database).out
    assert "Anna L." in table and "eve was removed (1 label)." in table and "ana was renamed Anna (2 labels)." in table
    rows = labels("history", database).rows
    assert [(row["annotator"], row.get("given_as"), "undone_at" in row) for row in rows] == [
        ("Anna L.", "ana", False),
        ("Anna L.", "ana", False),
        ("eve", None, True),
    ]


def test_who_is_not_there_is_neither_renamed_nor_removed(labels: Command, database: Path) -> None:
    with LabelStore(database) as store:
        say(store, "ana", "yes")
    for arguments in (("rename", database, "eve", "Eve"), ("remove", database, "eve")):
        outcome = labels(*arguments)
        assert (outcome.code, outcome.err) == (2, "rechain: there is no annotator 'eve'.\n")
