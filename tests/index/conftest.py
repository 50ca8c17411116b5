"""A small collection of invented entries, and questions about it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
import pytest

from rechain.index import Index, build_index
from rechain.schema import Passage

ENTRIES = [
    ("Zorilla", "Zorilla is an opera in three acts by Anton Quillfeather, first given in Graz in 1901."),
    ("Anton Quillfeather", "Anton Quillfeather was a composer and violinist. He was born in Prague."),
    ("Prague", "Prague lies on a river and has many bridges."),
    ("Brno", "Brno is a city with a castle. The poet Ela Vontobel was born in Brno."),
    ("Ela Vontobel", "Ela Vontobel was a poet who wrote the words of the opera Marellis."),
    ("Marellis", "Marellis is an opera about a shepherd."),
    ("Graz", "Graz is a city on a river. Its theatre is old."),
    ("Weather", "It rains often in autumn."),
]


@pytest.fixture
def make_index(tmp_path: Path) -> Callable[[Sequence[Passage]], Index]:
    """Build an index of passages."""

    def make(passages: Sequence[Passage]) -> Index:
        file = tmp_path / "passages.jsonl"
        file.write_bytes(b"".join(orjson.dumps(p.model_dump(exclude_defaults=True)) + b"\n" for p in passages))
        build_index([file], tmp_path / "index")
        return Index(tmp_path / "index")

    return make


@pytest.fixture
def entries() -> list[Passage]:
    """Entries of an encyclopaedia, each about what its title names."""
    return [Passage(id=title, title=title, text=text) for title, text in ENTRIES]


@pytest.fixture
def index(make_index: Callable[[Sequence[Passage]], Index], entries: list[Passage]) -> Index:
    """An index of these entries."""
    return make_index(entries)
