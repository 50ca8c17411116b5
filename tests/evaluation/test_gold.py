"""Gold: where it comes from, and that nothing but evaluation reads it."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import rechain
from rechain.errors import InputError, QuestionError
from rechain.evaluation.gold import PairLabel, gold_from_pairs, read_gold
from rechain.formats.datasets import read_questions
from rechain.schema import Gold, GoldChain, Question
from rechain.text.candidates import find_candidates

SOURCE = Path(rechain.__file__).parent
GOLD_READERS = {"read_gold", "read_gold_of_questions", "gold_from_pairs"}
EVALUATION = {f"evaluation/{name}.py" for name in ("gold", "judging")}
MAY_READ_GOLD = (
    EVALUATION
    | {"cli/options.py", "cli/demo.py"}
    # what judges a table; what stages and plays it (paper/stage.py, paper/plays.py) is not among these
    | {"paper/judge.py", "paper/pairs.py", "cli/reproduce.py"}
    | {f"formats/datasets/{name}.py" for name in ("formats", "questions", "plain", "published")}
)
# out of labels and into them; no model sees either
MAY_READ_GOLD |= {"labels/exchange.py", "web/label_api.py", "cli/labels.py"}
MAY_ASK_FOR_GOLD = {f"cli/{name}.py" for name in ("candidates", "evaluate", "reproduce", "serve")}
MAY_NAME_GOLD = MAY_READ_GOLD | MAY_ASK_FOR_GOLD | {"schema.py", "__init__.py", "formats/datasets/records.py"}
MAY_NAME_GOLD |= {"paper/report.py", "labels/store.py"}
# where chains are judged for people; what recovers them for the pages (web/service.py) is not among these
MAY_NAME_GOLD |= {
    f"web/{name}.py"
    for name in (
        "question_index",
        "question_rows",
        "pages",
        "site",
        "views",
        "api",
        "chains",
        "link_graph",
        "dashboard",
    )
}

LABELS = [
    PairLabel(id="MH_1", support=0, a="DB00001", b="P12345", interacts=True),
    PairLabel(id="MH_1", support=1, a="Q23456", b="P12345", interacts=True),
    PairLabel(id="MH_1", support=2, a="Q23456", b="DB00002", interacts=True),
    PairLabel(id="MH_1", support=0, a="DB00001", b="P99999", interacts=True),
    PairLabel(id="MH_1", support=3, a="P99999", b="Q23456", interacts=False),
]
CORRECT = GoldChain(passages=["0", "1", "2"], links=["protein:P12345", "protein:Q23456"])


def write_lines(path: Path, *records: object) -> Path:
    path.write_text("".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records))
    return path


def names_in(path: Path) -> set[str]:
    """Return every name that a module's code refers to, in whatever way."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                names.add(name)
            case ast.Import(names=aliases):
                names.update(alias.name for alias in aliases)
            case ast.ImportFrom(module=module, names=aliases):
                names.update([module or "", *(alias.name for alias in aliases)])
                names.update(f"{module}.{alias.name}" for alias in aliases)
            case ast.Constant(value=str() as text) if text.isidentifier():
                names.add(text)
    return names


def calls_gold(path: Path) -> bool:
    """Return whether a module calls `QuestionsInput.gold`, or the method of a format that the former ends in."""
    calls = (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    return any(isinstance(call.func, ast.Attribute) and call.func.attr == "gold" for call in calls)


MODULES = {path.relative_to(SOURCE).as_posix(): names_in(path) for path in SOURCE.rglob("*.py")}


def test_only_evaluation_reads_gold() -> None:
    readers = GOLD_READERS | {"rechain.evaluation.gold"}
    assert {module for module, names in MODULES.items() if names & readers} <= MAY_READ_GOLD
    callers = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if calls_gold(path)}
    assert callers == MAY_ASK_FOR_GOLD | {"formats/datasets/questions.py"}


def test_no_other_module_so_much_as_names_gold() -> None:
    naming = {module for module, names in MODULES.items() if any("gold" in name.lower() for name in names)}
    assert naming <= MAY_NAME_GOLD
    assert naming >= EVALUATION | {"cli/evaluate.py"}


@pytest.mark.torch
def test_recovery_does_not_load_the_reading_of_gold(tmp_path: Path, bridge_question: Question) -> None:
    path = write_lines(tmp_path / "questions", bridge_question.model_dump_json())
    code = (
        "import sys; from rechain import Recoverer, read_questions\n"
        "print([len(r.chains) for r in Recoverer().recover_many(read_questions(sys.argv[1]))])\n"
        "print('rechain.evaluation.gold' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[1]", "False"]


