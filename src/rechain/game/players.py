"""The two players of the game and what each is taught: the losses of Section 3."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from rechain.errors import InputError
from rechain.game.plan import Plan, Reading, Step, make_plan
from rechain.game.policy import (
    Sample,
    Table,
    entropy,
    expected_reward,
    reinforce,
    sample,
    step_log_probabilities,
    tables,
)
from rechain.game.rewards import chain_weights, linking_targets, reward, walk_chances, walk_shares, with_bonus
from rechain.game.settings import GameSettings
from rechain.models.batch import Batch
from rechain.models.encoders import WordVectors
from rechain.models.ranker import Ranker, Read
from rechain.models.reasoner import Named, Reasoner

_SMALLEST = 1e-9
"""a probability below it has the logarithm of this, not that of 0"""
EVERY = slice(None)
"""all questions of a batch"""
NOBODY = slice(0)
"""none of them"""


class Players(nn.Module):
    """Ranker and Reasoner, and the losses by which they learn to cooperate."""

    def __init__(self, vectors: Tensor, hops: int, settings: GameSettings) -> None:
        super().__init__()
        self.settings = settings
        self.plan: Plan = make_plan(hops, "independent" if settings.row == "independent" else settings.direction)
        shape = (settings.hidden, settings.dropout, settings.exact_match)
        steps = settings.step_features
        self.ranker = Ranker(WordVectors(vectors, settings.train_vectors), *shape, step_features=steps)
        vectors_of_reasoner = WordVectors(vectors, settings.train_vectors)
        is_span = settings.mention == "span"
        self.reasoner = Reasoner(vectors_of_reasoner, *shape, scores_spans=is_span, step_features=steps)
        self.mean_reward: Tensor
        self.register_buffer("mean_reward", torch.zeros(len(self.plan.steps)))

    def weights(self, batch: Batch) -> Tensor:
        """Return how much each chain of C counts, [B, C]; of a pseudo question, the chain it was made from."""
        settings = self.settings
        weights = chain_weights(self._evidence(batch), batch.is_chain, settings.sharpness)
        return torch.where(batch.made.any(-1, keepdim=True), batch.made, weights)

    def _evidence(self, batch: Batch) -> Tensor:
        """Return what tells for each chain of C, [B, C]; of several kinds of evidence each adds to those before."""
        kind = self.settings.evidence
        if kind in ("none", "links"):
            return batch.link_weight if kind == "links" else batch.is_chain.float()
        parts = {"lexical": batch.lexical, "rarity": batch.rarity, "beliefs": batch.told}
        total = torch.zeros_like(batch.lexical)
        for name, part in parts.items():
            if part is None:
                raise InputError(f"no chain can be weighed by {name}: the questions were not prepared for it.")
            total = total + part
            if name == kind:
                break
        return total

    def supervised_loss(self, batch: Batch) -> Tensor:
        """Return the loss of distant supervision: the chains of C should be likely, the heaviest most."""
        if self.settings.pretrain_by == "reward" and self.settings.row != "independent":
            return self._loss_by_reward(batch, NOBODY)
        read = self.ranker.read(batch)
        weights = self.weights(batch)
        if self.settings.row != "independent":
            return self._negative_log(tables(self.ranker, read, self.plan), batch, weights)
        # the cross-entropy of one step's scores with all passages that stand in a chain of C
        log_probability, _ = self.ranker.step(read, self.ranker.start(read), self.plan.name(0))  # [B, 1, O]
        every = torch.arange(batch.options, device=batch.chains.device).expand(len(batch.chains), -1)
        earned = [reward(batch.chains, weights, (role,), every[..., None]) for role in range(self.plan.hops)]
        target = torch.stack(earned).amax(0)  # [B, O]
        target = target / target.sum(-1, keepdim=True)
        return -(target * log_probability[:, 0]).sum(-1).mean()

    def _negative_log(self, step_tables: Sequence[Table], batch: Batch, weights: Tensor) -> Tensor:
        """Return -log of the sum over C of weight x probability."""
        log_probability = step_log_probabilities(step_tables, self.plan, batch.chains).sum(-1)  # [B, C]
        return -torch.logsumexp(log_probability + weights.log(), dim=-1).mean()

    def reasoner_loss(self, batch: Batch, chosen: Tensor) -> Tensor:
        """Return the Reasoner's cross-entropy on selected chains [B, S, L] (equation 4).

        The targets are all entities of the passage read that also stand in the next one, the strongest most; where
        there is none, the question is skipped. By `walk` the target is the next passage itself, to which they lead.
        """
        losses, counts = [], []
        for reading in self.plan.readings:
            places, following = chosen[..., reading.role], chosen[..., reading.next]
            named = self._read(batch, places, reading)
            targets, probability = self.targets(batch, chosen, reading), named.log_probability.exp()
            if self.settings.reasoner_loss == "walk":
                chances = self._chances(batch, places, reading, probability)
                likelihood = chances.gather(2, following[..., None]).squeeze(-1)  # [B, S]
            else:
                likelihood = (targets * probability).sum(-1)
            has_target = targets.any(-1)
            losses.append(-(likelihood.clamp(min=_SMALLEST).log() * has_target).sum())
            counts.append(int(has_target.sum()))
        return torch.as_tensor(sum(losses) / max(sum(counts), 1))

    def targets(self, batch: Batch, chosen: Tensor, reading: Reading) -> Tensor:
        """Return y_e, weighted by how strongly each entity links the passage that is read, [B, S, X]."""
        places = batch.passages_of(chosen[..., reading.role])
        question = torch.arange(len(places), device=places.device)[:, None]
        entity, weight = batch.mention_entity[question, places], batch.mention_weight[question, places]
        evidence = weight.new_zeros(*places.shape, batch.holders.shape[1] + 1)  # the last column is for padding
        column = torch.where(entity < 0, evidence.shape[-1] - 1, entity)
        is_mentioned = torch.zeros_like(evidence, dtype=torch.bool).scatter(2, column, True)[..., :-1]
        # of the names of one entity the strongest counts
        evidence = evidence.scatter_reduce(2, column, weight, "amax", include_self=False)[..., :-1]
        holding = batch.holding(reading.next, reading.link)
        shared = linking_targets(batch.holders, places, holding, chosen[..., reading.next])
        shared = shared & batch.may_link[:, None, :, reading.link] & is_mentioned
        sharpness = 0.0 if self.settings.evidence == "none" else self.settings.sharpness
        return chain_weights(evidence, shared, sharpness).nan_to_num(0.0)

    def ranker_loss(self, batch: Batch, asked: slice = EVERY) -> Tensor:
        """Return the Ranker's loss in the game: less is more reward (equation 5), by the gradient that is set.

        The Reasoner is asked about some of the questions, and only for these is a bonus paid.
        """
        return self._loss_by_reward(batch, asked if self.settings.row == "cooperative" else NOBODY)

    def _loss_by_reward(self, batch: Batch, asked: slice) -> Tensor:
        read = self.ranker.read(batch)
        if self.settings.gradient == "reinforce":
            return self._sampled_loss(read, asked)
        step_tables = tables(self.ranker, read, self.plan, every=self._rewards_sets)
        if self.settings.gradient == "likelihood":
            return self._negative_log(step_tables, batch, self._chain_rewards(batch, step_tables, asked))
        total = expected_reward(step_tables, self.plan, self.rewards(batch, step_tables, asked))
        uncertain = torch.stack([entropy(table) for table in step_tables]).sum(0)
        return -(total + self.settings.entropy * uncertain).mean()

    def rewards(self, batch: Batch, step_tables: Sequence[Table], asked: slice) -> list[Tensor]:
        """Return for every step the reward of every selection after every history, [B, S, O]."""
        rewards, weights = [], self.weights(batch)
        for table, step in zip(step_tables, self.plan.steps, strict=True):
            before = table.histories.places  # [B, S, n]
            shape = (*before.shape[:2], batch.options)
            every = torch.arange(shape[-1], device=before.device).expand(shape)[..., None]  # [B, S, O, 1]
            roles = self._rewarded_roles(step)
            chosen = torch.cat([every, before[:, :, None].expand(*shape, -1)], dim=-1)[..., : len(roles)]
            earned = reward(batch.chains, weights, roles, chosen)
            rewards.append(self._with_bonus(earned, self._shares(batch, step, before, asked)))
        return rewards

    def _with_bonus(self, rewards: Tensor, shares: Tensor | None) -> Tensor:
        """Return rewards with the Reasoner's bonus, of which selections earn these shares; None is no bonus."""
        settings = self.settings
        return rewards if shares is None else with_bonus(rewards, shares, settings.bonus, settings.bonus_is == "sum")

    def _rewarded_roles(self, step: Step) -> tuple[int, ...]:
        """Return the roles in which a chain of C must agree with the selection: this one, and those before it."""
        return (step.role,) if self._rewards_sets else (step.role, *step.given)

    @property
    def _rewards_sets(self) -> bool:
        """Whether the second of two passages is rewarded whatever the first was, as in equation 2."""
        return self.plan.hops == 2 and self.settings.head_reward == "set"

    def _shares(self, batch: Batch, step: Step, before: Tensor, asked: slice) -> Tensor | None:
        """Return which share of the bonus each selection of a step earns, [B, S, O]; None where none is paid.

        The Reasoner reads the passages that were selected before, of the questions that it is asked about.
        """
        readings = [r for r in self.plan.readings if r.next == step.role and r.role in step.given]
        if not readings or not self.settings.bonus or asked == NOBODY:
            return None
        some = batch if asked == EVERY else batch.rows(asked)
        if len(some.chains) == 0:  # a batch of one question has no other half
            return None
        shares = torch.zeros(*before.shape[:2], batch.options, device=before.device)
        names = self.names(some, readings) if some.steps is not None else [None] * len(readings)
        for reading, of_all in zip(readings, names, strict=True):
            places = before[asked][..., step.given.index(reading.role)]
            named = None if of_all is None else of_all.at(some.passages_of(places))
            shares[asked] += self.shares(some, places, reading, named)
        return shares

    def shares(self, batch: Batch, places: Tensor, reading: Reading, named: Named | None = None) -> Tensor:
        """Return which share of r the Reasoner pays for each selection after those at `places` [B, S], [B, S, O].

        It is asked for the linking entities unless they are passed.
        """
        named = named or self.name(batch, places, reading)
        if self.settings.bonus_by == "walk":
            chances = named.log_probability.exp() * named.has_entity[..., None]
            return walk_shares(self._chances(batch, places, reading, chances))
        question = torch.arange(len(places), device=places.device)[:, None]
        holding = batch.holding(reading.next, reading.link)
        return (holding[question, named.best] & named.has_entity[..., None]).float()

    def _chances(self, batch: Batch, places: Tensor, reading: Reading, probability: Tensor) -> Tensor:
        """Return how likely a walk comes to each selection from those at `places` [B, S], [B, S, O]."""
        holding = batch.holding(reading.next, reading.link)
        return walk_chances(holding, places if batch.steps is None else None, probability)

    def name(self, batch: Batch, places: Tensor, reading: Reading) -> Named:
        """Ask the Reasoner for the linking entities of what is selected at places, without teaching it."""
        with torch.no_grad(), _as_trained(self.reasoner):
            return self._read(batch, places, reading)

    def names(self, batch: Batch, readings: Sequence[Reading]) -> list[Named]:
        """Ask it for the linking entities of all passages, [B, K, X], of each reading; it reads each passage once."""
        every = torch.arange(batch.passages.shape[1], device=batch.chains.device).expand(len(batch.chains), -1)
        with torch.no_grad(), _as_trained(self.reasoner):
            scores = self.reasoner.read(batch, every)
            return [self.reasoner.name(batch, every, scores, reading.link, reading.role) for reading in readings]

    def _read(self, batch: Batch, places: Tensor, reading: Reading) -> Named:
        named: Named = self.reasoner(batch, batch.passages_of(places), reading.link, reading.role)
        return named

    def _chain_rewards(self, batch: Batch, step_tables: Sequence[Table], asked: slice) -> Tensor:
        """Return the weight of every chain of C with the Reasoner's bonus, [B, C]."""
        total = torch.zeros_like(batch.link_weight)
        question = torch.arange(len(total), device=total.device)[:, None]
        for table, step in zip(step_tables, self.plan.steps, strict=True):
            shares = self._shares(batch, step, table.histories.places, asked)
            if shares is not None:
                places = batch.chains[..., step.role].clamp(min=0)
                total = total + shares[question, table.histories.of_chain, places]
        return self._with_bonus(self.weights(batch), total)

    def _sampled_loss(self, read: Read, asked: slice) -> Tensor:
        drawn = sample(self.ranker, read, self.plan, self.settings.samples)
        earned = self.sampled_rewards(read.batch, drawn, asked)  # [B, S, steps]
        baseline = None
        if self.settings.baseline == "moving":
            baseline = self.mean_reward.clone()
            self.mean_reward.lerp_(earned.flip(-1).cumsum(-1).flip(-1).mean((0, 1)), 0.05)
        return reinforce(drawn.log_probability, earned, baseline) - self.settings.entropy * drawn.entropy.sum(-1).mean()

    def sampled_rewards(self, batch: Batch, drawn: Sample, asked: slice = EVERY) -> Tensor:
        """Return the reward of every selection of drawn chains, [B, S, steps]."""
        weights = self.weights(batch)
        question = torch.arange(len(weights), device=weights.device)[:, None]
        sides = torch.arange(drawn.chosen.shape[1], device=weights.device)[None]
        earned = []
        for step in self.plan.steps:
            roles = self._rewarded_roles(step)
            one = reward(batch.chains, weights, roles, drawn.chosen[..., roles])
            shares = self._shares(batch, step, drawn.chosen[..., step.given], asked)
            if shares is not None:
                one = self._with_bonus(one, shares[question, sides, drawn.chosen[..., step.role]])
            earned.append(one)
        return torch.stack(earned, dim=-1)

    def select(self, batch: Batch) -> Tensor:
        """Return the chain that the Ranker selects from all passages or steps, the best at each step, [B, 1, L]."""
        with torch.no_grad(), _as_trained(self.ranker):
            return sample(self.ranker, self.ranker.read(batch), self.plan, samples=1, greedy=True).chosen

    def evaluate(self, batch: Batch) -> "Evaluated":
        """Return how well the Ranker does by distant supervision alone: no label is needed, and no bonus counts."""
        with torch.no_grad():
            read = self.ranker.read(batch)
            step_tables = tables(self.ranker, read, self.plan, every=self._rewards_sets)
            total = expected_reward(step_tables, self.plan, self.rewards(batch, step_tables, NOBODY))
            return Evaluated(total / len(step_tables), torch.stack([entropy(table) for table in step_tables]).mean(0))

    def watch_reasoner(self, batch: Batch) -> "Watched":
        """Return what the Reasoner's bonus is worth by evidence, and how common what it names is: no label is needed.

        It reads what the chain of most evidence has; that chain should then earn more than others that have the same.
        """
        best = batch.lexical.masked_fill(~batch.is_chain, -torch.inf).argmax(-1)  # [B]
        question = torch.arange(len(best), device=best.device)
        chain = batch.chains[question, best]  # [B, L]
        bonus, common = torch.zeros_like(batch.lexical), []
        for reading in self.plan.readings:
            places = chain[:, reading.role, None]
            named = self.name(batch, places, reading)
            shares = self.shares(batch, places, reading, named)[:, 0]  # [B, O]
            bonus = bonus + shares.gather(1, batch.chains[..., reading.next].clamp(min=0))
            holds = batch.holders[question, named.best[:, 0]]  # [B, K]
            others = batch.is_passage.sum(-1) - 1
            share = (holds.sum(-1) - holds.gather(1, batch.passages_of(places))[:, 0].long()) / others.clamp(min=1)
            common.append(share[named.has_entity[:, 0]])
        read = [reading.role for reading in self.plan.readings]
        passages = batch.passages_of(batch.chains.clamp(min=0))
        is_read_alike = (passages == passages[question, best][:, None])[..., read].all(-1)
        rivals = is_read_alike & (batch.chains != chain[:, None]).any(-1)
        rivals = rivals & batch.is_chain
        own = bonus[question, best][:, None]
        wins = ((own > bonus).float() + 0.5 * (own == bonus)) * rivals
        has_rival = rivals.any(-1)
        return Watched((wins.sum(-1) / rivals.sum(-1).clamp(min=1))[has_rival], torch.cat(common))


class Watched(NamedTuple):
    """What is seen of the Reasoner on held-out questions."""

    auc: Tensor
    """how often the chain of most evidence earns more bonus than a rival that the Reasoner reads alike, ties half, of
    every question that has rivals"""
    common: Tensor
    """the share of other passages that hold the top-1 entity, of every reading that has one"""


class Evaluated(NamedTuple):
    """What is measured on held-out questions, [B] each."""

    reward: Tensor
    """expected reward, mean over the steps: what early stopping goes by"""
    entropy: Tensor
    """of the Ranker's selections: near 0 it has settled and learns no more"""


@contextmanager
def _as_trained(player: nn.Module) -> Iterator[None]:
    """Let a player that is being taught answer as it would after it: without dropout."""
    was_training = player.training
    player.eval()
    try:
        yield
    finally:
        player.train(was_training)
