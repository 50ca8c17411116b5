"""What made an output: how it is written, sealed and read."""

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rechain.system.provenance import (
    DamagedProvenanceError,
    Sealer,
    compare,
    describe_input,
    differences,
    heading,
    read_lines,
    read_provenance,
    sidecar_of,
    without_times,
    write_provenance,
)
from rechain.version import __version__


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """A file whose provenance stands beside it."""
    path = tmp_path / "out.jsonl"
    path.write_text("{}\n")
    write_provenance(path, heading("recover", settings={"top": 1}), {"questions": 1})
    return path


def test_lines_are_read_as_they_were_written(output: Path) -> None:
    first, last = read_lines(sidecar_of(output))
    assert (first["rechain"], first["command"], first["settings"]) == (__version__, "recover", {"top": 1})
    assert (last["questions"], last["output"]["size"]) == (1, 3)
    provenance = read_provenance(output)
    assert provenance and provenance.misfits() == []
    assert without_times(first).keys() == {"rechain", "command", "settings"}


def test_a_seal_hangs_on_all_lines_before(tmp_path: Path) -> None:
    lines = [Sealer().line({"rechain": "1", "n": n}) for n in range(3)]
    (tmp_path / "a.provenance").write_bytes(b"".join(lines))
    with pytest.raises(DamagedProvenanceError, match="at line 2"):
        list(read_lines(tmp_path / "a.provenance"))
    sealer = Sealer()
    (tmp_path / "a.provenance").write_bytes(b"".join(sealer.line({"rechain": "1", "n": n}) for n in range(3)))
    assert [fields["n"] for fields in read_lines(tmp_path / "a.provenance")] == [0, 1, 2]


def test_no_damage_is_taken_for_the_truth(output: Path) -> None:
    whole, random = sidecar_of(output).read_bytes(), Random(0)
    for place in range(0, len(whole), 5):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << random.randrange(8)
        for damaged in (bytes(flipped), whole[:place], whole[:place] + b"\0" + whole[place:]):
            sidecar_of(output).write_bytes(damaged)
            provenance = read_provenance(output)
            assert provenance
            assert provenance.misfits()
            assert "\n" not in provenance.summary() + "".join(provenance.misfits())


@pytest.mark.parametrize("content", [b"", b"\n", b"{}\n", b"x" * (2 << 20), bytes(100), b'{"seal":"0"}\n'], ids=len)
def test_what_is_no_provenance_is_damaged(tmp_path: Path, content: bytes) -> None:
    output = tmp_path / "out"
    output.touch()
    sidecar_of(output).write_bytes(content)
    provenance = read_provenance(output)
    assert provenance and provenance.damage
    assert provenance.damage.startswith(f"{sidecar_of(output)} is damaged (at line 1), so nobody can tell")
    assert provenance.summary() == f"{output}: of unknown provenance"


def test_a_file_is_known_by_its_digest_and_a_folder_by_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.jsonl").write_text("a")
    (folder / "sub" / "b.jsonl").write_text("b")
    before = describe_input(folder)
    assert before and (before["files"], before["size"]) == (2, 2)
    for name in ("a.jsonl.provenance", "_SUCCESS", ".hidden"):
        (folder / name).write_text("x")
    assert describe_input(folder.rename(tmp_path / "moved")) == before | {"name": "moved"}
    (tmp_path / "moved" / "a.jsonl").write_text("c")
    after = describe_input(tmp_path / "moved")
    assert after and after["sha256"] != before["sha256"]
    file = describe_input(tmp_path / "moved" / "a.jsonl")
    assert file and file.keys() == {"name", "size", "sha256"}


def test_what_cannot_be_read_has_a_name_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "missing", tmp_path / "pipe", Path("-")):
        assert describe_input(path) == {"name": str(path)}
    assert describe_input(None) is None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({}, {}, []),
        ({"model": {"name": "a", "sha256": "1"}}, {"model": {"name": "b", "sha256": "1"}}, []),
        ({"model": {"name": "a"}}, {"model": {"name": "b"}}, ["model a, not b"]),
        (
            {"model": {"name": "a", "sha256": "1"}},
            {"model": {"name": "a", "sha256": "2"}},
            ["model a, not a; its files have changed"],
        ),
        ({"settings": {"top": 1}}, {"settings": {"top": 2, "hops": 3}}, ["top 1, not 2", "hops unset, not 3"]),
        ({"passages": {"name": "p"}}, {"passages": None}, ["passages p, not of the questions alone"]),
        ({"model": "damaged", "settings": []}, {}, []),
    ],
)
def test_what_differs_is_named(one: dict[str, Any], other: dict[str, Any], expected: list[str]) -> None:
    assert list(differences(one, other)) == expected


def test_outputs_of_other_models_are_told_apart(tmp_path: Path) -> None:
    found = []
    for name in ("a", "b"):
        (tmp_path / name).write_text("{}\n")
        write_provenance(tmp_path / name, heading("recover", model={"name": name}), {})
        found.append(read_provenance(tmp_path / name))
    one, two = filter(None, found)
    assert compare([one, two]) == [f"{two.path} was made with model b, not a as {one.path}."]
    assert compare([one, one]) == []
