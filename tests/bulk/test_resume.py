"""An output file that grows by whole lines, and what an interrupted one is taken up with."""

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rechain.bulk.resume import GrowingFile, Progress, find_progress
from rechain.datasets.files import RawRecord
from rechain.datasets.reading import Chunk
from rechain.errors import RechainError

LINES = [b'{"id":"q%d","score":%d.5}\n' % (number, number) for number in range(7)]


def chunks_of(sizes: Sequence[int]) -> list[Chunk]:
    """Return chunks of which so many lines are made each, and which say at which line they begin."""
    starts = [0, *accumulate(sizes)]
    return [Chunk(None, [RawRecord(f"{start}", size)]) for start, size in zip(starts, sizes, strict=False)]


def count_lines(chunk: Chunk) -> int:
    return int(chunk.records[0].value)


def lines_of(chunk: Chunk, lines: Sequence[bytes]) -> bytes:
    start = int(chunk.records[0].where)
    return b"".join(lines[start : start + count_lines(chunk)])


def go_on(path: Path, lines: Sequence[bytes], sizes: Sequence[int]) -> Progress:
    """Take a file up and write what is left of the lines."""
    progress, left = find_progress(path, chunks_of(sizes), count_lines)
    with GrowingFile(path, progress) as file:
        for chunk in left:
            file.write(lines_of(chunk, lines))
    return progress


def write_all(path: Path, lines: Sequence[bytes], sizes: Sequence[int]) -> bytes:
    with GrowingFile(path) as file:
        for chunk in chunks_of(sizes):
            file.write(lines_of(chunk, lines))
    return path.read_bytes()


@st.composite
def cuttings(draw: st.DrawFn, count: int) -> list[int]:
    """Cut so many lines into chunks, some of which may have none."""
    marks = sorted(draw(st.lists(st.integers(0, count), max_size=count + 2)))
    return [end - start for start, end in pairwise([0, *marks, count])]


@st.composite
def interruptions(draw: st.DrawFn) -> tuple[list[bytes], int, list[int], list[int]]:
    """Draw lines, where their file is cut, and how the run before and the run after cut them into chunks."""
    texts = draw(st.lists(st.text(max_size=5), max_size=8))
    lines = [b'{"id":"%s","score":%d}\n' % (text.encode().hex().encode(), len(text)) for text in texts]
    cut = draw(st.integers(0, len(b"".join(lines))))
    return lines, cut, draw(cuttings(len(lines))), draw(cuttings(len(lines)))


@given(interruptions())
@example((LINES, 0, [7], [7]))
@example((LINES, len(b"".join(LINES)), [0, 3, 0, 4, 0], [0, 3, 0, 4, 0]))
@example((LINES, 5, [0, 0, 3, 4], [0, 0, 3, 4]))
@example((LINES, len(b"".join(LINES[:3])), [3, 0, 0, 4], [3, 0, 0, 4]))
def test_a_file_that_was_cut_anywhere_goes_on_to_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, interruption: tuple[list[bytes], int, list[int], list[int]]
) -> None:
    lines, cut, before, after = interruption
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    path.unlink(missing_ok=True)
    if not lines:
        path.touch()
    whole = path.read_bytes() if not lines else write_all(path, lines, before)
    assert whole == b"".join(lines)
    os.truncate(path, cut)
    progress = go_on(path, lines, after)
    assert path.read_bytes() == whole
    assert progress.offset == len(b"".join(lines[: progress.lines])) <= cut
    assert progress.rest == whole[progress.offset : cut]


@pytest.mark.parametrize("cut", range(0, len(b"".join(LINES)) + 1, 7))
def test_no_more_than_the_last_chunk_is_done_again(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"".join(LINES)[:cut])
    _, left = find_progress(path, chunks_of([1] * 7), count_lines)
    whole = path.read_bytes().count(b"\n")
    assert [int(chunk.records[0].where) for chunk in left] == list(range(max(whole - 1, 0), 7))


def test_what_is_written_stands_in_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with GrowingFile(path) as file:
        file.write(LINES[0])
        assert path.read_bytes() == LINES[0]
        file.write(b"")
        file.write(LINES[1])
        assert path.read_bytes() == LINES[0] + LINES[1]


def test_a_file_is_not_touched_before_the_first_line(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"precious")
    for path in (old, new):
        with GrowingFile(path) as file:
            file.write(b"")
    assert old.read_bytes() == b"precious"
    assert not new.exists()


def test_a_longer_file_is_replaced_wholly(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"long" * 1000)
    with GrowingFile(path, overwrite=True) as file:
        file.write(MADE)
    assert path.read_bytes() == MADE


# ---- files with which nobody can go on

MADE = b"".join(LINES)
FOREIGN = {
    "text": b"precious\n",
    "text without an end": b"precious",
    "binary": bytes(range(256)),
    "zeros": b"\x00" * 1000,
    "another question": MADE.replace(b"q5", b"q9"),
    "another score": MADE.replace(b"6.5", b"6.6"),
    "a field more": MADE.replace(b'{"id":"q6"', b'{"new":1,"id":"q6"'),
    "half of another line": b'{"id":"q7',
    "a blank line": LINES[0] + b"\n",
    "CRLF and text": b"id,chain\r\nq1,x\r\n",
}


@pytest.mark.parametrize("sizes", [[7], [0, 7, 0], [2, 2, 3]], ids=str)
@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path, content: bytes, sizes: list[int]) -> None:
    path = tmp_path / "f"
    path.write_bytes(content)
    with pytest.raises(RechainError) as refused:
        go_on(path, LINES, sizes)
    assert str(refused.value).startswith(str(path))
    assert "--overwrite" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == content


