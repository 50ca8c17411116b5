"""Vectors of an index, by an embedder that knows a few words and no network."""

import builtins
import multiprocessing
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from rechain.errors import InputError, MissingExtraError, RechainError
from rechain.index import Build, BuildSettings, Index, build_index, find_passages
from rechain.index.vectors import NAMES, VECTORS, Vectors, as_bytes, key_of, merge_nearest
from rechain.schema import Passage, Question
from rechain.system.files import short_hash
from rechain.text.collection import passage_digest
from rechain.text.words import Text

pytest.importorskip("usearch.index")

SAME = {"automobile": "car", "cars": "car", "vehicle": "car", "physician": "doctor", "surgeon": "doctor"}
"""words that the embedder takes for one another"""
WITH = BuildSettings(vectors=True, workers=0)


class Words:
    """Embeds a text by its words, each at a place that its hash says."""

    def __init__(self, name: str = "words") -> None:
        self.name = name
        self.texts: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        vectors = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in Text(text).words:
                row[short_hash(SAME.get(word, word)) % 64] += 1
        return vectors


def passage(name: str, text: str) -> Passage:
    return Passage(id=name, title=name.title(), text=text)


PASSAGES = [
    passage("garage", "An automobile may stand in the yard."),
    passage("clinic", "The physician sees patients on Mondays."),
    passage("canteen", "Lunch is served at noon."),
    passage("library", "Books are lent for four weeks."),
    *(passage(f"room {number}", f"Room {number} has a window and {number + 1} chairs.") for number in range(20)),
]


