"""What training loops share: the state of a run with its checkpoints, its folder, and what is shown of it.

state = TrainingState(network, {"all": optimiser}, settings, phases=("learn",), criterion="reward", ...)
if resume and folder.is_begun:
    folder.check(record, "other questions")
    state.load_last(folder.checkpoint)
else:
    folder.begin(record)
state.start(folder.checkpoint, log)
while state.phase:
    while state.progress.epoch < epochs and state.progress.worse < patience:
        for batch in batches[state.progress.step :]:
            state.end_step({"loss": learn(batch)}, len(batches))
        state.end_epoch({"reward": reward()}, scores())
    state.restore_best()
    state.end_phase()
"""

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import Parameter
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from rechain.errors import InputError, RechainError
from rechain.system.files import check_digests, file_digest, read_sealed, write_sealed
from rechain.system.tensors import Array, Arrays, DamagedFileError, load_tensors, save_tensors

if TYPE_CHECKING:
    from rechain.system.log import RunLog

WEIGHTS, RUN_FILE, CHECKPOINT = "model.safetensors", "run.json", "checkpoint.safetensors"
PREVIOUS = "checkpoint.previous.safetensors"
"""the checkpoint before the last"""
_PARTS = ("network", "best", "totals", "optimiser", "more", "random")
"""what the names of the tensors of a checkpoint begin with"""
_REMEDY = "resume with the same, or start again with another --out."


@dataclass
class Progress:
    """How far a run is; with the tensors, all that is needed to resume it."""

    phase: int = 0
    epoch: int = 0
    step: int = 0
    """number of steps of this epoch that are done"""
    best: float = -1.0
    """the best value of the criterion in this phase"""
    worse: int = 0
    """number of epochs since the best one"""
    curve: list[dict[str, Any]] = field(default_factory=list)
    """phase, epoch, losses and held-out figures of each epoch"""

    @classmethod
    def parse(cls, values: Any) -> "Progress":
        """Return the progress recorded in a file; raise ValueError if it is not one."""
        defaults = asdict(cls())
        if not isinstance(values, dict) or values.keys() != defaults.keys():
            raise ValueError("its progress is incomplete")
        for name, default in defaults.items():
            if type(values[name]) is not type(default):
                raise ValueError(f"its progress has a wrong value of {name}")
        return cls(**values)


class TrainingLog:
    """Shows a run: a line for each epoch, a progress bar, and figures for TensorBoard."""

    def __init__(self, run: "RunLog | None" = None, folder: Path | None = None) -> None:
        """Show a run in a log; `folder` is where figures for TensorBoard are written."""
        self._run, self._folder, self._stack = run, folder, ExitStack()
        self._bar: Any = None
        self._board: Any = None

    def __enter__(self) -> "TrainingLog":
        from rechain.system.log import bar

        self._bar = self._stack.enter_context(bar("Training", "steps"))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def step(self, phase: str, epoch: int, step: int, steps: int) -> None:
        """Show that a step is done."""
        if self._run:
            self._run.doing = f"{phase}, epoch {epoch + 1}, step {step} of {steps}"
        if self._bar:
            self._bar(step / steps, step, f" of {phase}, epoch {epoch + 1}")

    def epoch(self, figures: Mapping[str, Any]) -> None:
        """Show the figures of an epoch."""
        if not self._run:
            return
        numbers = {name: value for name, value in figures.items() if isinstance(value, float)}
        line = ", ".join(f"{name} {value:.3f}" for name, value in numbers.items())
        self._run.event("epoch", f"{figures['phase']}, epoch {figures['epoch'] + 1}: {line}", figures)
        if self._folder and self._board is None:  # only now: a run that fails at once leaves no log
            try:
                from torch.utils.tensorboard import SummaryWriter

                self._board = self._stack.enter_context(SummaryWriter(str(self._folder)))
            except ImportError:
                self._run.note("Nothing is logged for TensorBoard; pip install 'rechain[train]' installs it.")
                self._board = False
        for name, value in numbers.items() if self._board else ():
            self._board.add_scalar(f"{figures['phase']}/{name}", value, figures["epoch"])


