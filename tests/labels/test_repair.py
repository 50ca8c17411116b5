"""What is whole of a damaged file of labels is copied; what is not is counted, and the file itself stays as it is."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from rechain.errors import InputError
from rechain.labels.repair import repair
from rechain.labels.store import Label, LabelStore

Said = Callable[..., Label]


@pytest.fixture
def filled(store: LabelStore, said: Said) -> LabelStore:
    store.add([said("anna", f"q{number % 20}", number, note="words " * 20) for number in range(400)])
    store.undo("anna")
    store.claim("q1", "anna")
    store.close()
    return store


def test_whole_events_are_copied_and_changed_ones_left_out(filled: LabelStore, tmp_path: Path) -> None:
    labels = list(filled.all())
    filled.close()
    with sqlite3.connect(filled.path) as database:
        database.execute("UPDATE events SET value = 'no' WHERE seq IN (7, 300)")
        database.execute("DELETE FROM labels WHERE seq = 20")
    database.close()
    data, new = filled.path.read_bytes(), tmp_path / "new"
    assert repair(filled.path, new) == (398, 2)
    assert filled.path.read_bytes() == data
    with LabelStore(new) as repaired:
        assert list(repaired.all()) == [label for place, label in enumerate(labels, 1) if place not in (7, 300)]
        assert repaired.claims() == {"q1": "anna"}
        assert repaired.undo("anna") == labels[-1]


def test_changes_of_annotators_are_copied_with_the_new_numbers_of_events(filled: LabelStore, tmp_path: Path) -> None:
    filled.rename("anna", "Anna")
    filled.close()
    with sqlite3.connect(filled.path) as database:
        database.execute("UPDATE events SET value = 'no' WHERE seq = 2")
    database.close()
    assert repair(filled.path, tmp_path / "new") == (399, 1)
    with LabelStore(tmp_path / "new") as repaired:
        (change,) = repaired.changes()
        assert (change.annotator, change.name, change.events) == ("anna", "Anna", list(range(1, 400)))


def test_annotators_can_be_renamed_after_a_change_was_lost(filled: LabelStore, tmp_path: Path) -> None:
    for old, new in (("anna", "Anna"), ("Anna", "Ann"), ("Ann", "An")):
        filled.rename(old, new)
    filled.close()
    with sqlite3.connect(filled.path) as database:
        database.execute("UPDATE changes SET name = 'Bob' WHERE number = 2")
    database.close()
    repair(filled.path, tmp_path / "new")
    with LabelStore(tmp_path / "new") as repaired:
        before = repaired.count_changes()
        assert (before, len(repaired.changes())) == (3, 2)
        repaired.rename("An", "anna")
        assert repaired.name_now("An", before) == "anna"
        assert repaired.name_now("An", repaired.count_changes()) == "An"


def test_a_page_that_cannot_be_read_takes_its_own_events_away(filled: LabelStore, tmp_path: Path) -> None:
    data = bytearray(filled.path.read_bytes())
    place = data.index(b'["200"]["a","b"]yes') // 4096 * 4096
    data[place : place + 4096] = bytes(4096)
    filled.path.write_bytes(data)
    with pytest.raises(InputError, match="is damaged"):
        LabelStore(filled.path)
    copied, lost = repair(filled.path, tmp_path / "new")
    assert copied + lost == 400
    assert 0 < lost < 100
    assert len(list(LabelStore(tmp_path / "new").all())) >= copied - 1


@pytest.mark.parametrize("content", [b"", b"no database at all", b"SQLite format 3\0" + b"\xff" * 500])
def test_nothing_that_can_be_read_gets_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "damaged").write_bytes(content)
    with pytest.raises(InputError, match="put a backup in its place"):
        repair(tmp_path / "damaged", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_no_file_is_replaced(filled: LabelStore, tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    with pytest.raises(InputError, match="exists already"):
        repair(filled.path, tmp_path / "new")
    with pytest.raises(InputError, match=r"nothing of .* can be read"):
        repair(tmp_path / "missing", tmp_path / "newer")
