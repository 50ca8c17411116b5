"""An index that is opened, read by several at once, replaced and damaged."""

import pickle
import shutil
import subprocess
import threading
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.index.collections import ASKS, build, row, state, write

from rechain.errors import InputError, RechainError
from rechain.index import Index
from rechain.index.index import MANIFEST, POINTER
from rechain.system.files import write_sealed

TEXTS = ["The harbour was built by Tom Marsh.", "Tom Marsh came from the north.", "The town has a pier."]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with a document and a collection."""
    folder = tmp_path / "docs"
    write(folder / "rows.jsonl", [row(f"p{n}", f"{TEXTS[n % 3]} {n}", f"Entry {n % 7}") for n in range(50)])
    (folder / "a.md").write_text("# Tom Marsh\n\n" + " ".join(TEXTS))
    return folder


@pytest.fixture
def folder(docs: Path, tmp_path: Path) -> Path:
    """An index."""
    build(docs, tmp_path / "index")
    return tmp_path / "index"


# ---- reading


def test_an_index_is_a_mapping_of_passages(folder: Path) -> None:
    index = Index(folder)
    assert len(index) == len(list(index)) == index.passages == 51
    assert index["p7"].text == f"{TEXTS[1]} 7" and "p7" in index and "nothing" not in index
    with pytest.raises(KeyError):
        index["nothing"]
    assert index.sources() == [("a.md", "markdown", 1), ("rows.jsonl", "collection", 50)]
    assert index.document("a.md").kind == "markdown"
    for name in ("rows.jsonl", "nothing"):
        with pytest.raises(KeyError):
            index.document(name)


def test_ids_of_all_kinds_are_found_and_listed(tmp_path: Path) -> None:
    names = ["", " ", "a b", "Ä", "\U0001f600", "a#1", "'", "%", "x" * 300]
    rows = [row(name, f"text {number}") for number, name in enumerate(names) if name.strip()]
    build(write(tmp_path / "rows.jsonl", rows), tmp_path / "index")
    index = Index(tmp_path / "index")
    assert set(index) == {one["id"] for one in rows}
    assert [index[str(one["id"])].text for one in rows] == [one["text"] for one in rows]


def test_an_index_is_opened_anew_in_another_process(folder: Path) -> None:
    copy = pickle.loads(pickle.dumps(Index(folder)))
    assert state(copy) == state(Index(folder))


def _read(folder: Path, results: Any) -> None:
    index = Index(folder)
    results.put([state(index) == state(index), index.stamp, len(index.search(ASKS)[0])])


def test_several_processes_read_one_index(folder: Path) -> None:
    context = get_context("spawn")
    results = context.Queue()
    readers = [context.Process(target=_read, args=(folder, results)) for _ in range(2)]
    for reader in readers:
        reader.start()
    assert results.get(timeout=120) == results.get(timeout=120) == [True, Index(folder).stamp, 3]
    for reader in readers:
        reader.join()


def test_threads_share_one_index(folder: Path) -> None:
    index = Index(folder)
    expected, states = state(index), []
    threads = [threading.Thread(target=lambda: states.append(state(index))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert states == [expected] * 4


def test_who_has_the_old_generation_open_goes_on_while_it_is_replaced(folder: Path, docs: Path) -> None:
    index = Index(folder)
    before = state(index)
    names = iter(index)
    assert next(names) == "a.md#1"
    write(docs / "rows.jsonl", [row("p1", "Nothing is as it was.")])
    (docs / "a.md").unlink()
    build(docs, folder)
    assert not (folder / index.info.generation).exists()
    assert state(index) == before
    assert list(names) == [name for name in before["passages"] if name != "a.md#1"]
    assert state(Index(folder))["passages"].keys() == {"p1"}


def test_the_newest_index_is_the_one_that_was_built_in_its_place(folder: Path, docs: Path) -> None:
    index = Index(folder)
    assert index.newest() is index
    (docs / "a.md").write_text("Another text.")
    build(docs, folder)
    newest = index.newest()
    assert newest.info.generation == "generation-2" and newest["a.md#1"].text == "Another text."
    assert newest.newest() is newest
    (folder / POINTER).write_text("damaged")
    assert newest.newest() is newest
    shutil.rmtree(folder)
    assert newest.newest() is newest and newest["a.md#1"].text == "Another text."


def test_an_index_that_is_replaced_while_it_is_opened_is_the_new_one(
    folder: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pointer was read, and then the generation that it names is gone."""
    from rechain.index import index as module

    read_info, updates = module.read_info, [1, 2]

    def slowly(place: Path) -> Any:
        info = read_info(place)
        if updates:
            text = f"Update {updates.pop()}."
            (docs / "a.md").write_text(text)
            with monkeypatch.context() as patch:
                patch.setattr(module, "read_info", read_info)
                build(docs, folder)
        return info

    monkeypatch.setattr(module, "read_info", slowly)
    assert Index(folder)["a.md#1"].text == "Update 1."


