"""An output file that grows by whole lines, and what an interrupted one is taken up with."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice, pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rechain.bulk.journal import Audit, Journal, input_digest
from rechain.bulk.resume import GrowingFile, Progress, find_progress
from rechain.bulk.work import Tally, WorkResult
from rechain.datasets.files import RawRecord
from rechain.datasets.reading import Chunk
from rechain.errors import QuestionError, RechainError
from rechain.system.files import LostOutputError
from rechain.system.provenance import DamagedProvenanceError, Facts, heading, read_provenance, sidecar_of

HEAD = heading("recover", model={"name": "lexical"}, settings={"top": 1})
LINES = [b'{"id":"q%d","score":%d.5}\n' % (number, number) for number in range(7)]


def chunks_of(sizes: Sequence[int], changed: Sequence[int] = ()) -> list[Chunk]:
    """Return chunks of which so many lines are made each, a line a record; one of no line has no wanted record."""
    starts = [0, *accumulate(sizes)]
    return [
        Chunk(None, [record(number, number in changed) for number in range(start, start + size)] or [UNWANTED])
        for start, size in zip(starts, sizes, strict=False)
    ]


def record(number: int, is_changed: bool = False) -> RawRecord:
    return RawRecord(f"q.jsonl, line {number + 1}", b'{"id":"q%d","is_changed":%d}\n' % (number, is_changed))


UNWANTED = RawRecord("q.jsonl, line 0", b"{}")


def count_lines(chunk: Chunk) -> int:
    return sum(record is not UNWANTED for record in chunk.records)


def numbers_of(chunk: Chunk) -> list[int]:
    """Return the numbers of the lines that a chunk has."""
    return [int(record.where.split()[-1]) - 1 for record in chunk.records if record is not UNWANTED]


def lines_of(chunk: Chunk, lines: Sequence[bytes]) -> bytes:
    return b"".join(lines[number] for number in numbers_of(chunk))


def result_of(chunk: Chunk, lines: bytes) -> WorkResult:
    tally = Tally(questions=lines.count(b"\n"))
    return WorkResult(lines, tally, None, None, len(chunk.records), input_digest(chunk.records))


def go_on(path: Path, lines: Sequence[bytes], sizes: Sequence[int]) -> Progress:
    """Take a file up and write what is left of the lines."""
    return go_on_with(path, lines, chunks_of(sizes))


def go_on_with(
    path: Path, lines: Sequence[bytes], chunks: list[Chunk], head: Facts = HEAD, stop_after: int | None = None
) -> Progress:
    """Take a file up and write what is left of chunks, or so many of them."""
    progress, left = find_progress(path, head, chunks, count_lines)
    with GrowingFile(path, head, progress) as file:
        for chunk in islice(left, stop_after):
            file.write(result_of(chunk, lines_of(chunk, lines)))
        if stop_after is None:
            file.finish()
            assert file.tally.questions == len(path.read_bytes().splitlines())
    return progress


def done(lines: bytes) -> WorkResult:
    """Return the result of a chunk of nobody's records."""
    return WorkResult(lines, Tally(questions=lines.count(b"\n")), None)


def write_all(path: Path, lines: Sequence[bytes], chunks: list[Chunk]) -> bytes:
    with GrowingFile(path, HEAD) as file:
        for chunk in chunks:
            file.write(result_of(chunk, lines_of(chunk, lines)))
        file.finish()
    return path.read_bytes()


@st.composite
def interruptions(draw: st.DrawFn) -> tuple[list[bytes], list[Chunk], list[Chunk], list[int]]:
    """Draw lines, how a run and those that go on with it cut their records into chunks, and where files are cut."""
    texts = draw(st.lists(st.text(max_size=5), max_size=8))
    lines = [b'{"id":"%s","score":%d}\n' % (text.encode().hex().encode(), len(text)) for text in texts]
    records = [record(number) for number in range(len(lines))] or [UNWANTED]
    for place in draw(st.lists(st.integers(0, len(lines)), max_size=3)):
        records.insert(place, UNWANTED)
    cuttings = st.lists(st.integers(1, 4), min_size=11, max_size=11)
    before, after = (_cut(records, draw(cuttings)) for _ in range(2))
    return lines, before, after, draw(st.lists(st.integers(0, len(b"".join(lines))), min_size=1, max_size=3))


def _cut(records: list[RawRecord], sizes: list[int]) -> list[Chunk]:
    ends = pairwise([0, *accumulate(sizes)])
    return [Chunk(None, records[start:end]) for start, end in ends if start < len(records)]


