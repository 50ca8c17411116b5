"""From a chunk of raw records to the lines of their chains: what a worker does, here or on a cluster."""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rechain.errors import QuestionError, RechainError
from rechain.formats.datasets.plain import FieldMap
from rechain.formats.datasets.questions import Chunk, PassageSource, QuestionReader, read_collection
from rechain.models import AnyModel, describe_model, is_reader, network_modules
from rechain.recoverer import RecovererConfig
from rechain.schema import Recovered
from rechain.scoring import BASELINES
from rechain.scoring.beliefs import Beliefs, Offer, Offers
from rechain.system.files import replacing
from rechain.system.processes import Service, asking, batches, in_order, usable_cores
from rechain.system.provenance import Facts, describe_input, differences, read_provenance, sidecar_of, write_provenance

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
        best = [{"confidence": chain.confidence} for chain in recovered.chains[:1]]
        error = recovered.error and {"code": recovered.error.code}
        self.count_fields({"chains": best, "error": error, "verdict": recovered.verdict})

    def count_fields(self, fields: Mapping[str, Any]) -> None:
        """Add a question by the fields of its line."""
        chains, error, verdict = fields.get("chains"), fields.get("error"), fields.get("verdict")
        self.questions += 1
        self.with_chain += bool(chains)
        if error:
            self.problems[str(error["code"])] += 1
        confidence = chains[0].get("confidence") if chains else None  # tables leave out what is null
        if confidence is not None:
            self.confident += 1
            self.confidence += confidence
        if verdict is not None:
            self.verdicts[verdict] += 1

    def add(self, other: "Tally") -> None:
        """Add the questions of another tally."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def counts(self) -> dict[str, Any]:
        """Return the counts by the names that they have in provenance."""
        counts = {"questions": self.questions, "with_chain": self.with_chain, "errors": dict(self.problems)}
        return {**counts, **({"verdicts": dict(self.verdicts)} if self.verdicts else {})}

    @classmethod
    def of_counts(cls, counts: Mapping[str, Any]) -> "Tally":
        """Return the tally of which `counts` has returned these."""
        errors, verdicts = Counter(counts["errors"]), Counter(counts.get("verdicts", {}))
        return cls(counts["questions"], counts["with_chain"], errors, verdicts=verdicts)

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
        settings = {**config.describe(), "only": self.only, **asdict(config.settings)}
        if self.mapping:
            settings["map"] = str(self.mapping)
        if config.corpus is not None:
            settings["collection"] = config.corpus.stamp
        if self.jointly:
            settings["jointly"] = True
        passages = None if isinstance(self.passages, Mapping) else describe_input(self.passages)
        return {"model": describe_model(config.model), "settings": settings, "passages": passages}

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
            self._recoverer.reader().ask = asking(work.reader)
        index = self._recoverer.index
        named = index if passages is None else passages
        self._reader = QuestionReader(named, work.only, work.mapping, needs_passages=index is None)
        self._strict, self._jointly = work.strict, work.jointly

    def __call__(self, chunk: Chunk) -> WorkResult:
        """Recover the chains of a chunk's questions; they are scored together if the model can."""
        tally, lines, stopped_by = Tally(), [], None
        try:
            if self._jointly:
                for offer in self._recoverer.offer_entries(self._reader.entries(chunk)):
                    if self._strict and (error := offer.fields["error"]):
                        raise QuestionError(error["code"], error["message"])
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

    def recovered(self, chunk: Chunk) -> Iterator[Recovered]:
        """Yield the chains of a chunk's questions; raises the first error of strict work as QuestionError."""
        return _checked(self._recoverer.recover_entries(self._reader.entries(chunk)), self._strict)


