"""Files for the cases: valid rows of some format, most often changed, written as one of the kinds that are read."""

import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import examples
import mutations
from records import Held, records_of


class Input(NamedTuple):
    """A file that was written for a case."""

    path: Path
    held: Held | None
    """the records that it holds, where that can be told without the package"""
    content: bytes = b""


def questions(draw: Random) -> list[examples.Record]:
    """Return valid questions, most often of one format; more than a hundred of them where the number matters."""
    makers = draw.choices(examples.QUESTIONS, k=draw.choices((1, 2), (10, 1))[0])
    count = draw.choices((0, 1, 3, 8, 130), (0.3, 6, 10, 3, 0.1))[0]
    return [draw.choice(makers)(draw, number) for number in range(count)]


def changed(draw: Random, rows: Sequence[examples.Record], share: float = 0.5) -> list[Any]:
    """Return a copy of rows, of which a share are changed; the rows themselves stay valid."""
    copies = json.loads(json.dumps(rows))
    return [mutations.mutate(draw, row, draw.choice((1, 1, 2, 4))) if draw.random() < share else row for row in copies]


def write(draw: Random, folder: Path, name: str, rows: Sequence[Any], wrong: float = 0.25) -> Input:
    """Write rows as a file of one of the kinds that are read; its bytes are sometimes changed too."""
    kind = draw.choices(("lines", "array", "spread", "parquet"), (12, 5, 0.7, 1.2))[0]
    if kind == "parquet" and (content := _parquet(rows)) is not None:
        path = folder / f"{name}.parquet"
        held = None
    else:
        texts = [mutations.written(draw, row) for row in rows]
        form = {"array": mutations.as_array, "spread": mutations.spread_out}.get(kind, mutations.as_lines)
        content = form(draw, texts)
        if draw.random() < wrong / 2:
            content = mutations.encoded(draw, content)
        path = folder / f"{name}{draw.choice(('.jsonl', '.json', '.gz', '', '.jsonl.gz'))}"
    if draw.random() < wrong:
        content = mutations.damage(draw, content)
    path.write_bytes(content)
    held = None if kind == "parquet" else records_of(content)
    return Input(path, held, content)


def write_folder(draw: Random, folder: Path, rows: Sequence[Any]) -> Input:
    """Write a folder of files, some of which are not read; what it holds is known where all files are whole lines."""
    place = folder / "questions"
    place.mkdir()
    first, parts = 0, []
    while first < len(rows) or not parts:
        count = draw.choice((1, 2, 5))
        parts.append(write(draw, place, f"part{len(parts)}", rows[first : first + count], wrong=0.1))
        first += count
    if draw.random() < 0.3:
        name = draw.choice(
            ("_SUCCESS", ".hidden.jsonl", "README.md", "notes.txt", "_sub/x.jsonl", "sub/x.jsonl", "e.json")
        )
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(draw.choice((b"", b"{}", b"\0", b"[]")))
    return Input(place, None)


def _parquet(rows: Sequence[Any]) -> bytes | None:
    """Return rows as Parquet, or None where they do not fit a table."""
    import pyarrow
    import pyarrow.parquet

    file = io.BytesIO()
    try:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(mutations.without_raw(list(rows))), file)
    except (pyarrow.ArrowException, AttributeError, TypeError, UnicodeError, OverflowError):
        return None
    return file.getvalue()


def write_dataset(draw: Random, folder: Path, rows: Sequence[examples.Record]) -> Input:
    """Write a folder of the library datasets, one file of which is changed."""
    import datasets

    datasets.disable_progress_bars()
    place = folder / "dataset"
    kept = datasets.Dataset.from_list([*rows])
    (datasets.DatasetDict({"train": kept}) if draw.random() < 0.1 else kept).save_to_disk(place)
    if draw.random() < 0.8:
        file = draw.choice(sorted(path for path in place.rglob("*") if path.is_file()))
        if file.suffix == ".json" and draw.random() < 0.7:
            value = mutations.mutate(draw, json.loads(file.read_text()), draw.choice((1, 2)))
            file.write_bytes(mutations.written(draw, value))
        else:
            file.write_bytes(mutations.damage(draw, file.read_bytes()))
    return Input(place, None)


def write_endless(draw: Random, folder: Path) -> Input:
    """Write a gzipped file of three lines, the second of which has a gigabyte."""
    first, last = (json.dumps(examples.plain(draw, number)).encode() for number in (1, 3))
    start = draw.choice((b'{"id": "long", "question": "', b'{"id": "long", "x": ', b'["'))
    filling = draw.choice((b"x", b" ", b"[", b"{", b"\\"))
    path = folder / "endless.jsonl.gz"
    with gzip.GzipFile(path, "wb", compresslevel=1, mtime=0) as file:
        file.write(first + b"\n" + start)
        for _ in range(1 << 10):
            file.write(filling * (1 << 20))
        file.write(b"\n" + last + b"\n")
    return Input(path, Held(3, 3, ["q1", None, "q3"]))