@dataclass
class TrainingState:
    """Network, optimisers and progress of a run: all that a checkpoint contains."""

    network: nn.Module
    optimisers: Mapping[str, torch.optim.Optimizer]
    settings: Any
    """a dataclass; a checkpoint is resumed only with equal settings"""
    phases: Sequence[str]
    criterion: str
    """the held-out figure, in 0 … 1, that decides when to stop and which weights are kept"""
    checkpoint_steps: int
    """a checkpoint is written after this many steps of an epoch, and after every epoch"""
    advice: str
    """how users can avoid losses that are not finite"""
    more: Mapping[str, Tensor] = field(default_factory=dict)
    """further tensors of a checkpoint, which training changes in place"""
    progress: Progress = field(default_factory=Progress)
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    totals: dict[str, Tensor] = field(default_factory=dict)
    """sums of the losses of this epoch"""
    path: Path | None = None
    """the file for checkpoints; None: none are written"""
    log: TrainingLog | None = None

    @property
    def phase(self) -> str | None:
        """The name of the current phase; None after the last."""
        return self.phases[self.progress.phase] if self.progress.phase < len(self.phases) else None

    @property
    def best_figure(self) -> float | None:
        """The best value of the criterion in the last phase, whose weights are kept; None if it was not measured."""
        curve = self.progress.curve
        return max(
            (e[self.criterion] for e in curve if e["phase"] == curve[-1]["phase"] and self.criterion in e), default=None
        )

    def start(self, path: Path | None = None, log: TrainingLog | None = None) -> None:
        """Write checkpoints to a file and show the run, both in the first process only; write the first checkpoint."""
        if is_first():
            self.path, self.log = path, log
        if self.progress == Progress():
            self.save()

    def end_step(self, losses: Mapping[str, Tensor], steps: int) -> None:
        """Record the losses of a step, one of `steps` of the epoch, and write a checkpoint if it is time for one."""
        progress = self.progress
        self.totals = {name: self.totals.get(name, 0.0) + loss for name, loss in losses.items()}
        progress.step += 1
        if self.log:
            self.log.step(str(self.phase), progress.epoch, progress.step, steps)
        is_due = progress.step % self.checkpoint_steps == 0
        if is_due or progress.step == steps:  # before a checkpoint is replaced by one that is useless
            for name, total in self.totals.items():
                if not bool(torch.isfinite(total).all()):
                    raise self._not_finite(f"the {name}'s loss")
            weights = [torch.isfinite(parameter.detach()).all() for parameter in self.network.parameters()]
            if not bool(torch.stack(weights).all()):  # one wait for the GPU, not one for each weight
                raise self._not_finite("a weight")
        if is_due and progress.step < steps:
            self.save()

    def end_epoch(self, figures: Mapping[str, float], scores: Tensor, keeps_last: bool = False) -> None:
        """Record held-out figures, and keep the weights if they are the best, or always; write a checkpoint.

        `scores` are the network's scores of a few questions: weights may be finite and so large that no score is.
        """
        progress, value = self.progress, figures.get(self.criterion)
        if value is not None and not isfinite(value):
            raise self._not_finite(f"the {self.criterion} on held-out questions")
        if not bool(torch.isfinite(scores).all()):
            raise self._not_finite("a score of the network")
        losses = {name: float(total) / progress.step for name, total in self.totals.items()}
        progress.curve.append({"phase": self.phase, "epoch": progress.epoch, **figures, **losses})
        progress.epoch, progress.step, self.totals = progress.epoch + 1, 0, {}
        if keeps_last:
            self.best_weights = {}
        elif value is None or value > progress.best:
            progress.best, progress.worse = progress.best if value is None else value, 0
            self.best_weights = {name: value.clone() for name, value in self.network.state_dict().items()}
        else:
            progress.worse += 1
        if self.log:
            self.log.epoch(progress.curve[-1])
        self.save()

    def restore_best(self) -> None:
        """Go back to the best weights of the phase."""
        if self.best_weights:
            self.network.load_state_dict(self.best_weights)
            self.best_weights = {}

    def end_phase(self) -> None:
        """Go to the next phase and write a checkpoint."""
        self.progress = Progress(self.progress.phase + 1, curve=self.progress.curve)
        self.save()

    def _not_finite(self, what: str) -> RechainError:
        return RechainError(
            f"{what} is no longer a number in epoch {self.progress.epoch + 1} of the {self.phase}; {self.advice}. "
            "The last checkpoint is intact."
        )

    # ---- checkpoints

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.network.parameters()).device

    def save(self) -> None:
        """Write a checkpoint and keep the one before it."""
        if self.path:
            metadata = {"settings": asdict(self.settings), "progress": asdict(self.progress)}
            save_tensors(self.tensors(), metadata, self.path, self.path.with_name(PREVIOUS))

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of a checkpoint by name."""
        parts: dict[str, Mapping[str, Tensor]] = {
            "network": self.network.state_dict(),
            "best": self.best_weights,
            "totals": self.totals,
            "optimiser": {
                f"{name}.{number}.{what}": value
                for name, optimiser in self.optimisers.items()
                for number, values in optimiser.state_dict()["state"].items()
                for what, value in values.items()
            },
            "more": self.more,
            "random": {"cpu": torch.get_rng_state()},
        }
        if self.device.type == "cuda":
            parts["random"] = {**parts["random"], "cuda": torch.cuda.get_rng_state(self.device)}
        return {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}

    def load_last(self, path: Path) -> None:
        """Resume from the last checkpoint, or from the one before if there is no last; start if there is none at all.

        A damaged checkpoint is an error, though the one before is offered: steps are not repeated unasked.
        """
        previous = path.with_name(PREVIOUS)
        if not path.exists():
            if previous.exists():
                self.load(previous)
            return
        try:
            self.load(path)
        except DamagedFileError as error:
            try:
                progress = Progress.parse(load_tensors(previous)[1].get("progress"))
                phase = (*self.phases, "the end")[progress.phase]
                offer = f"resumes from the intact one before it ({phase}, epoch {progress.epoch + 1})"
            except (RechainError, ValueError, IndexError):
                offer = "starts from the beginning, as no intact one is left"
            raise InputError(f"{str(error).removesuffix('.')}; delete it, and --resume {offer}.") from error

    def load(self, path: Path) -> None:
        """Resume from a checkpoint."""
        tensors, metadata = load_tensors(path)
        if "progress" not in metadata or "random.cpu" not in tensors:
            raise DamagedFileError(f"{path} contains only weights, not the state of a run; it cannot be resumed.")
        _check_same(metadata["settings"], asdict(self.settings), path)
        parts: dict[str, dict[str, Tensor]] = {part: {} for part in _PARTS}
        try:
            for name, value in tensors.items():
                part, _, rest = name.partition(".")
                parts[part][rest] = value
            progress = Progress.parse(metadata["progress"])
            _check_like(parts["more"], self.more)
            if parts["best"]:
                _check_like(parts["best"], self.network.state_dict())
            self.network.load_state_dict(parts["network"])
            self._load_optimisers(parts["optimiser"])
            torch.set_rng_state(parts["random"]["cpu"])
            if "cuda" in parts["random"] and self.device.type == "cuda":
                torch.cuda.set_rng_state(parts["random"]["cuda"], self.device)
        except (LookupError, RuntimeError, TypeError, ValueError) as error:
            reason = str(error).partition("\n")[0].rstrip(":.")
            raise InputError(f"{path} is of another model or of other data than these: {reason}.") from error
        for name, value in parts["more"].items():
            self.more[name].copy_(value)
        self.best_weights = {name: value.to(self.device) for name, value in parts["best"].items()}
        self.totals = {name: value.to(self.device) for name, value in parts["totals"].items()}
        self.progress = progress

    def _load_optimisers(self, tensors: Mapping[str, Tensor]) -> None:
        states: dict[str, dict[int, dict[str, Tensor]]] = {name: {} for name in self.optimisers}
        for key, value in tensors.items():
            name, number, what = key.split(".")
            states[name].setdefault(int(number), {})[what] = value
        for name, optimiser in self.optimisers.items():
            parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
            for position, values in states[name].items():
                moments = {what: value for what, value in values.items() if what != "step"}
                _check_like(moments, {"exp_avg": parameters[position], "exp_avg_sq": parameters[position]})
            groups = optimiser.state_dict()["param_groups"]
            optimiser.load_state_dict({"state": states[name], "param_groups": groups})


def _check_like(tensors: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> None:
    """Raise ValueError if tensors differ from others in names, shapes or types."""
    if tensors.keys() != others.keys():
        raise ValueError("the names of its tensors differ")
    for name, value in tensors.items():
        if (value.shape, value.dtype) != (others[name].shape, others[name].dtype):
            raise ValueError(f"the shape or type of {name} differs")


def _check_same(recorded: Any, settings: Mapping[str, Any], path: Path) -> None:
    """Raise InputError with the first setting in which a file differs from those of now."""
    if not isinstance(recorded, Mapping):
        raise InputError(f"{path} does not contain the settings of a run.")
    for name, value in settings.items():
        if recorded.get(name) != value:
            raise InputError(
                f"{path} was written with {name} = {recorded.get(name)}, not {value}; resume with the same settings, "
                "or start again with another --out."
            )


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run: how it was started, its checkpoint and, at the end, the model."""

    path: Path

    @property
    def is_begun(self) -> bool:
        """Whether a run was started here."""
        return (self.path / RUN_FILE).exists()

    @property
    def checkpoint(self) -> Path:
        """The file of the last checkpoint."""
        return self.path / CHECKPOINT

    def begin(self, record: Mapping[str, Any], files: Iterable[str] = ()) -> None:
        """Record how a run is started: kind, settings, fingerprint of the data, and digests of files of the model."""
        if is_first():
            self.path.mkdir(parents=True, exist_ok=True)
            digests = {name: file_digest(self.path / name) for name in files}
            write_sealed(self.path / RUN_FILE, {**record, "files": digests})

    def check(self, record: Mapping[str, Any], others: str) -> None:
        """Raise InputError if the run was started with another record; `others` names the data."""
        recorded = self.record()
        if recorded["kind"] != record["kind"]:
            kinds = f"--model {recorded['kind']}, not {record['kind']}"
            raise InputError(f"{self.path} was started with {kinds}; {_REMEDY}")
        _check_same(recorded["settings"], record["settings"], self.path / RUN_FILE)
        self.check_files()
        if recorded["fingerprint"] != record["fingerprint"]:
            raise InputError(f"{self.path} was started with {others}; {_REMEDY}")

    def record(self) -> dict[str, Any]:
        """Read how the run was started."""
        try:
            record = read_sealed(self.path / RUN_FILE)
            if not record.keys() >= {"kind", "settings", "fingerprint", "files"}:
                raise ValueError("it is not the record of a run")
        except FileNotFoundError as error:
            raise InputError(f"{self.path} is not the folder of a run: it has no {RUN_FILE}.") from error
        except (OSError, ValueError) as error:
            raise InputError(
                f"{self.path / RUN_FILE} is damaged or was changed by hand: {error}; take it from a copy, or start "
                "again with another --out."
            ) from error
        return record

    def check_files(self) -> None:
        """Raise InputError with the first file of the model that has changed since the run was started."""
        advice = "take it from a copy, or start again with another --out"
        check_digests(self.path, self.record()["files"], RUN_FILE, advice)


