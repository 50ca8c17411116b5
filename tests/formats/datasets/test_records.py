"""Raw records of files: how they are packed, laid out, cut off and damaged."""

import array
import fcntl
import gzip
import io
import json
import os
import re
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.datasets.layouts import write_lines

from rechain.errors import DamagedInputError, InputError, QuestionError
from rechain.formats.datasets import json_records
from rechain.formats.datasets.records import (
    RawRecord,
    question_files,
    read_by_id,
    read_opened,
    read_parts,
    read_records,
    read_with_id,
)
from rechain.schema import Recovered

RECORDS = [{"id": "1", "text": 'a {"brace"} and \\ in [text], Škoda'}, {"id": "2", "nested": [{"a": {"b": "}"}}]}]
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LAYOUTS: dict[str, Callable[[list[dict[str, Any]]], str]] = {
    "lines": lambda records: "\n".join(map(json.dumps, records)),
    "lines with CRLF": lambda records: "".join(json.dumps(record) + "\r\n" for record in records),
    "lines, not escaped": lambda records: "\n".join(json.dumps(record, ensure_ascii=False) for record in records),
    "blank lines": lambda records: "\n \n" + "\n\n\t\n".join(map(json.dumps, records)) + "\n\n",
    "array on one line": json.dumps,
    "array, a record a line": lambda records: "[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n",
    "pretty array": lambda records: json.dumps(records, indent=4),
    "pretty objects": lambda records: "\n".join(json.dumps(record, indent=2) for record in records),
}


def values(path: Path) -> list[Any]:
    return [record.value for record in read_records(path)]


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def until_it_fails(path: Path, kind: type[InputError] = InputError) -> tuple[list[RawRecord], str]:
    """Return the records of a file that cannot be read to its end, and what is said about it."""
    records = []
    with pytest.raises(kind) as failure:
        for record in read_records(path):
            records.append(record)
    return records, str(failure.value)


@pytest.mark.parametrize("marked", [False, True], ids=["plain", "byte order mark"])
@pytest.mark.parametrize("gzipped", [False, True], ids=["unpacked", "gzip"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_holds_the_same_records(tmp_path: Path, layout: str, gzipped: bool, marked: bool) -> None:
    content = BYTE_ORDER_MARK * marked + LAYOUTS[layout](RECORDS).encode()
    assert values(write(tmp_path / "f", gzip.compress(content) if gzipped else content)) == RECORDS


@pytest.mark.parametrize("layout", ["lines", "array on one line", "pretty array", "pretty objects"])
def test_records_longer_than_a_chunk_are_read(tmp_path: Path, layout: str) -> None:
    records = [{"id": str(number), "text": '{"}\\' * 700_000} for number in range(2)]
    assert values(write(tmp_path / "f", LAYOUTS[layout](records))) == records


def test_gzip_members_in_a_row_are_one_file(tmp_path: Path) -> None:
    content = b"".join(gzip.compress(json.dumps(record).encode() + b"\n") for record in RECORDS)
    assert values(write(tmp_path / "f", content)) == RECORDS


def test_the_place_is_the_line_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "f", '\n{"a": 1}\n\n{"a": 2}\n')
    assert [record.where for record in read_records(path)] == [f"{path}, line 2", f"{path}, line 4"]
    write(path, "\n" * 20_000 + '{"a": 1}\n')
    assert next(read_records(path)).where == f"{path}, line 20001"


@pytest.mark.parametrize("blank", [b"\n", b" \t\r\n", b"\n  "])
def test_blank_lines_are_passed_many_at_a_time(blank: bytes) -> None:
    class Counted(io.BufferedReader):
        lines = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            Counted.lines += 1
            return super().readline(size)

    newline = b"\n"
    between = b'{"id": "a"}\n' + blank * 100_000 + b'\n{"id": "b"}\n'
    read = list(json_records.json_lines(Counted(io.BytesIO(between)), 1))
    assert [number for _, number, _ in read] == [1, between.count(newline)]
    assert Counted.lines < 1000


def test_the_place_in_an_array_is_the_record(tmp_path: Path) -> None:
    path = write(tmp_path / "f", '[{"a": 1},\n{"a": 2}]')
    assert [record.where for record in read_records(path)] == [f"{path}, record 1", f"{path}, record 2"]


@pytest.mark.parametrize("layout", ["lines", "array on one line"])
def test_the_share_grows_to_the_whole_file(tmp_path: Path, layout: str) -> None:
    records = [{"id": str(number), "text": "a" * 50_000} for number in range(100)]
    shares = [record.share for record in read_records(write(tmp_path / "f", LAYOUTS[layout](records)))]
    assert shares == sorted(shares)
    assert shares[0] < 0.5
    assert shares[-1] == 1.0


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"id": "2", ', "bad_json"),
        (b'{"id": "2"} trailing', "bad_json"),
        (b"{'id': '2'}", "bad_json"),
        (b'{"id": NaN}', "bad_json"),
        (b'{"id": "a\xff"}', "bad_encoding"),
        (b'{"id": "\\ud800"}', "bad_json"),
        (b'{"id": "\\udc00\\ud800"}', "bad_json"),
        (b"\x00\x01", "bad_json"),
    ],
    ids=["cut", "trailing", "single quotes", "NaN", "UTF-8", "surrogate", "surrogates swapped", "zero bytes"],
)
def test_a_bad_record_is_an_error_in_its_place(tmp_path: Path, line: bytes, code: str) -> None:
    as_array = b'[{"id": "1"}, ' + line + b', {"id": "3"}]'
    layouts = {"line": b'{"id": "1"}\n' + line + b'\n{"id": "3"}\n'}
    layouts |= {"record": as_array} if line.startswith(b"{") and line.endswith(b"}") else {}
    for place, content in layouts.items():
        path = write(tmp_path / "f", content)
        first, bad, last = values(path)
        assert (first, last) == ({"id": "1"}, {"id": "3"})
        assert isinstance(bad, QuestionError)
        assert bad.code == code
        assert str(bad).startswith(f"{path}, {place} 2: not valid")


