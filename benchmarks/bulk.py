"""Bulk recovery: every stage, workers, the time outside of the network, the obvious alternatives, and memory.

    python benchmarks/bulk.py ../shared/data
    python benchmarks/bulk.py ../shared/data --parts stages workers

Questions are those of HotpotQA open, repeated if there are not enough. The two sides of a ratio take turns in one
run. Nothing else should run at the same time. The alternatives need sentence-transformers, spaCy and datasets.
"""

import argparse
import gc
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import orjson
import torch
from common import (
    Run,
    alternated,
    candidates_of,
    open_lines,
    parser,
    print_heading,
    print_rows,
    ratios,
    recover_with,
    seconds,
    spread,
)
from speed import link, link_with_spacy, phrases_of

from rechain.errors import QuestionError
from rechain.formats.datasets.questions import Entry, QuestionReader, read_chunks
from rechain.reader.model import ChainReaderModel, WeighedQuestion
from rechain.reader.network import TOKENS_AT_ONCE, Texts
from rechain.reader.pretrained import load, load_trainable
from rechain.reader.texts import TokenText, flat_texts
from rechain.recoverer import BATCH_SIZE, Recoverer
from rechain.run.resume import GrowingFile
from rechain.run.work import Tally, WorkResult
from rechain.schema import Question, Recovered
from rechain.scoring.interface import Scores
from rechain.scoring.results import Options, score, to_recovered
from rechain.system.processes import batches, usable_cores
from rechain.system.tensors import Array, Arrays
from rechain.text.candidates import Candidates, find_candidates
from rechain.text.evidence.search import find_evidence


class Setup(NamedTuple):
    """The command line, and a folder to work in."""

    data: Path
    folder: Path
    """for files that are deleted at the end"""
    options: argparse.Namespace

    @property
    def repeats(self) -> int:
        """How often everything is measured."""
        return int(self.options.repeats)

    def file(self, name: str, lines: Iterable[bytes]) -> Path:
        """Write a file of questions, unless it is there."""
        path = self.folder / name
        if not path.exists():
            with path.open("wb") as file:
                file.writelines(lines)
        return path

    def open_file(self, number: int) -> Path:
        """Return a file of `number` questions of open."""
        return self.file(f"open{number}.jsonl", open_lines(self.data, number))

    def plain_file(self, number: int) -> Path:
        """Return such a file in the plain format, which `datasets` can read too."""
        questions = questions_of(self.open_file(number))
        lines = (orjson.dumps(_plain(question)) + b"\n" for question in questions)
        return self.file(f"plain{number}.jsonl", lines)


def _plain(question: Question) -> dict[str, Any]:
    passages = [{"id": one.id, "title": one.title, "text": one.text} for one in question.passages]
    return {"id": question.id, "question": question.question, "answer": question.answer, "passages": passages}


def questions_of(path: Path) -> Iterator[Question]:
    """Yield the questions of a file."""
    reader = QuestionReader()
    entries = (entry for chunk in read_chunks(path, BATCH_SIZE) for entry in reader.entries(chunk))
    return (entry.content for entry in entries if isinstance(entry.content, Question))


class Batch(NamedTuple):
    """What the network reads of a chunk of questions, as tokens."""

    chains: Arrays | None
    tails: Arrays | None
    entities: int


def weighed(model: ChainReaderModel, batch: Sequence[Candidates]) -> list[WeighedQuestion]:
    """Do the first step of the default model: weigh cheap evidence, and choose what is worth reading."""
    return [WeighedQuestion(candidates, model.evidence, model.settings) for candidates in batch]


Written = tuple[list[TokenText], list[TokenText]]


def batch_of(questions: Sequence[WeighedQuestion], written: Sequence[Written]) -> Batch:
    """Put the tokens of questions one after another."""
    chains, arrivals = ([text for texts in column for text in texts] for column in zip(*written, strict=True))
    entities = max((question.entities for question in questions), default=0)
    return Batch(flat_texts(chains) if chains else None, flat_texts(arrivals) if arrivals else None, entities)


