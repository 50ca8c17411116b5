"""The two players of the game and the losses by which each is taught (Section 3)."""

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from rechain.paper.data import Batch
from rechain.paper.policy import (
    Plan,
    Reading,
    Step,
    Table,
    chain_log_probabilities,
    expected_reward,
    make_plan,
    mean_entropy,
    reinforce,
    sample,
    selection_tables,
)
from rechain.paper.ranker import Ranker
from rechain.paper.reasoner import Prediction, Reasoner
from rechain.paper.rewards import cross_entropy, evidence_weights, linking_targets, selection_reward, with_bonus
from rechain.paper.settings import GameSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLES = 4
"""chains drawn for each question by REINFORCE"""
ENTROPY = 0.01
"""weight of the policy's entropy, which keeps it from settling too early"""
_SMALLEST = 1e-9
"""of probabilities, as 0 has no logarithm"""

Predictions = Mapping[Reading, Prediction]
"""what the Reasoner predicts from every passage, [B, K, X], for each of its readings"""


class Evaluation(NamedTuple):
    """Figures of the Ranker on held-out questions, [B] each; no label is needed."""

    reward: Tensor
    """expected reward without a bonus, mean over the steps: early stopping goes by it"""
    entropy: Tensor
    """of its selections: near 0 it has settled and learns no more"""


