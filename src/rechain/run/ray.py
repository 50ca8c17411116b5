"""Recovery on a Ray cluster: files are cut into parts, and actors, each with a model, write one output file a part.

Ray Data moves the parts, slows the cutting down when the actors cannot follow, and repeats what was lost with a process
or a node. An actor that repeats a part writes the same file again.
"""

import logging
import os
import pickle
import signal
import socket
import threading
import time
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from rechain.errors import InputError, MissingExtraError, QuestionError, RechainError, ResumableError
from rechain.formats.datasets.questions import Chunk, QuestionReader, chunks_of, no_question
from rechain.formats.datasets.records import named_after, question_files, read_opened
from rechain.formats.exports import arrow
from rechain.formats.exports.arrow import ChainColumns
from rechain.index.index import Index, IndexInfo, check_files
from rechain.recoverer import BATCH_SIZE, Recoverer, RecovererConfig
from rechain.run.parts import Part, PartsFolder, Storage, input_digest
from rechain.run.work import Tally, Work, Worker, WorkResult
from rechain.scoring import BASELINES
from rechain.system.processes import DeferredErrors, batches, relax_collector, trim_memory

# Shares of a core for cutting a file and for an actor. They add up to one, so that there is an actor a core.
_CUTTING, _WORKING = 0.05, 0.95
# Questions in a part: half a minute of a core with the default model, a second with a baseline. What is lost with a
# node stays small, and the seconds that Ray takes for a block do not count.
_PART_SIZE, _LIGHT_PART_SIZE = 256, 1024
# How often a part is repeated that was lost with its actor. Ray repeats it for ever by default: a part whose actor
# always runs out of memory would never end.
_RETRIES = 10
_CONNECT_SECONDS = 10.0  # a cluster that is there answers within milliseconds; Ray would wait for minutes

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cluster:
    """How a cluster is used."""

    batch_size: int
    """questions in a chunk"""
    part_size: int | None = None
    """questions in a part, rounded down to whole chunks; by default as many as suit the model"""
    workers: int | None = None
    """actors; by default one a core or, with GPUs, as many as fit on these"""
    gpus: float | None = None
    """GPUs an actor, which may be a fraction; by default 1 if there are any, and 0 for a baseline or on a CPU"""

    def suited_to(self, config: RecovererConfig) -> "Cluster":
        """Return it with its defaults chosen for a model."""
        is_baseline = isinstance(config.model, str) and config.model in BASELINES
        part_size = self.part_size or (_LIGHT_PART_SIZE if is_baseline else _PART_SIZE)
        needs_none = is_baseline or config.device == "cpu"
        return replace(self, part_size=part_size, gpus=0.0 if self.gpus is None and needs_none else self.gpus)

    @property
    def chunks_a_part(self) -> int:
        """The number of chunks in a part."""
        return max(1, (self.part_size or _PART_SIZE) // self.batch_size)


class _File(NamedTuple):
    """A file of questions, its number among all, and its share of all bytes."""

    name: str
    """in its folder; empty for a file that was named itself"""
    label: str
    """its name in any case"""
    number: int
    size: int
    share: float


class _StopError(InputError):
    """An error that concerns every part, or all that were made before: it is raised at once."""


def recover_parts(
    work: Work, questions: str, folder: PartsFolder, cluster: Cluster, *, overwrite: bool = False, resume: bool = False
) -> Generator[WorkResult]:
    """Recover the chains of a file or folder of questions into a folder of parts, which are made in any order."""
    ray = connect()
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
    cluster = cluster.suited_to(work.config)
    storage = Storage(questions)
    files = _files(storage)
    if storage.holds(folder.storage) or folder.storage.holds(storage):
        raise RechainError("questions and output lie in one folder; name another for the output.")
    actors, gpus = _actors(cluster, ray.nodes())
    options = {"batch size": cluster.batch_size, "part size": cluster.part_size, **work.described()}
    folder.inspect({file.label: file.size for file in files}, options, overwrite, resume)
    cutter = _Cutter(work, storage, folder, cluster)
    has_any, made = False, dict[str, Part]()
    try:
        if isinstance(work.config.corpus, Index):
            _check_index(ray, work.config.corpus)
        if folder.names and overwrite:  # a run that cannot succeed should not delete the parts of an earlier one
            Worker(work)
            cutter.check_any(files, work)
        cutter.check_first(files[0])
        folder.begin(overwrite)
        # Pickled here, so that a worker that cannot open the index can say why: Ray would unpickle it before.
        rows = _pipeline(ray, files, cutter, (ray.cloudpickle.dumps(work), folder), actors, gpus).iter_rows()
        for result in _results(rows, made):
            has_any = has_any or result.tally.questions > 0
            yield result
    except ray.exceptions.RayError as error:
        reason = (*str(error).splitlines(), "")[0]
        raise ResumableError(f"Ray has given up ({type(error).__name__}): {reason}") from error
    if not has_any and (overwrite or not folder.names):
        raise no_question(storage.address_of(""), work.only)
    folder.finish(made)


def _check_index(ray: Any, index: Index) -> None:
    """Raise RechainError if a node on which work is done does not see the index, which every worker opens itself."""
    alive = [node for node in ray.nodes() if node["Alive"]]
    look = ray.remote(num_cpus=0)(_sees)
    calls = {}
    for node in [node for node in alive if node["Resources"].get("CPU")] or alive:
        place = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        calls[node["NodeManagerAddress"]] = look.options(scheduling_strategy=place).remote(index.folder, index.info)
    for address, call in calls.items():
        with suppress(ray.exceptions.RayError):  # the node is gone meanwhile
            if not ray.get(call):
                raise RechainError(
                    f"the node {address} does not see {index.folder} as it was built; put the index on storage that "
                    "every node sees, or copy it to each node, to the same path."
                )


def _sees(folder: Path, info: IndexInfo) -> bool:
    """Return whether the files of an index are here, whole."""
    try:
        check_files(folder, info)
    except InputError:
        return False
    return True


def _pipeline(
    ray: Any, files: Sequence[_File], cutter: "_Cutter", arguments: tuple[bytes, PartsFolder], actors: int, gpus: float
) -> Any:
    """Return a lazy Ray dataset with a row of results for every part."""
    items = ray.data.from_items([file._asdict() for file in files], override_num_blocks=len(files))
    # A part is a block by itself: Ray would gather parts into blocks of 128 MB, and one actor would get them all.
    items.context.target_max_block_size = 1
    items.context.enable_progress_bars = False
    parts = items.flat_map(cutter, num_cpus=_CUTTING)
    with warnings.catch_warnings():  # up to Ray 2.63 `max_task_retries` works only by this deprecated argument
        warnings.simplefilter("ignore", DeprecationWarning)
        return parts.map(
            _Actor,
            fn_constructor_args=arguments,
            compute=ray.data.ActorPoolStrategy(size=actors),
            num_cpus=_WORKING,
            num_gpus=gpus,
            max_task_retries=_RETRIES,
        )


def _results(rows: Iterable[Row], made: dict[str, Part]) -> Iterator[WorkResult]:
    """Yield the results of parts. An error of a file is raised when all others are done, a _StopError at once.

    `made` gets the parts by their names.
    """
    share, unread = 0.0, list[RechainError]()
    for row in rows:
        result: WorkResult
        result, part, error = pickle.loads(row["content"])
        if isinstance(error, _StopError):
            raise error
        if error:
            unread.append(error)
        if part:
            made[row["part"]] = part
        share += result.share or 0.0
        yield result._replace(share=min(share, 1.0))
    if unread:
        raise unread[0]


def recover_dataset(
    dataset: Any, recoverer: Recoverer, *, workers: int | None = None, gpus: float | None = None
) -> Any:
    """Return a Ray dataset of questions, in any format that rechain reads, with the columns `chains` and `error`.

    Each worker loads its own recoverer. By default there is one a core or, for models that use GPUs, one a GPU.
    """
    ray = connect()
    cluster = Cluster(BATCH_SIZE, workers=workers, gpus=gpus).suited_to(recoverer.config)
    actors, gpus = _actors(cluster, ray.nodes())
    return dataset.map_batches(
        _Columns,
        fn_constructor_args=(recoverer,),
        batch_size=BATCH_SIZE,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=actors),  # the reading of the data needs a core too
        num_gpus=gpus,
    )


