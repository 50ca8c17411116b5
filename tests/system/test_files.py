"""Files that are whole or absent, and sealed JSON, in which no damage goes unnoticed."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from rechain.system.files import (
    LostOutputError,
    WatchedFile,
    file_digest,
    opened_seal,
    read_json,
    read_sealed,
    replacing,
    sealed,
    write_atomically,
    write_sealed,
)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file that stands there already."""
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    return path


def test_a_new_file_takes_the_place_of_the_old_one_when_it_is_whole(old: Path) -> None:
    with replacing(old) as file:
        file.write(b"new")
        file.flush()
        assert old.read_bytes() == b"old"
    assert old.read_bytes() == b"new"
    assert list(old.parent.iterdir()) == [old]


def test_a_file_may_be_the_first(tmp_path: Path) -> None:
    write_atomically(tmp_path / "file.bin", b"new")
    assert (tmp_path / "file.bin").read_bytes() == b"new"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("error", [ValueError("wrong"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_the_old_file_stays_if_the_new_one_is_not_finished(old: Path, error: BaseException) -> None:
    with pytest.raises(type(error)), replacing(old) as file:
        file.write(b"half")
        raise error
    assert old.read_bytes() == b"old"
    assert list(old.parent.iterdir()) == [old]


def test_a_full_disk_names_the_file_that_was_to_be_written(old: Path) -> None:
    with pytest.raises(OSError) as failure, replacing(old):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert (failure.value.filename, failure.value.strerror) == (str(old), "No space left on device")
    assert old.read_bytes() == b"old"
    assert list(old.parent.iterdir()) == [old]


def test_a_missing_folder_names_the_file_that_was_to_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as failure:
        write_atomically(tmp_path / "missing" / "file.bin", b"new")
    assert failure.value.filename == str(tmp_path / "missing" / "file.bin")


@pytest.mark.parametrize("how", ["removed", "cut", "folder"])
def test_a_new_file_that_others_remove_or_cut_meanwhile_takes_no_place(tmp_path: Path, how: str) -> None:
    path = tmp_path / "folder" / "f"
    path.parent.mkdir()
    path.write_text("old")
    with pytest.raises((LostOutputError, FileNotFoundError)) as failure, replacing(path) as file:
        file.write(b"new" * 100_000)
        (hidden,) = path.parent.glob(".f.*")
        if how == "removed":
            hidden.unlink()
        elif how == "cut":
            os.truncate(hidden, 0)
        else:
            shutil.rmtree(path.parent)
    assert str(path) in str(failure.value)
    assert how == "folder" or (path.read_text(), list(path.parent.iterdir())) == ("old", [path])


def test_a_pipe_is_written_to_and_not_watched(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    file = WatchedFile(tmp_path / "pipe", is_new=True)
    file.append(b"text")
    file.truncate(0)
    (tmp_path / "pipe").unlink()
    file.sync()
    file.close()
    assert os.read(reader, 100) == b"text"
    os.close(reader)


def test_a_cut_between_two_writes_leaves_no_hole(tmp_path: Path) -> None:
    """The check before a write may come a moment too early; the next one notices."""
    path = tmp_path / "f"
    file = WatchedFile(path, is_new=True)
    file.append(b"12345")
    os.truncate(path, 2)
    file.file.write(b"678")
    assert path.read_bytes() == b"12678"
    file.size += 3
    with pytest.raises(LostOutputError, match=r"was changed by another program .* start again with --overwrite\."):
        file.append(b"9")
    file.close()


CONTENT = {"ids": ["a", "b"], "folds": 5, "share": 0.25, "left_out": {}}


def test_json_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_sealed(tmp_path / "index.json", CONTENT)
    assert read_sealed(tmp_path / "index.json") == CONTENT
    (tmp_path / "index.json").write_text(json.dumps(CONTENT))
    with pytest.raises(ValueError, match="it has no SHA-256 of itself"):
        read_sealed(tmp_path / "index.json")


def test_no_flipped_bit_of_json_changes_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "index.json"
    write_sealed(path, CONTENT)
    whole = path.read_bytes()
    for place in range(len(whole)):
        for bit in range(8):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            with suppress(ValueError):
                assert read_sealed(path) == CONTENT, "a blank that became another"


@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 100_000, '"text"', "\xff"])
def test_other_json_is_a_value_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "index.json").write_text(content, encoding="latin-1")
    with pytest.raises(ValueError, match=r"it is|Expecting|decode"):
        read_sealed(tmp_path / "index.json")


@pytest.mark.parametrize("read", [read_json, read_sealed, file_digest])
def test_a_folder_and_a_pipe_are_not_files(
    tmp_path: Path, make_pipe: Callable[[Path], None], read: Callable[[Path], object]
) -> None:
    make_pipe(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(OSError, match="it is not a file"):
            read(path)


def test_a_digest_may_be_that_of_the_first_bytes(old: Path) -> None:
    start = file_digest(old)
    old.write_bytes(b"old and new")
    assert file_digest(old, 3) == start != file_digest(old, 4) != file_digest(old)
    assert file_digest(old, 99) == file_digest(old)


def test_a_seal_has_the_digests_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("words")
    digest = file_digest(tmp_path / "words.txt")
    content = sealed({"kind": "game"}, "run.json", {"words.txt": digest})
    assert opened_seal(content, "run.json") == {"words.txt": digest}
    content["sha256"]["words.txt"] = "0" * 64
    with pytest.raises(ValueError, match="its SHA-256 is another"):
        opened_seal(content, "run.json")
