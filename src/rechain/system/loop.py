"""The loop of a training run, whatever is trained: phases, epochs, steps, held-out questions, checkpoints. No files.

It stands below `game` and `reader`, which both plug into it, so that either runs from prepared tensors alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from rechain.errors import InputError, RechainError
from rechain.system.tensors import DamagedFileError


@dataclass
class Progress:
    """Where a run stands; with the weights, all that is needed to go on."""

    phase: int = 0
    epoch: int = 0
    step: int = 0
    """steps done of this epoch"""
    best: float = -1.0
    """the best figure on held-out questions in this phase"""
    worse: int = 0
    """epochs since"""
    curve: list[dict[str, Any]] = field(default_factory=list)
    """the figures of each epoch"""

    @classmethod
    def of(cls, values: Any) -> "Progress":
        """Return what a file says of it; raise ValueError where that is none."""
        if not isinstance(values, dict) or values.keys() != {field.name for field in fields(cls)}:
            raise ValueError("it does not say how far the run was")
        progress = cls(**values)
        counts = (progress.phase, progress.epoch, progress.step, progress.worse)
        if not all(type(count) is int and count >= 0 for count in counts) or not isinstance(progress.best, int | float):
            raise ValueError("it does not say how far the run was")
        if not isinstance(progress.curve, list) or not all(isinstance(epoch, dict) for epoch in progress.curve):
            raise ValueError("it does not say how the run went")
        return progress


class Watcher:
    """Is called when something happens in a run; this one does nothing."""

    def on_step(self, phase: str, epoch: int, step: int, steps: int) -> None:
        """Take notice of a step."""

    def on_epoch(self, figures: Mapping[str, Any]) -> None:
        """Take the figures of an epoch."""

    def on_checkpoint(self, training: "TrainingLoop") -> None:
        """Keep the state of a run."""


class TrainingLoop(ABC):
    """A run: a network, its optimisers, and how far they have come."""

    phases: ClassVar[Sequence[str]]
    criterion: ClassVar[str]
    """the figure on held-out questions that decides when to stop and which weights are kept; it lies in 0 … 1"""
    advice: ClassVar[str]
    """what helps against a loss that is no number"""
    mismatch: ClassVar[str] = "is of other networks or word vectors than these"
    """what is wrong with the state of another run"""
    parts: ClassVar[AbstractSet[str]] = {"network", "best", "totals", "optimiser", "random"}
    """what the names of the tensors of its state begin with"""
    patient_phases: ClassVar[Sequence[str]] = ("warm-up",)
    """phases that do not stop early: pseudo questions are not the questions on which the criterion is measured"""

    @property
    def fixed_phases(self) -> Sequence[str]:
        """Phases that go through all of their epochs and keep the last weights, whatever the criterion is."""
        return ()

    network: nn.Module
    optimisers: Mapping[str, torch.optim.Optimizer]
    settings: Any
    """a dataclass that has at least `patience` and `checkpoint_steps`"""
    device: torch.device

    def __init__(self) -> None:
        self.progress = Progress()
        self.best_weights: dict[str, Tensor] = {}
        self.totals: dict[str, Tensor] = {}
        """the losses of this epoch so far, summed"""

    @abstractmethod
    def epochs(self, phase: str) -> int:
        """Return how many epochs a phase has at most."""

    @abstractmethod
    def batches(self, phase: str, epoch: int) -> Sequence[Any]:
        """Return the batches of an epoch in their order; a resumed epoch must have the same."""

    @abstractmethod
    def step(self, phase: str, batch: Any) -> dict[str, Tensor]:
        """Learn from one batch; return the losses by name."""

    @abstractmethod
    def held_out_figures(self) -> dict[str, float]:
        """Return the figures on held-out questions, where there are any; none of them needs a label."""

    @abstractmethod
    def outputs(self) -> Tensor:
        """Return what the network says of a few questions, each score a finite number if it can be used."""

    def end_phase(self, phase: str) -> None:  # noqa: B027 - most phases have nothing to do
        """Do what follows a phase, once its best weights are restored."""

    def run(self, watcher: Watcher | None = None, until: str | None = None) -> None:
        """Go to the end, or to the beginning of a phase, from where the run stands."""
        watcher = watcher or Watcher()
        while self.progress.phase < len(self.phases):
            phase = self.phases[self.progress.phase]
            if phase == until:
                return
            while self.progress.epoch < self.epochs(phase):
                is_patient = phase in (*self.patient_phases, *self.fixed_phases)
                if not is_patient and self.progress.worse >= self.settings.patience:
                    break
                self._epoch(phase, watcher)
            if self.best_weights:
                self.network.load_state_dict(self.best_weights)
                self.best_weights = {}
            self.end_phase(phase)
            self.progress = Progress(self.progress.phase + 1, curve=self.progress.curve)
            watcher.on_checkpoint(self)

    def _epoch(self, phase: str, watcher: Watcher) -> None:
        """Go through the questions once, from the step that was reached."""
        progress, batches = self.progress, self.batches(phase, self.progress.epoch)
        steps = len(batches)
        self.network.train()
        for batch in batches[progress.step :]:
            losses = self.step(phase, batch)
            self.totals = {name: self.totals.get(name, 0.0) + loss for name, loss in losses.items()}
            progress.step += 1
            watcher.on_step(phase, progress.epoch, progress.step, steps)
            if progress.step % self.settings.checkpoint_steps == 0 and progress.step < steps:
                self._check(phase)
                watcher.on_checkpoint(self)
        self._check(phase)
        self._end_epoch(phase, steps, watcher)

    def _end_epoch(self, phase: str, steps: int, watcher: Watcher) -> None:
        """Measure what the epoch brought, and keep the weights if they are the best of the phase."""
        progress, figures = self.progress, self.held_out_figures()
        reached = figures.get(self.criterion)
        if reached is not None and not isfinite(reached):
            raise self._no_number(f"the {self.criterion} on held-out questions", phase)
        # weights may be finite and so large that no score is: losses show it only a step later, if there is one
        if not bool(torch.isfinite(self.outputs()).all()):
            raise self._no_number("a score of the network", phase)
        losses = {name: float(total) / steps for name, total in self.totals.items()}
        progress.curve.append({"phase": phase, "epoch": progress.epoch, **figures, **losses})
        progress.epoch, progress.step, self.totals = progress.epoch + 1, 0, {}
        if phase in self.fixed_phases:
            self.best_weights = {}
        elif reached is None or reached > progress.best:
            progress.best, progress.worse = progress.best if reached is None else reached, 0
            self.best_weights = {name: value.clone() for name, value in self.network.state_dict().items()}
        else:
            progress.worse += 1
        watcher.on_epoch(progress.curve[-1])
        watcher.on_checkpoint(self)

    def _check(self, phase: str) -> None:
        """Stop before a checkpoint is replaced by one that is of no use."""
        for name, total in self.totals.items():
            if not bool(torch.isfinite(total).all()):
                raise self._no_number(f"the {name}'s loss", phase)
        weights = [torch.isfinite(parameter.detach()).all() for parameter in self.network.parameters()]
        if not bool(torch.stack(weights).all()):  # one question to the GPU, which each waits for
            raise self._no_number("a weight", phase)

    def _no_number(self, what: str, phase: str) -> RechainError:
        return RechainError(
            f"{what} is no longer a number in epoch {self.progress.epoch + 1} of the {phase}; "
            f"{self.advice}. The last checkpoint is intact."
        )

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all that decides how the run goes on: tensors by name, and what JSON can hold."""
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in self.best_weights.items()}
        tensors |= {f"totals.{name}": value for name, value in self.totals.items()}
        for whose, optimiser in self.optimisers.items():
            for number, values in optimiser.state_dict()["state"].items():
                tensors |= {f"optimiser.{whose}.{number}.{name}": value for name, value in values.items()}
        tensors["random.cpu"] = torch.get_rng_state()
        if self.device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self.device)
        return tensors, {"settings": asdict(self.settings), "progress": asdict(self.progress)}

    def load_state(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any], where: str) -> None:
        """Go to where a state was returned; `where` names its file in errors."""
        parts: dict[str, dict[str, Tensor]] = {part: {} for part in self.parts}
        try:
            for name, value in tensors.items():
                part, _, rest = name.partition(".")
                parts[part][rest] = value
            progress = Progress.of(metadata.get("progress"))
            for kind in {"cpu", self.device.type} & {"cpu", *parts["random"]}:
                torch.Generator(kind).set_state(parts["random"][kind])  # which sees whether it is one
        except KeyError as error:
            raise DamagedFileError(f"{where} is damaged: it has no place for {error}.") from error
        except (RuntimeError, TypeError, ValueError) as error:
            raise DamagedFileError(f"{where} is damaged: {str(error).partition(chr(10))[0]}.") from error
        try:
            self.network.load_state_dict(parts["network"])
            self._load_optimisers(parts["optimiser"])
            if parts["best"]:
                _check_like(parts["best"], self.network.state_dict())
        except (LookupError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(f"{where} {self.mismatch}.") from error
        self.best_weights = {name: value.to(self.device) for name, value in parts["best"].items()}
        self.totals = {name: value.to(self.device) for name, value in parts["totals"].items()}
        self.progress = progress
        torch.set_rng_state(parts["random"]["cpu"])
        if "cuda" in parts["random"] and self.device.type == "cuda":
            torch.cuda.set_rng_state(parts["random"]["cuda"], self.device)

    def _load_optimisers(self, tensors: Mapping[str, Tensor]) -> None:
        states: dict[str, dict[int, dict[str, Tensor]]] = {whose: {} for whose in self.optimisers}
        for name, value in tensors.items():
            whose, number, what = name.split(".")
            states[whose].setdefault(int(number), {})[what] = value
        for whose, optimiser in self.optimisers.items():
            groups = optimiser.state_dict()["param_groups"]
            parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
            for place, values in states[whose].items():
                moments = {what: value for what, value in values.items() if what != "step"}
                _check_like(moments, {"exp_avg": parameters[place], "exp_avg_sq": parameters[place]})
            optimiser.load_state_dict({"state": states[whose], "param_groups": groups})


def _check_like(tensors: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> None:
    """Raise ValueError where tensors have not the names, shapes and types of others."""
    if tensors.keys() != others.keys():
        raise ValueError("the names differ")
    for name, value in tensors.items():
        if (value.shape, value.dtype) != (others[name].shape, others[name].dtype):
            raise ValueError(f"{name} differs")
