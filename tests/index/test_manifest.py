"""Which passages of a file are new, and which are gone."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from rechain.formats.documents import Extract, Refusal, Source
from rechain.index.engine import mark_of
from rechain.index.manifest import Manifest, compare
from rechain.schema import Passage
from rechain.text.collection import passage_digest, stamp_of

Pair = tuple[str, str]
"""id and text"""


def source(name: str, size: int = 1, modified: int = 1, kind: str = "collection") -> Source:
    return Source(name, Path(name), kind, size, modified)


def take(manifest: Manifest, name: str, pairs: Sequence[Pair], **fields: int) -> list[str]:
    """Take in a file; return the ids of what is new."""
    with manifest.taking(source(name, **fields)) as taking:
        return [one.passage.id for one in taking(Extract(None, [Passage(id=i, text=text) for i, text in pairs]))]


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """A manifest of two files."""
    path = tmp_path / "first.sqlite"
    with closing(Manifest(path, None)) as manifest:
        assert take(manifest, "a", [("1", "one"), ("2", "two")]) == ["1", "2"]
        assert take(manifest, "b", [("3", "three"), ("1", "another one")]) == ["3", "b#1"]
        assert manifest.is_settled
        manifest.finish()
    return path


def test_new_changed_and_gone_files_are_told_by_size_time_and_kind(first: Path) -> None:
    same, larger, newer = source("a"), source("b", size=2), source("b", modified=2)
    document = source("b", kind="markdown")
    assert compare(first, [same, source("b")])[:3] == ([], [], [])
    for changed in (larger, newer, document):
        assert compare(first, [same, changed])[:3] == ([changed], [], [])
    assert compare(first, [same])[:3] == ([], ["b"], [])
    # without a manifest all is new: collections come first, names decide the rest
    assert compare(None, [source("a.md", kind="markdown"), larger, same]).changed[:2] == [same, larger]


def test_the_stamp_is_that_of_the_passages(first: Path, tmp_path: Path) -> None:
    passages = [("1", "one"), ("2", "two"), ("3", "three"), ("b#1", "another one")]
    with closing(Manifest(tmp_path / "second.sqlite", first)) as manifest:
        stamp = stamp_of(passage_digest(Passage(id=name, text=text)) for name, text in passages)
        assert manifest.summary() == (4, 2, stamp)


def test_only_what_has_changed_is_new(first: Path, tmp_path: Path) -> None:
    with closing(Manifest(tmp_path / "second.sqlite", first)) as manifest:
        assert take(manifest, "a", [("1", "one"), ("2", "TWO"), ("4", "four")], size=2) == ["2", "4"]
        dropped = manifest.finish()
        assert (manifest.added, manifest.dropped) == (2, 1)
    assert dropped == {mark_of(b'{"id":"2","text":"two"}')}


def test_what_has_moved_to_another_file_is_neither_new_nor_dropped(first: Path, tmp_path: Path) -> None:
    with closing(Manifest(tmp_path / "second.sqlite", first)) as manifest:
        manifest.drop_sources(["a"])
        assert take(manifest, "c", [("1", "one"), ("2", "other")]) == ["2"]
        assert not manifest.is_settled  # of a new index, "b" would have the id "1"
        dropped = manifest.finish()
        assert manifest.summary()[:2] == (4, 2)
    assert dropped == {mark_of(b'{"id":"2","text":"two"}')}


def test_ids_are_settled_as_long_as_the_first_holder_stays(first: Path, tmp_path: Path) -> None:
    with closing(Manifest(tmp_path / "second.sqlite", first)) as manifest:
        take(manifest, "b", [("1", "another one")], size=2)
        take(manifest, "c", [("1", "a third one"), ("5", "five")])
        assert manifest.is_settled
        manifest.drop_sources(["a"])
        assert not manifest.is_settled


def test_an_id_that_looks_like_one_with_a_file_before_it_is_kept_apart(tmp_path: Path) -> None:
    with closing(Manifest(tmp_path / "manifest.sqlite", None)) as manifest:
        take(manifest, "a", [("1", "one"), ("b#1", "looks alike")])
        assert take(manifest, "b", [("1", "one of b")]) == ["b#1.2"]


def test_repeated_rows_are_met_once(tmp_path: Path) -> None:
    with closing(Manifest(tmp_path / "manifest.sqlite", None)) as manifest:
        rows = [("1", "a"), ("1", "a"), ("1", "b"), ("1", "b"), ("1", "c"), ("1.2", "d"), ("1.2", "d")]
        assert take(manifest, "a", rows) == ["1", "1.2", "1.3", "1.2.2"]


def refuse(manifest: Manifest, name: str, may_pass: bool = False) -> Refusal:
    """Take in a file that cannot be read."""
    refusal = Refusal(name, f"{name} is damaged.", may_pass=may_pass)
    with manifest.taking(source(name)) as taking:
        taking.refuse(refusal)
    return refusal


def test_a_file_without_passages_is_remembered_with_its_reason(first: Path, tmp_path: Path) -> None:
    path = tmp_path / "second.sqlite"
    with closing(Manifest(path, first)) as manifest:
        refusal = refuse(manifest, "b")
        assert manifest.has_changed and manifest.summary()[:2] == (2, 1)
        dropped = manifest.finish()
    assert len(dropped) == 2
    files = [source("a"), source("b")]
    assert compare(path, files)[:3] == ([], [], [refusal])
    assert compare(path, files[:1])[:3] == ([], ["b"], [])
    newer = source("b", modified=2)
    assert compare(path, [files[0], newer])[:3] == ([newer], [], [])
    with closing(Manifest(tmp_path / "third.sqlite", path)) as manifest:
        take(manifest, "b", [("3", "three")])
        assert manifest.has_changed and manifest.summary()[:2] == (3, 2)
        manifest.finish()
    assert not compare(tmp_path / "third.sqlite", files).refusals


def test_a_file_whose_trouble_may_pass_is_tried_again_and_changes_nothing(first: Path, tmp_path: Path) -> None:
    path = tmp_path / "second.sqlite"
    with closing(Manifest(path, first)) as manifest:
        refuse(manifest, "c", may_pass=True)
        manifest.finish()
    files = [source(name) for name in "abc"]
    assert compare(path, files)[:3] == (files[2:], [], [])
    with closing(Manifest(tmp_path / "third.sqlite", path)) as manifest:
        refuse(manifest, "c", may_pass=True)
        assert not manifest.has_changed


def test_a_manifest_of_an_earlier_version_knows_no_files_without_passages(first: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(first)) as connection:
        connection.execute("DROP TABLE left_out")
    assert compare(first, [source("a"), source("b")])[:3] == ([], [], [])
    with closing(Manifest(tmp_path / "second.sqlite", first)) as manifest:
        refuse(manifest, "c")
        manifest.finish()