class _Columns:
    """Adds the columns of chains to tables of questions."""

    def __init__(self, recoverer: Recoverer) -> None:
        self._recoverer = recoverer

    def __call__(self, table: Any) -> Any:
        import pyarrow

        recoverer = self._recoverer
        columns = ChainColumns(recoverer.recover_entries, recoverer.collection is not None, index=recoverer.index)
        columns.check(table.column_names)
        rows = [("a row", str(place), row) for place, row in enumerate(table.to_pylist())]
        table = table.drop_columns([name for name in columns.names if name in table.column_names])
        for name, values in columns.of(rows).items():
            table = table.append_column(name, pyarrow.array(values, arrow.SCHEMA.field(name).type))
        return table


def connect() -> Any:
    """Return Ray, connected to the cluster that RAY_ADDRESS names, else to a new one on this machine."""
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # the rest concerns Ray's own developers
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MissingExtraError("Running on Ray", "ray") from error
    address = os.environ.get("RAY_ADDRESS") or "local"
    try:
        if not ray.is_initialized():
            host, _, port = address.rpartition(":")
            if host and port.isdigit() and "://" not in address:
                socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
            with _undisturbed():
                ray.init(address, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    except (OSError, RuntimeError, ValueError) as error:
        if address == "local":
            raise RechainError(f"Ray cannot be started: {error}") from error
        raise RechainError(f"there is no Ray cluster at {address}, which RAY_ADDRESS names: {error}") from error
    return ray


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Silence standard error, also of Ray's C++, which prints what it raises as well, and keep the handler of SIGTERM.

    Ray takes this signal, and ends the process with another exit code.
    """
    handler = signal.getsignal(signal.SIGTERM)
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(null)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _files(storage: Storage) -> list[_File]:
    sizes, questions = storage.files(), storage.address_of("")
    if {"dataset_info.json", "dataset_dict.json"} & sizes.keys():
        raise InputError(f"{questions} was saved by datasets; save it as Parquet for Ray.")
    names = [""] if "" in sizes else question_files(questions, sizes)
    if not names:
        raise InputError(f"{questions} is not there, or holds no Parquet, JSON or CSV files.")
    total = sum(sizes[name] for name in names) or 1
    return [
        _File(name, name or PurePath(questions).name, number, sizes[name], sizes[name] / total)
        for number, name in enumerate(names)
    ]


def _actors(cluster: Cluster, nodes: Iterable[Mapping[str, Any]]) -> tuple[int, float]:
    """Return the number of actors, and of GPUs for each."""
    resources = [node["Resources"] for node in nodes if node["Alive"]]
    most = max((each.get("GPU", 0.0) for each in resources), default=0.0)
    gpus = min(most, 1.0) if cluster.gpus is None else cluster.gpus
    if gpus > most:
        raise RechainError(f"no node of the cluster has more than {most:g} GPUs, but a worker is to have {gpus:g}.")
    if gpus > 1 and not gpus.is_integer():
        raise RechainError(f"a worker can have a part of a GPU or whole ones, but not {gpus:g}.")
    room = sum(int(min(each.get("CPU", 0.0), each.get("GPU", 0.0) / gpus if gpus else inf)) for each in resources)
    return cluster.workers or max(1, room), gpus


class _Cutter:
    """Cuts a file into the parts that do not exist yet."""

    def __init__(self, work: Work, storage: Storage, folder: PartsFolder, cluster: Cluster) -> None:
        self._mapping, self._needs_passages = work.mapping, work.needs_passages
        self._storage, self._folder, self._cluster = storage, folder, cluster

    def check_first(self, file: _File) -> None:
        """Refuse to resume a folder whose first part is not of the questions with which the input begins."""
        with self._chunks(file) as chunks:
            self._is_done(file, self._folder.name(file.number, 0), list(islice(chunks, self._cluster.chunks_a_part)))

    def check_any(self, files: Sequence[_File], work: Work) -> None:
        """Refuse files without a question of a wanted type."""
        reader = QuestionReader(work.passages, work.only, work.mapping, work.needs_passages)
        for file in files:
            with self._chunks(file) as chunks:
                if any(True for chunk in chunks for _ in reader.entries(chunk)):
                    return
        raise no_question(self._storage.address_of(""), work.only)

    def __call__(self, row: Row) -> Iterator[Row]:
        """Yield the parts of a file and, last, why it cannot be read on."""
        file = _File(**row)
        try:
            for part, chunks, share in self._parts(file):
                yield {"part": part, "content": pickle.dumps((chunks, share, None))}
        except RechainError as error:
            yield {"part": "", "content": pickle.dumps(([], 0.0, error))}

    def _parts(self, file: _File) -> Iterator[tuple[str, list[Chunk], float]]:
        """Yield the name of every part that is to be made, its chunks, and its share of all bytes."""
        before, number = 0.0, -1
        full = self._cluster.chunks_a_part * self._cluster.batch_size
        with self._chunks(file) as chunks:
            remaining = iter(chunks)
            for number, part in enumerate(batches(remaining, self._cluster.chunks_a_part)):
                if sum(len(chunk.records) for chunk in part) < full:  # the last, or cut short by an error
                    next(remaining, None)  # meets the error, if there is one
                    if chunks.error:  # half a part would count as one
                        break
                read = part[-1].records[-1].share or 0.0
                name = self._folder.name(file.number, number)
                if not self._is_done(file, name, part):
                    yield name, part, (read - before) * file.share
                    before = read
            if chunks.error:
                raise chunks.error
        surplus = self._folder.name(file.number, number + 1)
        if surplus in self._folder.parts:
            raise self._changed(f"{file.label}: questions were removed", surplus)

    def _is_done(self, file: _File, name: str, chunks: Sequence[Chunk]) -> bool:
        """Return whether a part is there; raises _StopError if the questions that it was made of have changed.

        A part is made again if its file has grown there. The answer depends on what was there at first: Ray repeats the
        cutting, and may do so after the part was made.
        """
        part = self._folder.parts.get(name)
        if not part:
            return False
        records = [record for chunk in chunks for record in chunk.records]
        if part.input != input_digest(records[: part.records]):
            where = records[0].where if records else file.label
            raise self._changed(f"from {where} on: these questions were changed or swapped", name)
        return len(records) == part.records

    def _changed(self, what: str, part: str) -> _StopError:
        return _StopError(
            f"{what} after their chains were written to {self._folder.storage.address_of(part)}; delete this part, "
            "name another folder, or replace it with --overwrite."
        )

    @contextmanager
    def _chunks(self, file: _File) -> Iterator[DeferredErrors[Chunk]]:
        address, size = self._storage.address_of(file.name), self._cluster.batch_size
        with self._storage.open(file.name) as opened:
            records = read_opened(address, opened, file.size)
            named = named_after(file.name, records) if file.name else records
            chunks = chunks_of(address, named, size, mapping=self._mapping, needs_passages=self._needs_passages)
            yield DeferredErrors(chunks)


class _Actor:
    """A worker process of the cluster: has a model, and makes parts."""

    def __init__(self, work: bytes, folder: PartsFolder) -> None:
        """Load the model and open the index of pickled work.

        If that fails, the reason comes with the parts: Ray would make the actor again and again.
        """
        self._folder = folder
        self._problem: RechainError | None = None
        try:
            self._worker = Worker(pickle.loads(work))
        except RechainError as error:
            self._problem = _StopError(str(error))
        relax_collector()
        self._trimmed = time.monotonic()

    def __call__(self, row: Row) -> Row:
        """Make a part, and return its result."""
        chunks, share, error = pickle.loads(row["content"])
        result, part, error = WorkResult(b"", Tally(), share), None, self._problem or error
        if not error:
            try:
                part = self._folder.make(row["part"], chunks, self._worker)
                result = result._replace(tally=part.tally)
            except QuestionError as stop:
                result = result._replace(stopped_by=stop)
            except RechainError as problem:
                error = _StopError(str(problem))
        self._trimmed = trim_memory(self._trimmed)
        return {"part": row["part"], "content": pickle.dumps((result, part, error))}
