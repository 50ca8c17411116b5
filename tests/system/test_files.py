"""Files that are whole or not there at all."""

import errno
from pathlib import Path

import pytest

from rechain.system.files import replacing, write_atomically


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