class Forward:
    """The network's forward passes over one chunk, with all else done before."""

    def __init__(self, model: ChainReaderModel, batch: Batch) -> None:
        self._network, self._most, self._entities = model.network, TOKENS_AT_ONCE, batch.entities
        self._chains, self._tails = (Texts(arrays, "cpu") if arrays else None for arrays in batch[:2])

    def __call__(self) -> list[Array | None]:
        """Return what the Ranker and the Reasoner say."""
        return [
            self._read(self._chains, self._network.rank),
            self._read(self._tails, lambda texts: self._network.name_links(texts, self._entities)),
        ]

    def _read(self, texts: Texts | None, head: Callable[..., torch.Tensor]) -> Array | None:
        if texts is None:
            return None
        with torch.inference_mode():
            outputs: Array = texts.read(torch.arange(len(texts.lengths)), head, self._most).float().numpy()
        return outputs


class Decoded:
    """A model that has read all: it only scores the chains of the questions."""

    chooses_hops = True

    def __init__(self, questions: Sequence[WeighedQuestion], outputs: Sequence[tuple[Array, Array]]) -> None:
        self._questions, self._outputs = questions, outputs

    def to(self, device: str) -> "Decoded":
        """Stay: there is no network."""
        return self

    def score_many(self, batch: Sequence[Candidates]) -> list[Scores]:
        """Return the scores of every question."""
        return [question.scores(*outputs) for question, outputs in zip(self._questions, self._outputs, strict=True)]

    def recovered(self, batch: Sequence[Candidates]) -> list[Recovered]:
        """Return the chains of the questions whose candidates these are, as `Recoverer` does."""
        return [
            to_recovered(Entry("", candidates.question.id, candidates.question), candidates, scores, Options())
            for candidates, scores in zip(batch, score(self, batch, explain=False), strict=True)
            if not isinstance(scores, QuestionError)
        ]


def write_lines(recovered: Sequence[Recovered], path: Path) -> None:
    """Write chains as the command does, chunk by chunk."""
    path.unlink(missing_ok=True)
    with GrowingFile(path, {}) as file:
        for chunk in batches(recovered, BATCH_SIZE):
            lines = "".join(one.to_json() + "\n" for one in chunk).encode()
            file.write(WorkResult(lines, Tally(), None, records=len(chunk)))


Stage = tuple[str, int, Callable[[], object]]
"""its name, the number of questions, and the work"""


def cheap_stages(path: Path, questions: Sequence[Question]) -> list[Stage]:
    """Return the stages before any model."""
    reader, chunks, number = QuestionReader(), list(read_chunks(path, BATCH_SIZE)), len(questions)
    return [
        ("read: unzip, and cut into records", number, lambda: list(read_chunks(path, BATCH_SIZE))),
        ("read: parse and check", number, lambda: [list(reader.entries(chunk)) for chunk in chunks]),
        ("read, both", number, lambda: list(questions_of(path))),
        ("link (to passages with the answer)", number, lambda: link(questions)),
        ("candidates of 2, linking included", number, lambda: list(candidates_of(questions, find_candidates))),
        (
            "evidence of 1 to 4 passages, linking included",
            number,
            lambda: list(candidates_of(questions, find_evidence)),
        ),
    ]


def model_stages(questions: Sequence[Question], out: Path) -> list[Stage]:
    """Return the stages of the default model, which are made of chunks of questions as the command makes them."""
    model = load()
    candidates = [list(candidates_of(chunk, find_evidence)) for chunk in batches(questions, BATCH_SIZE)]
    chosen = [weighed(model, batch) for batch in candidates]
    written = [[question.write(model.tokenizer) for question in batch] for batch in chosen]
    forwards = [Forward(model, batch_of(*pair)) for pair in zip(chosen, written, strict=True)]
    models = [Decoded(*pair) for pair in zip(chosen, map(outputs_of, written, (f() for f in forwards)), strict=True)]
    recovered = [one for each, batch in zip(models, candidates, strict=True) for one in each.recovered(batch)]
    number = len(questions)
    return [
        ("evidence", number, lambda: [weighed(model, batch) for batch in candidates]),
        ("tokens", number, lambda: [one.write(model.tokenizer) for batch in chosen for one in batch]),
        ("encode: the network alone", number, lambda: [forward() for forward in forwards]),
        (
            "decode: from what it said to chains",
            number,
            lambda: [each.recovered(batch) for each, batch in zip(models, candidates, strict=True)],
        ),
        ("write: to JSON and to disk", number, lambda: write_lines(recovered, out)),
    ]


