"""Indexes that are built, brought up to date, disturbed and interrupted."""

import fcntl
import gzip
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.collections import (
    assert_like_new,
    build,
    passages,
    refusals_of,
    row,
    state,
    write,
)

from rechain.errors import InputError, RechainError
from rechain.formats.documents import SplitSettings
from rechain.index import BuildSettings, Index, build_index
from rechain.index import build as building
from rechain.index.index import POINTER

TEXTS = [
    "The harbour was built in 1871 by Tom Marsh.",
    "Tom Marsh came from the north, and built a pier in the town.",
    "The second pier of the harbour bears the name of Ada Cole.",
    "Ada Cole was an engineer of the town.",
    "The harbour of another town was built of stone.",
]
ROWS = [row(f"p{number}", text, f"Entry {number}") for number, text in enumerate(TEXTS)]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with documents and a collection."""
    folder = tmp_path / "docs"
    write(folder / "rows.jsonl", ROWS)
    for number, text in enumerate(TEXTS):
        (folder / f"{number}.md").write_text(f"# Tom Marsh {number}\n\n{text}\n\n{' '.join(TEXTS)}\n")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the index goes."""
    return tmp_path / "index"


def touch(path: Path) -> None:
    """Let a file look newer."""
    stamp = path.stat().st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(stamp, stamp))


# ---- building


def test_an_index_holds_the_passages_of_documents_and_collections(docs: Path, folder: Path) -> None:
    result = build(docs, folder)
    index = Index(folder)
    assert result.added == len(index) == result.info.passages == len(set(index)) == 10
    assert (result.files, result.dropped, result.refusals) == (6, 0, 0)
    assert index["p1"].text == TEXTS[1]
    passage = index["3.md#1"]
    start, end = (getattr(passage, name) for name in ("start", "end"))
    assert index.document("3.md").text[start:end] == passage.text


