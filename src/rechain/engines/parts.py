"""An output folder of numbered parts. Each is whole or not there, so that a run can go on with those that are missing.

Part by part, in the order of their names, the folder holds what one file would.
"""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from rechain.datasets.reading import Chunk
from rechain.engines import PartFormat
from rechain.engines.storage import Storage
from rechain.engines.work import Tally, Worker
from rechain.errors import RechainError
from rechain.exports import parquet
from rechain.schema import Recovered

_MADE_BY = "_rechain.json"
"""says what the parts are made of and how"""
_FINISHED = "_SUCCESS"
"""stands there when all parts do, as Spark and others have it"""


class PartsFolder:
    """Takes what was recovered, part by part."""

    def __init__(self, address: str, form: PartFormat) -> None:
        """Name a folder; it need not be there."""
        self._address = address
        self._storage = Storage(address)
        self._form = form

    def begin(self, made_by: Mapping[str, Any], overwrite: bool, resume: bool) -> frozenset[str]:
        """Return the names of the parts that are there already; `made_by` says what they should be made of and how."""
        text = orjson.dumps(made_by, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS, default=_plain)
        there = self._storage.files()
        if there and _MADE_BY not in there:
            raise RechainError(f"{self._address} is there and was not made by this command; name another folder.")
        if there and overwrite:
            for name in sorted(there, key=_MADE_BY.__eq__):  # last what says whose folder it is
                self._storage.delete(name)
            there = {}
        if there and not resume:
            raise RechainError(
                f"{self._address} exists; name another folder, replace it with --overwrite, "
                "or go on with it with --resume."
            )
        if there and self._storage.read(_MADE_BY) != text:
            raise RechainError(
                f"{self._address} was begun with another input, model or option (see {_MADE_BY} in it); "
                "name another folder, or replace it with --overwrite."
            )
        self._storage.write(_MADE_BY, text)
        return frozenset(there)

    def name(self, file: int, part: int) -> str:
        """Return the name of a part, by the number of the file that it is made from and its own within that."""
        return f"{file:05d}-{part:06d}.{self._form}"

    def make(self, name: str, chunks: Sequence[Chunk], worker: Worker) -> Tally:
        """Recover the chains of chunks and write them."""
        tally = Tally()
        recovered = [each for chunk in chunks for each in worker.recovered(chunk)]
        for each in recovered:
            tally.count(each)
        self._storage.write(name, self._content(recovered))
        return tally

    def _content(self, recovered: Sequence[Recovered]) -> bytes:
        if self._form == PartFormat.jsonl:
            return "".join(each.to_json() + "\n" for each in recovered).encode()
        file = io.BytesIO()
        parquet.write_to(file, recovered)
        return file.getvalue()

    def finish(self) -> None:
        """Say that all parts are there."""
        self._storage.write(_FINISHED, b"")


def _plain(value: Any) -> Any:
    """Return a value that JSON does not know as one that it does, always the same way."""
    return sorted(value) if isinstance(value, set | frozenset) else str(value)