def fingerprint(*parts: Arrays) -> str:
    """Return a digest of arrays, whatever the order of their names."""
    digest = hashlib.sha256()
    for arrays in parts:
        for name in sorted(arrays):
            digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def no_chain(left_out: Mapping[str, int]) -> RechainError:
    """Return the error for questions without any candidate chain to learn from."""
    reasons = ", ".join(f"{count} {code}" for code, count in sorted(left_out.items(), key=lambda item: -item[1]))
    return RechainError(f"no question has a candidate chain to learn from ({reasons}); see `rechain candidates`.")


# Several processes that play one game together, started by torchrun: each reads its share of every batch


class Share(NamedTuple):
    """What one process reads of a batch."""

    questions: Array
    weight: int
    """how much of it counts: all questions, or none where others read the whole batch and one is read for company"""


@contextmanager
def join(device: str) -> Iterator[str]:
    """Join the processes that torchrun has started, if any, and return the device of this one.

    The first process alone shows how the run goes.
    """
    if not dist.is_available() or not dist.is_torchelastic_launched():
        yield device
        return
    if device.startswith("cuda"):
        number, there = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
        if number >= there:
            raise RechainError(f"torchrun started more processes than the {there} GPUs that are here.")
        torch.cuda.set_device(number)
        device = f"cuda:{number}"
    dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        dist.barrier()
        with Path(os.devnull).open("w") as nowhere, redirect_stderr(sys.stderr if is_first() else nowhere):
            yield device
    finally:
        dist.destroy_process_group()


