"""Recovery on a Ray cluster: files are cut into parts, actors with a model each make one output file of every part.

Ray Data moves the parts, holds back the cutting when the actors cannot follow, and does again what was lost with a
process or a node. An actor that does a part again writes the same file again.
"""

import logging
import os
import pickle
import socket
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from rechain.batches import HeldBack, batches
from rechain.columns import COLUMNS, recovered_columns
from rechain.datasets.files import question_files, read_opened
from rechain.datasets.reading import Chunk, chunks_of
from rechain.engines.parts import PartsFolder
from rechain.engines.storage import Storage
from rechain.engines.work import Done, Tally, Work, Worker
from rechain.errors import InputError, MissingExtraError, QuestionError, RechainError
from rechain.exports import parquet
from rechain.recovery import BATCH_SIZE, Recoverer

_CUTTING, _WORKING = 0.05, 0.95
"""what share of a core is reserved for cutting a file and for an actor: there should be an actor a core"""
_RETRIES = 10
"""how often a part is done again that was lost with its actor"""
_PATIENCE = 10.0
"""seconds within which a cluster should answer"""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cluster:
    """How a cluster is used."""

    batch_size: int
    """questions in a chunk"""
    part_size: int
    """questions in a part, as far as they are whole chunks"""
    workers: int | None = None
    """actors; by default one a core or, where there are GPUs, as many as these have room for"""
    gpus: float | None = None
    """GPUs an actor, which may be a fraction; by default 1 if there are any"""

    @property
    def chunks_a_part(self) -> int:
        """How many chunks a part has."""
        return max(1, self.part_size // self.batch_size)

    def is_full(self, part: Sequence[Chunk]) -> bool:
        """Tell whether a part has all the questions that it can have."""
        return sum(len(chunk.records) for chunk in part) == self.chunks_a_part * self.batch_size


class _File(NamedTuple):
    """A file of questions, its number among all, and its share of all bytes."""

    name: str
    number: int
    size: int
    share: float


def recover_parts(
    work: Work, questions: str, folder: PartsFolder, cluster: Cluster, *, overwrite: bool = False, resume: bool = False
) -> Iterator[Done]:
    """Recover the chains of all questions of a file or folder, in any order; go on with a folder that was begun."""
    ray = connect()
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
    storage = Storage(questions)
    files = _files(storage)
    if storage.holds(folder.storage) or folder.storage.holds(storage):
        raise RechainError("questions and output lie in one folder; name another for the output.")
    actors, gpus = _actors(cluster.workers, cluster.gpus, ray.cluster_resources())
    there = folder.begin(_made_by(work, files, cluster), overwrite, resume)
    _check_input(work, storage, files[0], folder, there, cluster)
    parts = ray.data.from_items([file._asdict() for file in files], override_num_blocks=len(files))
    parts.context.target_max_block_size = 1  # a part is a block by itself
    parts.context.enable_progress_bars = False
    cut = parts.flat_map(_Cutter(storage, folder, there, cluster), num_cpus=_CUTTING)
    with warnings.catch_warnings():  # how often a task is done again cannot be said otherwise up to Ray 2.63
        warnings.simplefilter("ignore", DeprecationWarning)
        made = cut.map(
            _Actor,
            fn_constructor_args=(work, folder),
            compute=ray.data.ActorPoolStrategy(size=actors),
            num_cpus=_WORKING,
            num_gpus=gpus,
            max_task_retries=_RETRIES,
        )
    share, problem = 0.0, ""
    try:
        for row in made.iter_rows():
            done: Done = pickle.loads(row["done"])
            share += done.share or 0.0
            problem = problem or row["problem"]
            yield done._replace(share=min(share, 1.0))
    except ray.exceptions.RayError as error:
        raise RechainError(f"Ray has given up ({type(error).__name__}): {str(error).splitlines()[0]}") from error
    if problem:
        raise InputError(problem)
    folder.finish()


def recover_dataset(
    dataset: Any, recoverer: Recoverer, *, workers: int | None = None, gpus: float | None = None
) -> Any:
    """Return a Ray dataset of questions, in any format that rechain reads, with the columns `chains` and `error`.

    The recoverer is made anew in each of the workers: one a core or, where there are GPUs, one for each.
    """
    ray = connect()
    actors, gpus = _actors(workers, gpus, ray.cluster_resources())
    return dataset.map_batches(
        _Columns,
        fn_constructor_args=(recoverer,),
        batch_size=BATCH_SIZE,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=actors),  # what reads the data needs a core too
        num_gpus=gpus,
    )


class _Columns:
    """Adds the columns of chains to tables of questions."""

    def __init__(self, recoverer: Recoverer) -> None:
        self._recoverer = recoverer

    def __call__(self, table: Any) -> Any:
        import pyarrow

        rows = [("a row", str(place), row) for place, row in enumerate(table.to_pylist())]
        table = table.drop_columns([name for name in COLUMNS if name in table.column_names])
        for name, values in recovered_columns(self._recoverer, rows).items():
            table = table.append_column(name, pyarrow.array(values, parquet.SCHEMA.field(name).type))
        return table