@given(interruptions(), st.sampled_from(["whole", "cut", "half", "absent"]), st.data())
@example((LINES, chunks_of([7]), chunks_of([7]), [0]), "whole", None)
@example((LINES, *[chunks_of([0, 3, 0, 4, 0])] * 2, [len(b"".join(LINES))]), "whole", None)
@example((LINES, *[chunks_of([0, 0, 3, 4])] * 2, [5]), "whole", None)
@example((LINES, *[chunks_of([3, 0, 0, 4])] * 2, [len(b"".join(LINES[:3]))]), "whole", None)
def test_a_file_that_was_cut_anywhere_goes_on_to_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    interruption: tuple[list[bytes], list[Chunk], list[Chunk], list[int]],
    journal: str,
    data: st.DataObject | None,
) -> None:
    """So it does whatever of its provenance is left, and with chunks of another size."""
    lines, before, after, cuts = interruption
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    for file in (path, sidecar_of(path)):
        file.unlink(missing_ok=True)
    whole = write_all(path, lines, before) if lines else b""
    path.touch()
    assert whole == b"".join(lines) == path.read_bytes()
    for number, cut in enumerate(cuts):
        os.truncate(path, cut)
        if data and sidecar_of(path).exists():
            shorten(sidecar_of(path), journal, data)
        chunks = (after, before)[number % 2]
        progress = go_on_with(path, lines, chunks)
        assert path.read_bytes() == whole
        assert progress.offset == len(b"".join(lines[: progress.lines])) <= cut
        assert progress.whole_lines == whole[:cut].count(b"\n")
        if lines:
            assert_tells_all(path, chunks, whole, journal != "absent")


def shorten(sidecar: Path, how: str, data: st.DataObject) -> None:
    """Leave of a provenance file what a killed process, or somebody who deletes it, may leave."""
    lines = sidecar.read_bytes().splitlines(keepends=True)
    if how == "absent":
        sidecar.unlink()
    elif how in ("cut", "half"):
        kept = data.draw(st.integers(1, len(lines)), "lines of the provenance file")
        half = lines[kept][:-1] if how == "half" and kept < len(lines) else b""
        sidecar.write_bytes(b"".join(lines[:kept]) + half)


def assert_tells_all(path: Path, chunks: list[Chunk], whole: bytes, is_checked: bool) -> None:
    """Assert that the provenance file covers all records and lines but for the chunks without lines at the end."""
    provenance = read_provenance(path)
    assert provenance and provenance.end
    assert not [misfit for misfit in provenance.misfits() if is_checked or "nobody knows" not in misfit]
    assert provenance.end["questions"] == whole.count(b"\n")
    audit = Audit(path, Journal(path), whole.count(b"\n"))
    lines = iter(whole.splitlines(keepends=True))
    for chunk in chunks:
        audit.add(chunk, 1, islice(lines, count_lines(chunk)))
    assert audit.kept().rest is None
    stretches = list(Journal(path).stretches())
    assert sum(stretch.lines for stretch in stretches) == whole.count(b"\n")
    assert sum(stretch.records for stretch in stretches) == sum(len(chunk.records) for chunk in chunks)


@pytest.mark.parametrize("cut", range(0, len(b"".join(LINES)) + 1, 7))
def test_no_more_than_the_last_chunk_is_done_again(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"".join(LINES)[:cut])
    _, left = find_progress(path, HEAD, chunks_of([1] * 7), count_lines)
    whole = path.read_bytes().count(b"\n")
    assert [numbers_of(chunk)[0] for chunk in left] == list(range(max(whole - 1, 0), 7))


def test_what_is_written_stands_in_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with GrowingFile(path, HEAD) as file:
        file.write(done(LINES[0]))
        assert path.read_bytes() == LINES[0]
        file.write(done(b""))
        file.write(done(LINES[1]))
        assert path.read_bytes() == LINES[0] + LINES[1]


def test_a_file_is_not_touched_before_the_first_line(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"precious")
    for path in (old, new):
        with GrowingFile(path, HEAD) as file:
            file.write(done(b""))
            file.finish()
        assert not sidecar_of(path).exists()
    assert old.read_bytes() == b"precious"
    assert not new.exists()


def test_a_longer_file_is_replaced_wholly(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"long" * 1000)
    with GrowingFile(path, HEAD, overwrite=True) as file:
        file.write(done(MADE))
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
    with GrowingFile(path, HEAD) as first:
        first.write(done(LINES[0]))
        progress, _ = find_progress(path, HEAD, chunks_of([7]), count_lines)
        for second in (GrowingFile(path, HEAD, overwrite=True), GrowingFile(path, HEAD, progress)):
            with second, pytest.raises(RechainError, match="written by another run"):
                second.write(done(LINES[0]))
        first.write(done(LINES[1]))
    assert path.read_bytes() == LINES[0] + LINES[1]
    go_on(path, LINES, [7])
    assert path.read_bytes() == MADE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_device_gets_one_sentence() -> None:
    with GrowingFile(Path("/dev/full"), HEAD) as file, pytest.raises(RechainError) as failure:
        file.write(done(LINES[0]))
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