def outputs_of(written: Sequence[Written], outputs: Sequence[Array | None]) -> list[tuple[Array, Array]]:
    """Give every question what was said of its texts."""
    rows = [iter(()) if column is None else iter(column) for column in outputs]
    pairs = [[list(islice(rows[side], len(pair[side]))) for side in (0, 1)] for pair in written]
    return [(np.array(ranks), np.array(links)) for ranks, links in pairs]


def print_stages(setup: Setup) -> None:
    """Print how many questions a second each stage does on one core."""
    torch.set_num_threads(1)
    path = setup.data / "hotpotqa/open.json.gz"
    questions = list(questions_of(path))
    stages = cheap_stages(path, questions)
    stages += model_stages(questions[: setup.options.encoded], setup.folder / "stage.jsonl")
    gc.collect()
    gc.freeze()
    rows = []
    for name, number, work in stages:
        times = [seconds(work) for _ in range(setup.repeats)]
        rows.append((name, number, spread([number / t for t in times]), f"{1000 * median(times) / number:.3f}"))
    gc.unfreeze()
    torch.set_num_threads(usable_cores())
    print("Stages, each by itself, one process and one thread:\n")
    print_rows(("stage", "questions", f"questions/s, median (range) of {setup.repeats}", "ms a question"), rows)


def recover_file(setup: Setup, path: Path, *options: object) -> Run:
    """Run the command on a file, into another."""
    out = setup.folder / "chains.jsonl"
    out.unlink(missing_ok=True)
    return recover_with("local", path, "--out", out, *options)


def print_workers(setup: Setup) -> None:
    """Print what a second worker gains with the lexical model."""
    path, number = setup.open_file(setup.options.lexical), setup.options.lexical
    runs: dict[int, list[Run]] = {1: [], 2: []}
    for _ in range(setup.repeats):
        for workers, of_workers in runs.items():
            of_workers.append(recover_file(setup, path, "--model", "lexical", "--workers", workers))
    rows = []
    for workers, of_workers in runs.items():
        cpu = (f"{median(run.seen.cpu(generation) for run in of_workers):.1f}" for generation in (0, 2))
        rows.append((workers, spread([number / run.seconds for run in of_workers]), *cpu))
    gain = ratios([run.seconds for run in runs[1]], [run.seconds for run in runs[2]])
    print(f"`rechain recover --model lexical`, {number} questions as JSON lines, whole command:\n")
    header = ("workers", f"questions/s, median (range) of {setup.repeats}", "CPU s, main process", "CPU s, workers")
    print_rows(header, rows)
    print(f"Two workers against one, times: {spread(gain, '{:.2f}')}\n")


def print_ray(setup: Setup) -> None:
    """Print a Ray cluster of this machine alone against the local engine."""
    if find_spec("ray") is None:
        print("ray is not installed, so nothing is compared with it.\n")
        return
    rows = []
    for model, number in (("lexical", setup.options.lexical), ("default", setup.options.default)):
        path = setup.open_file(number)
        local, ray = [], []
        for _ in range(setup.repeats):
            local.append(recover_file(setup, path, "--model", model).seconds)
            with tempfile.TemporaryDirectory(dir=setup.folder) as folder:
                ray.append(recover_with("ray", path, "--model", model, "--out", Path(folder) / "parts").seconds)
        rates = (spread([number / t for t in side]) for side in (local, ray))
        rows.append((model, number, *rates, spread(ratios(local, ray), "{:.2f}")))
    print("`--engine ray` on this machine alone, whole command, with the start of the cluster:\n")
    print_rows(("model", "questions", "local, questions/s", "Ray, questions/s", "Ray, times local"), rows)


