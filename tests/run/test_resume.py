"""An output file that grows chunk by chunk, and how an interrupted one is resumed."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice, pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rechain.errors import QuestionError, RechainError
from rechain.formats.datasets.questions import Chunk
from rechain.formats.datasets.records import RawRecord
from rechain.run.resume import GrowingFile, Progress, find_progress
from rechain.run.work import Tally, WorkResult
from rechain.system.files import LostOutputError
from rechain.system.provenance import (
    DamagedProvenanceError,
    Facts,
    describe_input,
    heading,
    read_lines,
    read_provenance,
    sidecar_of,
)

LINES = [b'{"id":"q%d","score":%d.5}\n' % (number, number) for number in range(7)]
MADE = b"".join(LINES)
UNREAD = b'{"id":null,"chains":[],"error":{"code":"bad_json","message":"f, line 2: not valid JSON"}}\n'
UNWANTED = RawRecord("q.jsonl, line 0", b"{}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a path for an output, next to a file of questions."""
    questions_of(tmp_path / "f").write_text("questions\n")
    return tmp_path / "f"


def questions_of(path: Path) -> Path:
    return path.with_name("q.jsonl")


def head_of(path: Path, **settings: object) -> Facts:
    facts = {"model": {"name": "lexical"}, "settings": {"top": 1, **settings}}
    return heading("recover", **facts, input=describe_input(questions_of(path)))


def chunks_of(sizes: Sequence[int]) -> list[Chunk]:
    """Return chunks of so many records with a line each; one of 0 contains a record without one."""
    numbers = iter(range(sum(sizes)))
    return [Chunk(None, [record(number) for number in islice(numbers, size)] or [UNWANTED]) for size in sizes]


def record(number: int) -> RawRecord:
    return RawRecord(f"q.jsonl, line {number + 1}", b'{"id":"q%d"}\n' % number)


def result_of(chunk: Chunk, lines: Sequence[bytes]) -> WorkResult:
    numbers = [int(record.where.split()[-1]) - 1 for record in chunk.records if record is not UNWANTED]
    return WorkResult(b"".join(lines[n] for n in numbers), Tally(len(numbers)), None, None, len(chunk.records))


def write(path: Path, lines: Sequence[bytes], chunks: list[Chunk]) -> bytes:
    """Write a file in one go."""
    with GrowingFile(path, head_of(path)) as file:
        for chunk in chunks:
            file.write(result_of(chunk, lines))
        file.finish()
    return path.read_bytes() if path.exists() else b""


def resume(path: Path, lines: Sequence[bytes], chunks: list[Chunk], stop_after: int | None = None) -> Progress:
    """Resume a file and write what is left of chunks, or so many of them."""
    progress, left = find_progress(path, questions_of(path), head_of(path), chunks)
    with GrowingFile(path, head_of(path), progress) as file:
        for chunk in islice(left, stop_after):
            file.write(result_of(chunk, lines))
        if stop_after is None:
            file.finish()
            assert file.tally.questions == len(path.read_bytes().splitlines())
    return progress


def checkpoints_of(path: Path) -> list[tuple[int, int]]:
    return [(line["records"], line["size"]) for line in read_lines(sidecar_of(path)) if "records" in line]


@st.composite
def interruptions(draw: st.DrawFn) -> tuple[list[bytes], list[Chunk], list[Chunk], list[int]]:
    """Draw lines, how a run and those that resume it cut their records into chunks, and where the file is cut."""
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
@example((LINES, *[chunks_of([0, 3, 0, 4, 0])] * 2, [len(MADE)]), "whole", None)
@example((LINES, *[chunks_of([0, 0, 3, 4])] * 2, [5]), "whole", None)
def test_a_file_that_was_cut_anywhere_is_resumed_to_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    interruption: tuple[list[bytes], list[Chunk], list[Chunk], list[int]],
    provenance: str,
    data: st.DataObject | None,
) -> None:
    """Whatever is left of its provenance, and with chunks of another size."""
    lines, before, after, cuts = interruption
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    questions_of(path).write_text("questions\n")
    for file in (path, sidecar_of(path)):
        file.unlink(missing_ok=True)
    whole = write(path, lines, before)
    path.touch()
    assert whole == b"".join(lines)
    for number, cut in enumerate(cuts):
        os.truncate(path, cut)
        if data and sidecar_of(path).exists():
            shorten(sidecar_of(path), provenance, data)
        resume(path, lines, (after, before)[number % 2])
        assert path.read_bytes() == whole
        if lines:
            written = read_provenance(path)
            assert written and written.end and not written.misfits()
            assert written.end["questions"] == len(lines)
            assert checkpoints_of(path)[-1] == (sum(len(chunk.records) for chunk in before), len(whole))