# So long that the provenance file, which is written before and after every chunk, has room.
LONG = [b'{"id":"q%d","text":"%s"}\n' % (number, b"x" * 2000) for number in range(7)]


@pytest.mark.parametrize("room", range(len(LONG[0]), len(b"".join(LONG)), 1001))
def test_a_disk_that_fills_up_leaves_the_chunks_before_whole(
    tmp_path: Path, largest_file: Callable[[int], None], room: int
) -> None:
    path = tmp_path / "f"
    largest_file(room)
    with pytest.raises(RechainError, match="cannot be written: File too large"):
        write_all(path, LONG, chunks_of([1, 0, 3, 1, 2]))
    chunks = [b"".join(LONG[:lines]) for lines in (1, 4, 5)]
    assert path.read_bytes() == max((begun for begun in chunks if len(begun) <= room), key=len)
    largest_file(1 << 30)
    go_on(path, LONG, [1, 0, 3, 1, 2])
    assert path.read_bytes() == b"".join(LONG)


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


DISTURBANCES: dict[str, tuple[Callable[[Path], object], str]] = {
    "folder": (lambda out: shutil.rmtree(out.parent), "removed or moved"),
    "removed": (lambda out: out.unlink(), "removed or moved"),
    "replaced": (lambda out: out.with_name("f2").write_bytes(MADE) and out.with_name("f2").replace(out), "replaced"),
    "cut": (lambda out: os.truncate(out, 30), "changed"),
    "emptied": (lambda out: os.truncate(out, 0), "changed"),
    "grown": (lambda out: os.truncate(out, 1000), "changed"),
    "provenance": (lambda out: sidecar_of(out).unlink(), "removed or moved"),
    "provenance cut": (lambda out: os.truncate(sidecar_of(out), 30), "changed"),
}


@pytest.mark.parametrize("left", [0, 3])
@pytest.mark.parametrize(("disturb", "how"), DISTURBANCES.values(), ids=DISTURBANCES)
def test_an_output_that_others_disturb_is_noticed(
    tmp_path: Path, disturb: Callable[[Path], object], how: str, left: int
) -> None:
    path = tmp_path / "folder" / "f"
    path.parent.mkdir()
    with GrowingFile(path, HEAD) as file:
        for line in LINES[: 7 - left]:
            file.write(done(line))
        disturb(path)
        with pytest.raises(LostOutputError, match=f"was {how} by another program while it was written"):
            for line in LINES[7 - left :]:
                file.write(done(line))
            file.finish()


def test_what_is_left_of_a_file_that_others_cut_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with GrowingFile(path, HEAD) as file:
        for chunk in chunks_of([2, 2]):
            file.write(result_of(chunk, lines_of(chunk, LINES)))
        os.truncate(path, 30)
        with pytest.raises(LostOutputError, match=r"not the \d+ that were written; go on with --resume"):
            file.finish()
    go_on(path, LINES, [2, 2, 3])
    assert path.read_bytes() == MADE


@pytest.mark.parametrize("how", ["removed", "emptied", "cut", "replaced", "longer"])
def test_what_to_do_about_a_disturbed_provenance_file_is_true(tmp_path: Path, how: str) -> None:
    path = tmp_path / "f"
    sidecar = sidecar_of(path)
    with GrowingFile(path, HEAD) as file:
        for chunk in chunks_of([2, 2]):
            file.write(result_of(chunk, lines_of(chunk, LINES)))
        content = sidecar.read_bytes()
        if how in ("removed", "replaced"):
            sidecar.unlink()
        if how != "removed":
            new = {"emptied": b"", "cut": content[:-5], "replaced": b"mine", "longer": content + b"x"}[how]
            sidecar.write_bytes(new)
        with pytest.raises(LostOutputError) as failure:
            file.finish()
    advice = "go on with --resume" if how == "removed" else "remove it and go on with --resume"
    assert str(failure.value).endswith(f"; {advice}.")
    sidecar.unlink(missing_ok=True)
    go_on(path, LINES, [2, 2, 3])
    assert path.read_bytes() == MADE


def test_a_link_to_the_output_stays_one(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "f")
    with GrowingFile(link, HEAD) as file:
        file.write(done(MADE))
        file.finish()
    assert link.is_symlink()
    assert link.read_bytes() == MADE


# ---- changes since


