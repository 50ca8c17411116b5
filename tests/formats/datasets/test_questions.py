"""From a file of any format to questions, one at a time."""

import gzip
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.datasets.layouts import write_lines

from rechain.errors import InputError, QuestionError
from rechain.evaluation.gold import read_gold
from rechain.formats.datasets import formats, json_records, questions, read_entries, read_questions
from rechain.formats.datasets.formats import Format, make_passages
from rechain.formats.datasets.questions import (
    Chunk,
    Entry,
    QuestionReader,
    chunks_of,
    read_chunks,
    read_record,
    read_sentences,
)
from rechain.formats.datasets.records import RawRecord
from rechain.schema import DEEPEST, MOST_PASSAGES, Gold, GoldChain, Passage, Question

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
    assert str(bad).startswith(f"{path}, line 1: the field {field} is missing; the record has ")
    assert all(key in str(bad) for key in lacking)
    assert "--map" in str(bad)


def test_an_entry_knows_its_place_and_id(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "f", PLAIN, PLAIN | {"answer": 7}, PLAIN | {"id": 7}, "{")
    entries = list(read_entries(path))
    assert [entry.where for entry in entries] == [f"{path}, line {number}" for number in (1, 2, 3, 4)]
    assert [entry.id for entry in entries] == ["q1", "q1", "7", None]
    assert [entry.id for entry in read_entries(write_lines(path, HOTPOTQA | {"answer": 7}))] == ["q2"]
    assert entries[-1].share == 1.0


def test_only_questions_of_the_wanted_types_are_kept(tmp_path: Path) -> None:
    kinds = ["bridge", "comparison", None, "bridge"]
    path = write_lines(tmp_path / "f", *({**HOTPOTQA, "_id": str(n), "type": kind} for n, kind in enumerate(kinds)))
    assert [question.id for question in read_questions(path, only=["bridge"])] == ["0", "3"]
    assert [question.id for question in read_questions(path, only=["bridge", "comparison"])] == ["0", "1", "3"]


@pytest.mark.parametrize("kind", [[], {}, ["bridge"], {"a": 1}, True], ids=repr)
@pytest.mark.parametrize("record", [PLAIN, HOTPOTQA], ids=["plain", "hotpotqa"])
def test_a_type_that_is_no_text_is_the_error_of_its_question(tmp_path: Path, record: Any, kind: object) -> None:
    path = write_lines(tmp_path / "f", record | {"type": kind}, record | {"type": "bridge"})
    bad, well = (entry.content for entry in read_entries(path, only=["bridge"]))
    assert isinstance(bad, QuestionError) and (bad.code, isinstance(well, Question)) == ("bad_field", True)
    assert "type: input should be a valid string" in str(bad)


@pytest.mark.parametrize("kind", [2, 2.5])
def test_a_type_may_be_a_number(tmp_path: Path, kind: float) -> None:
    path = write_lines(tmp_path / "f", PLAIN | {"type": kind}, PLAIN | {"type": None}, PLAIN)
    (question,) = read_questions(path, only=[str(kind)])
    assert question.type == str(kind)


def nested(levels: int, kind: str) -> str:
    """Return JSON of so many lists or objects in each other, with a null that sends the reader through them."""
    opening, closing = {"lists": ("[", "]"), "objects": ('{"a":', "}")}[kind]
    return opening * levels + "null" + closing * levels


def with_extra(record: Any, place: str, value: str) -> str:
    """Return the JSON of a record with an extra field at a place."""
    extra = {"extra": "VALUE"}
    passages = [record["passages"][0] | extra] if place == "passage" else record.get("passages")
    changed = record | (extra if place == "top" else {"passages": passages})
    return json.dumps(changed).replace('"VALUE"', value)


@pytest.mark.parametrize("levels", [101, 240, 300, 600, 1000, 5000, 100_000])
@pytest.mark.parametrize("kind", ["lists", "objects"])
@pytest.mark.parametrize("place", ["top", "passage"])
def test_what_is_nested_too_deeply_is_the_error_of_its_line(tmp_path: Path, place: str, kind: str, levels: int) -> None:
    path = write_lines(tmp_path / "f", PLAIN, with_extra(PLAIN, place, nested(levels, kind)), PLAIN)
    before, bad, after = (entry.content for entry in read_entries(path))
    assert isinstance(before, Question) and before == after
    assert isinstance(bad, QuestionError) and bad.code == "too_deep"
    assert str(bad).startswith(f"{path}, line 2: ") and "nested" in str(bad)


