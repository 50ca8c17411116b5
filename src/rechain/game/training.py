"""The game, played: warm-up, distant supervision, then Reasoner and Ranker in turn, in one visible loop."""

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rechain.errors import RechainError
from rechain.game.data import Prepared
from rechain.game.players import Players
from rechain.game.settings import GameSettings
from rechain.models.batch import Batch
from rechain.system.distributed import average, average_gradients, is_shared, own_share
from rechain.system.tensors import Array

Phase = Literal["warm-up", "pretraining", "game"]
PHASES: Sequence[Phase] = ("warm-up", "pretraining", "game")


@dataclass
class Progress:
    """Where a run stands; with the weights, all that is needed to go on."""

    phase: int = 0
    epoch: int = 0
    step: int = 0
    """steps done of this epoch"""
    best: float = -1.0
    """the best reward on held-out questions in this phase"""
    worse: int = 0
    """epochs since"""
    curve: list[dict[str, Any]] = field(default_factory=list)
    """what each epoch brought"""


class Watcher:
    """Is told what happens in a run; this one does nothing with it."""

    def on_step(self, phase: Phase, epoch: int, step: int, steps: int) -> None:
        """Take notice of a step."""

    def on_epoch(self, figures: Mapping[str, Any]) -> None:
        """Take the figures of an epoch."""

    def on_checkpoint(self, training: "Training") -> None:
        """Keep the state of a run."""


class Part(NamedTuple):
    """Some questions of a data set."""

    data: Prepared
    questions: Array


def _order(parts: Sequence[Part], size: int, seeds: Sequence[int]) -> list[Part]:
    """Cut shuffled questions into batches, each from one data set, and shuffle these."""
    generator = np.random.default_rng(seeds)
    batches = []
    for data, questions in parts:
        shuffled = generator.permutation(questions)
        batches += [Part(data, shuffled[start : start + size]) for start in range(0, len(shuffled), size)]
    return [batches[number] for number in generator.permutation(len(batches))]