def shorten(sidecar: Path, how: str, data: st.DataObject) -> None:
    """Leave of a provenance file what a killed process, or a user who deletes it, may leave."""
    lines = sidecar.read_bytes().splitlines(keepends=True)
    if how == "absent":
        sidecar.unlink()
    elif how in ("cut", "half"):
        kept = data.draw(st.integers(1, len(lines)), "lines of the provenance file")
        half = lines[kept][:-1] if how == "half" and kept < len(lines) else b""
        sidecar.write_bytes(b"".join(lines[:kept]) + half)


@pytest.mark.parametrize("done", range(8))
def test_no_more_than_the_last_chunk_is_done_again(path: Path, done: int) -> None:
    path.touch()
    resume(path, LINES, chunks_of([1] * 7), stop_after=done)
    assert path.read_bytes() == b"".join(LINES[:done])
    _, left = find_progress(path, questions_of(path), head_of(path), chunks_of([1] * 7))
    assert len(list(left)) == 7 - max(done - 1, 0)


def test_each_chunk_is_in_the_file_at_once_and_a_finished_file_has_nothing_left(path: Path) -> None:
    with GrowingFile(path, head_of(path)) as file:
        for number, chunk in enumerate(chunks_of([1, 0, 2, 4])):
            file.write(result_of(chunk, LINES))
            assert path.read_bytes() == b"".join(LINES[: (1, 1, 3, 7)[number]])
        file.finish()
    progress, left = find_progress(path, questions_of(path), head_of(path), chunks_of([2, 0, 5]))
    assert (progress.tally.questions, list(left)) == (7, [])


def test_a_file_is_not_touched_before_the_first_line(path: Path) -> None:
    for content in (b"precious", None):
        if content:
            path.write_bytes(content)
        with GrowingFile(path, head_of(path)) as file:
            file.write(WorkResult(b"", Tally(), None))
            file.finish()
        assert not sidecar_of(path).exists()
        assert (path.read_bytes() if path.exists() else None) == content
        path.unlink(missing_ok=True)


def test_a_longer_file_is_replaced_wholly(path: Path) -> None:
    path.write_bytes(b"long" * 1000)
    with GrowingFile(path, head_of(path), overwrite=True) as file:
        file.write(result_of(chunks_of([7])[0], LINES))
    assert path.read_bytes() == MADE


# ---- files without provenance, or of another input: all is recovered again and compared

FOREIGN = {
    "text": (b"precious\n", 1),
    "text without an end": (b"precious", 1),
    "binary": (bytes(range(256)), 1),
    "another question": (MADE.replace(b"q5", b"q9"), 6),
    "another score": (MADE.replace(b"6.5", b"6.6"), 7),
    "half of another line": (b'{"id":"q7', 1),
    "a blank line": (LINES[0] + b"\n", 2),
    "CRLF and text": (b"id,chain\r\nq1,x\r\n", 1),
}


@pytest.mark.parametrize("sizes", [[7], [0, 7, 0], [2, 2, 3]], ids=str)
@pytest.mark.parametrize(("content", "line"), FOREIGN.values(), ids=FOREIGN)
def test_a_file_of_something_else_is_refused_and_left_alone(
    path: Path, content: bytes, line: int, sizes: list[int]
) -> None:
    path.write_bytes(content)
    with pytest.raises(RechainError) as refused:
        resume(path, LINES, chunks_of(sizes))
    assert str(refused.value) == (
        f"{path}, line {line}: there is no {sidecar_of(path)}, and its chains are others; "
        "name another file, or replace it with --overwrite."
    )
    assert path.read_bytes() == content
    assert not sidecar_of(path).exists()