class Place:
    """A file of passages and its index."""

    def __init__(self, folder: Path) -> None:
        self.file, self.index = folder / "passages.jsonl", folder / "index"
        self.embed = Words()

    def build(self, passages: Sequence[Passage], settings: BuildSettings = WITH, **options: Any) -> Build:
        self.file.write_bytes(b"".join(orjson.dumps(p.model_dump(exclude_defaults=True)) + b"\n" for p in passages))
        self.embed.texts = []
        return build_index([self.file], self.index, settings, embed=self.embed, **options)

    def near(self, text: str, limit: int = 3) -> list[str]:
        return [near.name for near in Index(self.index).nearest(Words()([text]), limit)[0]]

    def files(self, name: str) -> list[Path]:
        return sorted(self.index.glob(f"generation-*/shard-*/{name}"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("shards", [1, 3])
def test_passages_are_found_by_meaning(place: Place, shards: int) -> None:
    build = place.build(PASSAGES, BuildSettings(shards=shards, vectors=True))
    assert build.info.vectors == "words"
    assert f"shard-0/{VECTORS}" in build.info.files
    assert len(place.files(VECTORS)) == shards
    question = Question(id="q", question="Where do cars park?", answer="nobody knows", passages=[])
    without, found = (
        [one.id for one in find_passages(Index(place.index), [question], embed=embed)[0]] for embed in (None, Words())
    )
    assert "garage" not in without
    assert "garage" in found


def test_shards_answer_as_one(place: Place) -> None:
    place.build(PASSAGES)
    alone = place.near("a doctor in room 7", len(PASSAGES))
    place.build(PASSAGES, BuildSettings(shards=4))
    assert place.near("a doctor in room 7", len(PASSAGES)) == alone
    assert place.embed.texts == []  # dealt to other shards, passages keep their vectors


def test_an_update_embeds_what_is_new_and_drops_what_is_gone(place: Place) -> None:
    place.build(PASSAGES)
    assert len(place.embed.texts) == len(PASSAGES)
    changed = [passage("garage", "Bicycles stand here."), passage("pool", "Swim at seven."), *PASSAGES[2:]]
    place.build(changed, BuildSettings())  # that there are vectors is remembered
    assert sorted(place.embed.texts) == ["Garage\nBicycles stand here.", "Pool\nSwim at seven."]
    assert "clinic" not in place.near("physician clinic", len(PASSAGES) + 1)
    assert place.near("bicycles garage", 1) == ["garage"]


def test_vectors_depend_on_the_collection_alone(place: Place, tmp_path: Path) -> None:
    place.build(PASSAGES[:5])
    place.build([*PASSAGES[3:], passage("pool", "Swim at seven.")])
    place.build(PASSAGES)
    (tmp_path / "other").mkdir()
    other = Place(tmp_path / "other")
    other.build(PASSAGES[::-1])
    assert Index(place.index).stamp == Index(other.index).stamp
    for name in (VECTORS, NAMES):
        assert place.files(name)[0].read_bytes() == other.files(name)[0].read_bytes()


def test_what_is_as_it_was_is_shared_with_the_old_generation(place: Place) -> None:
    place.build(PASSAGES)
    before = place.files(VECTORS)[0].stat().st_ino
    place.build(PASSAGES)
    assert place.embed.texts == []
    assert place.files(VECTORS)[0].stat().st_ino == before


def test_vectors_can_be_added_and_removed(place: Place) -> None:
    plain = place.build(PASSAGES, BuildSettings())
    assert (plain.info.vectors, place.embed.texts, place.files(VECTORS)) == (None, [], [])
    added = place.build(PASSAGES)
    assert added.added == 0  # the passages are taken from the index
    assert added.info.stamp == f"{plain.info.stamp}-v"
    assert len(place.embed.texts) == len(PASSAGES)
    removed = place.build(PASSAGES, BuildSettings(vectors=False))
    assert (removed.info.vectors, removed.info.stamp, place.files("vectors*")) == (None, plain.info.stamp, [])
    assert find_passages(Index(place.index), [Question(id="q", question="Lunch?", answer="noon", passages=[])])


def test_vectors_of_another_embedder_are_not_compared(place: Place) -> None:
    place.build(PASSAGES)
    question = Question(id="q", question="Where do cars park?", answer="nobody knows", passages=[])
    with pytest.raises(RechainError, match="embedded by 'words' and questions would be by 'others'; bring the index"):
        find_passages(Index(place.index), [question], embed=Words("others"))
    place.embed.name = "others"
    place.build(PASSAGES)
    assert len(place.embed.texts) == len(PASSAGES)


def test_a_build_that_fails_leaves_the_index_as_it_was(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.build(PASSAGES)
    before = {path: path.read_bytes() for path in place.index.rglob("*") if path.is_file()}
    monkeypatch.setattr(Words, "__call__", lambda self, texts: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        place.build([*PASSAGES, passage("pool", "Swim at seven.")])
    assert {path: path.read_bytes() for path in place.index.rglob("*") if path.is_file()} == before


def test_progress_counts_all_passages(place: Place) -> None:
    shares: list[tuple[float, int]] = []
    place.build(PASSAGES, report=lambda share, number: shares.append((share, number)))
    assert shares[-1] == (1.0, len(PASSAGES))


def test_an_index_without_passages_has_no_vectors(place: Place) -> None:
    place.build(PASSAGES[:1])
    place.build(PASSAGES[:1], BuildSettings(shards=8))
    assert len(place.files(VECTORS)) == 1
    assert place.near("anything") == ["garage"]


def test_an_index_with_vectors_needs_an_encoder(place: Place) -> None:
    place.build(PASSAGES)
    with pytest.raises(RechainError, match="pass embed, or BuildSettings"):
        build_index([place.file], place.index)
    assert Index(place.index).info.vectors == "words"


def test_a_missing_extra_is_one_sentence(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *others: Any) -> Any:
        if name.startswith("usearch"):
            raise ImportError(name)
        return real(name, *others)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"An index with vectors needs an extra .* 'rechain\[vectors\]'"):
        place.build(PASSAGES)
    assert place.build(PASSAGES, BuildSettings()).info.vectors is None


def test_damage_is_one_sentence(place: Place) -> None:
    place.build(PASSAGES)
    path = place.files(VECTORS)[0]
    size = path.stat().st_size
    path.write_bytes(bytes(size))
    with pytest.raises(InputError, match=r"vectors.usearch has no readable vectors"):
        place.near("cars")
    path.write_bytes(b"short")
    with pytest.raises(InputError, match="has 5 bytes instead of"):
        place.near("cars")


def _near_elsewhere(index: Path) -> list[str]:
    return [near.name for near in Index(index).nearest(Words()(["a doctor"]), 3)[0]]


def test_several_processes_read_one_index(place: Place) -> None:
    place.build(PASSAGES)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_near_elsewhere, [place.index] * 4) == [place.near("a doctor")] * 4


def test_a_graph_is_used_for_many_vectors(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.build(PASSAGES)
    exact = place.near("a physician")
    monkeypatch.setattr("rechain.index.vectors._FEW", 0)
    assert place.near("a physician")[0] == exact[0] == "clinic"


def test_bytes_keep_the_direction() -> None:
    vectors = as_bytes(np.array([[0.5, -1.0, 0.0], [0.0, 0.0, 0.0], [1e-3, 1e-3, 0.0]]))
    assert vectors.tolist() == [[64, -127, 0], [0, 0, 0], [127, 127, 0]]


def test_a_key_changes_with_the_passage() -> None:
    one, other = passage("a", "Text."), passage("a", "Another.")
    assert key_of(passage_digest(one)) != key_of(passage_digest(other))
    assert 0 <= key_of(b"\xff" * 32) < 2**63


def test_the_nearest_of_all_shards_come_first() -> None:
    from rechain.index.vectors import Near

    merged = merge_nearest([[[Near(0.2, "b")]], [[Near(0.1, "c"), Near(0.2, "a")]]], 2)
    assert merged == [[Near(0.1, "c"), Near(0.2, "a")]]


def test_a_shard_can_be_read_from_a_copy(place: Place, tmp_path: Path) -> None:
    place.build(PASSAGES)
    shutil.copytree(place.files(VECTORS)[0].parent, tmp_path / "copy")
    (near,) = Vectors(tmp_path / "copy").nearest(Words()(["books are lent"]), 1)
    assert near[0].name == "library"