def tokens_of(path: Path) -> list[Batch]:
    """Return what the network reads of every chunk of a file."""
    model = load()
    tokens = []
    for chunk in batches(questions_of(path), BATCH_SIZE):
        candidates = list(candidates_of(chunk, find_evidence))
        if candidates:
            chosen = weighed(model, candidates)
            tokens.append(batch_of(chosen, [question.write(model.tokenizer) for question in chosen]))
    return tokens


Times = list[tuple[float, float]]
"""when each forward pass began and ended"""


def forward_here(tokens: Sequence[Batch], threads: int, barrier: Any, times: Any) -> None:
    """Load the model in a new process, wait for the others, and do nothing but forward passes."""
    torch.set_num_threads(threads)
    model = load()
    forwards = [Forward(model, batch) for batch in tokens]
    forwards[0]()
    barrier.wait()
    passes: Times = []
    for forward in forwards:
        start = time.perf_counter()
        forward()
        passes.append((start, time.perf_counter()))
    times.put(passes)


class Passes(NamedTuple):
    """How long a file takes, and how long the second half of it."""

    all: float
    rest: float


def forward_alone(tokens: Sequence[Batch], half: int, processes: int, threads: int) -> Passes:
    """Do the forward passes in processes that are started together, each with its share of the chunks."""
    context = multiprocessing.get_context("spawn")
    barrier, times = context.Barrier(processes), context.Queue()
    started = [
        context.Process(target=forward_here, args=(tokens[place::processes], threads, barrier, times))
        for place in range(processes)
    ]
    for process in started:
        process.start()
    passes = [times.get() for _ in started]
    for process in started:
        process.join()
    begin = min(start for of_process in passes for start, _ in of_process)
    end = max(end for of_process in passes for _, end in of_process)
    middle = max(of_process[half // processes - 1][1] for of_process in passes)
    return Passes(end - begin, end - middle)


def recover_halves(setup: Setup, number: int, half: int) -> tuple[Run, Passes]:
    """Run the command on a file and on the first half of it: what the second half takes has no start-up in it."""
    short = recover_file(setup, setup.open_file(half)).seconds
    run = recover_file(setup, setup.open_file(number))
    return run, Passes(run.seconds, run.seconds - short)


def print_forwards(setup: Setup) -> None:
    """Print what bulk recovery with the default model takes in addition to the network's forward passes."""
    cores, number = usable_cores(), setup.options.default
    chunks = max(number // BATCH_SIZE // 2 // cores, 1) * cores
    tokens = tokens_of(setup.open_file(number))
    alone: dict[str, list[Passes]] = {f"one process, {cores} threads": [], f"{cores} processes, one thread each": []}
    runs, ours = [], []
    for _ in range(setup.repeats):
        run, passes = recover_halves(setup, number, chunks * BATCH_SIZE)
        runs.append(run)
        ours.append(passes)
        for name, shape in zip(alone, ((1, cores), (cores, 1)), strict=True):
            alone[name].append(forward_alone(tokens, chunks, *shape))
    print(f"The default model, {number} questions, {BATCH_SIZE} a chunk; seconds, median (range) of {len(runs)}:\n")
    print_passes(number, chunks * BATCH_SIZE, ours, alone)
    cpu = [f"{median(run.seen.cpu(generation) for run in runs):.1f}" for generation in (0, 2)]
    print(f"CPU s of `rechain recover`: main process {cpu[0]}, workers {cpu[1]}.\n")


def print_passes(number: int, half: int, ours: Sequence[Passes], alone: dict[str, list[Passes]]) -> None:
    """Print seconds of both sides, and ratios."""
    columns = (f"all {number} questions, start-up too", f"the last {number - half}: all less a run of the first {half}")
    sides = {"`rechain recover`": ours, **{f"forward alone, {name}": passes for name, passes in alone.items()}}
    rows = [(name, *(spread(column, "{:.1f}") for column in zip(*side, strict=True))) for name, side in sides.items()]
    print_rows(("seconds", *columns), rows)
    faster = [Passes(*map(min, zip(*pair, strict=True))) for pair in zip(*alone.values(), strict=True)]
    rivals = {**{f"against {name}": passes for name, passes in alone.items()}, "against the faster of the two": faster}
    mine = list(zip(*ours, strict=True))
    rows = [
        (name, *(spread(ratios(*pair), "{:.2f}") for pair in zip(mine, zip(*passes, strict=True), strict=True)))
        for name, passes in rivals.items()
    ]
    print_rows(("`rechain recover`, times", *columns), rows)


def print_alternatives(setup: Setup) -> None:
    """Print the speed of the alternatives for scoring and linking."""
    questions = list(questions_of(setup.open_file(setup.options.encoded)))
    rows: list[Sequence[object]] = []
    for needed, ways in (("sentence_transformers", reading_ways), ("spacy", linking_ways)):
        if find_spec(needed) is None:
            rows.append((f"{needed} is not installed", "", "", "", ""))
            continue
        name, number, ours, theirs = ways(questions)
        own, other = alternated([ours, theirs], setup.repeats)
        rates = (spread([number / t for t in each], "{:.1f}") for each in (own, other))
        rows.append((name, str(number), *rates, spread(ratios(other, own), "{:.1f}")))
    print(f"In one process, {torch.get_num_threads()} threads, median (range) of {setup.repeats}:\n")
    print_rows(("alternative", "questions", "ours, questions/s", "alternative, questions/s", "ours, times"), rows)


Ways = tuple[str, int, Callable[[], object], Callable[[], object]]


def reading_ways(questions: Sequence[Question]) -> Ways:
    """Return the default model and a loop over a CrossEncoder of the same network in floats, both from C on."""
    from reader import TIMED, CrossEncoderLoop

    candidates = list(islice(candidates_of(questions, find_candidates), TIMED))
    model, loop = load(), CrossEncoderLoop(load_trainable())  # the one in bytes, the other in floats
    name = "scoring C: a loop over sentence-transformers' CrossEncoder"
    return name, len(candidates), lambda: model.score_many(candidates), lambda: loop.read(candidates)


def linking_ways(questions: Sequence[Question]) -> Ways:
    """Return our linking and spaCy's, which is handed the phrases ready made."""
    answered = [candidates.question for candidates in candidates_of(questions, find_candidates)]
    phrases = [phrases_of(question) for question in answered]
    name = "linking: spaCy's tokeniser and PhraseMatcher"
    return name, len(answered), lambda: link(answered), lambda: link_with_spacy(answered, phrases)


_recoverers: dict[str, Recoverer] = {}


def recover_row(row: dict[str, Any], model: str, threads: int) -> dict[str, str]:
    """Recover the chains of one row, with a model that is loaded once a process."""
    if model not in _recoverers:
        torch.set_num_threads(threads)
        _recoverers[model] = Recoverer(model)
    return {"line": _recoverers[model].recover(row).to_json()}


def map_rows(model: str, processes: str, path: str, folder: str) -> None:
    """Do with `datasets.map` what the command does, from file to file; print the seconds of `map` alone."""
    import datasets

    datasets.disable_progress_bars()
    rows: Any = datasets.Dataset.from_json(path, cache_dir=folder)
    options = {"model": model, "threads": max(1, usable_cores() // int(processes))}
    start = time.perf_counter()
    mapped = rows.map(
        recover_row,
        fn_kwargs=options,
        num_proc=int(processes) if int(processes) > 1 else None,
        remove_columns=rows.column_names,
        load_from_cache_file=False,
    )
    times = time.perf_counter() - start
    (Path(folder) / "mapped.jsonl").write_text("".join(line + "\n" for line in mapped["line"]), encoding="utf-8")
    print(f"map took {times}")


def mapped(model: str, processes: int, path: Path) -> tuple[float, float]:
    """Run a script with `datasets.map`; return its seconds, and those of `map` alone."""
    script = "import sys; import bulk; bulk.map_rows(*sys.argv[1:])"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", script, model, str(processes), str(path), folder]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *_python_path()])}
        start = time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        elapsed = time.perf_counter() - start
    return elapsed, float(done.stdout.rpartition("map took ")[2])


def _python_path() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def print_maps(setup: Setup) -> None:
    """Print the speed of the command and of `datasets.map`, row by row."""
    if find_spec("datasets") is None:
        print("datasets is not installed, so nothing is compared with `datasets.map`.\n")
        return
    rows = []
    for model, number in (("lexical", setup.options.mapped), ("default", setup.options.mapped_default)):
        path = setup.plain_file(number)
        for processes in (1, 2):
            ours: list[float] = []
            theirs: list[tuple[float, float]] = []
            for _ in range(setup.repeats):
                ours.append(recover_file(setup, path, "--model", model, "--workers", processes).seconds)
                theirs.append(mapped(model, processes, path))
            sides = (ours, [whole for whole, _ in theirs], [alone for _, alone in theirs])
            rates = (spread([number / t for t in side], "{:.1f}") for side in sides)
            gains = (spread(ratios(side, ours), "{:.2f}") for side in sides[1:])
            rows.append((model, processes, number, *rates, *gains))
    print("From file to file, against `datasets.map` with `recover` row by row; the threads of both share the cores:\n")
    rates_of = ("`rechain recover`, questions/s", "script with `map`, questions/s", "`map` alone, questions/s")
    print_rows(("model", "processes", "questions", *rates_of, "command/script, times", "command/`map` alone"), rows)


def print_memory(setup: Setup) -> None:
    """Print the most memory of runs over few and many questions, which come on standard input."""
    rows: list[Sequence[object]] = []
    for model, *numbers in setup.options.memory:
        peaks = [memory_peaks(setup, model, int(number)) for number in numbers]
        rows += [(model, number, *(f"{mb:.0f}" for mb in peak)) for number, peak in zip(numbers, peaks, strict=True)]
        times = (f"{many / few:.3f}" for few, many in zip(peaks[0], peaks[-1], strict=True))
        rows.append((model, f"{numbers[-1]} against {numbers[0]}, times", *times))
    print("Most memory of the command and its workers together, /proc/PID/smaps_rollup every half second, one run:\n")
    print_rows(("model", "questions", "Pss, MB (shared memory counts once)", "Rss, MB (in every process)"), rows)


def memory_peaks(setup: Setup, model: str, number: int) -> tuple[float, float]:
    """Recover `number` questions; return the most Pss and Rss, in MB."""
    out = setup.folder / "chains.jsonl"
    lines = open_lines(setup.data, number)
    run = recover_with("local", "-", "--model", model, "--out", out, lines=lines, every=0.5, weighs=True)
    out.unlink()
    return max(one.pss for one in run.seen.memory), max(one.rss for one in run.seen.memory)


PARTS: dict[str, Callable[[Setup], None]] = {
    "stages": print_stages,
    "workers": print_workers,
    "forwards": print_forwards,
    "alternatives": print_alternatives,
    "maps": print_maps,
    "ray": print_ray,
    "memory": print_memory,
}


def main() -> None:
    """Print the chosen parts."""
    options = parser(__doc__)
    options.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--encoded", type=int, default=320, help="questions of the default model's stages (320)")
    options.add_argument("--lexical", type=int, default=60_000, help="questions of lexical runs (60000)")
    options.add_argument("--default", type=int, default=1000, help="questions of runs of the default model (1000)")
    options.add_argument(
        "--memory", nargs="+", action="append", metavar=("MODEL", "QUESTIONS"), help="a model, and two numbers or more"
    )
    options.add_argument("--mapped", type=int, default=5894, help="questions of `datasets.map`, lexical (5894)")
    options.add_argument("--mapped-default", type=int, default=500, help="the same, default model (500)")
    chosen = options.parse_args()
    chosen.memory = chosen.memory or (("lexical", 10_000, 1_000_000), ("default", 1_000, 10_000))
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command does, for the processes it is compared with
    print_heading()
    with tempfile.TemporaryDirectory() as folder:
        for part in chosen.parts:
            PARTS[part](Setup(chosen.data, Path(folder), chosen))


if __name__ == "__main__":
    main()
