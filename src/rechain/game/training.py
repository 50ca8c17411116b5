"""The game, played: warm-up, distant supervision, the Reasoner alone, then Reasoner and Ranker in turn.

`rechain.system.loop` loops.
"""

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rechain.errors import InputError, RechainError
from rechain.game.data import Prepared
from rechain.game.decoding import decode
from rechain.game.players import EVERY, NOBODY, Players
from rechain.game.settings import GameSettings
from rechain.models.batch import Batch
from rechain.system.distributed import average, average_gradients, is_shared, own_share
from rechain.system.loop import TrainingLoop
from rechain.system.tensors import Array, not_finite, save_tensors

PHASES = ("warm-up", "pretraining", "reasoner", "game")
_FEW = 8
"""questions that show whether the players still score with numbers"""


class Part(NamedTuple):
    """Some questions of a data set."""

    data: Prepared
    questions: Array


class Training(TrainingLoop):
    """A run of the game: the players, their optimisers, and how far they have come."""

    phases = PHASES
    criterion = "reward"
    advice = "lower learning_rate or clip, or set precision to float32"

    def __init__(
        self,
        vectors: Tensor,
        data: Prepared,
        settings: GameSettings,
        questions: Array | None = None,
        pseudo: Sequence[Part] = (),
    ) -> None:
        """Set up a run on some of the questions of a data set, or on all; `pseudo` are those of the warm-up."""
        super().__init__()
        torch.manual_seed(settings.seed)
        self.settings: GameSettings = settings
        self.data = data
        self.device = data.device
        self.pseudo = pseudo
        self.use(np.arange(len(data)) if questions is None else questions)
        self.network = self.players = Players(vectors.to(data.device), data.hops, settings).to(data.device)
        self.optimisers = {
            name: torch.optim.Adam([p for p in player.parameters() if p.requires_grad], lr=settings.learning_rate)
            for name, player in (("ranker", self.players.ranker), ("reasoner", self.players.reasoner))
        }

    def use(self, questions: Array) -> None:
        """Set the questions that are learned from, some of which are held out."""
        if len(questions) == 0:
            raise RechainError("there is no question with a candidate chain to train on.")
        shuffled = np.random.default_rng([self.settings.seed, 0]).permutation(questions)
        held = int(len(questions) * self.settings.held_out)
        self.held_out, self.questions = np.sort(shuffled[:held]), shuffled[held:]

    def branch(self, settings: GameSettings, data: Prepared | None = None) -> "Training":
        """Return a run that goes on from here with other settings, apart from this one.

        `data` are the same questions, as the new settings read them. Random numbers begin anew, so that what was
        branched off before makes no difference.
        """
        other = copy.deepcopy(self, {id(shared): shared for shared in (self.data, self.pseudo)})
        other.data = data or self.data
        other.settings = other.players.settings = settings
        other.players.reasoner.scores_spans = settings.mention == "span"
        torch.manual_seed(settings.seed)
        return other

    @property
    def fixed_phases(self) -> Sequence[str]:
        """The Reasoner's epochs do not change the reward; the game may be set to keep its last weights."""
        return ("reasoner", "game") if self.settings.game_keeps == "last" else ("reasoner",)

    def epochs(self, phase: str) -> int:
        """Return how many epochs a phase has at most; independent selections have no game to play."""
        settings = self.settings
        of_phase = {
            "warm-up": settings.warm_up_epochs if self.pseudo else 0,
            "pretraining": settings.pretrain_epochs,
            "reasoner": settings.reasoner_epochs if settings.teaches_reasoner else 0,
            "game": 0 if settings.row == "independent" else settings.game_epochs,
        }
        return of_phase[phase]

    def batches(self, phase: str, epoch: int) -> list[Part]:
        """Cut shuffled questions into batches, each from one data set, and shuffle these."""
        is_warm_up = phase == "warm-up"
        size = self.settings.warm_up_batch_size if is_warm_up else self.settings.batch_size
        generator = np.random.default_rng([self.settings.seed, 1 + self.phases.index(phase), epoch])
        batches = []
        for data, questions in self.pseudo if is_warm_up else [Part(self.data, self.questions)]:
            shuffled = generator.permutation(questions)
            batches += [Part(data, shuffled[start : start + size]) for start in range(0, len(shuffled), size)]
        return [batches[number] for number in generator.permutation(len(batches))]

    def step(self, phase: str, batch: Part) -> dict[str, Tensor]:
        """Teach the players once, the Reasoner on chains that the Ranker selects or pseudo questions are made from."""
        share = own_share(batch.questions)
        questions, losses = batch.data.batch(share.questions), {}
        is_game = phase == "game"
        # of the whole batch's first half, however many processes share it
        half = own_share(batch.questions[: -(-len(batch.questions) // 2)]).weight
        taught = half if is_game and self.settings.teaching == "half" else share.weight
        if self.settings.teaches_reasoner and phase != "pretraining":
            losses["reasoner"] = self._teach_reasoner(questions.rows(slice(max(taught, 1))), taught, phase == "warm-up")
        if phase == "reasoner":
            return losses
        for group in self.optimisers["ranker"].param_groups:
            group["lr"] = self.settings.game_learning_rate if is_game else self.settings.learning_rate
        players = self.players
        loss = partial(players.ranker_loss, asked=self._asked(taught)) if is_game else players.supervised_loss
        losses["ranker"] = self._learn("ranker", lambda: loss(questions), share.weight)
        players.mean_reward = average(players.mean_reward, share.weight)
        return losses

    def _asked(self, taught: int) -> slice:
        """Return about which questions of a batch the Reasoner is asked, if it was just taught on the first of them."""
        if self.progress.epoch < self.settings.bonus_from:
            return NOBODY
        return slice(taught, None) if self.settings.teaching == "half" else EVERY

    def _teach_reasoner(self, batch: Batch, weight: int, is_warm_up: bool) -> Tensor:
        players = self.players
        chosen = _made(batch) if is_warm_up else players.select(batch)
        readings = self._count_targets(batch, chosen) * (weight > 0) if is_shared() else weight
        return self._learn("reasoner", lambda: players.reasoner_loss(batch, chosen), readings)

    def _count_targets(self, batch: Batch, chosen: Tensor) -> int | Tensor:
        """Count the readings that have an entity to name; the Reasoner's loss is the mean over them.

        Several processes weigh their gradients by it, so that together they come to what one would alone.
        """
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
        if loss.requires_grad:  # no reading of the batch may have an entity to name
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

    def held_out_figures(self) -> dict[str, float]:
        """Return reward and entropy on the held-out questions, where there are any: no label is needed for them."""
        if len(self.held_out) == 0:
            return {}
        self.players.eval()
        with self.arithmetic():
            batches = self.data.batches(self.held_out, self.settings.batch_size)
            figures = [self.players.evaluate(batch) for batch in batches]
        reward, entropy = (torch.cat(values).mean() for values in zip(*figures, strict=True))
        watched = self._watch_reasoner() if self.settings.row == "cooperative" else {}
        self.players.train()
        return {"reward": float(average(reward)), "entropy": float(average(entropy)), **watched}

    def _watch_reasoner(self) -> dict[str, float]:
        """Return what the Reasoner's bonus is worth on the held-out questions, where it is about to be paid."""
        if self.phases[self.progress.phase] not in ("reasoner", "game"):
            return {}
        with self.arithmetic():
            batches = self.data.batches(self.held_out, self.settings.batch_size)
            watched = [self.players.watch_reasoner(batch) for batch in batches]
        figures = (torch.cat(values) for values in zip(*watched, strict=True))
        named = zip(("bonus_auc", "named_in"), figures, strict=True)
        return {name: float(average(values.mean())) for name, values in named if len(values)}

    def outputs(self) -> Tensor:
        """Return how the players score the chains of a few questions."""
        with self.arithmetic():
            batch = self.data.batch(self.questions[:_FEW])
            decoded = decode(self.players, batch)
        return torch.stack([decoded.ranker, decoded.reasoner])[:, batch.is_chain]

    def save_weights(self, path: Path) -> None:
        """Write the players' weights alone, for use."""
        if bad := not_finite(self.players.state_dict()):
            raise RechainError(f"the model is not saved: its weights in {bad} are not all finite numbers.")
        metadata = {"settings": asdict(self.settings), "hops": self.data.hops}
        save_tensors(self.players.state_dict(), metadata, path)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all that decides how the run goes on."""
        tensors, metadata = super().state()
        return tensors, metadata | {"hops": self.data.hops}

    def load_state(self, tensors: Any, metadata: Any, where: str) -> None:
        """Go to where a state was returned, by a run on chains of the same length."""
        if metadata.get("hops") != self.data.hops:
            raise InputError(
                f"{where} is of chains of {metadata.get('hops')} passages, but the questions have {self.data.hops}."
            )
        super().load_state(tensors, metadata, where)


def _made(batch: Batch) -> Tensor:
    """Return the chains that pseudo questions were made from, [B, 1, L]."""
    place = batch.made.argmax(-1)[:, None, None]
    return batch.chains.gather(1, place.expand(-1, 1, batch.chains.shape[-1]))