def is_shared() -> bool:
    """Return whether there is more than one process."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def is_first() -> bool:
    """Return whether this is the process that writes files and shows what happens."""
    return not is_shared() or dist.get_rank() == 0


def own_share(questions: Array) -> Share:
    """Return the questions of a batch that this process reads; at least one."""
    if not is_shared():
        return Share(questions, len(questions))
    share = questions[dist.get_rank() :: dist.get_world_size()]
    return Share(share if len(share) else questions[:1], len(share))


def average_gradients(parameters: Sequence[Parameter], weight: float | Tensor) -> None:
    """Give every process the mean of all processes' gradients, each by its weight."""
    if not is_shared():
        return
    gradients = []
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        gradients.append(parameter.grad)
    vector_to_parameters(average(parameters_to_vector(gradients), weight), gradients)


def average(value: Tensor, weight: float | Tensor = 1.0) -> Tensor:
    """Return the mean of a value of all processes, each by its weight; 0 where none has any."""
    if not is_shared():
        return value
    own = torch.as_tensor(weight, dtype=torch.float32, device=value.device)
    total = own.clone()
    dist.all_reduce(total)
    mean = value * (own / total.clamp(min=1e-9))
    dist.all_reduce(mean)
    return mean


def total(value: Tensor) -> Tensor:
    """Return the sum of a value over all processes."""
    if is_shared():
        value = value.clone()
        dist.all_reduce(value)
    return value