@pytest.mark.parametrize("kind", ["lists", "objects"])
@pytest.mark.parametrize("place", ["top", "passage"])
def test_what_is_nested_as_deeply_as_allowed_can_be_sent_stored_and_written(
    tmp_path: Path, place: str, kind: str
) -> None:
    (question,) = read_questions(write_lines(tmp_path / "f", with_extra(PLAIN, place, nested(DEEPEST, kind))))
    assert pickle.loads(pickle.dumps(question)) == question
    assert Question.model_validate_json(question.model_dump_json()) == question
    assert orjson.dumps(question.model_dump())


@pytest.mark.parametrize("name", ["hotpotqa", "2wiki", "musique", "qangaroo"])
def test_a_deep_field_that_a_format_does_not_keep_is_not_looked_at(tmp_path: Path, name: str) -> None:
    path = write_lines(tmp_path / "f", with_extra(RECORDS[name], "top", nested(600, "lists")))
    assert [question.answer for question in read_questions(path)] == ["Anton"]


def test_a_dict_that_contains_itself_is_an_error() -> None:
    inner: list[Any] = []
    inner += [inner, inner]
    content = read_record("question", PLAIN | {"extra": inner}).content
    assert isinstance(content, QuestionError) and content.code == "too_deep"


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


def test_a_passage_of_5_mb_in_an_array_is_scanned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'Anton "said" \\ {so}. ' * 250_000
    path = tmp_path / "f"
    path.write_text(json.dumps([PLAIN, PLAIN | {"passages": [{"id": "p", "text": text}]}]))
    scanned: list[int] = []
    edges = json_records._Scanner.edges

    def counted(scanner: json_records._Scanner, piece: bytes) -> list[int]:
        scanned.append(len(piece))
        return edges(scanner, piece)

    monkeypatch.setattr(json_records._Scanner, "edges", counted)
    monkeypatch.setattr(json_records, "_CHUNK", 1 << 12)
    assert [len(question.passages[0].text) for question in read_questions(path)] == [6, len(text)]
    assert sum(scanned) == path.stat().st_size


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


@pytest.mark.parametrize("name", RECORDS)
def test_a_dict_of_any_format_is_read_as_a_line_of_a_file_is(tmp_path: Path, name: str) -> None:
    path = write_lines(tmp_path / "f", RECORDS[name])
    (entry,) = read_entries(path)
    assert isinstance(entry.content, Question)
    assert read_record(f"{path}, line 1", RECORDS[name]) == entry._replace(share=None)


# ---- chunks


def where_of(chunks: list[Chunk]) -> list[list[str]]:
    return [[record.where for record in chunk.records] for chunk in chunks]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_a_file_is_cut_by_position_alone(tmp_path: Path, size: int) -> None:
    lines = [PLAIN, "{", PLAIN | {"answer": 7}, PLAIN | {"type": "bridge"}, 7, PLAIN, PLAIN]
    path = write_lines(tmp_path / "f", *lines)
    chunks = list(read_chunks(path, size))
    places = [f"{path}, line {number}" for number in range(1, 8)]
    assert where_of(chunks) == [places[start : start + size] for start in range(0, 7, size)]
    assert {chunk.form for chunk in chunks} == {"plain"}
    assert chunks == list(read_chunks(path, size))


def test_a_chunk_of_long_records_is_shorter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_lines(tmp_path / "f", *[PLAIN] * 7)
    monkeypatch.setattr(questions, "LARGEST_RECORD", 2 * len(json.dumps(PLAIN)))
    assert [len(chunk.records) for chunk in read_chunks(path, 5)] == [2, 2, 2, 1]


def entries_of(chunks: list[Chunk], only: list[str]) -> list[tuple[object, ...]]:
    reader = QuestionReader(only=only)
    return [comparable(entry) for chunk in chunks for entry in reader.entries(chunk)]


def comparable(entry: Entry) -> tuple[object, ...]:
    content = entry.content
    told = (content.code, str(content)) if isinstance(content, QuestionError) else content
    return entry.where, entry.id, told, entry.share


LINES = ["{", 7, {"id": "empty"}, *(record | {"id": "x", "_id": "y", "type": "bridge"} for record in RECORDS.values())]
LINES += [RECORDS["hotpotqa"], PLAIN | {"answer": 7}, PLAIN]


