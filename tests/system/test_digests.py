"""JSON and arrays that carry their own SHA-256: no damage is taken for what was written."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from rechain.errors import InputError
from rechain.system.digests import file_digest, opened_seal, read_json, read_sealed, sealed, write_sealed
from rechain.system.tensors import load_arrays, save_arrays

CONTENT = {"ids": ["a", "b"], "folds": 5, "share": 0.25, "left_out": {}}


def test_json_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_sealed(tmp_path / "index.json", CONTENT)
    assert read_sealed(tmp_path / "index.json") == CONTENT
    (tmp_path / "index.json").write_text(json.dumps(CONTENT))
    assert read_sealed(tmp_path / "index.json") == CONTENT, "without a digest, as earlier versions wrote it"


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
def test_what_is_no_json_object_is_a_value_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "index.json").write_text(content, encoding="latin-1")
    with pytest.raises(ValueError, match=r"it is|Expecting|decode"):
        read_sealed(tmp_path / "index.json")


@pytest.mark.parametrize("read", [read_json, read_sealed, file_digest])
def test_a_folder_and_a_pipe_are_no_files(
    tmp_path: Path, make_pipe: Callable[[Path], None], read: Callable[[Path], object]
) -> None:
    make_pipe(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(OSError, match="it is no file"):
            read(path)


def test_a_seal_has_the_digests_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("words")
    digest = file_digest(tmp_path / "words.txt")
    content = sealed({"kind": "game"}, "run.json", {"words.txt": digest})
    assert opened_seal(content, "run.json") == {"words.txt": digest}
    content["sha256"]["words.txt"] = "0" * 64
    with pytest.raises(ValueError, match="it is not what its SHA-256 is of"):
        opened_seal(content, "run.json")


def test_no_flipped_bit_of_arrays_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "arrays.safetensors"
    save_arrays({"ranker": np.arange(9.0), "questions": np.arange(3)}, path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        with pytest.raises(InputError, match="is damaged, or was not written by rechain"):
            load_arrays(path)
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match="is damaged, or was not written by rechain"):
            load_arrays(path)


def test_arrays_without_a_digest_are_still_read(tmp_path: Path) -> None:
    save_file({"ranker": np.arange(9.0)}, tmp_path / "arrays.safetensors")
    assert load_arrays(tmp_path / "arrays.safetensors")["ranker"].tolist() == [*range(9)]