def test_a_gold_file_is_read(tmp_path: Path) -> None:
    chains = [{"passages": ["p3", "p9"], "links": ["gene:7"]}, {"passages": ["p4", "p9"]}]
    path = write_lines(tmp_path / "gold", {"id": "q1", "chains": chains}, {"id": "q2", "chains": []})
    golds = [GoldChain(passages=["p3", "p9"], links=["gene:7"]), GoldChain(passages=["p4", "p9"])]
    assert read_gold(path, []) == {"q1": Gold(id="q1", chains=golds), "q2": Gold(id="q2", chains=[])}


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"id": "q2", ', "not valid JSON"),
        ('{"id": "q2"}', "the field chains is missing"),
        ('{"id": "q2", "chains": [{"passages": []}]}', "chains[0].passages"),
        ('{"id": "q2", "chains": [{"passages": ["p1", 7]}]}', "chains[0].passages[1]"),
        ('{"id": "q1", "chains": []}', "q1"),
        ("7", ""),
    ],
    ids=["cut", "no chains", "no passages", "number", "twice", "no object"],
)
def test_a_bad_line_of_a_gold_file_stops_the_reading(tmp_path: Path, line: str, what: str) -> None:
    path = write_lines(tmp_path / "gold", {"id": "q1", "chains": [{"passages": ["p1", "p2"]}]}, line)
    with pytest.raises(InputError) as failure:
        read_gold(path, [])
    assert str(failure.value).startswith(f"{path}, line 2: ")
    assert what in str(failure.value)


def test_pair_labels_make_gold_of_candidate_chains(medhop: Question) -> None:
    assert len(find_candidates(medhop).chains) == 2
    assert list(gold_from_pairs(LABELS, [medhop])) == [Gold(id="MH_1", chains=[CORRECT])]


@pytest.mark.parametrize("missing", range(3))
def test_every_pair_of_a_chain_must_interact(missing: int, medhop: Question) -> None:
    labels = [label for number, label in enumerate(LABELS) if number != missing]
    assert list(gold_from_pairs(labels, [medhop])) == [Gold(id="MH_1", chains=[])]


def test_labels_count_for_their_own_question_alone_and_if_it_has_candidates(
    bridge_question: Question, medhop: Question
) -> None:
    elsewhere = [label.model_copy(update={"id": "MH_2"}) for label in LABELS]
    assert list(gold_from_pairs(elsewhere, [medhop])) == [Gold(id="MH_1", chains=[])]
    assert list(gold_from_pairs(LABELS, [bridge_question, medhop])) == [Gold(id="MH_1", chains=[CORRECT])]
    assert list(gold_from_pairs(LABELS, [medhop.model_copy(update={"passages": medhop.passages[:1]})])) == []


def test_pair_labels_are_read_from_their_file(tmp_path: Path, medhop: Question) -> None:
    path = write_lines(tmp_path / "pairs", *(label.model_dump() | {"evidence": "as said"} for label in LABELS))
    assert read_gold(path, [medhop]) == {"MH_1": Gold(id="MH_1", chains=[CORRECT])}


def test_a_bad_pair_label_stops_the_reading(tmp_path: Path, medhop: Question) -> None:
    bad = LABELS[1].model_dump() | {"interacts": "perhaps"}
    path = write_lines(tmp_path / "pairs", LABELS[0].model_dump(), bad)
    with pytest.raises(InputError, match="line 2: interacts"):
        read_gold(path, [medhop])


@pytest.mark.parametrize("field", ["context", "question"])
def test_gold_of_a_questions_file_goes_on_after_a_bad_record(tmp_path: Path, field: str) -> None:
    context = [["A", ["B is here."]], ["B", ["Prague."]]]
    good = {"_id": "1", "question": "Where?", "answer": "Prague", "type": "bridge", "context": context}
    good["supporting_facts"] = [["A", 0], ["B", 0]]
    path = write_lines(tmp_path / "questions", good, good | {"_id": "2", field: 7}, "{", good | {"_id": "3"})
    assert read_gold(path, []).keys() >= {"1", "3"}
    assert "2" not in read_gold(path, [])


@pytest.mark.parametrize("file", ["train_11.json.gz", "dev_5.json.gz"])
def test_the_real_medhop_has_one_question_with_correct_chains(real_data: Path, file: str) -> None:
    golds = read_gold(real_data / "medhop/interactions.jsonl", read_questions(real_data / "medhop" / file))
    correct = {name: len(gold.chains) for name, gold in golds.items() if gold.chains}
    assert correct == ({"MH_train_0": 6} if file.startswith("train") else {})


def test_the_real_medhop_has_candidates_for_14_of_16_questions(real_data: Path) -> None:
    chains: dict[str, int] = {}
    for file in ("train_11.json.gz", "dev_5.json.gz"):
        for question in read_questions(real_data / "medhop" / file):
            try:
                chains[question.id] = len(find_candidates(question).chains)
            except QuestionError:
                chains[question.id] = 0
    assert chains["MH_train_0"] == 13
    assert len(chains) == 16
    assert sum(number > 0 for number in chains.values()) == 14


def test_the_format_of_the_questions_says_what_counts_as_the_same_chain(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "gold", {"id": "q1", "chains": [{"passages": ["p1", "p2"]}]})
    assert read_gold(path, [], "passages")["q1"].same == "passages"
    assert read_gold(path, [])["q1"].same is None
    told = write_lines(tmp_path / "told", {"id": "q1", "same": "links", "chains": [{"passages": ["p1", "p2"]}]})
    assert read_gold(told, [], "passages")["q1"].same == "links"