def _checked(results: Iterable[Recovered], strict: bool) -> Iterator[Recovered]:
    """Yield results; if strict, raise the first error."""
    for recovered in results:
        if strict and recovered.error:
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
        preload = [__name__, *network_modules(work.config.model)]
        with Service(partial(_make_reader, work.config), is_shared=True) if apart else nullcontext() as service:
            make = partial(Worker, replace(work, reader=service.address) if service else work)
            yield from in_order(make, tasks, workers, lambda chunk: chunk.where, preload=preload)
    else:
        worker: Worker | None = None
        for chunk in tasks:
            worker = worker or Worker(work)  # a model is not loaded before there is a question
            yield worker(chunk)


def _make_reader(config: RecovererConfig) -> "Callable[[Sequence[Reading]], list[Array]]":
    return replace(config, corpus=None).load().reader().reader.read_all


# The second pass of joint recovery: from a file of offers, which workers write and which can be resumed, to the chains.
# It is quick, starts again after an interruption, and writes its file as a whole.

_REPLACE = "name another file, or replace it with --overwrite"


def offers_beside(output: Path) -> Path:
    """Return the path of the offers while chains are recovered into a file; they are removed in the end."""
    return output.with_name(f"{output.name}.offers")


class JointPass:
    """The second pass over the offers of all questions."""

    def __init__(self, offers: Path, top: int, min_confidence: float | None, strict: bool = False) -> None:
        """Read the offers once, and learn from all questions what their steps are worth."""
        self._offers, self._top, self._min_confidence, self._strict = offers, top, min_confidence, strict
        known = Offers()
        with offers.open("rb") as file:
            for line in file:
                Offer.of_json(line).add_to(known)
        self.beliefs: Beliefs = known.learn()
        self.tally = Tally()
        """of the questions whose chains were written"""

    def recovered(self) -> Iterator[Recovered]:
        """Yield the chains of every question in the order of the input; if strict, raise the first error.

        That can only be one of confidence, which needs all questions; the first pass stops at all others.
        """
        with self._offers.open("rb") as file:
            settled = (
                Offer.of_json(line).settle(self.beliefs, position, self._top, self._min_confidence)
                for position, line in enumerate(file)
            )
            for recovered in _checked(settled, self._strict):
                self.tally.count(recovered)
                yield recovered

    def write(self, output: Path, head: Facts) -> None:
        """Write the chains, which take the place of an earlier file when all are there, and what made them."""
        with replacing(output) as file:
            file.writelines(recovered.to_json().encode() + b"\n" for recovered in self.recovered())
        beliefs = self.beliefs
        shared = {"steps": len(beliefs.steps), "shared_steps": beliefs.shared, "rounds": beliefs.rounds}
        jointly = {"questions": beliefs.questions, **shared}
        write_provenance(output, head, {**self.tally.counts(), "jointly": jointly})

    def summary(self) -> str:
        """Return in a sentence what was shared."""
        beliefs = self.beliefs
        if not beliefs.questions:
            return "No question has candidates between named entities, so all is as without --jointly."
        different = f"{beliefs.questions} different question{'s offer' if beliefs.questions > 1 else ' offers'}"
        return f"{different} {len(beliefs.steps)} steps, {beliefs.shared} of them in common with others."


def remove_offers(offers: Path) -> None:
    """Remove offers and their provenance."""
    offers.unlink(missing_ok=True)
    sidecar_of(offers).unlink(missing_ok=True)


def tally_of_finished(output: Path, head: Facts, questions: Path) -> Tally:
    """Return the counts of a finished file of chains; raises RechainError if it was made of anything else.

    It cannot be continued: with other questions, or more of them, every chain could be another.
    """
    provenance = read_provenance(output)
    if provenance and not provenance.damage and (problem := next(differences(provenance.made_by, head), None)):
        raise RechainError(f"{output} was made with {problem}; {_REPLACE}.")
    if provenance is None or (misfits := provenance.misfits(questions)) or provenance.end is None:
        why = misfits[0] if provenance else f"Nothing says what made {output}."
        raise RechainError(f"{why} What is recovered jointly is made as a whole: {_REPLACE}.")
    return Tally.of_counts(provenance.end)