@given(
    st.lists(st.lists(st.sampled_from(LINES), min_size=1, max_size=6), min_size=1, max_size=4),
    st.integers(1, 8),
    st.sampled_from([[], ["bridge"]]),
)
def test_chunks_of_any_size_hold_the_entries_of_every_file_and_never_those_of_two(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[object]], size: int, only: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    for number, lines in enumerate(parts):
        write_lines(folder / f"{number}.jsonl", PLAIN, *lines)
    chunks = list(read_chunks(folder, size))
    sizes = [len(lines) + 1 for lines in parts]
    expected = [min(size, count - start) for count in sizes for start in range(0, count, size)]
    assert [len(chunk.records) for chunk in chunks] == expected
    for chunk in chunks:
        assert len({record.where.partition(",")[0] for record in chunk.records}) == 1
    assert entries_of(chunks, only) == [comparable(entry) for entry in read_entries(folder, only=only)]


def test_every_file_of_a_folder_has_a_format_of_its_own(tmp_path: Path) -> None:
    for name, record in RECORDS.items():
        write_lines(tmp_path / f"{name}.jsonl", '{"id": "cut', record, record)
    chunks = list(read_chunks(tmp_path, 2))
    names = sorted(RECORDS)
    assert [chunk.form for chunk in chunks[::2]] == [chunk.form for chunk in chunks[1::2]]
    assert len({chunk.form for chunk in chunks}) == len(names)
    contents = [entry.content for chunk in chunks for entry in QuestionReader().entries(chunk)]
    assert [type(content) for content in contents] == [QuestionError, Question, Question] * len(names)
    assert all(content.answer == "Anton" for content in contents if isinstance(content, Question))


def test_a_chunk_says_from_where_to_where_it_goes(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "f", PLAIN, PLAIN, PLAIN)
    assert [chunk.where for chunk in read_chunks(path, 2)] == [f"{path}, line 1 to {path}, line 2", f"{path}, line 3"]


@pytest.mark.parametrize("read", [0, 1, 4, 5])
def test_what_was_read_before_an_error_is_in_chunks_before_it_is_raised(read: int) -> None:
    error = InputError("f is damaged.")

    def records() -> Iterator[RawRecord]:
        yield from (RawRecord(f"f, line {number}", json.dumps(PLAIN).encode()) for number in range(1, read + 1))
        raise error

    chunks = []
    with pytest.raises(InputError) as failure:
        for chunk in chunks_of("f", records(), 2):
            chunks.append(chunk)
    assert failure.value is error
    places = [f"f, line {number}" for number in range(1, read + 1)]
    assert where_of(chunks) == [places[start : start + 2] for start in range(0, read, 2)]


def test_a_chunk_can_be_sent_to_other_processes(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "f", PLAIN, "{", 7)
    (chunk,) = read_chunks(path, 9)
    again = pickle.loads(pickle.dumps(chunk))
    assert again == chunk
    assert entries_of([again], []) == entries_of([chunk], [])


@pytest.mark.parametrize("name", ["hotpotqa/train_300.json.gz", "musique/train_100.json.gz", "2wiki/train_500.json.gz"])
def test_chunks_of_real_files_hold_what_stands_in_them(real_data: Path, name: str) -> None:
    chunks = list(islice(read_chunks(real_data / name, 7), 12))
    entries = [comparable(entry) for entry in islice(read_entries(real_data / name), 84)]
    assert len({identity for _, identity, *_ in entries}) == 84
    assert [where for where, *_ in entries] == [place for chunk in where_of(chunks) for place in chunk]
    assert [told[:3] for told in entries_of(chunks, [])] == [told[:3] for told in entries]


# ---- sentences


def test_sentences_are_given_with_the_id_of_their_question(tmp_path: Path) -> None:
    record = HOTPOTQA | {"context": [["T", ["Anton sang.", " He left."]], ["U", ["Rain."]]]}
    path = write_lines(tmp_path / "f", record, "{", HOTPOTQA | {"_id": "bad", "context": 7})
    (first, sentences), (second, nothing) = read_sentences(path)
    assert (first, second) == ("q2", "bad")
    assert [list(one) for one in sentences.values()] == [["Anton sang.", " He left."], ["Rain."]]
    assert nothing == {}


