"""What a tokenizer.json may contain, which is data of strangers."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from rechain.errors import InputError
from rechain.reader.pretrained import read_tokenizer
from rechain.scoring.interface import bundled_folder

REPLACE = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
LONG = "x" * 50_000_000
TEMPLATE = {"type": "TemplateProcessing", "special_tokens": {}, "single": [], "pair": []}
PIECE = {"Sequence": {"id": "A", "type_id": 0}}


def charsmap(replacement: bytes) -> str:
    return b64encode((4).to_bytes(4, "little") + b"trie" + replacement + b"\0").decode()


def read(tmp_path: Path, **changes: Any) -> None:
    content = json.loads((bundled_folder() / "tokenizer.json").read_text())
    content["model"] |= changes.pop("model", {})
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content | changes))
    assert len(read_tokenizer(path).encode("Who found polonium?").ids) < 20


@pytest.mark.parametrize(
    "changes",
    [
        {"normalizer": {"type": "Sequence", "normalizers": [REPLACE] * 10}},
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}] * 100}},
        {"normalizer": {"type": "Prepend", "prepend": LONG}},
        {"normalizer": {"type": "Replace", "pattern": {"Regex": "(a+)+b"}, "content": ""}},
        {"normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": "x"}},
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap(b"x" * 1000)}},
        {"normalizer": {"type": "Unheard"}},
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+b"}, "behavior": "Removed", "invert": False}},
        {"post_processor": TEMPLATE | {"single": [PIECE] * 1000, "pair": [PIECE]}},
        {"model": {"max_input_chars_per_word": 10**9}},
        {"model": {"unk_token": LONG}},
        {"model": {"vocab": {LONG: 0}}},
        {"normalizer": [1]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_makes_a_text_longer_or_takes_for_ever_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="cannot be read as a tokeniser"):
        read(tmp_path, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"normalizer": None, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}},
        {"normalizer": {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}},
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Prepend", "prepend": "▁"}]}},
    ],
)
def test_what_published_encoders_have_is_read(tmp_path: Path, changes: dict[str, Any]) -> None:
    read(tmp_path, **changes)
