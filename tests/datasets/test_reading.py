"""From a file of any format to questions, one at a time."""

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rechain.datasets import read_entries, read_questions
from rechain.datasets.reading import Entry, read_record
from rechain.errors import InputError, QuestionError
from rechain.schema import Question

PLAIN = {"id": "q1", "question": "Who?", "answer": "Anton", "passages": [{"id": "p", "text": "Anton."}]}
HOTPOTQA = {"_id": "q2", "question": "Who?", "answer": "Anton", "type": "bridge", "context": [["T", ["Anton."]]]}
RECORDS = {
    "plain": PLAIN,
    "hotpotqa": HOTPOTQA,
    "2wiki": HOTPOTQA | {"evidences": []},
    "musique": {
        "id": "2hop__1",
        "question": "Who?",
        "answer": "Anton",
        "paragraphs": [{"idx": 0, "paragraph_text": "Anton."}],
    },
    "qangaroo": {"id": "WH_1", "query": "who anton", "answer": "Anton", "supports": ["Anton."], "candidates": []},
}


def write_lines(path: Path, *records: object) -> Path:
    path.write_text("".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records))
    return path


@pytest.mark.parametrize("name", RECORDS)
def test_the_format_is_recognised_by_itself(tmp_path: Path, name: str) -> None:
    (question,) = read_questions(write_lines(tmp_path / "f", RECORDS[name]))
    assert question.answer == "Anton"
    assert [passage.text for passage in question.passages] == ["Anton."]


@pytest.mark.parametrize("name", RECORDS)
def test_the_format_is_recognised_after_bad_lines(tmp_path: Path, name: str) -> None:
    path = write_lines(tmp_path / "f", '{"id": "cut', {"id": "empty"}, 7, RECORDS[name])
    contents = [entry.content for entry in read_entries(path)]
    assert [type(content) for content in contents] == [QuestionError] * 3 + [Question]


@pytest.mark.parametrize(
    ("name", "field"),
    [("plain", "question"), ("hotpotqa", "question"), ("hotpotqa", "context"), ("musique", "paragraphs")],
)
def test_the_field_that_the_first_record_lacks_is_named(tmp_path: Path, name: str, field: str) -> None:
    lacking = {key: value for key, value in RECORDS[name].items() if key != field}
    path = write_lines(tmp_path / "f", lacking, RECORDS[name])
    bad, good = [entry.content for entry in read_entries(path)]
    assert isinstance(good, Question)
    assert isinstance(bad, QuestionError)
    assert bad.code == "missing_field"
    assert str(bad) == f"{path}, line 1: the field {field} is missing."


def test_an_entry_knows_its_place_and_id(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "f", PLAIN, PLAIN | {"answer": 7}, PLAIN | {"id": 7}, "{")
    entries = list(read_entries(path))
    assert [entry.where for entry in entries] == [f"{path}, line {number}" for number in (1, 2, 3, 4)]
    assert [entry.id for entry in entries] == ["q1", "q1", None, None]
    assert entries[-1].share == 1.0


def test_the_id_of_a_bad_hotpotqa_record_is_known(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "f", HOTPOTQA | {"answer": 7})
    assert [entry.id for entry in read_entries(path)] == ["q2"]


def test_only_questions_of_the_wanted_types_are_kept(tmp_path: Path) -> None:
    kinds = ["bridge", "comparison", None, "bridge"]
    path = write_lines(tmp_path / "f", *({**HOTPOTQA, "_id": str(n), "type": kind} for n, kind in enumerate(kinds)))
    assert [question.id for question in read_questions(path, only=["bridge"])] == ["0", "3"]
    assert [question.id for question in read_questions(path, only=["bridge", "comparison"])] == ["0", "1", "3"]


def test_the_plain_format_has_types_too(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "f", PLAIN, PLAIN | {"id": "q2", "type": "bridge"})
    assert [question.id for question in read_questions(path, only=["bridge"])] == ["q2"]


def test_questions_end_at_the_first_that_cannot_be_read(tmp_path: Path) -> None:
    questions = read_questions(write_lines(tmp_path / "f", PLAIN, "{", PLAIN))
    assert next(questions).id == "q1"
    with pytest.raises(QuestionError, match="line 2"):
        next(questions)


@pytest.mark.parametrize(
    "content",
    ["[1, 2, 3]", "[]", "{}", '{"a": 1}\n' * 300, '{"data": [{"id": "1"}]}', "[[[]]]", '["a", "b"]', "[" * 5000],
    ids=["numbers", "empty array", "empty object", "other objects", "wrapped", "arrays", "texts", "deep"],
)
def test_a_file_without_questions_says_so(tmp_path: Path, content: str) -> None:
    path = tmp_path / "f"
    path.write_text(content)
    with pytest.raises(InputError) as failure:
        list(read_entries(path))
    assert str(failure.value).startswith(f"{path} ")