def test_an_index_of_nothing_is_an_index(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert build(tmp_path / "empty", folder).info.passages == 0
    index = Index(folder)
    assert list(index) == [] and index.sources() == [] and not any(state(index)["hits"])


def test_documents_are_the_same_from_other_processes(docs: Path, folder: Path, tmp_path: Path) -> None:
    build_index([docs], folder, BuildSettings(workers=2))
    assert_like_new(folder, docs, tmp_path / "alone")


def test_results_depend_neither_on_the_order_of_sources_nor_on_threads(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = write(tmp_path / "more" / "more.jsonl", [*ROWS, row("q", TEXTS[0])]).parent
    build([docs, other], tmp_path / "one")
    for threads in (1, 4):
        monkeypatch.setattr("rechain.index.engine.usable_cores", lambda threads=threads: threads)
        build([other, docs], tmp_path / f"threads{threads}")
        assert state(Index(tmp_path / "one")) == state(Index(tmp_path / f"threads{threads}"))


def test_whoever_may_read_one_file_may_read_all(docs: Path, folder: Path) -> None:
    build(docs, folder)
    (docs / "0.md").unlink()
    build(docs, folder)
    assert {path.stat().st_mode for path in folder.rglob("*") if path.is_file()} == {
        docs.joinpath("1.md").stat().st_mode
    }


# ---- bringing up to date


def test_nothing_is_done_where_nothing_has_changed(docs: Path, folder: Path) -> None:
    before = build(docs, folder).info
    result = build(docs, folder)
    assert (result.added, result.dropped, result.files, result.info) == (0, 0, 0, Index(folder).info)
    assert result.info.generation == before.generation


def change_files(docs: Path) -> None:
    (docs / "new.txt").write_text("A new pier was built.")
    (docs / "0.md").write_text("# Tom Marsh\n\nNothing of it is left.")
    (docs / "1.md").unlink()


def change_rows(docs: Path) -> None:
    write(docs / "rows.jsonl", [row("p0", "The harbour is gone."), *ROWS[2:], row("p9", TEXTS[1])])


@pytest.mark.parametrize(
    ("change", "added", "dropped", "files"),
    [
        pytest.param(change_files, 2, 2, 2, id="files"),
        pytest.param(change_rows, 2, 2, 1, id="rows"),  # p0 in both, p9, p1
        pytest.param(lambda docs: [touch(docs / name) for name in ("0.md", "rows.jsonl")], 0, 0, 2, id="touched"),
        pytest.param(lambda docs: (docs / "rows.jsonl").rename(docs / "aisles.jsonl"), 0, 0, 1, id="renamed rows"),
        pytest.param(lambda docs: (docs / "0.md").rename(docs / "zero.md"), 1, 1, 1, id="renamed document"),
    ],
)
def test_only_what_has_changed_is_taken_in(
    docs: Path, folder: Path, tmp_path: Path, change: Callable[[Path], object], added: int, dropped: int, files: int
) -> None:
    build(docs, folder)
    change(docs)
    result = build(docs, folder)
    assert (result.added, result.dropped, result.files) == (added, dropped, files)
    assert build(docs, folder).files == 0
    assert_like_new(folder, docs, tmp_path / "new")


def test_a_passage_whose_place_alone_has_changed_is_replaced(docs: Path, folder: Path, tmp_path: Path) -> None:
    """Text, title and id are the same, but what a user is shown would stand elsewhere."""
    document = docs / "0.txt"
    document.write_text("Short.\n\n" + " ".join(TEXTS))
    build(docs, folder)
    document.write_text("\n\n\nShort.\n\n" + " ".join(TEXTS))
    build(docs, folder)
    assert_like_new(folder, docs, tmp_path / "new")
    write(docs / "rows.jsonl", [{**ROWS[0], "page": 7}, *ROWS[1:]])
    build(docs, folder)
    assert Index(folder)["p0"].model_extra == {"page": 7}
    assert_like_new(folder, docs, tmp_path / "newer")


def test_a_file_that_can_no_longer_be_read_loses_its_passages(docs: Path, folder: Path, tmp_path: Path) -> None:
    build(docs, folder)
    (docs / "0.md").write_bytes(b"\0\1\2")
    assert "0.md is a binary file" in refusals_of(docs, folder)["0.md"]
    assert "0.md#1" not in Index(folder)
    assert_like_new(folder, docs, tmp_path / "new")
    assert "0.md" in refusals_of(docs, folder)  # it is named again each time


def test_documents_are_read_again_only_if_they_are_cut_in_another_way(docs: Path, folder: Path, tmp_path: Path) -> None:
    build(docs, folder)
    (docs / "0.md").write_text("# Tom Marsh\n\n" + "\n\n".join(TEXTS * 5))
    result = build(docs, folder, split=SplitSettings(20))
    assert result.files == 6 and result.dropped == 10
    touch(docs / "1.md")
    result = build(docs, folder)  # cut as the index has it
    assert result.files == 1 and result.info.settings == {"passage_words": 20}
    assert_like_new(folder, docs, tmp_path / "new", split=SplitSettings(20))


# ---- ids


def test_the_same_id_in_two_collections_is_kept_by_the_first(tmp_path: Path, folder: Path) -> None:
    write(tmp_path / "docs/a.jsonl", [row("1", "of a"), row("2", "both")])
    write(tmp_path / "docs/b.jsonl", [row("1", "of b"), row("2", "both"), row("3", "alone")])
    build(tmp_path / "docs", folder)
    expected = {"1": "of a", "2": "both", "3": "alone", "b.jsonl#1": "of b", "b.jsonl#2": "both"}
    assert passages(folder) == expected


def test_ids_are_those_of_a_new_index_when_files_with_the_same_ids_come_and_go(tmp_path: Path, folder: Path) -> None:
    docs = tmp_path / "docs"
    b = write(docs / "b.jsonl", [row("1", "of b")])
    build(docs, folder)
    a = write(docs / "a.jsonl", [row("1", "of a")])
    build(docs, folder)
    assert passages(folder) == {"1": "of a", "b.jsonl#1": "of b"}
    write(b, [row("1", "of b"), row("2", "more")])  # nothing is read again where ids stay as they are
    assert build(docs, folder).files == 1
    a.unlink()
    build(docs, folder)
    assert passages(folder) == {"1": "of b", "2": "more"}
    assert_like_new(folder, docs, tmp_path / "new")


def test_what_is_left_out_is_named_once_though_files_are_read_twice(tmp_path: Path, folder: Path) -> None:
    write(tmp_path / "docs/b.jsonl", [row("1", "of b")])
    build(tmp_path / "docs", folder)
    write(tmp_path / "docs/a.jsonl", [row("1", "of a"), {"nothing": 1}])
    messages: list[str] = []
    result = build_index([tmp_path / "docs"], folder, refuse=lambda refusal: messages.append(refusal.message))
    assert len(messages) == result.refusals == 1
    assert passages(folder) == {"1": "of a", "b.jsonl#1": "of b"}


def test_repeated_rows_count_once_and_other_texts_of_one_id_get_numbers(tmp_path: Path, folder: Path) -> None:
    rows = [row("1", "one"), row("1", "one"), row("1", "two"), row("1.2", "own"), row("1", "two"), row("1", "three")]
    build(write(tmp_path / "rows.jsonl", rows), folder)
    assert passages(folder) == {"1": "one", "1.2": "two", "1.2.2": "own", "1.3": "three"}


def test_a_row_that_moves_to_another_file_stays(tmp_path: Path, folder: Path) -> None:
    docs = tmp_path / "docs"
    for first, second in ((ROWS[:2], ROWS[2:]), (ROWS[:4], ROWS[4:]), (ROWS[:1], ROWS[1:])):
        write(docs / "a.jsonl", first)
        write(docs / "b.jsonl", second)
        build(docs, folder)
        assert set(Index(folder)) == {str(one["id"]) for one in ROWS}
        assert_like_new(folder, docs, tmp_path / f"new{len(first)}")


# ---- a random history

EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("rows"), st.sampled_from("abc"), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)))),
        st.tuples(st.just("document"), st.sampled_from("de"), st.lists(st.integers(0, 4), min_size=1, max_size=3)),
        st.tuples(st.just("rename"), st.sampled_from("abcde"), st.sampled_from("abcdefg")),
        st.tuples(st.just("remove"), st.sampled_from("abcdefg"), st.just(None)),
        st.tuples(st.just("touch"), st.sampled_from("abcde"), st.just(None)),
    ),
    min_size=1,
    max_size=10,
)
"""what happens to which file"""