class Players(nn.Module):
    """Ranker and Reasoner, and the losses by which they learn to cooperate."""

    def __init__(self, table: Tensor, hops: int, settings: GameSettings) -> None:
        """Take the table of word vectors, [V, width], and the length of the chains."""
        super().__init__()
        self.settings = settings
        self.plan: Plan = make_plan(hops, settings.row)
        self.ranker = Ranker(table, settings)
        self.reasoner = Reasoner(table, settings)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.ranker.score.weight.device

    # What a selection earns

    def weights(self, batch: Batch) -> Tensor:
        """Return how much each chain of C counts, [B, C]: all alike with hard C, as in the paper."""
        return evidence_weights(batch.evidence, batch.is_chain, self.settings.sharpness)

    @property
    def rewards_any_head(self) -> bool:
        """Whether the second of two passages is rewarded whatever the first was: equation 2 to the letter.

        With weighted C the reward is that of a chain which has both.
        """
        return self.plan.hops == 2 and self.settings.is_hard

    def rewards(self, batch: Batch, step: Step, history: Tensor, predictions: Predictions | None = None) -> Tensor:
        """Return the reward of every selection after histories [B, S, n]: [B, S, O] (equations 2, 3 and 5)."""
        roles = (step.role,) if self.rewards_any_head else (step.role, *step.given)
        earned = selection_reward(batch.chains, self.weights(batch), roles, _after(batch, history)[..., : len(roles)])
        if predictions is None:
            return earned
        return with_bonus(earned, self.bonus_shares(batch, step, history, predictions), self.settings.bonus)

    def bonus_shares(self, batch: Batch, step: Step, history: Tensor, predictions: Predictions) -> Tensor:
        """Return how many of the Reasoner's top-1 entities each selection contains, [B, S, O]."""
        shares = torch.zeros(*history.shape[:2], batch.options, device=history.device)
        question = torch.arange(len(history), device=history.device)[:, None]
        for reading in self.plan.readings:
            if reading.next == step.role and reading.role in step.given:
                passages = batch.passages_of(history[..., step.given.index(reading.role)])
                predicted = predictions[reading].at(passages)
                contains = batch.options_with(reading.next, reading.link)[question, predicted.best]  # [B, S, O]
                shares = shares + (contains & predicted.has_entity[..., None])
        return shares

    def predict(self, batch: Batch) -> Predictions:
        """Ask the Reasoner about all passages of all questions, without teaching it."""
        passages = torch.arange(batch.passages.shape[1], device=batch.chains.device).expand(len(batch.chains), -1)
        predictions = {}
        with torch.no_grad(), _without_dropout(self.reasoner):
            scores = self.reasoner.token_scores(batch, passages)
            for reading in self.plan.readings:
                predictions[reading] = self.reasoner.predict(batch, passages, scores, reading.link, reading.role)
        return predictions

    # The Ranker's losses

    def pretraining_loss(self, batch: Batch) -> Tensor:
        """Return the loss of distant supervision before the game: what C has should be likely."""
        if self.settings.row == "independent":
            return self._independent_loss(batch)
        if self.settings.pretraining == "reward":
            return self.ranker_loss(batch)
        tables = selection_tables(self.ranker, self.ranker.encode(batch), self.plan)
        if self.settings.pretraining == "steps":
            return torch.stack(
                [self._step_loss(batch, *both) for both in zip(tables, self.plan.steps, strict=True)]
            ).sum()
        log_probability = chain_log_probabilities(tables, self.plan, batch.chains).sum(-1)  # [B, C]
        return -torch.logsumexp(log_probability + self.weights(batch).log(), dim=-1).mean()

    def _step_loss(self, batch: Batch, table: Table, step: Step) -> Tensor:
        """Return the cross-entropy of a selection with all that continue a chain of C after each beginning in C."""
        roles = (step.role, *step.given)
        targets = selection_reward(batch.chains, self.weights(batch), roles, _after(batch, table.history))
        return cross_entropy(table.log_probability, targets * table.is_real[..., None])

    def _independent_loss(self, batch: Batch) -> Tensor:
        """Return the cross-entropy of the only selection there is with all that any chain of C has."""
        encoded = self.ranker.encode(batch)
        log_probability, _ = self.ranker.step(encoded, self.ranker.start(encoded), self.plan.name(0))  # [B, 1, O]
        options = _after(batch, torch.zeros(len(batch.chains), 1, 0, dtype=torch.long, device=batch.chains.device))
        earned = [selection_reward(batch.chains, self.weights(batch), (r,), options) for r in range(self.plan.hops)]
        return cross_entropy(log_probability, torch.stack(earned).amax(0))

    def ranker_loss(self, batch: Batch, pays_bonus: bool = False) -> Tensor:
        """Return the negative expected reward, with or without the Reasoner's bonus, by the gradient that is set."""
        encoded, settings = self.ranker.encode(batch), self.settings
        predictions = self.predict(batch) if pays_bonus and settings.bonus else None
        if settings.gradient == "exact":
            tables = selection_tables(self.ranker, encoded, self.plan, every_first=self.rewards_any_head)
            total = expected_reward(tables, self.plan, self._table_rewards(batch, tables, predictions))
            return -(total + ENTROPY * torch.stack([mean_entropy(table) for table in tables]).sum(0)).mean()
        drawn = sample(self.ranker, encoded, self.plan, SAMPLES)
        rewards = [
            self.rewards(batch, step, drawn.selected[..., step.given], predictions)
            .gather(2, drawn.selected[..., step.role, None])
            .squeeze(2)
            for step in self.plan.steps
        ]
        return reinforce(drawn.log_probability, torch.stack(rewards, -1)) - ENTROPY * drawn.entropy.sum(-1).mean()

    def _table_rewards(
        self, batch: Batch, tables: Sequence[Table], predictions: Predictions | None = None
    ) -> list[Tensor]:
        steps = zip(tables, self.plan.steps, strict=True)
        return [self.rewards(batch, step, table.history, predictions) for table, step in steps]

    # The Reasoner's loss

    def chains_to_teach(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return a chain of each question that the Reasoner is taught on, [B, 1, L], and how sure the Ranker is, [B].

        The Ranker's best chain in C, and its probability among C. As the paper is written: the Ranker's own selection
        from all passages, all alike sure.
        """
        with torch.no_grad(), _without_dropout(self.ranker):
            encoded = self.ranker.encode(batch)
            if self.settings.is_as_written:
                selected = sample(self.ranker, encoded, self.plan, samples=1, greedy=True).selected
                return selected, torch.ones(len(selected), device=selected.device)
            tables = selection_tables(self.ranker, encoded, self.plan)
            log_probability = chain_log_probabilities(tables, self.plan, batch.chains).sum(-1)
            sureness, best = log_probability.masked_fill(~batch.is_chain, -torch.inf).softmax(-1).max(-1)
            return batch.chains.gather(1, best[:, None, None].expand(-1, 1, self.plan.hops)), sureness

    def reasoner_loss(self, batch: Batch, selected: Tensor) -> tuple[Tensor, Tensor]:
        """Return the Reasoner's cross-entropy on chains [B, S, L] (equation 4), and the number of its readings.

        -log of the probability of all entities together that the next selection contains too; readings without such an
        entity are skipped.
        """
        losses, counts = [], []
        for reading in self.plan.readings:
            passages, targets = batch.passages_of(selected[..., reading.role]), self.targets(batch, selected, reading)
            predicted: Prediction = self.reasoner(batch, passages, reading.link, reading.role)
            likelihood = (targets * predicted.log_probability.exp()).sum(-1)
            has_target = targets.any(-1)
            losses.append(-(likelihood.clamp(min=_SMALLEST).log() * has_target).sum())
            counts.append(has_target.sum())
        readings = torch.stack(counts).sum()
        return torch.stack(losses).sum() / readings.clamp(min=1), readings

    def targets(self, batch: Batch, selected: Tensor, reading: Reading) -> Tensor:
        """Return y_e of equation 4, [B, S, X]; with weighted C less for entities that link a passage less strongly."""
        passages = batch.passages_of(selected[..., reading.role])
        question = torch.arange(len(passages), device=passages.device)[:, None]
        options_with = batch.options_with(reading.next, reading.link)
        shared = linking_targets(batch.contains, passages, options_with, selected[..., reading.next])
        entity, weight = batch.mention_entity[question, passages], batch.mention_weight[question, passages]  # [B, S, E]
        strength = weight.new_full((*passages.shape, batch.contains.shape[1] + 1), -torch.inf)
        column = torch.where(entity < 0, strength.shape[-1] - 1, entity)  # the last column is for padding
        strength = strength.scatter_reduce(2, column, weight, "amax")[..., :-1]
        shared = (
            shared & batch.may_link[:, None, :, reading.link] & strength.isfinite()
        )  # and mentioned in what is read
        return evidence_weights(strength.nan_to_num(neginf=0.0), shared, self.settings.sharpness)

    # Figures on held-out questions

    @torch.no_grad()
    def evaluate(self, batch: Batch) -> Evaluation:
        """Return how well the Ranker does by distant supervision alone."""
        tables = selection_tables(self.ranker, self.ranker.encode(batch), self.plan, self.rewards_any_head)
        total = expected_reward(tables, self.plan, self._table_rewards(batch, tables))
        return Evaluation(total / len(tables), torch.stack([mean_entropy(table) for table in tables]).mean(0))

    def bonus_auc(self, batch: Batch) -> Tensor:
        """Return what the bonus is worth without gold, for every question that has rivals.

        How often the chain of most evidence contains more of the Reasoner's entities than a rival, ties half. Rivals
        are other chains of C with the same passages where the Reasoner reads.
        """
        question = torch.arange(len(batch.chains), device=batch.chains.device)
        best = batch.evidence.masked_fill(~batch.is_chain, -torch.inf).argmax(-1)
        chains = batch.chains.clamp(min=0)
        passages, predictions = batch.passages_of(chains), self.predict(batch)
        bonus, is_rival = torch.zeros_like(batch.lexical), batch.is_chain
        for reading in self.plan.readings:
            step = Step(reading.next, (reading.role,))
            shares = self.bonus_shares(batch, step, chains[question, best][:, None, [reading.role]], predictions)
            bonus = bonus + shares[:, 0].gather(1, chains[..., reading.next])
            read = passages[..., reading.role]
            is_rival = is_rival & (read == read[question, best][:, None])
        is_rival = is_rival & (batch.chains != batch.chains[question, best][:, None]).any(-1)
        own = bonus[question, best][:, None]
        wins = ((own > bonus).float() + 0.5 * (own == bonus)) * is_rival
        return (wins.sum(-1) / is_rival.sum(-1).clamp(min=1))[is_rival.any(-1)]


def _after(batch: Batch, history: Tensor) -> Tensor:
    """Return every option after each history [B, S, n]: [B, S, O, 1 + n], the option first."""
    shape = (*history.shape[:2], batch.options)
    options = torch.arange(shape[-1], device=history.device).expand(shape)[..., None]
    return torch.cat([options, history[:, :, None].expand(*shape, -1)], dim=-1)


@contextmanager
def _without_dropout(player: nn.Module) -> "Iterator[None]":
    """Let a player that is being taught answer as it would afterwards."""
    was_training = player.training
    player.eval()
    try:
        yield
    finally:
        player.train(was_training)