def test_a_long_file_without_questions_is_given_up_early(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "f", *[{"a": 1}] * 1000)
    entries = []
    with pytest.raises(InputError, match="holds no question"):
        for entry in read_entries(path):
            entries.append(entry)
    assert len(entries) <= 100


@pytest.mark.parametrize("packed", [False, True], ids=["unpacked", "gzip"])
@pytest.mark.parametrize("layout", ["lines", "array"])
def test_the_first_question_comes_before_the_file_is_read_to_its_end(tmp_path: Path, layout: str, packed: bool) -> None:
    """The end of the file is damaged, which is found out only there."""
    records = [json.dumps(PLAIN | {"id": str(number), "noise": "a" * 5000}) for number in range(2000)]
    content = ("\n".join(records) if layout == "lines" else f"[{', '.join(records)}]").encode()
    path = tmp_path / "f"
    path.write_bytes(gzip.compress(content, 0)[:-100] if packed else content[:-100])
    entries = read_entries(path)
    first = next(entries)
    assert isinstance(first.content, Question)
    assert first.share is not None
    assert first.share < 0.5


def test_a_passage_of_5_mb_is_read_quickly(tmp_path: Path) -> None:
    text = 'Anton "said" \\ {so}. ' * 250_000
    path = write_lines(tmp_path / "f", PLAIN | {"passages": [{"id": "p", "text": text}]})
    start = time.perf_counter()
    (question,) = read_questions(path)
    assert time.perf_counter() - start < 1.0
    assert question.passages[0].text == text


def test_an_array_with_a_passage_of_5_mb_is_read_quickly(tmp_path: Path) -> None:
    text = 'Anton "said" \\ {so}. ' * 250_000
    path = tmp_path / "f"
    path.write_text(json.dumps([PLAIN, PLAIN | {"passages": [{"id": "p", "text": text}]}]))
    start = time.perf_counter()
    assert [len(question.passages[0].text) for question in read_questions(path)] == [6, len(text)]
    assert time.perf_counter() - start < 2.0


def test_reading_needs_no_more_memory_for_more_questions(tmp_path: Path) -> None:
    """The quick sister of the slow test: 24 MB may add no more than 12 MB to what 2 MB need."""

    def peak(records: int) -> int:
        path = write_array(tmp_path / "f", records)
        return peak_memory(path, records)

    assert peak(2400) - peak(200) < 12 * 2**20


@pytest.mark.slow
def test_reading_600_mb_stays_under_500_mb_of_memory(tmp_path: Path) -> None:
    path = write_array(tmp_path / "f", 60_000)
    assert path.stat().st_size > 600 * 10**6
    assert peak_memory(path, 60_000) < 500 * 2**20


def write_array(path: Path, records: int) -> Path:
    """Write an array of HotpotQA questions of 10 kB each."""
    sentence = 'The "opera" {Zorilla} is by Anton Quillfeather, who was born in Prague. '
    context = [[f"Title {number}", [sentence] * 13] for number in range(10)]
    record = json.dumps(HOTPOTQA | {"context": context, "supporting_facts": [["Title 1", 0], ["Title 2", 0]]})
    with path.open("w") as file:
        file.write("[" + record)
        for _ in range(records - 1):
            file.write(", " + record)
        file.write("]")
    return path


def peak_memory(path: Path, records: int) -> int:
    """Return the peak memory in bytes of a process that reads all questions of a file.

    `ru_maxrss` would count the memory of the process that started it.
    """
    code = (
        "import re, sys; from pathlib import Path; from rechain import read_questions\n"
        "count = sum(1 for _ in read_questions(sys.argv[1]))\n"
        "print(count, re.search(r'VmHWM:\\s*(\\d+) kB', Path('/proc/self/status').read_text())[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    count, peak = map(int, done.stdout.split())
    assert count == records
    return peak * 1024


def test_a_dict_is_read_as_a_record_of_the_plain_format() -> None:
    nulls = {**PLAIN, "hops": None, "passages": [{"id": "p", "text": "Anton.", "title": None}]}
    assert read_record("here", nulls) == Entry("here", "q1", Question.model_validate(PLAIN))
    entry = read_record("here", {"id": "q1", "question": "Who?", "answer": "Anton", "passage_ids": ["p"]})
    assert isinstance(entry.content, QuestionError)
    assert (entry.id, entry.content.code) == ("q1", "unknown_passage")


def test_an_error_names_the_place_once() -> None:
    error, own = QuestionError("no_link", "no link"), QuestionError("bad_json", "file, line 3: no JSON.")
    entry = Entry("file, line 3", None, own)
    assert entry.located(own) is own
    located = entry.located(error)
    assert (located.code, str(located)) == ("no_link", "file, line 3: no link.")
    assert Entry("", None, own).located(error) is error