@pytest.mark.parametrize("extra", [LINES[0], b"\n", b"precious\n" * 1000, b'{"id"'], ids=len)
@pytest.mark.parametrize("sizes", [[7], [3, 4], [7, 0]], ids=str)
def test_a_file_of_too_many_lines_is_refused_and_left_alone(path: Path, extra: bytes, sizes: list[int]) -> None:
    path.write_bytes(MADE + extra)
    with pytest.raises(RechainError, match="f has more lines than there are questions; name another file, or replace"):
        resume(path, LINES, chunks_of(sizes))
    assert path.read_bytes() == MADE + extra


@pytest.mark.parametrize("size", range(0, len(MADE), 11))
@pytest.mark.parametrize("sizes", [[7], [2, 2, 3]], ids=str)
def test_the_beginning_of_what_is_recovered_is_taken_without_provenance(
    path: Path, size: int, sizes: list[int]
) -> None:
    path.write_bytes(MADE[:size])
    resume(path, LINES, chunks_of(sizes))
    assert path.read_bytes() == MADE
    written = read_provenance(path)
    assert written and not written.misfits(questions_of(path))


# ---- inputs that have grown, were cut off, or were changed


def test_an_input_may_have_grown(path: Path) -> None:
    write(path, LINES, chunks_of([2, 1]))
    questions_of(path).write_text("questions\nand more\n")
    progress = resume(path, LINES, chunks_of([2, 2, 3]))
    assert (progress.checkpoint.records, progress.doubt) == (3, "")
    assert path.read_bytes() == MADE


@pytest.mark.parametrize("change", ["question\n", "Questions\n", "more questions\n"])
def test_with_another_input_everything_is_recovered_again_and_compared(path: Path, change: str) -> None:
    write(path, LINES, chunks_of([2, 1]))
    before = path.read_bytes(), sidecar_of(path).read_bytes()
    questions_of(path).write_text(change)
    with pytest.raises(RechainError) as refused:
        resume(path, [LINES[0], b"{}\n", *LINES[2:]], chunks_of([7]))
    assert str(refused.value).startswith(
        f"{path}, line 2: {questions_of(path)} is not the input of before, and its chains are others;"
    )
    assert (path.read_bytes(), sidecar_of(path).read_bytes()) == before
    assert resume(path, LINES, chunks_of([7])).checkpoint.records == 0
    assert path.read_bytes() == MADE


def test_half_a_record_at_the_end_of_the_input_is_replaced_when_the_rest_has_come(path: Path) -> None:
    write(path, [LINES[0], UNREAD], chunks_of([2]))
    assert checkpoints_of(path) == []
    questions_of(path).write_text("questions\nand more\n")
    resume(path, LINES, chunks_of([2, 5]))
    assert path.read_bytes() == MADE


def test_a_record_that_is_not_json_stays_if_others_follow_it(path: Path) -> None:
    lines = [LINES[0], UNREAD, *LINES[2:]]
    write(path, lines, chunks_of([2, 5]))
    assert [records for records, _ in checkpoints_of(path)] == [2, 7]


def test_a_chunk_that_a_damaged_record_cut_short_is_written_again(path: Path) -> None:
    """Scored in a smaller batch, its lines may be rounded otherwise than an undisturbed run rounds them."""
    path.touch()
    rounded = [*LINES[:3], LINES[3].replace(b"3.5", b"3.50001"), *LINES[4:]]
    resume(path, rounded, chunks_of([3, 1]), stop_after=2)
    resume(path, LINES, chunks_of([3, 4]))
    assert path.read_bytes() == MADE


def test_a_chunk_that_strict_work_stopped_in_has_no_checkpoint(path: Path) -> None:
    with GrowingFile(path, head_of(path)) as file:
        for chunk in chunks_of([2, 5]):
            stopped_by = QuestionError("no_link", "stop") if len(chunk.records) == 5 else None
            result = result_of(chunk, LINES)
            file.write(result._replace(lines=result.lines[:52], stopped_by=stopped_by))
    assert [records for records, _ in checkpoints_of(path)] == [2]


# ---- other options, damage, others that write, and disks that are full


def test_another_option_is_refused(path: Path) -> None:
    write(path, LINES, chunks_of([7]))
    with pytest.raises(
        RechainError, match=r"f was begun with top 1, not 2; resume it with the same, name another file"
    ):
        find_progress(path, questions_of(path), head_of(path, top=2), [])