def test_an_index_on_a_disk_that_is_only_read_is_read(folder: Path, tmp_path: Path) -> None:
    expected = state(Index(folder))
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("only root can mount a file system")
    try:
        shutil.copytree(folder, disk / "index")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        assert state(Index(disk / "index")) == expected
        with pytest.raises(RechainError, match=r"cannot be written: Read-only file system"):
            build(folder, disk / "index")
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_counts_are_those_of_the_collection(folder: Path) -> None:
    index = Index(folder)
    assert index.count_word("pier") == 17
    assert index.count_name(" tom marsh ") == 35
    assert index.count_title(" entry 3 ") == 7
    assert index.count_word("nothing") == index.count_name("  ") == index.count_entity("x") == 0


# ---- what is no index


def test_what_is_no_index_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no index .*nowhere; build one with 'rechain index SOURCE"):
        Index(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"is no index; build one with"):
        Index(tmp_path)
    (tmp_path / "file").write_text("text")
    with pytest.raises(InputError, match="is no index"):
        Index(tmp_path / "file")


def test_an_index_of_another_format_is_named(folder: Path) -> None:
    write_sealed(folder / POINTER, {"format": 99, **Index(folder).info._asdict(), "more": 1})
    with pytest.raises(InputError, match="is an index of format 99"):
        Index(folder)


@pytest.mark.parametrize("content", [None, b"{", b"[]", b"{}", b'{"format": 1}', b"\xff", b"[" * 100_000])
def test_a_damaged_or_changed_pointer_is_named(folder: Path, content: bytes | None) -> None:
    changed = (folder / POINTER).read_bytes().replace(b'"passages": 51', b'"passages": 52')
    (folder / POINTER).write_bytes(content or changed)
    with pytest.raises(InputError, match=r"index.* (is damaged|is an index of format None)"):
        Index(folder)


def test_missing_and_cut_files_are_named(folder: Path, tmp_path: Path) -> None:
    info = Index(folder).info
    assert any("engine/" in name for name in info.files)
    for name in info.files:
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        file = copy / info.generation / name
        file.write_bytes(file.read_bytes()[:-1])
        with pytest.raises(InputError, match=r"copy is damaged: .* has \d+ bytes instead of \d+; remove the folder"):
            Index(copy)
        file.unlink()
        with pytest.raises(InputError, match=r"copy is damaged: .* is missing; remove the folder and build the index"):
            Index(copy)
        shutil.rmtree(copy)


def test_flipped_bits_end_in_one_sentence_at_worst(folder: Path, tmp_path: Path) -> None:
    """Sizes do not show them, and to read all of an index when it is opened would take too long."""
    info, draw, outcomes = Index(folder).info, Random(0), []
    for name in info.files:
        for _ in range(6):
            copy = tmp_path / "copy"
            shutil.copytree(folder, copy)
            file = copy / info.generation / name
            content = bytearray(file.read_bytes())
            place = draw.randrange(len(content))
            content[place] ^= 1 << draw.randrange(8)
            file.write_bytes(content)
            try:
                state(Index(copy))
                outcomes.append("read")
            except KeyError:  # an id is another one now
                outcomes.append("read")
            except RechainError as error:
                assert "\n" not in str(error) and str(error).endswith(".")
                outcomes.append("refused")
            shutil.rmtree(copy)
    assert "refused" in outcomes


def test_a_manifest_that_is_no_database_is_named(folder: Path) -> None:
    place = folder / Index(folder).info.generation / MANIFEST
    place.write_bytes(b"x" * place.stat().st_size)
    with pytest.raises(InputError, match=r"is damaged: manifest.sqlite"):
        list(Index(folder))
