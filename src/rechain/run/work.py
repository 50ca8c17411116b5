"""From a chunk of raw records to the lines of their chains: what a worker does, here or on a cluster."""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rechain.errors import QuestionError
from rechain.formats.datasets.plain import FieldMap
from rechain.formats.datasets.questions import Chunk, PassageSource, QuestionReader, read_collection
from rechain.models import AnyModel, describe_model, is_reader, network_modules
from rechain.recoverer import RecovererConfig
from rechain.schema import Recovered
from rechain.scoring import BASELINES
from rechain.scoring.beliefs import Offer
from rechain.system.processes import Asker, Service, batches, in_order, usable_cores
from rechain.system.provenance import describe_input

if TYPE_CHECKING:
    from rechain.reader.network import Reading
    from rechain.system.tensors import Array

# Workers that share a GPU without a reader: each takes about a gigabyte of its memory.
_MOST_A_GPU = 16


@dataclass
class Tally:
    """Counts of questions by their outcome."""

    questions: int = 0
    with_chain: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    """the number of questions with an error, by its code"""
    confidence: float = 0.0
    """the sum of the best chains' confidences"""
    confident: int = 0
    """the number of best chains that have a confidence"""
    verdicts: Counter[str] = field(default_factory=Counter)
    """the number of answers with a verdict, by it; models without verdicts have none"""

    def count(self, recovered: Recovered) -> None:
        """Add a question."""
        chains = recovered.chains
        code = recovered.error.code if recovered.error else None
        self._count(code, bool(chains), chains[0].confidence if chains else None, recovered.verdict)

    def count_fields(self, fields: Mapping[str, Any]) -> None:
        """Add a question by the fields of its line."""
        chains, error = fields.get("chains"), fields.get("error")
        confidence = chains[0].get("confidence") if chains else None  # tables leave out what is null
        self._count(str(error["code"]) if error else None, bool(chains), confidence, fields.get("verdict"))

    def _count(self, code: str | None, has_chain: bool, confidence: float | None, verdict: str | None) -> None:
        self.questions += 1
        self.with_chain += has_chain
        if code is not None:
            self.problems[code] += 1
        if confidence is not None:
            self.confident += 1
            self.confidence += confidence
        if verdict is not None:
            self.verdicts[verdict] += 1

    def add(self, other: "Tally") -> None:
        """Add the questions of another tally."""
        self.questions += other.questions
        self.with_chain += other.with_chain
        self.problems += other.problems
        self.confidence += other.confidence
        self.confident += other.confident
        self.verdicts += other.verdicts

    def counts(self) -> dict[str, Any]:
        """Return the counts by the names that they have in provenance."""
        counts = {"questions": self.questions, "with_chain": self.with_chain, "errors": dict(self.problems)}
        return {**counts, **({"verdicts": dict(self.verdicts)} if self.verdicts else {})}

    @property
    def mean_confidence(self) -> float | None:
        """The mean confidence of the best chains that have one."""
        return self.confidence / self.confident if self.confident else None


class WorkResult(NamedTuple):
    """The lines of a chunk, or of a part written elsewhere, and what came of its questions."""

    lines: bytes
    """a line for every question"""
    tally: Tally
    share: float | None
    """the share of the input that was read by then"""
    stopped_by: QuestionError | None = None
    """the error that stopped strict work"""
    records: int = 0
    """the number of its raw records"""


@dataclass(frozen=True, slots=True)
class Work:
    """The work on every chunk; it can be sent to other processes."""

    config: RecovererConfig
    """of the recoverer that each worker loads"""
    passages: PassageSource = None
    """those that questions name by id: the collection, unless the recoverer has another"""
    only: tuple[str, ...] = ()
    strict: bool = False
    """stop at the first question that has an error"""
    mapping: FieldMap | None = None
    """what each field of a record contains"""
    jointly: bool = False
    """whether lines are offers, the first pass of joint recovery, and not yet chains"""
    reader: str | None = None
    """the address of the process that reads for all workers with the network; None: each reads by itself"""

    def described(self) -> dict[str, Any]:
        """Return all that results depend on, except the questions; a device only changes their rounding."""
        config = self.config
        mapping = {"map": str(self.mapping)} if self.mapping else {}
        collection = {} if config.corpus is None else {"collection": config.corpus.stamp}
        jointly = {"jointly": True} if self.jointly else {}
        return {
            "model": describe_model(config.model),
            "settings": {
                **config.describe(),
                "only": self.only,
                **asdict(config.settings),
                **mapping,
                **collection,
                **jointly,
            },
            "passages": None if isinstance(self.passages, Mapping) else describe_input(self.passages),
        }

    @property
    def needs_passages(self) -> bool:
        """Whether records have to bring their passages, as no index finds them."""
        if self.config.corpus is None:
            return True
        from rechain.index.index import Index  # not at the top: the search engine is loaded only for an index

        return not isinstance(self.config.corpus, Index)