def _made_by(work: Work, files: Sequence[_File], cluster: Cluster) -> dict[str, Any]:
    """Return all that the parts depend on."""
    sizes = {"batch size": cluster.batch_size, "part size": cluster.part_size}
    return {"questions": [file.name for file in files], **sizes, **work.described()}


def _check_input(
    work: Work, storage: Storage, file: _File, folder: PartsFolder, there: frozenset[str], cluster: Cluster
) -> None:
    """Refuse to go on with a folder whose first part is not of the questions with which the input begins."""
    if (first := folder.name(file.number, 0)) not in there:
        return
    address = storage.address_of(file.name)
    with storage.open(file.name) as opened:
        chunk = next(chunks_of(address, read_opened(address, opened, file.size), cluster.batch_size))
    asked = [getattr(entry.content, "id", entry.id) for entry in work.reader().entries(chunk)]
    if folder.ids(first)[: len(asked)] != asked:
        raise RechainError(f"the first part, {first}, is of other questions than {address}; name another folder.")


def connect() -> Any:
    """Return Ray, connected to the cluster that RAY_ADDRESS names, else to one of this machine's own."""
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # what concerns Ray's own developers
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MissingExtraError("Running on Ray", "ray") from error
    address = os.environ.get("RAY_ADDRESS") or "local"
    try:
        if not ray.is_initialized():
            _knock_at(address)
            with _silent():
                ray.init(address, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise RechainError(f"there is no Ray cluster at {address}, which RAY_ADDRESS names: {error}") from error
    return ray


@contextmanager
def _silent() -> Iterator[None]:
    """Let nothing be printed, not even by libraries that are not Python: what is wrong is raised."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _knock_at(address: str) -> None:
    """Raise OSError if nobody is there at "host:port": Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "://" not in address:
        socket.create_connection((host, int(port)), _PATIENCE).close()


def _files(storage: Storage) -> list[_File]:
    sizes, questions = storage.files(), storage.address_of("")
    if "dataset_info.json" in sizes:
        raise InputError(f"{questions} was saved by datasets; save it as Parquet for Ray.")
    names = [""] if "" in sizes else question_files(sizes)
    if not names:
        raise InputError(f"{questions} is not there, or holds no Parquet or JSON files.")
    total = sum(sizes[name] for name in names) or 1
    return [_File(name, number, sizes[name], sizes[name] / total) for number, name in enumerate(names)]


def _actors(workers: int | None, gpus: float | None, there: Mapping[str, float]) -> tuple[int, float]:
    """Return how many actors there are to be, and how many GPUs each has."""
    has = there.get("GPU", 0.0)
    wanted = min(has, 1.0) if gpus is None else gpus
    if wanted > has:
        raise RechainError(f"the cluster has {has:g} GPUs, but a worker is to have {wanted:g}.")
    most = has / wanted if wanted else there.get("CPU", 1.0)
    return workers or max(1, int(most)), wanted


class _Cutter:
    """Cuts a file into parts that are not there yet."""

    def __init__(self, storage: Storage, folder: PartsFolder, there: frozenset[str], cluster: Cluster) -> None:
        self._storage = storage
        self._folder = folder
        self._there = there
        self._cluster = cluster

    def __call__(self, row: Row) -> Iterator[Row]:
        """Yield the parts of a file and, last, why it cannot be read on."""
        file = _File(**row)
        try:
            yield from self._parts(file)
        except RechainError as error:
            yield _row("", [], 0.0, str(error))

    def _parts(self, file: _File) -> Iterator[Row]:
        address = self._storage.address_of(file.name)
        before = 0.0
        with self._storage.open(file.name) as opened:
            records = read_opened(address, opened, file.size)
            chunks = HeldBack(chunks_of(address, records, self._cluster.batch_size))
            for number, part in enumerate(batches(chunks, self._cluster.chunks_a_part)):
                if not self._cluster.is_full(part):
                    chunks.check()  # half a part would count as done
                read = part[-1].records[-1].share or 0.0
                if (name := self._folder.name(file.number, number)) not in self._there:
                    yield _row(name, part, (read - before) * file.share)
                    before = read
            chunks.check()


def _row(part: str, chunks: list[Any], share: float, problem: str | None = None) -> Row:
    return {"part": part, "chunks": pickle.dumps(chunks), "share": share, "problem": problem or ""}


class _Actor:
    """Has a model, and makes parts."""

    def __init__(self, work: Work, folder: PartsFolder) -> None:
        """Load the model; why it cannot be loaded is told with the parts."""
        self._folder = folder
        self._problem = ""
        try:
            self._worker = Worker(work)
        except RechainError as error:
            self._problem = str(error)

    def __call__(self, row: Row) -> Row:
        """Make a part, and return what came of it."""
        problem = row["problem"] or self._problem
        done = Done(b"", Tally(), row["share"])
        if not problem:
            try:
                done = done._replace(tally=self._folder.make(row["part"], pickle.loads(row["chunks"]), self._worker))
            except QuestionError as error:
                done = done._replace(stopped_by=error)
            except RechainError as error:
                problem = str(error)
        return {"done": pickle.dumps(done), "problem": problem}