class Training:
    """A run: the players, their optimisers, and how far they have come."""

    def __init__(self, vectors: Tensor, data: Prepared, settings: GameSettings, questions: Array | None = None) -> None:
        """Set up a run on some of the questions of a data set, or on all."""
        torch.manual_seed(settings.seed)
        self.settings = settings
        self.data = data
        self.use(np.arange(len(data)) if questions is None else questions)
        self.players = Players(vectors.to(data.device), data.hops, settings).to(data.device)
        self.optimisers = {
            "ranker": _optimiser(self.players.ranker, settings.learning_rate),
            "reasoner": _optimiser(self.players.reasoner, settings.learning_rate),
        }
        self.progress = Progress()
        self.best_weights: dict[str, Tensor] = {}
        self.totals: dict[str, Tensor] = {}
        """the losses of this epoch so far, summed"""

    def use(self, questions: Array) -> None:
        """Set the questions that are learned from, some of which are held out."""
        if len(questions) == 0:
            raise RechainError("there is no question with a candidate chain to train on.")
        shuffled = np.random.default_rng([self.settings.seed, 0]).permutation(questions)
        held = int(len(questions) * self.settings.held_out)
        self.held_out, self.questions = np.sort(shuffled[:held]), shuffled[held:]

    def run(
        self,
        watcher: Watcher | None = None,
        pseudo: Sequence[Part] = (),
        until: Phase | None = None,
    ) -> None:
        """Play to the end, or to the beginning of a phase, from where the run stands.

        `pseudo` are the pseudo questions of the warm-up.
        """
        watcher = watcher or Watcher()
        while self.progress.phase < len(PHASES):
            phase = PHASES[self.progress.phase]
            if phase == until:
                return
            parts = pseudo if phase == "warm-up" else [Part(self.data, self.questions)]
            while self.progress.epoch < self._epochs(phase, bool(pseudo)) and not self._is_over(phase):
                self._epoch(phase, parts, watcher)
            self._next_phase()
            watcher.on_checkpoint(self)

    def _epochs(self, phase: Phase, has_pseudo: bool) -> int:
        settings = self.settings
        if phase == "warm-up":
            return settings.warm_up_epochs if has_pseudo else 0
        return settings.pretrain_epochs if phase == "pretraining" else self._game_epochs

    @property
    def _game_epochs(self) -> int:
        return 0 if self.settings.row == "independent" else self.settings.game_epochs

    def _epoch(self, phase: Phase, parts: Sequence["Part"], watcher: Watcher) -> None:
        """Go through the questions once, from the step that was reached."""
        progress, settings = self.progress, self.settings
        size = settings.warm_up_batch_size if phase == "warm-up" else settings.batch_size
        order = _order(parts, size, [settings.seed, 1 + progress.phase, progress.epoch])
        steps = len(order)
        self._set_rates(phase)
        self.players.train()
        for step in range(progress.step, steps):
            data, questions = order[step]
            share = own_share(questions)
            losses = self._step(phase, data.batch(share.questions), share.weight)
            self.totals = {name: self.totals.get(name, 0.0) + loss for name, loss in losses.items()}
            progress.step = step + 1
            watcher.on_step(phase, progress.epoch, progress.step, steps)
            if progress.step % settings.checkpoint_steps == 0 and progress.step < steps:
                self._check(phase)
                watcher.on_checkpoint(self)
        self._check(phase)
        self._end_epoch(phase, _means(self.totals, steps), watcher)

    def _step(self, phase: Phase, batch: Batch, weight: int = 1) -> dict[str, Tensor]:
        """Teach the players once, the Reasoner on chains that the Ranker selects or pseudo questions are made from.

        `weight` is how much the batch counts beside those of other processes.
        """
        players, losses = self.players, {}
        if self.settings.row == "cooperative" and phase != "pretraining":
            chosen = _made(batch) if phase == "warm-up" else players.select(batch)
            told = self._told(batch, chosen) * (weight > 0) if is_shared() else weight
            losses["reasoner"] = self._learn("reasoner", lambda: players.reasoner_loss(batch, chosen), told)
        teach = players.ranker_loss if phase == "game" else players.supervised_loss
        losses["ranker"] = self._learn("ranker", lambda: teach(batch), weight)
        players.mean_reward = average(players.mean_reward, weight)
        return losses

    def _told(self, batch: Batch, chosen: Tensor) -> int | Tensor:
        """Count the readings of which the Reasoner is told what to name; its loss is the mean over them."""
        targets = (self.players.targets(batch, chosen, reading) for reading in self.players.plan.readings)
        return sum(target.any(-1).sum() for target in targets)

    def _learn(
        self, player: Literal["ranker", "reasoner"], compute: Callable[[], Tensor], weight: int | Tensor
    ) -> Tensor:
        """Take one step of a player's optimiser down the gradient of a loss."""
        optimiser = self.optimisers[player]
        optimiser.zero_grad(set_to_none=True)
        with self.arithmetic():
            loss = compute()
        if loss.requires_grad:
            loss.backward()
        parameters = [p for p in getattr(self.players, player).parameters() if p.requires_grad]
        average_gradients(parameters, weight)
        torch.nn.utils.clip_grad_norm_(parameters, self.settings.clip)
        optimiser.step()
        return average(loss.detach(), weight)

    def arithmetic(self) -> AbstractContextManager[Any]:
        """Return the context in which the networks compute."""
        is_mixed = self.settings.precision == "bfloat16" and self.data.device.type == "cuda"
        return torch.autocast(self.data.device.type, dtype=torch.bfloat16, enabled=is_mixed)

    def _set_rates(self, phase: Phase) -> None:
        rate = self.settings.game_learning_rate if phase == "game" else self.settings.learning_rate
        for group in self.optimisers["ranker"].param_groups:
            group["lr"] = rate

    def _end_epoch(self, phase: Phase, losses: Mapping[str, float], watcher: Watcher) -> None:
        progress = self.progress
        told = self.held_out_figures()
        reward = told.get("reward")
        if reward is not None and not isfinite(reward):
            raise _no_number("the reward on held-out questions", phase, progress.epoch)
        progress.curve.append({"phase": phase, "epoch": progress.epoch, **told, **losses})
        progress.epoch, progress.step, self.totals = progress.epoch + 1, 0, {}
        if reward is None or reward > progress.best:
            progress.best, progress.worse = progress.best if reward is None else reward, 0
            self.best_weights = {name: value.clone() for name, value in self.players.state_dict().items()}
        else:
            progress.worse += 1
        watcher.on_epoch(progress.curve[-1])
        watcher.on_checkpoint(self)

    def _is_over(self, phase: Phase) -> bool:
        return phase != "warm-up" and self.progress.worse >= self.settings.patience

    def _next_phase(self) -> None:
        """Go on from the best weights of the phase that ends."""
        if self.best_weights:
            self.players.load_state_dict(self.best_weights)
        curve = self.progress.curve
        self.best_weights = {}
        self.progress = Progress(self.progress.phase + 1, curve=curve)

    def branch(self, settings: GameSettings) -> "Training":
        """Return a run that goes on from here with other settings, apart from this one."""
        other = copy.deepcopy(self, {id(self.data): self.data})
        other.settings = other.players.settings = settings
        return other

    def held_out_figures(self) -> dict[str, float]:
        """Return reward and entropy on the held-out questions, where there are any: no label is needed for them."""
        if len(self.held_out) == 0:
            return {}
        self.players.eval()
        with self.arithmetic():
            batches = self.data.batches(self.held_out, self.settings.batch_size)
            told = [self.players.evaluate(batch) for batch in batches]
        self.players.train()
        reward, entropy = (torch.cat(values).mean() for values in zip(*told, strict=True))
        return {"reward": float(average(reward)), "entropy": float(average(entropy))}

    def _check(self, phase: Phase) -> None:
        """Stop before a checkpoint is replaced by one that is of no use."""
        for name, total in self.totals.items():
            weights = (p.detach() for p in getattr(self.players, name).parameters())
            if not bool(torch.stack([torch.isfinite(value).all() for value in (total, *weights)]).all()):
                raise _no_number(f"the {name}'s loss", phase, self.progress.epoch)


def _made(batch: Batch) -> Tensor:
    """Return the chains that pseudo questions were made from, [B, 1, L]."""
    place = batch.made.argmax(-1)[:, None, None]
    return batch.chains.gather(1, place.expand(-1, 1, batch.chains.shape[-1]))


def _optimiser(player: torch.nn.Module, rate: float) -> torch.optim.Adam:
    return torch.optim.Adam([p for p in player.parameters() if p.requires_grad], lr=rate)


def _no_number(what: str, phase: Phase, epoch: int) -> RechainError:
    return RechainError(
        f"{what} is no longer a number in epoch {epoch + 1} of the {phase}; "
        "lower learning_rate or clip, or set precision to float32. The last checkpoint is intact."
    )


def _means(totals: Mapping[str, Tensor], steps: int) -> dict[str, float]:
    return {name: float(total) / steps for name, total in totals.items()}
