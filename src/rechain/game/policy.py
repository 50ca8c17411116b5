"""The Ranker as a policy: tables of selection probabilities, and the two gradients of the expected reward."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rechain.game.plan import Plan, Step
from rechain.models.batch import Batch
from rechain.models.ranker import Ranker, Read


@dataclass(frozen=True)
class Histories:
    """What may have been selected before a step: every row is one way."""

    places: Tensor
    """[B, S, n] the passages, in the order of the step's `given`"""
    of_chain: Tensor
    """[B, C] the row of each candidate chain"""
    example: Tensor
    """[B, S] a candidate chain that goes on from each row; 0 where there is none"""
    is_real: Tensor
    """[B, S] whether it is one; the rest is padding, for another question of the batch has more"""


@dataclass(frozen=True)
class Table:
    """The selection probabilities of one step."""

    histories: Histories
    log_probability: Tensor
    """[B, S, O] log P(p_i | what was selected before)"""
    states: Tensor
    """[B, S, O, d] the matching states m_i"""


def histories_of(batch: Batch, step: Step, every: bool = False) -> Histories:
    """Return what may precede a step: nothing, or the given passages of every chain of C.

    With `every`, before a step that is given one passage: any passage, whether it stands in C or not.
    """
    device, places = batch.chains.device, batch.options
    nothing = torch.zeros(len(batch.chains), 1, dtype=torch.long, device=device)
    if not step.given:
        of_chain = torch.zeros_like(batch.chains[..., 0])
        return Histories(nothing[..., None][..., :0], of_chain, nothing, torch.ones_like(nothing, dtype=torch.bool))
    if every and len(step.given) == 1:
        all_places = torch.arange(places, device=device).expand(len(batch.chains), places)
        of_chain = batch.chains[..., step.given[0]].clamp(min=0)
        return Histories(all_places[..., None], of_chain, torch.zeros_like(all_places), batch.is_option)
    return _distinct(batch, step.given)


def _distinct(batch: Batch, roles: Sequence[int]) -> Histories:
    """Number the different ways in which the chains of C begin, question by question."""
    chains_or_first = torch.where(batch.is_chain[..., None], batch.chains, batch.chains[:, :1])
    given = chains_or_first[..., list(roles)].cpu().numpy()  # [B, C, n]
    size, chains, _ = given.shape
    rows = np.concatenate([np.repeat(np.arange(size), chains)[:, None], given.reshape(size * chains, -1)], axis=1)
    distinct, example, number = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    starts = np.searchsorted(distinct[:, 0], np.arange(size))
    within = np.arange(len(distinct)) - starts[distinct[:, 0]]
    places = np.zeros((size, within.max() + 1, len(roles)), dtype=np.int64)
    examples = np.zeros(places.shape[:2], dtype=np.int64)
    is_real = np.zeros(places.shape[:2], dtype=bool)
    places[distinct[:, 0], within] = distinct[:, 1:]
    is_real[distinct[:, 0], within] = True
    examples[distinct[:, 0], within] = example % chains
    of_chain = within[number.reshape(size, chains)]
    device = batch.chains.device
    return Histories(*(torch.from_numpy(array).to(device) for array in (places, of_chain, examples, is_real)))


def tables(ranker: Ranker, read: Read, plan: Plan, every: bool = False) -> list[Table]:
    """Return the selection probabilities of every step after each of its histories."""
    step_tables: list[Table] = []
    for step in plan.steps:
        histories = histories_of(read.batch, step, every)
        selected = ranker.start(read)
        for number, role in enumerate(step.given):  # the query is updated by the passages selected before
            table, places = step_tables[plan.step_of(role)], histories.places[..., number]
            selected = ranker.select(selected, places, _look_up(table.states, _row(table, histories), places))
        step_tables.append(Table(histories, *ranker.step(read, selected, plan.name(step.role), plan.place(step.role))))
    return step_tables


def _row(table: Table, histories: Histories) -> Tensor:
    """Return which row of an earlier step's table each history goes through, [B, S]."""
    if table.log_probability.shape[1] == 1:
        return torch.zeros_like(histories.example)
    return table.histories.of_chain.gather(1, histories.example)


def _look_up(values: Tensor, rows: Tensor, places: Tensor) -> Tensor:
    """Return values[b, rows[b, s], places[b, s]]."""
    question = torch.arange(len(rows), device=rows.device)[:, None]
    return values[question, rows, places]