class Worker:
    """Does the work on one chunk after another."""

    def __init__(self, work: Work) -> None:
        """Load the model and the passages."""
        passages = read_collection(work.passages)
        config = work.config if work.reader is None else replace(work.config, device="cpu")
        self._recoverer = (replace(config, corpus=passages) if config.corpus is None else config).load()
        if work.reader is not None:
            ask: Asker[Reading, Array] = Asker(work.reader)
            self._recoverer.reader().ask = ask
        index = self._recoverer.index
        named = index if passages is None else passages
        self._reader = QuestionReader(named, work.only, work.mapping, needs_passages=index is None)
        self._strict, self._jointly = work.strict, work.jointly

    def __call__(self, chunk: Chunk) -> WorkResult:
        """Recover the chains of a chunk's questions; they are scored together if the model can."""
        tally, lines, stopped_by = Tally(), [], None
        try:
            if self._jointly:
                for offer in self._offers(chunk):
                    tally.count_fields(offer.fields)
                    lines.append(f"{offer.to_json()}\n")
            else:
                for recovered in self.recovered(chunk):
                    tally.count(recovered)
                    lines.append(f"{recovered.to_json()}\n")
        except QuestionError as error:
            stopped_by = error
        content = "".join(lines).encode()
        return WorkResult(content, tally, chunk.records[-1].share, stopped_by, len(chunk.records))

    def _offers(self, chunk: Chunk) -> Iterator[Offer]:
        for offer in self._recoverer.offer_entries(self._reader.entries(chunk)):
            error = offer.fields["error"]
            if self._strict and error:
                raise QuestionError(error["code"], error["message"])
            yield offer

    def recovered(self, chunk: Chunk) -> Iterator[Recovered]:
        """Yield the chains of a chunk's questions; raises the first error of strict work as QuestionError."""
        for recovered in self._recoverer.recover_entries(self._reader.entries(chunk)):
            if self._strict and recovered.error:
                raise QuestionError(recovered.error.code, recovered.error.message)
            yield recovered


def default_workers(model: AnyModel, device: str | None) -> int:
    """Return the number of worker processes: one a core, but no more than fit on a GPU that they would share."""
    shares_gpu = model not in BASELINES and device != "cpu" and Path("/dev/nvidia0").exists()
    return min(usable_cores(), _MOST_A_GPU) if shares_gpu and not is_reader(model) else usable_cores()


def reads_apart(model: AnyModel, device: str | None) -> bool:
    """Return whether one process should read for all workers: where a chain reader's network is on a GPU.

    Several processes on one GPU take turns there, each with its own copy of the network and with small batches.
    """
    if not is_reader(model) or device == "cpu":
        return False
    if device is not None:
        return True
    if not Path("/dev/nvidia0").exists():  # torch takes a while to load
        return False
    import torch

    return torch.cuda.is_available()


def recover_chunks(
    work: Work, chunks: Iterable[Chunk], size: int, workers: int, apart: bool = False
) -> Generator[WorkResult]:
    """Recover the chains of chunks, each of `size` records if it is full, in worker processes.

    `apart`, one process more reads with the network for all workers, which find candidates and evidence. This process
    does the work with 0 workers, or where one chunk that is not full is all there is: starting a worker would take
    longer.
    """
    tasks = iter(chunks)
    if workers:
        pairs = batches(tasks, 2)
        first = next(pairs, [])
        if len(first) < 2 and all(len(chunk.records) < size for chunk in first):
            workers = 0
        tasks = chain(first, tasks, chain.from_iterable(pairs))  # `pairs` raises the error that it has met, if any
    if workers:
        with _reading(work) if apart else nullcontext(work) as work:
            preload = [__name__, *network_modules(work.config.model)]
            yield from in_order(partial(Worker, work), tasks, workers, lambda chunk: chunk.where, preload=preload)
    else:
        worker: Worker | None = None
        for chunk in tasks:
            worker = worker or Worker(work)  # a model is not loaded before there is a question
            yield worker(chunk)


@contextmanager
def _reading(work: Work) -> Iterator[Work]:
    """Start a process that reads with the network, and yield the work of those that ask it."""
    with Service(partial(_make_reader, work.config), is_shared=True) as service:
        yield replace(work, reader=service.address)


def _make_reader(config: RecovererConfig) -> "Callable[[Sequence[Reading]], list[Array]]":
    return replace(config, corpus=None).load().reader().reader.read_all
