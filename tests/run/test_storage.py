"""Files and folders by path or address."""

import errno
import os
import pickle
import threading
from pathlib import Path

import pytest

from rechain.errors import InputError, RechainError
from rechain.run.parts import Storage


def test_what_is_written_can_be_read_and_deleted(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "new" / "folder"))
    assert storage.files() == {}
    storage.write("a.jsonl", b"one")
    storage.write("b.jsonl", b"three")
    assert storage.files() == {"a.jsonl": 3, "b.jsonl": 5}
    assert (tmp_path / "new" / "folder" / "b.jsonl").read_bytes() == storage.read("b.jsonl") == b"three"
    storage.delete("a.jsonl")
    assert storage.files() == {"b.jsonl": 5}


def test_files_in_folders_within_the_folder_are_found_and_folders_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "a" / "b" / "c.jsonl").write_text("{}")
    assert Storage(f"{tmp_path}/").files() == {"a/b/c.jsonl": 2}
    assert Storage(str(tmp_path)).read("a/b/c.jsonl") == b"{}"


def test_a_file_is_its_own_only_one(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text("{}\n")
    storage = Storage(str(path))
    assert storage.files() == {"": 3}
    assert storage.read("") == b"{}\n"
    assert storage.address_of("") == str(path)


def test_a_file_may_be_looked_into_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"PAR1 and more")
    with Storage(str(tmp_path)).open("f") as file:
        assert file.peek(4).startswith(b"PAR1")
        assert file.seekable()
        assert file.read() == b"PAR1 and more"


@pytest.mark.parametrize("shape", ["{}", "{}/", "file://{}"])
def test_a_folder_may_be_named_in_several_ways(tmp_path: Path, shape: str) -> None:
    storage = Storage(shape.format(tmp_path / "out"))
    storage.write("a", b"1")
    assert (tmp_path / "out" / "a").read_bytes() == b"1"
    assert storage.files() == {"a": 1}
    assert storage.address_of("a") == f"{shape.format(tmp_path / 'out').rstrip('/')}/a"


def test_a_relative_path_is_found_also_where_the_working_folder_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = Storage("out")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    storage.write("a", b"1")
    assert (tmp_path / "out" / "a").read_bytes() == b"1"
    assert storage.address_of("a") == "out/a"  # as the user has named it


def test_a_storage_sent_to_another_process_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sent = pickle.dumps(Storage("out"))
    monkeypatch.chdir("/")
    storage = pickle.loads(sent)
    storage.write("a", b"1")
    assert (tmp_path / "out" / "a").read_bytes() == b"1"
    assert storage.address_of("a") == "out/a"


def test_writing_replaces_the_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    storage.write("a", b"a longer one")
    storage.write("a", b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert storage.read("a") == b"1"


def test_a_file_that_is_being_replaced_by_many_is_whole_at_any_time(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    contents = [bytes([letter]) * 1_000_000 for letter in b"abc"]
    storage.write("part", contents[0])
    writers = [threading.Thread(target=lambda c=c: [storage.write("part", c) for _ in range(20)]) for c in contents]
    for writer in writers:
        writer.start()
    seen = 0
    while any(writer.is_alive() for writer in writers):
        assert storage.read("part") in contents
        seen += 1
    for writer in writers:
        writer.join()
    assert seen > 3
    assert [path.name for path in tmp_path.iterdir()] == ["part"]


def test_what_is_not_yet_whole_has_a_hidden_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed before the file has its name leaves none that counts as a part or as questions."""
    seen: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda _: seen.extend(path.name for path in tmp_path.iterdir()))
    Storage(str(tmp_path)).write("part.jsonl", b"{}")
    (name,) = seen
    assert name.startswith(".part.jsonl.")
    assert not name.endswith((".jsonl", ".parquet"))


def test_a_full_disk_is_told_with_the_file_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError) as raised:
        Storage(str(tmp_path)).write("part.jsonl", b"{}")
    assert str(raised.value) == f"{tmp_path}/part.jsonl cannot be read or written: No space left on device."
    assert list(tmp_path.iterdir()) == []


def test_a_link_hides_nothing_that_lies_within(tmp_path: Path) -> None:
    (tmp_path / "real" / "questions").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    questions = Storage(str(tmp_path / "link" / "questions"))
    assert questions.holds(Storage(str(tmp_path / "real" / "questions" / "chains")))
    assert questions.holds(Storage(str(tmp_path / "link" / "other" / ".." / "questions")))
    assert not questions.holds(Storage(str(tmp_path / "real" / "questions2")))


@pytest.mark.parametrize("address", ["nonsense://bucket/folder", "s3:///folder", "s3://[x", "file://relative/path"])
def test_an_address_that_leads_nowhere_gets_one_sentence(address: str) -> None:
    with pytest.raises(RechainError, match="cannot be reached") as raised:
        Storage(address)
    assert str(raised.value).startswith(f"{address} cannot be reached: ")
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read or written") as raised:
        Storage(str(tmp_path)).read("missing")
    assert str(raised.value).startswith(f"{tmp_path}/missing ")


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    folder = tmp_path / "file" / "out"
    with pytest.raises(InputError, match="cannot be read or written") as raised:
        Storage(str(folder)).write("a", b"1")
    assert str(folder) in str(raised.value)
    assert (tmp_path / "file").read_text() == "precious"