@pytest.mark.parametrize("changed", [0, 6])
def test_lines_that_were_changed_are_noticed(path: Path, changed: int) -> None:
    write(path, LINES, chunks_of([3, 4]))
    path.write_bytes(path.read_bytes().replace(b'"q%d"' % changed, b'"x"'))
    with path.open("ab") as file:
        file.write(b"x" * 9)
    with pytest.raises(RechainError, match="f was changed after it was written; name another file"):
        resume(path, LINES, chunks_of([3, 4]))


def test_damaged_provenance_is_never_taken_for_whole(path: Path) -> None:
    """It is named, or the output counts as not finished and what it does not cover is written again."""
    write(path, LINES, chunks_of([2, 2, 3]))
    for damaged in damages(sidecar_of(path).read_bytes(), Random(0)):
        sidecar_of(path).write_bytes(damaged)
        provenance = read_provenance(path)
        assert provenance
        assert provenance.misfits()
        assert provenance.summary()
        try:
            resume(path, LINES, chunks_of([2, 2, 3]))
        except DamagedProvenanceError as error:
            assert "\n" not in str(error)
        assert path.read_bytes() == MADE


def damages(content: bytes, random: Random) -> Iterator[bytes]:
    for _ in range(40):
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


def test_a_file_that_another_run_writes_is_refused(path: Path) -> None:
    chunks = chunks_of([1, 6])
    with GrowingFile(path, head_of(path)) as first:
        first.write(result_of(chunks[0], LINES))
        progress, _ = find_progress(path, questions_of(path), head_of(path), chunks)
        for second in (GrowingFile(path, head_of(path), overwrite=True), GrowingFile(path, head_of(path), progress)):
            with second, pytest.raises(RechainError, match="written by another run"):
                second.write(result_of(chunks[0], LINES))
        first.write(result_of(chunks[1], LINES))
    resume(path, LINES, chunks)
    assert path.read_bytes() == MADE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_device_gets_one_sentence() -> None:
    with GrowingFile(Path("/dev/full"), heading("recover")) as file, pytest.raises(RechainError) as failure:
        file.write(result_of(chunks_of([1])[0], LINES))
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
    path: Path, largest_file: Callable[[int], None], room: int
) -> None:
    largest_file(room)
    with pytest.raises(RechainError, match="cannot be written: File too large"):
        write(path, LONG, chunks_of([1, 0, 3, 1, 2]))
    chunks = [b"".join(LONG[:lines]) for lines in (1, 4, 5)]
    assert path.read_bytes() == max((begun for begun in chunks if len(begun) <= room), key=len)
    largest_file(1 << 30)
    resume(path, LONG, chunks_of([1, 0, 3, 1, 2]))
    assert path.read_bytes() == b"".join(LONG)


DISTURBANCES: dict[str, tuple[Callable[[Path], object], str]] = {
    "folder": (lambda out: shutil.rmtree(out.parent), "removed or moved"),
    "removed": (lambda out: out.unlink(), "removed or moved"),
    "replaced": (lambda out: out.with_name("f2").write_bytes(MADE) and out.with_name("f2").replace(out), "replaced"),
    "cut": (lambda out: os.truncate(out, 30), "changed"),
    "grown": (lambda out: os.truncate(out, 1000), "changed"),
    "provenance": (lambda out: sidecar_of(out).unlink(), "removed or moved"),
    "provenance cut": (lambda out: os.truncate(sidecar_of(out), 30), "changed"),
}


@pytest.mark.parametrize("left", [0, 3])
@pytest.mark.parametrize(("disturb", "how"), DISTURBANCES.values(), ids=DISTURBANCES)
def test_an_output_that_others_disturb_is_noticed(
    path: Path, disturb: Callable[[Path], object], how: str, left: int
) -> None:
    chunks = chunks_of([1] * 7)
    with GrowingFile(path, head_of(path)) as file:
        for chunk in chunks[: 7 - left]:
            file.write(result_of(chunk, LINES))
        disturb(path)
        with pytest.raises(LostOutputError, match=f"was {how} by another program .* start again with --overwrite"):
            for chunk in chunks[7 - left :]:
                file.write(result_of(chunk, LINES))
            file.finish()


def test_a_link_to_the_output_stays_one(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path)
    assert write(link, LINES, chunks_of([7])) == MADE
    assert link.is_symlink()
