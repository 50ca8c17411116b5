"""An output folder of numbered parts. Each is whole or not there, so that a run can go on with those that are missing.

Part by part, in the order of their names, the folder holds what one file would.
"""

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from rechain.datasets.files import read_opened
from rechain.datasets.reading import Chunk
from rechain.engines import PartFormat
from rechain.engines.storage import Storage
from rechain.engines.work import Tally, Worker
from rechain.errors import RechainError
from rechain.exports import parquet
from rechain.schema import Recovered
from rechain.version import __version__

_MADE_BY = "_rechain.json"
"""says what the parts are made of and how"""
_FINISHED = "_SUCCESS"
"""stands there when all parts do, as Spark and others have it"""
_OURS = re.compile(rf"\d{{5}}-\d{{6}}\.\w+|{_MADE_BY}|{_FINISHED}")


class PartsFolder:
    """Takes what was recovered, part by part."""

    def __init__(self, address: str, form: PartFormat) -> None:
        """Name a folder; it need not be there."""
        self.storage = Storage(address)
        self._address = self.storage.address_of("")
        self._form = form

    def begin(self, made_by: Mapping[str, Any], overwrite: bool, resume: bool) -> frozenset[str]:
        """Return the names of the parts that are there already; `made_by` says what they should be made of and how."""
        all_of_it = {**made_by, "format": self._form, "rechain": __version__}
        text = orjson.dumps(all_of_it, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS, default=_plain)
        there = {name for name in self.storage.files() if not name.startswith(".")}  # such as half a file
        if there and _MADE_BY not in there:
            raise RechainError(f"{self._address} is there and was not made by this command; name another folder.")
        if there and overwrite:
            for name in sorted(filter(_OURS.fullmatch, there), key=_MADE_BY.__eq__):  # last what says whose it is
                self.storage.delete(name)
            there = set()
        if there and not resume:
            raise RechainError(
                f"{self._address} exists; name another folder, replace it with --overwrite, "
                "or go on with it with --resume."
            )
        if there and self.storage.read(_MADE_BY) != text:
            raise RechainError(
                f"{self._address} was begun with another input, model or option (see {_MADE_BY} in it); "
                "name another folder, or replace it with --overwrite."
            )
        self.storage.write(_MADE_BY, text)
        if _FINISHED in there:
            self.storage.delete(_FINISHED)
        return frozenset(there)

    def ids(self, name: str) -> list[str | None]:
        """Return the ids of the questions of a part that is there."""
        with self.storage.open(name) as file:
            records = [record.parsed().value for record in read_opened(name, file, 0)] if file.peek(1) else []
        return [record.get("id") if isinstance(record, dict) else None for record in records]

    def name(self, file: int, part: int) -> str:
        """Return the name of a part, by the number of the file that it is made from and its own within that."""
        return f"{file:05d}-{part:06d}.{self._form}"

    def make(self, name: str, chunks: Sequence[Chunk], worker: Worker) -> Tally:
        """Recover the chains of chunks and write them."""
        tally = Tally()
        recovered = [each for chunk in chunks for each in worker.recovered(chunk)]
        for each in recovered:
            tally.count(each)
        self.storage.write(name, self._content(recovered))
        return tally

    def _content(self, recovered: Sequence[Recovered]) -> bytes:
        if self._form == PartFormat.jsonl:
            return "".join(each.to_json() + "\n" for each in recovered).encode()
        file = io.BytesIO()
        parquet.write_to(file, recovered)
        return file.getvalue()

    def finish(self) -> None:
        """Say that all parts are there."""
        self.storage.write(_FINISHED, b"")


def _plain(value: Any) -> Any:
    """Return a value that JSON does not know as one that it does, always the same way."""
    return sorted(value) if isinstance(value, set | frozenset) else str(value)