def edit(docs: Path, kind: str, name: str, content: object, at: int) -> None:
    """Change a file; its time tells, as it does for users, who are slower than the clock of a file system."""
    path = docs / (f"{name}.jsonl" if name in "abc" else f"{name}.md")
    if kind == "rows":
        assert isinstance(content, list)
        write(path, [row(f"p{number}", TEXTS[text], f"Entry {number}") for number, text in content])
    elif kind == "document":
        assert isinstance(content, list)
        path.write_text("# Tom Marsh\n\n" + "\n\n".join(TEXTS[text] for text in content))
    elif path.exists() and kind == "remove":
        path.unlink()
    elif path.exists() and kind == "rename":
        path = path.rename(path.with_stem(str(content)))
    if path.exists():
        os.utime(path, ns=(at * 10**9, at * 10**9))


@settings(max_examples=30)
@given(edits=EDITS, builds=st.sets(st.integers(1, 10)))
def test_an_index_of_any_history_is_as_one_that_is_built_anew(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, str, object]], builds: set[int]
) -> None:
    place = tmp_path_factory.mktemp("history")
    docs, folder = place / "docs", place / "index"
    docs.mkdir()
    (docs / "kept.md").write_text(TEXTS[0])  # a folder that holds nothing any more is refused
    for at, (kind, name, content) in enumerate(edits, 1):
        edit(docs, kind, name, content, at)
        if at in builds:
            build(docs, folder)
    build(docs, folder)
    assert_like_new(folder, docs, place / "new")
    shutil.rmtree(place)


# ---- where an index may go