@pytest.mark.parametrize("layout", ["{}\n{}\n{}", "[{}, {}, {}]"], ids=["lines", "array"])
@pytest.mark.parametrize("levels", [500, 5000])
def test_deep_nesting_is_read_or_an_error_in_its_place(tmp_path: Path, levels: int, layout: str) -> None:
    deep = '{"a": ' * levels + "null" + "}" * levels
    first, middle, last = values(write(tmp_path / "f", layout.replace("{}", "%s") % ("{}", deep, "{}")))
    assert first == last == {}
    assert isinstance(middle, dict) if levels < 1000 else middle.code == "too_deep"


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> int:
    """Let records be of 100 bytes, read 7 at a time, so that every byte is somewhere the last of a piece."""
    monkeypatch.setattr(json_records, "LARGEST_RECORD", 100)
    monkeypatch.setattr(json_records, "_CHUNK", 7)
    return 100


def codes(path: Path) -> list[Any]:
    return [value.code if isinstance(value, QuestionError) else value["id"] for value in values(path)]


TOO_LONG: dict[str, Callable[[int], str]] = {
    "text": lambda size: f'{{"id": "2", "a": "{"x" * (size - 19)}"}}',
    "braces in a text": lambda size: f'{{"id": "2", "a": "{"}" * (size - 19)}"}}',
    "quotes": lambda size: f'{{"id": "2", "a": "{chr(92) + chr(34)}{(chr(92) * 2) * (size // 2)}"}}',
    "objects": lambda size: f'{{"id": "2", "a": [{",".join(["{}"] * (size // 3))}]}}',
    "deep": lambda size: '{"id": ' * (size // 7) + "2" + "}" * (size // 7),
}


@pytest.mark.parametrize("layout", ["lines", "array on one line", "pretty objects"])
@pytest.mark.parametrize("size", [101, 102, 103, 104, 105, 106, 107, 108, 199, 200, 201, 999, 10_000])
@pytest.mark.parametrize("content", TOO_LONG)
def test_a_record_that_is_too_long_is_an_error_in_its_place(
    tmp_path: Path, content: str, size: int, layout: str, small_limits: int
) -> None:
    record = TOO_LONG[content](size + 20)
    text = LAYOUTS[layout]([{"id": "1"}, {"id": "2"}, {"id": "3"}])
    path = write(tmp_path / "f", re.sub(r'\{\s*"id": "2"\s*\}', lambda _: record, text))
    assert codes(path) == ["1", "too_long", "3"]
    bad = values(path)[1]
    assert str(bad) == f"{path}, {'line' if layout == 'lines' else 'record'} 2: the record is longer than 0 MB."


@pytest.mark.parametrize("layout", ["lines", "array on one line"])
def test_the_longest_record_is_read(tmp_path: Path, layout: str, small_limits: int) -> None:
    longest = {"id": "2", "a": "x" * 80}
    assert len(json.dumps(longest)) == small_limits
    path = write(tmp_path / "f", LAYOUTS[layout]([{"id": "1"}, longest, longest]))
    assert codes(path) == ["1", "2", "2"]
    path.write_text(path.read_text().replace("xx", "xxx", 1))
    assert codes(path) == ["1", "too_long", "2"]


@pytest.mark.parametrize("end", ["", "}", '"'])
def test_a_record_of_an_array_that_is_too_long_and_never_ends_is_named(
    tmp_path: Path, end: str, small_limits: int
) -> None:
    path = write(tmp_path / "f", '[{"id": "1"}, {"id": "2", "a": "' + "x}" * 1000 + end)
    records, message = until_it_fails(path, DamagedInputError)
    assert [type(record.value) for record in records] == [dict, QuestionError]
    assert message == f"{path}, record 2: the file ends in the middle of the record."


def test_an_array_without_records_is_given_up(tmp_path: Path, small_limits: int) -> None:
    path = write(tmp_path / "f", '[{"id": "1"}, ' + "1, " * 1000)
    assert until_it_fails(path)[1] == f"{path}, record 2: no record begins within 0 MB."


def peak_memory(path: Path) -> tuple[list[str], int]:
    """Return the codes or ids of a file's records, and the peak memory in bytes of a process that reads them."""
    code = (
        "import re, sys; from pathlib import Path; from rechain.formats.datasets.records import read_records\n"
        "for _, value, *_ in read_records(Path(sys.argv[1])):\n"
        "    print(value['id'] if isinstance(value, dict) else value.code)\n"
        "print(re.search(r'VmHWM:\\s*(\\d+) kB', Path('/proc/self/status').read_text())[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    *names, peak = done.stdout.split()
    return names, int(peak) * 1024


BOMBS = {
    "line": (b'{"id": "1"}\n{"id": "2", "a": "', b"x", b'"}\n{"id": "3"}\n'),
    "text of an array": (b'[{"id": "1"}, {"id": "2", "a": "', b"x", b'"}, {"id": "3"}]'),
    "objects of an array": (b'[{"id": "1"}, {"id": "2", "a": [', b"{},", b'{}]}, {"id": "3"}]'),
}


@pytest.mark.parametrize(
    ("bomb", "size"),
    [
        ("line", 2**27),
        ("text of an array", 2**26),
        *(pytest.param(bomb, 2**32 if bomb == "line" else 2**30, marks=pytest.mark.slow) for bomb in BOMBS),
    ],
)
def test_a_packed_record_without_an_end_takes_little_memory(tmp_path: Path, bomb: str, size: int) -> None:
    before, repeated, after = BOMBS[bomb]
    block = repeated * (2**20 // len(repeated))
    with gzip.open(tmp_path / "f", "wb", compresslevel=1) as file:
        file.write(before)
        for _ in range(size // len(block)):
            file.write(block)
        file.write(after)
    names, peak = peak_memory(tmp_path / "f")
    assert names == ["1", "too_long", "3"]
    assert peak < 200 * 2**20


@pytest.mark.parametrize("number", [2**63, 2**64, 10**30, 10**400, -(10**30)], ids=lambda n: f"{len(str(n))} digits")
def test_huge_integers_do_not_stop_the_reading(tmp_path: Path, number: int) -> None:
    path = write(tmp_path / "f", f'{{"n": {number}}}\n{{"n": 1}}\n')
    assert values(path)[1:] == [{"n": 1}]


@pytest.mark.parametrize("element", ["7", "null", '"{"'])
def test_an_element_of_an_array_that_is_no_object_is_an_error_in_its_place(tmp_path: Path, element: str) -> None:
    path = write(tmp_path / "f", f'[{{"id": "1"}}, {element}, {{"id": "3"}}]')
    first, bad, last = values(path)
    assert (first, last) == ({"id": "1"}, {"id": "3"})
    assert not isinstance(bad, dict)


@pytest.mark.parametrize(
    "content",
    [b'[{"id": "1"}, {"id": "2', b'[{"id": "1"}, {"id": {}', b'[{"id": "1"},', b'[{"id": "1"}'],
    ids=["in a string", "in a record", "after a comma", "before the bracket"],
)
def test_an_array_that_is_cut_off_says_so(tmp_path: Path, content: bytes) -> None:
    records, message = until_it_fails(write(tmp_path / "f", content))
    assert [record.value for record in records] == [{"id": "1"}]
    assert "ends" in message
    assert str(tmp_path / "f") in message


@pytest.mark.parametrize("layout", ["lines", "array on one line"])
def test_a_cut_off_gzip_file_is_read_up_to_the_cut(tmp_path: Path, layout: str) -> None:
    records = [{"id": str(number), "noise": os.urandom(200).hex()} for number in range(300)]
    packed = gzip.compress(LAYOUTS[layout](records).encode())
    path = write(tmp_path / "f.gz", packed[: len(packed) * 3 // 4])
    read, message = until_it_fails(path)
    assert len(read) > 100
    assert message.startswith(f"{path} is cut off")


@pytest.mark.parametrize("at", ["header", "body", "checksum"])
def test_a_damaged_gzip_file_says_so(tmp_path: Path, at: str) -> None:
    packed = bytearray(gzip.compress(b'{"id": "1"}\n' * 1000))
    position = {"header": 2, "body": len(packed) // 2, "checksum": len(packed) - 6}[at]
    packed[position] ^= 0xFF
    path = write(tmp_path / "f.gz", bytes(packed))
    assert until_it_fails(path)[1].startswith(f"{path} is damaged")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b" \n\n\t\n", "is empty"),
        (BYTE_ORDER_MARK, "is empty"),
        (gzip.compress(b""), "is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "is neither JSON nor a table"),
        (b"id,question\n1,Who?\n", "is neither JSON nor a table of three columns"),
        ("{}".encode("utf-16"), "is JSON in UTF-16"),
        (gzip.compress(b"\x89PNG\r\n\x1a\n"), "is neither JSON nor a table"),
        (b"PAR1 but not really PAR1", "Parquet"),
    ],
    ids=["empty", "blank", "mark", "gzip of nothing", "PNG", "CSV", "UTF-16", "gzip of PNG", "false Parquet"],
)
def test_a_file_that_is_no_json_gets_one_sentence(tmp_path: Path, content: bytes, why: str) -> None:
    path = write(tmp_path / "f", content)
    records, message = until_it_fails(path)
    assert records == []
    assert message.startswith(f"{path} ")
    assert why in message
    assert "\n" not in message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert until_it_fails(tmp_path / "none")[1] == f"{tmp_path / 'none'} cannot be read: No such file or directory."


def test_a_folder_without_data_is_named(tmp_path: Path) -> None:
    assert until_it_fails(tmp_path)[1].startswith(f"{tmp_path} is a folder")


def test_a_named_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=write, args=(pipe, LAYOUTS["lines"](RECORDS)), daemon=True)
    writer.start()
    command = [
        sys.executable,
        "-c",
        "import sys; from pathlib import Path; from rechain.formats.datasets.records import *\n",
    ]
    command[-1] += "print([record.value['id'] for record in read_records(Path(sys.argv[1]))])"
    done = subprocess.run([*command, str(pipe)], capture_output=True, text=True, timeout=120)
    writer.join(timeout=120)
    assert done.stdout.strip() == "['1', '2']", done.stderr[-300:]


def dribble(content: bytes, reading: int, writing: int) -> None:
    """Write byte by byte into a pipe, each when the one before was taken, so that no two are read at once."""
    waiting = array.array("i", [0])
    with os.fdopen(writing, "wb", buffering=0) as pipe:
        for byte in content:
            pipe.write(bytes([byte]))
            while fcntl.ioctl(reading, termios.FIONREAD, waiting) == 0 and waiting[0]:
                time.sleep(0)


@pytest.mark.parametrize("marked", [False, True], ids=["plain", "byte order mark"])
@pytest.mark.parametrize("gzipped", [False, True], ids=["unpacked", "gzip"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_pipe_that_gives_a_byte_at_a_time_is_read_as_a_file_is(layout: str, gzipped: bool, marked: bool) -> None:
    content = BYTE_ORDER_MARK * marked + LAYOUTS[layout](RECORDS).encode()
    reading, writing = os.pipe()
    packed = gzip.compress(content) if gzipped else content
    thread = threading.Thread(target=dribble, args=(packed, reading, writing), daemon=True)
    with os.fdopen(reading, "rb") as pipe:
        thread.start()
        assert [record.parsed().value for record in read_opened("pipe", pipe, 0)] == RECORDS
        thread.join(timeout=120)


def test_parquet_in_a_pipe_is_recognised_byte_by_byte() -> None:
    reading, writing = os.pipe()
    thread = threading.Thread(target=dribble, args=(b"PAR1", reading, writing), daemon=True)
    with os.fdopen(reading, "rb") as pipe:
        thread.start()
        with pytest.raises(InputError, match="pipe is Parquet, which cannot be read from a pipe"):
            next(read_opened("pipe", pipe, 0))
        thread.join(timeout=120)


def test_standard_input_is_read_while_it_is_being_written() -> None:
    code = "from pathlib import Path; from rechain.formats.datasets.records import read_records\n"
    code += "for record in read_records(Path('-')): print(record.value['id'], record.share, flush=True)"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin and process.stdout
        process.stdin.write('{"id": "first"}\n')
        process.stdin.flush()
        assert process.stdout.readline() == "first None\n"
        rest, _ = process.communicate('{"id": "second"}\n', timeout=120)
    assert rest == "second None\n"


def write_parquet(path: Path, records: list[dict[str, Any]]) -> Path:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path)
    return path


def test_parquet_rows_are_records_without_their_nulls(tmp_path: Path) -> None:
    rows = [{"id": "1", "hops": None, "passages": [{"text": "a", "title": None}]}]
    path = write_parquet(tmp_path / "f.parquet", [*rows, {"id": "2", "hops": 3, "passages": [{"text": "b"}]}])
    assert list(read_records(path)) == [
        RawRecord(f"{path}, row 1", {"id": "1", "passages": [{"text": "a"}]}, 0.5, "1"),
        RawRecord(f"{path}, row 2", {"id": "2", "hops": 3, "passages": [{"text": "b"}]}, 1.0, "2"),
    ]


def test_parquet_with_a_damaged_name_of_a_column_is_refused(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "f.parquet", [{"id": "1", "quorvath": "a"}])
    path.write_bytes(path.read_bytes().replace(b"quorvath", b"quor\xf4ath"))
    with pytest.raises(InputError, match="not a readable Parquet file"):
        list(read_records(path))


def test_a_folder_of_parquet_files_is_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("train-00001", "train-00000"):
        write_parquet(tmp_path / f"{name}.parquet", [{"id": name}])
    assert values(tmp_path) == [{"id": "train-00000"}, {"id": "train-00001"}]


def test_a_damaged_parquet_file_says_so(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "f.parquet", [{"id": str(number)} for number in range(1000)])
    write(path, path.read_bytes()[:-200])
    records, message = until_it_fails(path)
    assert records == []
    assert str(path) in message
    assert "\n" not in message


def test_a_parquet_row_that_is_not_utf8_is_an_error_in_its_place(tmp_path: Path) -> None:
    broken = pyarrow.array([b"1", b"\xff", b"3"]).cast(pyarrow.string(), safe=False)
    pyarrow.parquet.write_table(pyarrow.table({"id": broken}), tmp_path / "f.parquet")
    first, bad, last = values(tmp_path / "f.parquet")
    assert (first, last) == ({"id": "1"}, {"id": "3"})
    assert isinstance(bad, QuestionError)
    assert bad.code == "bad_encoding"
    assert "row 2" in str(bad)


def test_a_hugging_face_folder_is_read(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    datasets.Dataset.from_list(RECORDS[:1] * 2).save_to_disk(path)
    assert [(record.where, record.value) for record in read_records(path)] == [
        (f"{path}, row 1", RECORDS[0]),
        (f"{path}, row 2", RECORDS[0]),
    ]


def test_of_several_splits_one_must_be_named(tmp_path: Path) -> None:
    split = datasets.Dataset.from_list(RECORDS[:1])
    datasets.DatasetDict({"train": split, "test": split}).save_to_disk(tmp_path / "saved")
    assert str(tmp_path / "saved" / "train") in until_it_fails(tmp_path / "saved")[1]
    assert values(tmp_path / "saved" / "train") == RECORDS[:1]


@pytest.mark.parametrize("features", ['{"id": "x"}', '{"id": []}', "[]"])
def test_a_hugging_face_folder_whose_description_is_none(tmp_path: Path, features: str) -> None:
    """The library raises AttributeError, IndexError and others."""
    datasets.Dataset.from_list(RECORDS[:1]).save_to_disk(tmp_path / "saved")
    write(tmp_path / "saved" / "dataset_info.json", f'{{"features": {features}}}')
    records, message = until_it_fails(tmp_path / "saved")
    assert records == []
    assert "is not a readable Hugging Face dataset" in message


def test_a_hugging_face_folder_that_points_out_of_itself(tmp_path: Path) -> None:
    """The library maps the file into memory and follows the offsets of texts: the process would be killed."""
    datasets.Dataset.from_list([{"id": "a" * 7}, {"id": "b" * 11}]).save_to_disk(tmp_path / "saved")
    (path,) = (tmp_path / "saved").glob("*.arrow")
    offsets = b"".join(number.to_bytes(4, "little") for number in (0, 7, 18))
    assert offsets in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(offsets, offsets[:8] + b"\xff\xff\xff\x7f"))
    records, message = until_it_fails(tmp_path / "saved")
    assert records == []
    assert "is not a readable Hugging Face dataset" in message


@pytest.mark.parametrize("broken", ["dataset_info.json", "state.json", "data-00000-of-00001.arrow"])
def test_a_damaged_hugging_face_folder_says_so(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "saved"
    datasets.Dataset.from_list(RECORDS[:1]).save_to_disk(path)
    write(path / broken, "damaged")
    records, message = until_it_fails(path)
    assert records == []
    assert str(path) in message


# ---- folders of several files


def write_parts(folder: Path, names: list[str]) -> None:
    """Write a file of one record for every name, which is the record's id."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps({"id": name}).encode() + b"\n"
        write(folder / name, gzip.compress(content) if name.endswith(".gz") else content)


def test_a_folder_of_json_files_is_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    names = ["part-00002.json", "part-00000.jsonl", "part-00001.jsonl.gz", "more/part-0.json.gz", "part-00010.jsonl"]
    write_parts(tmp_path, names)
    assert [value["id"] for value in values(tmp_path)] == sorted(names)


def test_hidden_and_empty_files_and_those_of_other_kinds_are_no_part_of_a_folder(tmp_path: Path) -> None:
    write_parts(tmp_path, ["a.jsonl", ".a.jsonl.crc", ".hidden.jsonl", "_SUCCESS", "_b.jsonl", "notes.txt", "c.csv"])
    (tmp_path / "empty.jsonl").touch()
    assert values(tmp_path) == [{"id": "a.jsonl"}]


def test_files_of_a_folder_that_turn_out_to_hold_nothing_are_passed_over(tmp_path: Path) -> None:
    """Whatever writes in partitions leaves such files."""
    write_parts(tmp_path, ["b.jsonl", "d.jsonl"])
    whole = [record.value for record in read_records(tmp_path)]
    for name, nothing in {"a.jsonl": b"\n \n", "c.jsonl.gz": gzip.compress(b""), "e.json": b"[]"}.items():
        (tmp_path / name).write_bytes(nothing)
    assert [record.value for record in read_records(tmp_path)] == whole
    for name in ("b.jsonl", "d.jsonl"):
        (tmp_path / name).unlink()
    assert until_it_fails(tmp_path) == ([], f"{tmp_path} is empty.")


def test_a_parquet_file_without_rows_is_passed_over_in_a_folder(tmp_path: Path) -> None:
    table = pyarrow.table({"id": ["a", "b"]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    pyarrow.parquet.write_table(table.slice(0, 0), tmp_path / "b.parquet")
    assert [record.value for record in read_records(tmp_path)] == [{"id": "a"}, {"id": "b"}]
    assert values(tmp_path / "b.parquet") == []


@pytest.mark.parametrize("folder", [".ipynb_checkpoints", ".cache/huggingface", "_temporary/0"])
def test_files_of_a_hidden_folder_are_no_part_of_a_folder(tmp_path: Path, folder: str) -> None:
    """Editors and file systems keep copies there, whose questions would come twice."""
    write_parts(tmp_path, ["a.jsonl", f"{folder}/a-checkpoint.jsonl"])
    assert values(tmp_path) == [{"id": "a.jsonl"}]
    assert values(tmp_path / folder) == [{"id": f"{folder}/a-checkpoint.jsonl"}]  # its parent may be hidden


def test_parquet_files_go_before_json_files_that_lie_beside_them(tmp_path: Path) -> None:
    write_parts(tmp_path, ["dataset_infos.json"])
    write_parquet(tmp_path / "b.parquet", [{"id": "b"}])
    assert values(tmp_path) == [{"id": "b"}]


@pytest.mark.parametrize("name", ["a.jsonl", "within/c.jsonl.gz"])
def test_lines_of_json_beside_parquet_files_are_not_left_out_without_a_word(tmp_path: Path, name: str) -> None:
    write_parts(tmp_path, [name])
    write_parquet(tmp_path / "b.parquet", [{"id": "b"}])
    message = f"{tmp_path} holds both Parquet files and lines of JSON; name a folder with one kind of them."
    assert until_it_fails(tmp_path) == ([], message)


def test_a_folder_of_files_that_are_no_part_is_named(tmp_path: Path) -> None:
    write_parts(tmp_path, [".hidden.jsonl", "notes.txt"])
    (tmp_path / "empty.jsonl").touch()
    assert until_it_fails(tmp_path)[1].startswith(f"{tmp_path} is a folder without Parquet, JSON or CSV files")


NAMES = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "", "sub/"]),
        st.sampled_from(["", "", ".", "_"]),
        st.sampled_from("abc"),
        st.sampled_from([".jsonl", ".json", ".jsonl.gz", ".json.gz", ".parquet", ".txt", ""]),
    ),
)


@given(st.dictionaries(NAMES, st.integers(0, 2)))
def test_the_files_of_a_folder_are_of_one_kind_shown_filled_and_in_order(sizes: dict[str, int]) -> None:
    try:
        parts = question_files("", sizes)
    except InputError:
        assert any(name.endswith(".parquet") for name in sizes) and any(".jsonl" in name for name in sizes)
        return
    assert parts == sorted(set(parts))
    assert parts == question_files("", dict(reversed(sizes.items())))
    kinds = {name.endswith(".parquet") for name in parts}
    assert len(kinds) <= 1
    for name in sizes.keys() - parts:
        is_other = not name.endswith((".jsonl", ".json", ".jsonl.gz", ".json.gz", ".parquet"))
        is_hidden = Path(name).name.startswith((".", "_"))
        assert is_other or is_hidden or not sizes[name] or (kinds == {True} and not name.endswith(".parquet"))
    assert all(sizes[name] and not Path(name).name.startswith((".", "_")) for name in parts)


@pytest.mark.parametrize("parquet", [False, True], ids=["JSON", "Parquet"])
def test_the_share_grows_over_all_parts_to_the_whole_folder(tmp_path: Path, parquet: bool) -> None:
    for number, records in enumerate([3, 1, 40, 2]):
        rows = [{"id": str(row), "text": "a" * 100} for row in range(records)]
        if parquet:
            write_parquet(tmp_path / f"{number}.parquet", rows)
        else:
            write(tmp_path / f"{number}.jsonl", LAYOUTS["lines"](rows))
    shares = [[record.share for record in records] for _, records in read_parts(tmp_path)]
    assert [len(part) for part in shares] == [3, 1, 40, 2]
    flat = [share for part in shares for share in part]
    assert flat == sorted(flat)
    assert all(0 < share <= 1 + 1e-9 for share in flat)
    assert flat[-1] == pytest.approx(1)
    sizes = [path.stat().st_size for path in sorted(tmp_path.iterdir())]
    ends = [sum(sizes[: number + 1]) / sum(sizes) for number in range(4)]
    assert [part[-1] for part in shares] == pytest.approx(ends)


def test_parts_are_named_and_their_records_are_not_parsed_yet(tmp_path: Path) -> None:
    write_parts(tmp_path, ["a.jsonl", "b.jsonl"])
    write(tmp_path / "b.jsonl", '{"id": null, "x": 1}\n{"id"\n')
    parts = [(path, list(records)) for path, records in read_parts(tmp_path)]
    assert [path for path, _ in parts] == [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    whole, cut = parts[1][1]
    assert (whole.value, cut.value) == (b'{"id": null, "x": 1}\n', b'{"id"\n')
    assert whole.parsed().value == {"x": 1}
    assert whole.parsed().parsed() == whole.parsed()
    problem = cut.parsed().value
    assert isinstance(problem, QuestionError)
    assert (problem.code, cut.parsed()[::2]) == ("bad_json", cut[::2])


def test_a_part_that_cannot_be_read_comes_after_all_before_it(tmp_path: Path) -> None:
    write_parts(tmp_path, ["a.jsonl", "c.jsonl"])
    write(tmp_path / "b.jsonl.gz", gzip.compress(b'{"id": "b"}\n')[:-9])
    records, message = until_it_fails(tmp_path)
    assert [record.value["id"] for record in records][:1] == ["a.jsonl"]
    assert message.startswith(f"{tmp_path / 'b.jsonl.gz'} is cut off")


@pytest.mark.parametrize(("library", "extra"), [("pyarrow", "parquet"), ("datasets", "datasets")])
def test_a_missing_library_names_the_extra_to_install(tmp_path: Path, library: str, extra: str) -> None:
    write(tmp_path / f"{library}.py", "raise ImportError('not here')")
    if library == "pyarrow":
        data = write_parquet(tmp_path / "f.parquet", RECORDS[:1])
    else:
        data = tmp_path / "saved"
        datasets.Dataset.from_list(RECORDS[:1]).save_to_disk(data)
    done = subprocess.run(
        [sys.executable, "-c", "from rechain.cli.main import main; main()", "recover", str(data)],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert f"pip install 'rechain[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_chains_of_questions_that_could_not_be_read_are_passed_over(tmp_path: Path) -> None:
    unread = {"id": None, "chains": [], "error": {"code": "bad_json", "message": "not valid JSON"}}
    path = write_lines(tmp_path / "chains.jsonl", unread, {"id": "town-1", "chains": [], "error": None}, unread)
    assert [name for name, _ in read_with_id(path, Recovered)] == ["town-1"]
    assert list(read_by_id(path, Recovered)) == ["town-1"]


def test_no_two_rows_have_the_same_id(tmp_path: Path) -> None:
    row = {"id": "x", "chains": []}
    path = write_lines(tmp_path / "chains.jsonl", row, {"id": "y", "chains": []}, row)
    with pytest.raises(InputError, match="line 3: the id 'x' stands there twice"):
        read_by_id(path, Recovered)


@pytest.mark.parametrize("levels", [240, 600, 1000, 5000])
def test_a_chain_whose_reasons_are_nested_too_deeply_stops_the_reading(tmp_path: Path, levels: int) -> None:
    chain = {"passages": ["p"], "links": [], "score": 1.0, "why": {"steps": "VALUE"}}
    path = write_lines(tmp_path / "chains.jsonl", {"id": "x", "chains": [chain]})
    path.write_text(path.read_text().replace('"VALUE"', "[" * levels + "null" + "]" * levels))
    with pytest.raises(InputError, match=r"line 1: .* nested"):
        read_by_id(path, Recovered)


def test_a_deep_field_that_nobody_reads_is_not_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "chains.jsonl"
    path.write_text('{"id": "x", "chains": [], "extra": ' + "[" * 1000 + "null" + "]" * 1000 + "}")
    assert list(read_by_id(path, Recovered)) == ["x"]