@pytest.mark.parametrize("sizes", [[3, 4], [7], [1] * 7, [2, 2, 3]], ids=str)
@pytest.mark.parametrize("changed", [0, 2, 3, 5])
def test_questions_that_were_changed_are_noticed(tmp_path: Path, sizes: list[int], changed: int) -> None:
    """Whatever the size of chunks: the stretches of records are those of the run before."""
    path = tmp_path / "f"
    write_all(path, LINES, chunks_of([3, 4]))
    before = path.read_bytes(), sidecar_of(path).read_bytes()
    places = "line 1 to 3" if changed < 3 else "line 4 to 7"
    with pytest.raises(
        RechainError, match=f"^q.jsonl, {places}: these questions were changed, swapped or written differently"
    ):
        go_on_with(path, LINES, chunks_of(sizes, changed=[changed]))
    assert (path.read_bytes(), sidecar_of(path).read_bytes()) == before


@pytest.mark.parametrize("sizes", [[3, 4], [7], [1] * 7], ids=str)
@pytest.mark.parametrize("changed", [0, 2, 3, 5])
def test_lines_that_were_changed_are_noticed(tmp_path: Path, sizes: list[int], changed: int) -> None:
    path = tmp_path / "f"
    write_all(path, LINES, chunks_of([3, 4]))
    path.write_bytes(path.read_bytes().replace(b'"q%d"' % changed, b'"x"'))
    places = "line 1 to 3" if changed < 3 else "line 4 to 7"
    with pytest.raises(RechainError, match=f"f, {places}: these chains were changed after they were written"):
        go_on(path, LINES, sizes)


def test_what_the_journal_does_not_cover_is_recovered_again_and_compared(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_all(path, LINES, chunks_of([2, 2, 3]))
    lines = sidecar_of(path).read_bytes().splitlines(keepends=True)
    sidecar_of(path).write_bytes(b"".join(lines[:2]))  # the first chunk alone
    other = MADE.replace(b'"q3","score":3.5', b'"q3","score":9.5')
    path.write_bytes(other)
    with pytest.raises(RechainError, match="after line 3: it is not the beginning"):
        go_on(path, LINES, [1] * 7)
    path.write_bytes(MADE)
    assert go_on(path, LINES, [1] * 7).lines == 3  # the third agreed before
    assert path.read_bytes() == MADE


def test_half_a_record_that_others_follow_is_in_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_all(path, [LINES[0], UNREAD, *LINES[2:]], chunks_of([2, 5]))
    assert [stretch.records for stretch in Journal(path).stretches()] == [2, 5]
    path.unlink()
    write_all(path, [LINES[0], UNREAD], chunks_of([2]))
    assert not list(Journal(path).stretches())


def test_a_chunk_that_strict_work_stopped_in_is_not_in_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with GrowingFile(path, HEAD) as file:
        for chunk in chunks_of([2, 5])[:2]:
            stopped_by = QuestionError("no_link", "stop") if len(chunk.records) == 5 else None
            file.write(result_of(chunk, lines_of(chunk, LINES)[:60])._replace(stopped_by=stopped_by))
    assert [stretch.records for stretch in Journal(path).stretches()] == [2]


@pytest.mark.parametrize("seed", [0])
def test_a_provenance_file_that_was_damaged_anywhere_is_never_taken_for_whole(tmp_path: Path, seed: int) -> None:
    """It is named, or the output counts as not finished and what it does not cover is compared."""
    path, random = tmp_path / "f", Random(seed)
    write_all(path, LINES, chunks_of([2, 2, 3]))
    whole = sidecar_of(path).read_bytes()
    for damaged in damages(whole, random):
        sidecar_of(path).write_bytes(damaged)
        provenance = read_provenance(path)
        assert provenance
        assert provenance.misfits()
        assert provenance.summary()
        try:
            go_on(path, LINES, [2, 2, 3])
        except DamagedProvenanceError as error:
            assert "\n" not in str(error)
        assert path.read_bytes() == MADE


def damages(content: bytes, random: Random) -> Iterator[bytes]:
    for _ in range(60):
        place = random.randrange(len(content))
        flipped = bytearray(content)
        flipped[place] ^= 1 << random.randrange(8)
        yield bytes(flipped)
        yield content[:place]
        yield content[:place] + random.randbytes(1) + content[place:]
        yield content[:place] + content[place + 1 :]
    lines = content.splitlines(keepends=True)
    for place in range(len(lines)):
        yield b"".join([*lines[:place], *lines[place + 1 :]])
        yield b"".join([*lines[:place], lines[place], *lines[place:]])
    yield b"".join(lines[::-1])
    yield b"\0" * len(content)