def test_a_folder_that_is_no_index_is_left_alone(docs: Path, tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    (photos / "generation-1").mkdir(parents=True)
    (photos / "generation-1/me.jpg").write_text("a picture")
    with pytest.raises(RechainError, match=r"photos is no index and holds generation-1; name a new or an empty folder"):
        build(docs, photos)
    assert [path.name for path in photos.rglob("*")] == ["generation-1", "me.jpg"]
    with pytest.raises(RechainError, match="is a file; name a folder"):
        build(docs, photos / "generation-1/me.jpg")


def test_an_index_that_another_process_builds_is_left_to_it(docs: Path, folder: Path) -> None:
    build(docs, folder)
    touch(docs / "0.md")
    before = state(Index(folder))
    with (folder / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(RechainError, match="another process builds"):
            build(docs, folder)
    assert state(Index(folder)) == before
    assert build(docs, folder).files == 1


def test_an_index_of_another_format_is_left_alone(docs: Path, folder: Path) -> None:
    info = build(docs, folder).info
    building.write_sealed(folder / POINTER, {"format": 99, **info._asdict()})
    with pytest.raises(InputError, match=r"is an index of format 99, and this version of rechain reads \d+; remove it"):
        build(docs, folder)
    assert (folder / info.generation / "manifest.sqlite").exists()


def test_a_damaged_index_is_not_built_upon(docs: Path, folder: Path) -> None:
    info = build(docs, folder).info
    (folder / info.generation / "manifest.sqlite").write_bytes(b"")
    with pytest.raises(InputError, match=r"manifest.sqlite has 0 bytes instead of \d+; remove the folder and build"):
        build(docs, folder)


def test_sources_that_do_not_exist_leave_no_index(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(RechainError, match="cannot be read"):
        build(tmp_path / "nowhere", folder)
    assert [path.name for path in folder.iterdir()] == [".lock"]


def test_what_a_killed_build_has_left_is_removed(docs: Path, folder: Path) -> None:
    folder.mkdir()
    (folder / ".lock").touch()
    (folder / ".index.json.0123456789abcdef").write_text("half a poin")
    (folder / "generation-1").mkdir()
    (folder / "generation-1/manifest.sqlite").write_text("half of a manifest")
    build(docs, folder)
    (folder / "generation-7").mkdir()
    (folder / ".index.json.fedcba9876543210").write_text("half a poin")
    touch(docs / "0.md")
    build(docs, folder)
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "generation-2", "index.json"]


# ---- what goes wrong while it is written


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that is soon full."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root can mount a small file system")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def large(docs: Path) -> None:
    """Add more than a small disk holds."""
    noise = ([f"{number}x{place}" for place in range(100)] for number in range(6000))
    write(docs / "large.jsonl", [row(f"large{number}", " ".join(words)) for number, words in enumerate(noise)])


def test_a_full_disk_leaves_the_old_index(docs: Path, small_disk: Path, tmp_path: Path) -> None:
    folder = small_disk / "index"
    build(docs, folder)
    before = state(Index(folder))
    large(docs)
    with pytest.raises(RechainError, match=r"index cannot be written: .*; the index is as it was before\."):
        build(docs, folder)
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "generation-1", "index.json"]
    assert state(Index(folder)) == before
    (docs / "large.jsonl").unlink()
    (docs / "0.md").unlink()
    build(docs, folder)
    assert_like_new(folder, docs, tmp_path / "new")


def test_a_disk_that_is_full_from_the_start_is_named(docs: Path, small_disk: Path) -> None:
    large(docs)
    with pytest.raises(RechainError, match="index cannot be written: "):
        build(docs, small_disk / "index")
    assert [path.name for path in (small_disk / "index").iterdir()] == [".lock"]


def _build_with_small_files(docs: Path, folder: Path) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    with pytest.raises(RechainError, match="index cannot be written: "):
        build(docs, folder)


def test_files_that_may_not_grow_leave_the_old_index(docs: Path, folder: Path) -> None:
    build(docs, folder)
    before = state(Index(folder))
    large(docs)
    process = get_context("fork").Process(target=_build_with_small_files, args=(docs, folder))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert state(Index(folder)) == before


