"""Labels as gold and as labelled pairs, out of the store and into it."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rechain.errors import InputError
from rechain.evaluation.gold import read_gold, read_label_rows
from rechain.formats.datasets import read_questions
from rechain.labels.exchange import Imported, export_gold, export_pairs, gold_from_labels, labels_from_rows
from rechain.labels.store import Label, LabelStore
from rechain.schema import Gold, GoldChain, Question
from rechain.text.label_units import Unit, Units, find_units

Said = Callable[..., Label]
RIGHT = GoldChain(passages=["0", "1", "2"], links=["protein:P12345", "protein:Q23456"])
OTHER = GoldChain(passages=["0", "3", "2"], links=["protein:P99999", "protein:Q23456"])
ROWS = [
    {"id": "MH_1", "support": 0, "a": "DB00001", "b": "P12345", "interacts": True, "evidence": "binds"},
    {"id": "MH_1", "support": 1, "a": "P12345", "b": "Q23456", "interacts": True},
    {"id": "MH_1", "support": 2, "a": "Q23456", "b": "DB00002", "interacts": True, "evidence": '"is cut by"'},
    {"id": "MH_1", "support": 0, "a": "DB00001", "b": "P99999", "interacts": True},
    {"id": "MH_1", "support": 3, "a": "P99999", "b": "Q23456", "interacts": False, "evidence": "no"},
]


def write_lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def read_labels(path: Path, *arguments: Any, **options: Any) -> Imported:
    """Read a file of rows and make labels of them."""
    return labels_from_rows(read_label_rows(path), *arguments, **options)


def labels_of(values: Sequence[str | None], units: Sequence[Unit], name: str = "anna") -> list[Label]:
    """Make labels of units, one value each; None: no label."""
    return [
        Label.model_validate({"annotator": name, "unit": unit, "value": value})
        for unit, value in zip(units, values, strict=True)
        if value
    ]


@pytest.mark.parametrize(
    ("values", "gold"),
    [
        (["yes", "yes", "yes", "yes", "no"], [RIGHT]),
        (["yes", "yes", "yes", "yes", "yes"], [RIGHT, OTHER]),
        (["yes", "yes", "yes", None, "no"], [RIGHT]),
        (["yes", "yes", "yes", "yes", "unsure"], None),
        (["yes", "yes", "yes", "yes", None], None),
        ([None, None, "no", None, None], []),
    ],
)
def test_gold_of_pairs(medhop: Question, values: list[str | None], gold: list[GoldChain] | None) -> None:
    found = gold_from_labels(medhop, labels_of(values, list(find_units(medhop).pairs)))
    assert found == (None if gold is None else Gold(id="MH_1", chains=gold))


def test_a_candidate_without_pairs_leaves_its_question_undecided(bridge_question: Question) -> None:
    """A passage alone and passages side by side have no pairs, so nobody was asked about them."""
    units = find_units(bridge_question)
    assert [] in units.pairs_of
    assert gold_from_labels(bridge_question, labels_of(["no"] * len(units.pairs), list(units.pairs))) is None


def test_gold_is_what_was_picked(bridge_question: Question, judged: Said) -> None:
    bridge = judged("anna", "q1", "supported", "opera", "composer", shape="chain")
    chain = GoldChain(shape="chain", passages=["opera", "composer"])
    expected = Gold(id="q1", chains=[chain], verdict="supported")
    pairs = labels_of(["no"], list(find_units(bridge_question).pairs)[:1])
    assert gold_from_labels(bridge_question, [bridge, *pairs]) == expected
    assert gold_from_labels(bridge_question, [bridge, judged("bob", "q1", "unsupported")]) is None
    settled = judged("eve", "q1", "unsupported", settles=True)
    nothing = Gold(id="q1", chains=[], verdict="unsupported")
    assert gold_from_labels(bridge_question, [bridge, judged("bob", "q1", "unsure"), settled]) == nothing
    assert gold_from_labels(bridge_question, [judged("bob", "q1", "unsure")]) is None


def test_numbers_of_any_length_are_passages(medhop: Question, store: LabelStore) -> None:
    names = ["9" * 5000, "9" * 19, "9" * 18, "007"]
    store.add(labels_of(["yes"] * 4, [Unit(question="MH_1", passages=(one,), entities=("a", "b")) for one in names]))
    assert {row["support"] for row in export_pairs([medhop], store)} == {*names[:2], int(names[2]), "007"}


def test_questions_that_are_not_decided_are_left_out_and_counted(
    medhop: Question, bridge_question: Question, store: LabelStore, judged: Said
) -> None:
    begun = medhop.model_copy(update={"id": "MH_2"})
    store.add([judged("anna", "MH_1", "supported", "0", "2"), *labels_of(["yes"], list(find_units(begun).pairs)[:1])])
    left_out: Counter[str] = Counter()
    golds = list(export_gold([begun, medhop, bridge_question], store, left_out=left_out))
    assert golds == [Gold(id="MH_1", chains=[GoldChain(passages=["0", "2"])], verdict="supported")]
    assert left_out == {"undecided": 1, "untouched": 1}


def test_pairs_go_in_and_come_out_the_same(tmp_path: Path, medhop: Question, store: LabelStore) -> None:
    turned = {"a": ROWS[1]["b"], "b": ROWS[1]["a"]}
    imported = read_labels(write_lines(tmp_path / "pairs", ROWS[0], ROWS[1] | turned, *ROWS[2:]), [medhop], "paper")
    assert (len(imported.labels), imported.other_questions, imported.other_pairs) == (5, 0, 0)
    assert {label.unit for label in imported.labels} == set(find_units(medhop).pairs)
    store.add(imported.labels)
    assert list(export_pairs([medhop], store)) == ROWS
    assert list(export_gold([medhop], store)) == [Gold(id="MH_1", chains=[RIGHT])]


def test_pairs_that_are_not_decided_are_left_out_and_counted(medhop: Question, store: LabelStore) -> None:
    pairs = list(find_units(medhop).pairs)
    store.add(labels_of(["yes", "unsure", "no", "yes"], pairs[:4]) + labels_of(["yes", "yes", "yes"], pairs[:3], "bob"))
    store.add([Label(annotator="bob", unit=pairs[3], value="no", note="why", settles=True)])
    left_out: Counter[str] = Counter()
    rows = list(export_pairs([medhop], store, left_out=left_out))
    first = {name: value for name, value in ROWS[0].items() if name != "evidence"}
    assert rows == [first, ROWS[3] | {"interacts": False, "evidence": "why"}]
    assert left_out == {"undecided": 2}


def test_a_pair_that_stands_there_twice_counts_once_and_must_not_contradict_itself(
    tmp_path: Path, medhop: Question
) -> None:
    path = write_lines(tmp_path / "pairs", ROWS[1], ROWS[1] | {"evidence": "so"})
    (label,) = read_labels(path, [medhop], "paper").labels
    assert label.note == "so"
    path = write_lines(tmp_path / "pairs", ROWS[1], ROWS[1] | {"interacts": False})
    with pytest.raises(InputError, match="line 2: an earlier line says the opposite"):
        read_labels(path, [medhop], "paper")


def test_pairs_of_other_questions_and_on_no_chain_are_kept_as_they_stand(tmp_path: Path, medhop: Question) -> None:
    rows = [ROWS[0] | {"id": "MH_9"}, ROWS[0] | {"b": "P00001"}, ROWS[0] | {"support": "x", "a": "the drug"}]
    imported = read_labels(write_lines(tmp_path / "pairs", *rows), [medhop], "paper")
    assert (imported.other_questions, imported.other_pairs) == (1, 2)
    assert {label.unit for label in imported.labels} == {
        Unit(question="MH_9", passages=("0",), entities=("drug:DB00001", "protein:P12345")),
        Unit(question="MH_1", passages=("0",), entities=("drug:DB00001", "protein:P00001")),
        Unit(question="MH_1", passages=("x",), entities=("the drug", "protein:P12345")),
    }


def test_gold_goes_in_and_comes_out_the_same(tmp_path: Path, medhop: Question, store: LabelStore) -> None:
    unknown = {"passages": ["8", "9"]}
    single, parallel = {"shape": "single", "passages": ["9"]}, {"shape": "parallel", "passages": ["8", "9"]}
    in_no_order = {"passages": ["7", "9"], "ordered": False}
    chains = [RIGHT.model_dump(), unknown, single, parallel, in_no_order]
    path = write_lines(tmp_path / "gold", {"id": "MH_1", "chains": chains}, {"id": "MH_9", "chains": []})
    imported = read_labels(path, [medhop], "paper")
    assert [(label.unit.question, label.value) for label in imported.labels] == [
        ("MH_1", "supported"),
        ("MH_9", "unsupported"),
    ]
    assert imported.other_questions == 1
    store.add(imported.labels)
    (gold,) = export_gold([medhop], store)
    golds = [RIGHT, *map(GoldChain.model_validate, (unknown, single, parallel, in_no_order))]
    assert (gold.verdict, len(gold.chains)) == ("supported", 5)
    assert all(one in gold.chains for one in golds)


@pytest.mark.parametrize(
    ("record", "what"),
    [
        ({"id": "MH_1", "question": "?"}, "neither labelled pairs"),
        (ROWS[0] | {"evidence": "x" * 2001}, "line 1: note has 2,001 characters; the most are 2,000"),
        (ROWS[0] | {"interacts": "perhaps"}, "line 1: interacts"),
        (
            {"id": "MH_1", "chains": [], "verdict": "supported"},
            "question 'MH_1': evidence: 'supported' needs the passages",
        ),
    ],
    ids=["neither", "long note", "perhaps", "no passages"],
)
def test_a_file_that_cannot_be_imported_gets_one_sentence(
    tmp_path: Path, medhop: Question, record: dict[str, Any], what: str
) -> None:
    with pytest.raises(InputError, match=what):
        read_labels(write_lines(tmp_path / "file", record), [medhop], "paper")


def test_pairs_and_gold_are_imported_apart(tmp_path: Path, medhop: Question) -> None:
    path = write_lines(tmp_path / "file", ROWS[0])
    rows = [*read_label_rows(path), ("line 2", Gold(id="MH_1", chains=[RIGHT]))]
    with pytest.raises(InputError, match="line 2: gold chains stand among labelled pairs; import the two apart"):
        labels_from_rows(rows, [medhop], "paper")


def test_pairs_of_words_go_both_ways(tmp_path: Path, bridge_question: Question, store: LabelStore) -> None:
    units: Units = find_units(bridge_question)
    store.add(labels_of(["yes"] * len(units.pairs), list(units.pairs)))
    rows = list(export_pairs([bridge_question], store))
    assert rows[0] == {"id": "q1", "support": "opera", "a": "", "b": "anton quillfeather", "interacts": True}
    imported = read_labels(write_lines(tmp_path / "pairs", *rows), [bridge_question], "bob")
    assert [label.unit for label in imported.labels] == list(units.pairs)


def test_the_real_labels_go_in_and_come_out_the_same(real_data: Path, store: LabelStore) -> None:
    path = real_data / "medhop/interactions.jsonl"
    files = [real_data / "medhop" / name for name in ("train_11.json.gz", "dev_5.json.gz")]
    questions = [question for file in files for question in read_questions(file)]
    imported = read_labels(path, questions, "paper")
    assert (len(imported.labels), imported.other_questions, imported.other_pairs) == (150, 0, 0)
    store.add(imported.labels)
    wanted = {_essence(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()}
    exported = list(export_pairs(questions, store))
    assert len(exported) == 150
    assert set(map(_essence, exported)) == wanted
    golds = {gold.id: gold for gold in export_gold(questions, store)}
    assert len(golds) == 14
    assert golds == read_gold(path, questions)


def _essence(row: dict[str, Any]) -> tuple[object, ...]:
    return row["id"], row["support"], frozenset((row["a"], row["b"])), row["interacts"], row["evidence"]