@pytest.mark.parametrize("extra", [LINES[0], b"\n", b"precious\n" * 1000], ids=["line", "blank", "many"])
@pytest.mark.parametrize("sizes", [[7], [3, 4], [7, 0]], ids=str)
def test_a_file_of_too_many_lines_is_refused_and_left_alone(tmp_path: Path, extra: bytes, sizes: list[int]) -> None:
    path = tmp_path / "f"
    path.write_bytes(MADE + extra)
    with pytest.raises(RechainError, match=rf"holds {7 + extra.count(10)} lines, but there are only 7 questions"):
        go_on(path, LINES, sizes)
    assert path.read_bytes() == MADE + extra


def test_a_finished_file_with_half_a_line_too_much_loses_it(tmp_path: Path) -> None:
    """Nobody can have left it but a run that was killed while it wrote, so the rest of the file is compared."""
    path = tmp_path / "f"
    path.write_bytes(MADE + b'{"id"')
    go_on(path, LINES, [3, 4])
    assert path.read_bytes() == MADE


def test_rounding_of_another_machine_is_no_other_file_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "f"
    rounded = LINES[1].replace(b"1.5", b"1.50001")
    path.write_bytes(LINES[0] + rounded)
    go_on(path, LINES, [2, 5])
    assert path.read_bytes() == MADE.replace(LINES[1], rounded)


UNREAD = b'{"id":null,"chains":[],"error":{"code":"bad_json","message":"f, line 2: not valid JSON"}}\n'


@pytest.mark.parametrize(("sizes", "questions"), [([7], 7), ([2, 5], 7), ([2], 2)])
def test_half_a_record_at_the_end_of_the_input_is_replaced_when_the_rest_has_come(
    tmp_path: Path, sizes: list[int], questions: int
) -> None:
    path = tmp_path / "f"
    path.write_bytes(LINES[0] + UNREAD)
    go_on(path, LINES, sizes)
    assert path.read_bytes() == b"".join(LINES[:questions])


def test_a_record_that_is_no_json_stays_where_others_follow_it(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(UNREAD + LINES[1][:9])
    go_on(path, [UNREAD, *LINES[1:]], [7])
    assert path.read_bytes() == UNREAD + b"".join(LINES[1:])


@pytest.mark.parametrize("half", [b"", b'{"id":"q2"'])
def test_a_chunk_that_a_damaged_record_cut_short_is_written_anew_with_what_follows(tmp_path: Path, half: bytes) -> None:
    """Scored in a smaller batch, its lines may be rounded otherwise than an undisturbed run rounds them."""
    path = tmp_path / "f"
    path.write_bytes(LINES[0] + LINES[1].replace(b"1.5", b"1.50001") + half)
    go_on(path, LINES, [7])
    assert path.read_bytes() == MADE


NESTED = b'{"chains":[{"score":%s,"passages":["a","b"]}],"error":%s}\n'


@pytest.mark.parametrize(
    ("score", "error", "is_taken"),
    [
        (b"0.5", b"null", True),
        (b"0.50001", b"null", True),
        (b"0.51", b"null", False),
        (b"null", b"null", False),
        (b"0.5", b'"no_link"', False),
    ],
)
def test_records_are_compared_to_their_depths(tmp_path: Path, score: bytes, error: bytes, is_taken: bool) -> None:
    path, made = tmp_path / "f", NESTED % (b"0.5", b"null")
    path.write_bytes(NESTED % (score, error))
    before = path.read_bytes()
    if is_taken:
        go_on(path, [made], [1])
    else:
        with pytest.raises(RechainError, match="not the beginning"):
            go_on(path, [made], [1])
    assert path.read_bytes() == before


# ---- others that write, and disks that are full


def test_a_file_that_another_run_writes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with GrowingFile(path) as first:
        first.write(LINES[0])
        for second in (GrowingFile(path, overwrite=True), GrowingFile(path, Progress(0, 0, LINES[0]))):
            with second, pytest.raises(RechainError, match="written by another run"):
                second.write(LINES[0])
        first.write(LINES[1])
    assert path.read_bytes() == LINES[0] + LINES[1]
    go_on(path, LINES, [7])
    assert path.read_bytes() == MADE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_device_gets_one_sentence() -> None:
    with GrowingFile(Path("/dev/full")) as file, pytest.raises(RechainError) as failure:
        file.write(LINES[0])
    assert str(failure.value) == "/dev/full cannot be written: No space left on device."


@pytest.fixture
def largest_file() -> Iterator[Callable[[int], None]]:
    """Set how large a file this process may write, until the test ends: a disk that is full beyond that."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", range(len(LINES[0]), len(MADE), 11))
def test_a_disk_that_fills_up_leaves_the_chunks_before_whole(
    tmp_path: Path, largest_file: Callable[[int], None], room: int
) -> None:
    path = tmp_path / "f"
    largest_file(room)
    with pytest.raises(RechainError, match="cannot be written: File too large"):
        write_all(path, LINES, [1, 0, 3, 1, 2])
    chunks = [b"".join(LINES[:lines]) for lines in (1, 4, 5)]
    assert path.read_bytes() == max((begun for begun in chunks if len(begun) <= room), key=len)
    largest_file(1 << 30)
    go_on(path, LINES, [1, 0, 3, 1, 2])
    assert path.read_bytes() == MADE


def test_going_on_with_a_full_disk_loses_no_line_that_was_there(
    tmp_path: Path, largest_file: Callable[[int], None]
) -> None:
    """What a run before has done stays, also what is recovered once more to be compared."""
    path, before = tmp_path / "f", b"".join(LINES[:3])
    path.write_bytes(before)
    largest_file(len(before) - 5)  # others took the space meanwhile
    with pytest.raises(RechainError, match="cannot be written"):
        go_on(path, LINES, [3, 4])
    largest_file(1 << 30)
    assert path.read_bytes() == before
