"""What the tests of building share: collections written to files, and all that can be asked of an index."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from rechain.formats.documents import Refusal
from rechain.index import Build, BuildSettings, Index, build_index
from rechain.index.engine import Ask, Condition

Row = Mapping[str, object]
ASKS = [
    Ask(("harbour",), limit=3),
    Ask(("harbour", "tom", "marsh", "pier"), limit=20),
    Ask(("built",), (Condition("phrase", ("tom marsh", "ada cole")),), limit=5),
    Ask(("town",), (Condition("name", ("tom marsh", "second pier", "harbour")),), Condition("phrase", ("1871",)), 5),
    Ask((), (Condition("phrase", ("the",)),), limit=4),
]


def row(name: str, text: str, title: str = "", **fields: object) -> Row:
    """Return a row of a collection."""
    return {"id": name, "title": title, "text": text, **fields}


def write(path: Path, rows: Sequence[Row]) -> Path:
    """Write a collection."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in rows))
    return path


def build(sources: Path | Sequence[Path], folder: Path, **settings: Any) -> Build:
    """Build an index in this process alone."""
    paths = [sources] if isinstance(sources, Path) else sources
    return build_index(paths, folder, BuildSettings(**{"workers": 0, **settings}))


def refusals_of(sources: Path, folder: Path) -> dict[str, str]:
    """Build an index, and return what was left out."""
    refusals: list[Refusal] = []
    build_index([sources], folder, BuildSettings(workers=0), refusals.append)
    assert all(one.message.endswith(".") and "\n" not in one.message for one in refusals)
    return {one.name: one.message for one in refusals}


def state(index: Index) -> dict[str, Any]:
    """Return all that an index says, so that two can be compared."""
    hits = [[(hit.score, hit.is_preferred, hit.record) for hit in found] for found in index.search(ASKS)]
    return {
        "stamp": index.stamp,
        "length": len(index),
        "passages": {name: index[name].model_dump() for name in index},
        "sources": index.sources(),
        "documents": {name: index.document(name) for name, kind, _ in index.sources() if kind != "collection"},
        "hits": hits,
        "counts": [index.count_word("harbour"), index.count_name(" tom marsh "), index.count_title(" tom marsh ")],
    }


def assert_like_new(folder: Path, sources: Path | Sequence[Path], place: Path, **settings: Any) -> None:
    """Assert that an index that was brought up to date is as one that is built anew from the same files."""
    build(sources, place, **settings)
    assert state(Index(folder)) == state(Index(place))


def passages(folder: Path) -> dict[str, str]:
    """Return the texts of an index by their ids."""
    return {name: passage.text for name, passage in Index(folder).items()}
