"""The game, played: distant supervision first, then the Reasoner alone, then Reasoner and Ranker in turn."""

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from rechain.errors import RechainError
from rechain.paper.data import Batch, Prepared
from rechain.paper.decode import decode
from rechain.paper.game import Players
from rechain.paper.settings import GameSettings
from rechain.system.tensors import Array, not_finite, save_tensors
from rechain.system.training import Share, TrainingState, average, average_gradients, own_share, total

PHASES = ("pretraining", "reasoner", "game")
PATIENCE = 4
"""epochs without a better reward on held-out questions after which a phase stops"""
HELD_OUT = 0.1
"""share of the questions on which that reward is measured; it needs no label"""
GAME_RATE = 0.5
"""the Ranker's learning rate in the game, as a share of that before it: the game refines"""
BONUS_FROM = 1
"""epochs of the game before a bonus is paid, so that the Reasoner has followed the Ranker for some time"""
CLIP = 5.0
"""the greatest norm of a gradient"""
CHECKPOINT_STEPS = 200
_FEW = 8
"""questions that show whether the players' scores are still finite"""


class Training:
    """A run of the game: the players, their optimisers, and the state of the run."""

    def __init__(
        self,
        table: Tensor,
        data: Prepared,
        settings: GameSettings,
        questions: Sequence[int] | Array | None = None,
        players: type[Players] = Players,
    ) -> None:
        """Set up a run with a table of word vectors on some of the questions of a data set, or on all."""
        torch.manual_seed(settings.seed)
        self.settings, self.data = settings, data
        self.use(np.arange(len(data)) if questions is None else np.asarray(questions))
        self.players = players(table.to(data.device), data.hops, settings).to(data.device)
        self.optimisers = {
            name: torch.optim.Adam(player.parameters(), lr=settings.learning_rate)
            for name, player in (("ranker", self.players.ranker), ("reasoner", self.players.reasoner))
        }
        advice = "lower learning_rate, or set precision to float32"
        self.state = TrainingState(
            self.players, self.optimisers, settings, PHASES, "reward", CHECKPOINT_STEPS, advice=advice
        )

    def use(self, questions: Array) -> None:
        """Set the questions to learn from, some of which are held out."""
        if len(questions) == 0:
            raise RechainError("there is no question with a candidate chain to train on.")
        shuffled = np.random.default_rng([self.settings.seed, 0]).permutation(questions)
        held_out = int(len(questions) * HELD_OUT)
        self.held_out, self.questions = np.sort(shuffled[:held_out]), shuffled[held_out:]

    def branch(self, settings: GameSettings, data: Prepared) -> "Training":
        """Return a copy of this run that continues with another row; `data` are the same questions as it reads them."""
        other = copy.deepcopy(self, {id(self.data): self.data})
        other.settings, other.players.settings, other.data = settings, settings, data
        other.state = replace(other.state, settings=settings)
        other.players.reasoner.scores_first_words = settings.is_as_written
        torch.manual_seed(settings.seed)  # so that branches do not depend on those played before
        return other

    def run(self, until: str | None = None) -> None:
        """Train to the end, or to the beginning of a phase, from where the run is."""
        state = self.state
        while (phase := state.phase) not in (until, None):
            self._set_rate(phase)
            keeps_last = self.keeps_last(phase)
            while state.progress.epoch < self.epochs(phase) and (keeps_last or state.progress.worse < PATIENCE):
                self.players.train()
                batches = self.batches(phase, state.progress.epoch)
                for questions in batches[state.progress.step :]:
                    state.end_step(self.step(phase, questions), len(batches))
                state.end_epoch(self.held_out_figures(phase), self.some_scores(), keeps_last)
            state.restore_best()
            state.end_phase()

    def step(self, phase: str, questions: Array) -> dict[str, Tensor]:
        """Teach the players on one batch and return their losses. The game alternates (Section 3.2)."""
        share, losses, players = own_share(np.arange(len(questions))), {}, self.players
        batch = self.data.batch(questions[share.questions])
        if phase == "pretraining":
            return {"ranker": self._learn("ranker", lambda: (players.pretraining_loss(batch), share.weight))}
        if self.settings.teaches_reasoner:  # Reasoner step: learn to predict the link of chains that the Ranker selects
            losses["reasoner"] = self._teach_reasoner(batch, questions, share)
        if phase == "game":  # Ranker step: learn to select what earns a reward, and a bonus by the Reasoner's entity
            pays = self._pays_bonus()
            losses["ranker"] = self._learn("ranker", lambda: (players.ranker_loss(batch, pays), share.weight))
        return losses

    def _pays_bonus(self) -> bool:
        """Return whether the Reasoner pays a bonus in this epoch of the game."""
        settings = self.settings
        return settings.is_cooperative and (settings.is_as_written or self.state.progress.epoch >= BONUS_FROM)

    def _teach_reasoner(self, batch: Batch, questions: Array, share: Share) -> Tensor:
        """Teach the Reasoner on the questions that the Ranker is surest of, chosen among all processes' shares."""
        with self.arithmetic():
            selected, sureness = self.players.chains_to_teach(batch)
        places = torch.from_numpy(share.questions).to(sureness.device)
        of_batch = torch.zeros(len(questions), device=sureness.device)
        of_batch[places] = sureness.float() * (share.weight > 0)
        surest = surer_share(total(of_batch), 1.0 if self.settings.is_as_written else self.settings.sure_share)
        rows = torch.isin(places, surest).nonzero()[:, 0]
        counts = share.weight > 0 and len(rows) > 0
        rows = rows if counts else torch.zeros(1, dtype=torch.long, device=rows.device)  # read for company
        part, chains = self.data.batch(questions[share.questions[rows.cpu().numpy()]]), selected[rows]

        def compute() -> tuple[Tensor, Tensor]:
            loss, readings = self.players.reasoner_loss(part, chains)
            return loss, readings * counts

        return self._learn("reasoner", compute)

    def _learn(
        self, player: Literal["ranker", "reasoner"], compute: Callable[[], tuple[Tensor, int | Tensor]]
    ) -> Tensor:
        """Take one step of a player's optimiser down the gradient of a loss; `compute` also returns its weight.

        Several processes average their gradients by these weights, so that together they come to what one would.
        """
        optimiser, parameters = self.optimisers[player], list(getattr(self.players, player).parameters())
        optimiser.zero_grad(set_to_none=True)
        with self.arithmetic():
            loss, weight = compute()
        loss.backward()
        average_gradients(parameters, weight)
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        optimiser.step()
        return average(loss.detach(), weight)

    def epochs(self, phase: str) -> int:
        """Return how many epochs a phase has at most; independent selections have no game to play."""
        settings = self.settings
        of_phase = {
            "pretraining": settings.pretrain_epochs,
            "reasoner": settings.reasoner_epochs if settings.row == "cooperative" else 0,
            "game": 0 if settings.row == "independent" else settings.game_epochs,
        }
        return of_phase[phase]

    def keeps_last(self, phase: str) -> bool:
        """Return whether a phase goes through all of its epochs and keeps the last weights.

        The Reasoner's epochs do not change the Ranker's reward. With hard C the game changes what that reward does not
        show, since it knows no bonus, so that every row of a table plays for as long; with weighted C the best is kept.
        """
        return phase == "reasoner" or (phase == "game" and self.settings.is_hard)

    def _set_rate(self, phase: str) -> None:
        for group in self.optimisers["ranker"].param_groups:
            group["lr"] = self.settings.learning_rate * (GAME_RATE if phase == "game" else 1)

    def batches(self, phase: str, epoch: int) -> list[Array]:
        """Cut shuffled questions into batches; a resumed epoch has the same."""
        generator = np.random.default_rng([self.settings.seed, 2 + PHASES.index(phase), epoch])
        shuffled, size = generator.permutation(self.questions), self.settings.batch_size
        return [shuffled[start : start + size] for start in range(0, len(shuffled), size)]

    def arithmetic(self) -> AbstractContextManager[Any]:
        """Return the context in which the networks compute."""
        is_mixed = self.settings.precision == "bfloat16" and self.data.device.type == "cuda"
        return torch.autocast(self.data.device.type, dtype=torch.bfloat16, enabled=is_mixed)

    def held_out_figures(self, phase: str) -> dict[str, float]:
        """Return figures on the held-out questions, if there are any; none of them needs a label.

        Reward and entropy of the Ranker and, while there is a Reasoner to watch, the AUC of its bonus.
        """
        if len(self.held_out) == 0:
            return {}
        self.players.eval()
        watches = self.settings.is_cooperative and phase != "pretraining"
        batches = list(self.data.batches(self.held_out, self.settings.batch_size))
        with self.arithmetic():
            figures = [self.players.evaluate(batch) for batch in batches]
            aucs = torch.cat([self.players.bonus_auc(batch) for batch in batches if watches] or [torch.empty(0)])
        reward, entropy = (torch.cat(values).mean() for values in zip(*figures, strict=True))
        watched = {"bonus_auc": float(average(aucs.mean()))} if len(aucs) else {}
        return {"reward": float(average(reward)), "entropy": float(average(entropy)), **watched}

    def some_scores(self) -> Tensor:
        """Return the players' scores of the chains of a few questions: each is finite if the players can be used."""
        batch = self.data.batch(self.questions[:_FEW])
        with self.arithmetic():
            scores = decode(self.players, batch)
        return torch.stack([scores.ranker, scores.reasoner])[:, batch.is_chain]


def surer_share(sureness: Tensor, share: float) -> Tensor:
    """Return the places of the surest `share` of some questions, at least one: [n] -> [m]."""
    return sureness.argsort(descending=True, stable=True)[: max(round(share * len(sureness)), 1)]


def save_players(players: Players, path: Path) -> None:
    """Write the players' weights, without the word vectors."""
    if bad := not_finite(players.state_dict()):
        raise RechainError(f"the model is not saved: its weights in {bad} are not all finite numbers.")
    save_tensors(players.state_dict(), {"settings": asdict(players.settings), "hops": players.plan.hops}, path)