def test_a_format_without_sentences_gives_none(tmp_path: Path) -> None:
    assert list(read_sentences(write_lines(tmp_path / "f", PLAIN))) == [("q1", {})]


# ---- ids and answers that are not there


def test_a_question_without_an_id_gets_its_line_and_one_of_an_array_its_position(tmp_path: Path) -> None:
    record = {field: value for field, value in PLAIN.items() if field != "id"}
    lines = write_lines(tmp_path / "lines", PLAIN, "", record, "{", record | {"id": 7}, record | {"id": 7.0})
    assert [entry.id for entry in read_entries(lines)] == ["q1", "3", None, "7", "7"]
    array = tmp_path / "array"
    array.write_text(json.dumps([record, 7, record]))
    assert [entry.id for entry in read_entries(array)] == ["1", None, "3"]
    hotpotqa = {field: value for field, value in HOTPOTQA.items() if field != "_id"}
    assert [question.id for question in read_questions(write_lines(tmp_path / "f", hotpotqa))] == ["1"]


@pytest.mark.parametrize("name", RECORDS)
def test_an_answer_that_is_null_was_not_given(tmp_path: Path, name: str) -> None:
    (question,) = read_questions(write_lines(tmp_path / "f", RECORDS[name] | {"answer": None}))
    assert question.answer == ""


def test_passages_of_the_plain_format_need_no_ids_and_may_be_texts(tmp_path: Path) -> None:
    passages = ["Anton.", {"title": "T", "text": "a"}, {"title": "T", "text": "b"}, {"id": 9, "text": "c"}, "Anton."]
    (question,) = read_questions(write_lines(tmp_path / "f", PLAIN | {"passages": passages}))
    assert [passage.id for passage in question.passages] == ["0", "T", "2", "9"]


RECORD = {
    "key": "t1",
    "ask": "Where was Anton born?",
    "reply": "Prague",
    "texts": ["Anton.", "Prague."],
    "good": [0, 1],
}


class Toy(Format):
    """Texts and the positions of the gold ones."""

    name = "toy"

    def recognises(self, record: dict[str, Any]) -> bool:
        return "ask" in record and "texts" in record

    def question(self, record: dict[str, Any]) -> Question:
        passages = make_passages("texts", ({"id": str(n), "text": text} for n, text in enumerate(record["texts"])))
        return Question(id=record["key"], question=record["ask"], answer=record["reply"], passages=passages)

    def gold(self, record: dict[str, Any]) -> Gold | None:
        chain = GoldChain(passages=[str(number) for number in record["good"]])
        return Gold(id=record["key"], chains=[chain], same=self.same)


@pytest.fixture
def toy_file(tmp_path: Path) -> Path:
    path = tmp_path / "toy.jsonl"
    path.write_text(json.dumps(RECORD) + "\n")
    return path


def test_a_format_that_is_listed_is_read(toy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(questions.FORMATS, "toy", Toy())
    (question,) = read_questions(toy_file)
    assert (question.id, question.answer) == ("t1", "Prague")
    assert question.passages == [Passage(id="0", text="Anton."), Passage(id="1", text="Prague.")]
    assert read_gold(toy_file, [])["t1"].chains == [GoldChain(passages=["0", "1"])]
    assert questions.same_chain(toy_file) == "passages"


def test_a_format_that_is_not_listed_is_not_read_and_the_known_ones_are_named(toy_file: Path) -> None:
    with pytest.raises(InputError) as failure:
        list(read_entries(toy_file))
    assert ", ".join(questions.FORMATS) in str(failure.value)


def test_no_number_is_tried_twice_for_passages_that_share_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def counting(first: int) -> Iterator[int]:
        for number in count(first):
            tried.append(number)
            yield number

    monkeypatch.setattr(formats, "count", counting)
    items = [{"id": "a", "text": str(n)} for n in range(1000)] + [{"id": "a.7", "text": "b"}]
    names = [passage.id for passage in make_passages("passages", items, logged=True)]
    assert names == ["a", *(f"a.{n}" for n in range(2, 1001)), "a.7.2"]
    assert len(tried) == 1000


def test_of_millions_of_passages_no_more_are_made_than_the_schema_allows() -> None:
    made = make_passages("passages", ({"text": str(number)} for number in count()))
    assert len(made) == MOST_PASSAGES + 1