def step_log_probabilities(step_tables: Sequence[Table], plan: Plan, chains: Tensor) -> Tensor:
    """Return the log-probability of every step of every chain of C, [B, C, steps]; their sum is log P(chain).

    Padding gets that of some chain.
    """
    places = [chains[..., step.role].clamp(min=0) for step in plan.steps]
    tables_and_places = zip(step_tables, places, strict=True)
    logs = [_look_up(table.log_probability, table.histories.of_chain, place) for table, place in tables_and_places]
    return torch.stack(logs, dim=-1)


def expected_reward(step_tables: Sequence[Table], plan: Plan, rewards: Sequence[Tensor]) -> Tensor:
    """Return the exact expected reward of each question, [B].

    `rewards` holds for every step the reward of every selection after every history, [B, S, K]. Where the histories of
    a step are those of C alone, all others earn nothing there: the sum is over all selections.
    """
    total = torch.zeros(len(rewards[0]), device=rewards[0].device)
    for table, step, earned in zip(step_tables, plan.steps, rewards, strict=True):
        histories = table.histories
        log_before = torch.zeros_like(histories.example, dtype=torch.float)  # [B, S] of what precedes the step
        for number, role in enumerate(step.given):
            earlier, places = step_tables[plan.step_of(role)], histories.places[..., number]
            log_before = log_before + _look_up(earlier.log_probability, _row(earlier, histories), places)
        before = log_before.exp() * histories.is_real
        total = total + (before[..., None] * table.log_probability.exp() * earned).sum((1, 2))
    return total


def entropy(table: Table) -> Tensor:
    """Return the entropy of a step's selection, mean over histories, [B]."""
    is_real = table.histories.is_real
    uncertain = -(table.log_probability.exp() * table.log_probability).sum(-1)  # [B, S]
    return (uncertain * is_real).sum(-1) / is_real.sum(-1)


@dataclass(frozen=True)
class Sample:
    """Chains drawn from the policy, S a question."""

    chosen: Tensor
    """[B, S, L] places of passages by role"""
    log_probability: Tensor
    """[B, S, steps] of every selection, given those before"""
    entropy: Tensor
    """[B, S, steps] of the distribution that it was drawn from"""


def sample(ranker: Ranker, read: Read, plan: Plan, samples: int, greedy: bool = False) -> Sample:
    """Draw chains from all passages of each question (equation 1), or take the best passage at each step."""
    size = len(read.question)
    chosen = torch.zeros(size, samples, plan.hops, dtype=torch.long, device=read.question.device)
    states: dict[int, Tensor] = {}
    logs, entropies = [], []
    for step in plan.steps:
        selected = ranker.start(read)
        for role in step.given:
            selected = ranker.select(selected, chosen[..., role], states[role])
        log_probability, matched = ranker.step(read, selected, plan.name(step.role), plan.place(step.role))
        log_probability = log_probability.expand(-1, samples, -1)
        matched = matched.expand(-1, samples, -1, -1)
        if greedy:
            places = log_probability.argmax(-1)
        else:  # p_tau = Sampling(P^t); of what is no number any is drawn, and the loss shows it
            chances = log_probability.detach().flatten(0, 1).exp().nan_to_num(1.0)
            places = torch.multinomial(chances, 1).view(size, samples)
        rows = torch.arange(samples, device=places.device).expand(size, samples)
        chosen[..., step.role] = places
        states[step.role] = _look_up(matched, rows, places)
        logs.append(_look_up(log_probability, rows, places))
        entropies.append(-(log_probability.exp() * log_probability).sum(-1))
    return Sample(chosen, torch.stack(logs, -1), torch.stack(entropies, -1))


def reinforce(log_probability: Tensor, rewards: Tensor, baseline: Tensor | float | None = None) -> Tensor:
    """Return the loss whose gradient is REINFORCE's, averaged over questions and samples.

    `log_probability` and `rewards` are [B, S, steps]: every selection is credited with its own reward and those that
    follow. `baseline` is the mean reward of each step so far, [steps]; None takes the mean of the other samples of the
    same question (leave-one-out), which needs two samples or more.
    """
    to_go = rewards.flip(-1).cumsum(-1).flip(-1)
    if baseline is None:
        baseline = (to_go.sum(1, keepdim=True) - to_go) / (to_go.shape[1] - 1)
    return -(log_probability * (to_go - baseline).detach()).sum(-1).mean()