@pytest.mark.parametrize(
    "step",
    [
        "pathlib.Path.mkdir",
        "rechain.index.build.write_sealed",
        "rechain.index.build._sync",
        "rechain.index.engine.document",
    ],
)
def test_an_error_at_any_step_leaves_the_old_index(
    docs: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    build(docs, folder)
    before = state(Index(folder))
    (docs / "0.md").write_text("Something else.")

    def fail(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(step, fail)
        with pytest.raises(RechainError, match=r"index cannot be written: No space left on device; the index is as it"):
            build(docs, folder)
    assert state(Index(folder)) == before
    assert build(docs, folder).added == 1


def test_an_interruption_just_after_the_new_generation_counts_keeps_it(
    docs: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(docs, folder)
    (docs / "new.txt").write_text("A new pier.")
    write_sealed = building.write_sealed

    def interrupted(*arguments: object) -> None:
        write_sealed(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(building, "write_sealed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build(docs, folder)
    assert "new.txt#1" in Index(folder)
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "generation-2", "index.json"]


INDEX = [sys.executable, "-c", "from rechain.cli.main import main; main()", "index"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_the_old_index_and_nothing_else(
    docs: Path, folder: Path, number: signal.Signals, code: int
) -> None:
    build(docs, folder)
    before = state(Index(folder))
    for copy in range(10):
        write(docs / f"large{copy}.jsonl", [row(f"{copy}-{n}", f"{TEXTS[n % 5]} {n}") for n in range(20_000)])
    process = subprocess.Popen([*INDEX, str(docs), "--out", str(folder)], stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (folder / "generation-2/engine").exists():
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "generation-1", "index.json"]
    assert state(Index(folder)) == before


# ---- bad input: each thing is named, and the rest goes on


def test_bad_files_are_named_and_the_rest_goes_on(docs: Path, folder: Path, tmp_path: Path) -> None:
    (docs / "damaged.pdf").write_bytes(b"%PDF-1.7 and nothing more")
    (docs / "damaged.docx").write_bytes(b"PK\3\4 and nothing more")
    (docs / "damaged.parquet").write_bytes(b"PAR1 and nothing more")
    (docs / "damaged.jsonl.gz").write_bytes(b"\x1f\x8b and nothing more")
    (docs / "empty.txt").touch()
    (docs / "blank.md").write_text(" \n\n ")
    (docs / "empty.jsonl").touch()
    (docs / "binary.txt").write_bytes(bytes(range(256)))
    (docs / "picture.png").write_bytes(b"\x89PNG")
    (docs / "latin.txt").write_bytes("Das Café über dem Hafen gehört Tom Marsh, wie man weiß.".encode("latin-1"))
    with (docs / "huge.txt").open("wb") as file:
        file.truncate(500_000_000)
    (docs / "again").symlink_to(docs)
    (docs / "self.md").symlink_to("self.md")
    (docs / "out.md").symlink_to("/etc/hostname")
    (docs / "sub").mkdir()
    (docs / "sub/0.md").write_text("Another file of the same name.")
    os.mkfifo(docs / "pipe.txt")
    named = set(refusals_of(docs, folder))
    good = {"latin.txt", "sub/0.md", "sub", "rows.jsonl", *(f"{number}.md" for number in range(5))}
    assert named == {path.relative_to(docs).as_posix() for path in docs.rglob("*")} - good - {"again"}
    assert "Café" in Index(folder)["latin.txt#1"].text
    assert Index(folder)["sub/0.md#1"].text == "Another file of the same name."
    for name in named:
        (docs / name).unlink()
    assert_like_new(folder, docs, tmp_path / "new")


def test_a_collection_that_is_damaged_further_on_is_read_again_each_time(docs: Path, folder: Path) -> None:
    """What was wrong may be the disk, not the file."""
    whole = gzip.compress(
        b"".join(b'{"id": "z%d", "text": "%s"}\n' % (n, os.urandom(40).hex().encode()) for n in range(3000))
    )
    (docs / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    for _ in range(2):
        assert "cut.jsonl.gz" in refusals_of(docs, folder)
        assert "z9" in Index(folder) and "z2999" not in Index(folder)
        assert Index(folder).info.generation == "generation-1"
    touched = (docs / "cut.jsonl.gz").stat()
    (docs / "cut.jsonl.gz").write_bytes(whole)
    os.utime(docs / "cut.jsonl.gz", ns=(touched.st_mtime_ns, touched.st_mtime_ns))
    assert not refusals_of(docs, folder)
    assert "z2999" in Index(folder)


def test_bad_rows_are_named_and_the_others_taken_in(tmp_path: Path, folder: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"id": "1", "text": "good"}\n{"id": "2"}\n{\n{"id": "3", "text": "good too"}\n')
    assert len(refusals_of(file, folder)) == 2
    assert passages(folder) == {"1": "good", "3": "good too"}
    assert build(file, folder).files == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_files_without_permission_are_named(docs: Path, folder: Path) -> None:
    (docs / "0.md").chmod(0)
    assert "Permission denied" in refusals_of(docs, folder)["0.md"]


def test_a_file_whose_rows_all_have_one_id_takes_no_longer(tmp_path: Path, folder: Path) -> None:
    build(write(tmp_path / "rows.jsonl", [row("same", f"text {number}") for number in range(20_000)]), folder)
    assert len(Index(folder)) == 20_000 and Index(folder)["same.20000"].text == "text 19999"


def test_files_without_passages_are_named_each_time_and_nothing_is_written(docs: Path, folder: Path) -> None:
    (docs / "empty.txt").touch()
    (docs / "damaged.pdf").write_bytes(b"%PDF-1.7 and nothing more")
    (docs / "none.jsonl").write_text('{"nothing": 1}\n')
    named = refusals_of(docs, folder)
    assert set(named) == {"empty.txt", "damaged.pdf", "none.jsonl"}
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != ".lock"}
    result = build(docs, folder)
    assert (result.added, result.dropped, result.files, result.refusals, result.info.sources) == (0, 0, 0, 3, 6)
    assert refusals_of(docs, folder) == named
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != ".lock"} == before
    assert [name for name, *_ in Index(folder).sources()] == [*(f"{number}.md" for number in range(5)), "rows.jsonl"]
    (docs / "empty.txt").write_text("A text at last.")
    assert build(docs, folder).added == 1 and "empty.txt" not in refusals_of(docs, folder)


def test_a_document_that_needs_a_library_is_read_once_it_is_there(
    docs: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lxml")
    (docs / "page.html").write_text("<p>The harbour of a page.")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "lxml", None)
        for _ in range(2):
            assert "pip install" in refusals_of(docs, folder)["page.html"]
            assert sorted(path.name for path in folder.iterdir()) == [".lock", "generation-1", "index.json"]
    assert build(docs, folder).added == 1 and "page.html#1" in Index(folder)


def test_an_index_among_its_documents_is_not_read(docs: Path) -> None:
    build(docs, docs / "index")
    result = build(docs, docs / "index")
    assert (result.info.passages, result.info.generation, result.refusals) == (10, "generation-1", 0)
    assert build(docs, docs / "other").info.passages == 10


@pytest.mark.parametrize("within", ["", "generation-1"])
def test_an_index_is_no_source_of_itself(docs: Path, folder: Path, within: str) -> None:
    build(docs, folder)
    with pytest.raises(RechainError, match=r"lies in .*index, where the index goes; name another folder"):
        build(folder / within, folder)
    assert len(Index(folder)) == 10


def test_a_folder_that_cannot_be_locked_is_named(docs: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(building.fcntl, "flock", fail)
    with pytest.raises(RechainError, match="index cannot be locked: No locks available; name a folder on another disk"):
        build(docs, folder)


@pytest.mark.parametrize("start", [0, 100])
@pytest.mark.parametrize("filler", [b"\0", b"x"])
def test_a_damaged_manifest_is_named(docs: Path, folder: Path, start: int, filler: bytes) -> None:
    """Of the right size, so that it is noticed no sooner than it is read."""
    manifest = folder / build(docs, folder).info.generation / "manifest.sqlite"
    content = manifest.read_bytes()
    manifest.write_bytes(content[:start] + filler * (len(content) - start))
    (docs / "0.md").write_text("Something else.")
    with pytest.raises(
        InputError, match=r"index is damaged: manifest.sqlite: .*; remove the folder and build the index"
    ):
        build(docs, folder)


def test_a_script_without_a_guard_builds_an_index(docs: Path, folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"from rechain import build_index\nprint(build_index([{str(docs)!r}], {str(folder)!r}).added)\n")
    result = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "10\n"), result.stderr


def test_a_passage_that_files_repeat_is_taken_from_the_first(tmp_path: Path, folder: Path) -> None:
    docs = tmp_path / "manuals"
    docs.mkdir()
    for name in "abc":
        (docs / f"{name}.md").write_text(f"# {name}\n\n{f'About {name}. ' * 30}\n\n## Legal\n\n{'All rights. ' * 25}\n")
    assert build_index([docs], folder).info.passages == 4
    assert "a.md#2" in Index(folder) and "b.md#2" not in Index(folder)
    (docs / "a.md").unlink()
    build_index([docs], folder)
    assert "b.md#2" in Index(folder)
    fresh = build_index([docs], tmp_path / "fresh").info
    assert Index(folder).stamp == fresh.stamp
