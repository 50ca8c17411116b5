"""The Ranker as a policy: the order of selections, their probabilities, and the gradients of the expected reward."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rechain.paper.data import Batch
from rechain.paper.ranker import Encoded, Ranker


@dataclass(frozen=True)
class Step:
    """One selection: the role (place in the chain, 0 is the head) that it fills, given those filled before."""

    role: int
    given: tuple[int, ...] = ()


@dataclass(frozen=True)
class Reading:
    """The Reasoner reads the passage of `role` and predicts link number `link`, which leads to that of `next`."""

    role: int
    link: int
    next: int


@dataclass(frozen=True)
class Plan:
    """The selections of the Ranker and the readings of the Reasoner for chains of one length."""

    hops: int
    steps: tuple[Step, ...]
    readings: tuple[Reading, ...] = ()
    is_independent: bool = False

    def name(self, role: int) -> str:
        """Return which of the Ranker's scores a role uses."""
        if self.is_independent:
            return "tail"
        return "head" if role == 0 else "tail" if role == self.hops - 1 else "middle"

    def place(self, role: int) -> int | None:
        """Return the place in a chain that a selection must fit; None: any."""
        return None if self.is_independent else role

    def step_of(self, role: int) -> int:
        """Return the number of the step that fills a role."""
        return next(number for number, step in enumerate(self.steps) if step.role == role)


def make_plan(hops: int, row: str = "tail to head") -> Plan:
    """Return the order of a row of the paper's tables.

    Two passages: one end, then the other given it. Three: head and tail independently, then the middle given both
    (Section 3.1). More: the middles from left to right, each given all before. Independent: all by the same scores.
    """
    if row == "independent":
        return Plan(hops, tuple(map(Step, range(hops))), is_independent=True)
    if hops == 2:
        first, second = (0, 1) if row == "head to tail" else (1, 0)
        return Plan(2, (Step(first), Step(second, (first,))), (Reading(first, 0, second),))
    tail = hops - 1
    middles = [Step(role, (0, tail, *range(1, role))) for role in range(1, tail)]
    return Plan(hops, (Step(0), Step(tail), *middles), (Reading(0, 0, 1), Reading(tail, tail - 1, tail - 1)))


@dataclass(frozen=True)
class Table:
    """The probabilities of one selection after each of its histories, S a question."""

    history: Tensor  # [B, S, n] the options selected before, in the order of the step's `given`
    of_chain: Tensor  # [B, C] the history of each chain of C
    example: Tensor  # [B, S] a chain of C that has each history; 0 if there is none
    is_real: Tensor  # [B, S] false for padding
    log_probability: Tensor  # [B, S, O] log P^t(p_i | Q^{t-1})
    states: Tensor  # [B, S, O, d] the matching states m_i


def selection_tables(ranker: Ranker, encoded: Encoded, plan: Plan, every_first: bool = False) -> list[Table]:
    """Return the probabilities of every selection, after the histories that occur in C.

    With `every_first`, a selection that is given one option has every option of the question as a history.
    """
    tables: list[Table] = []
    for step in plan.steps:
        history, of_chain, example, is_real = _histories(encoded.batch, step, every_first)
        selected = ranker.start(encoded)
        for number, role in enumerate(step.given):  # the query is updated by each selection before (equation 1)
            before, options = tables[plan.step_of(role)], history[..., number]
            state = _look_up(before.states, _row_in(before, example), options)
            selected = ranker.select(selected, options, state)
        scored = ranker.step(encoded, selected, plan.name(step.role), plan.place(step.role))
        tables.append(Table(history, of_chain, example, is_real, *scored))
    return tables


def _histories(batch: Batch, step: Step, every_first: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the first four fields of a Table."""
    size, device = len(batch.chains), batch.chains.device
    if not step.given:
        nothing = torch.zeros(size, 1, dtype=torch.long, device=device)
        return nothing[..., None][..., :0], torch.zeros_like(batch.chains[..., 0]), nothing, nothing == 0
    if every_first and len(step.given) == 1:
        options = torch.arange(batch.options, device=device).expand(size, -1)
        of_chain = batch.chains[..., step.given[0]].clamp(min=0)
        return options[..., None], of_chain, torch.zeros_like(options), batch.is_option
    return _distinct(batch, step.given)


def _distinct(batch: Batch, roles: Sequence[int]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Number the different beginnings of the chains of C, question by question."""
    chains = torch.where(batch.is_chain[..., None], batch.chains, batch.chains[:, :1])
    given = chains[..., list(roles)].cpu().numpy()  # [B, C, n]
    size, count, width = given.shape
    rows = np.concatenate([np.repeat(np.arange(size), count)[:, None], given.reshape(size * count, width)], axis=1)
    distinct, first, number = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    question = distinct[:, 0]
    within = np.arange(len(distinct)) - np.searchsorted(question, np.arange(size))[question]
    history = np.zeros((size, within.max() + 1, width), dtype=np.int64)
    example = np.zeros(history.shape[:2], dtype=np.int64)
    is_real = np.zeros(history.shape[:2], dtype=bool)
    history[question, within] = distinct[:, 1:]
    example[question, within] = first % count
    is_real[question, within] = True
    of_chain = within[number.reshape(size, count)]
    one, two, three, four = (torch.from_numpy(a).to(batch.chains.device) for a in (history, of_chain, example, is_real))
    return one, two, three, four


def _row_in(table: Table, example: Tensor) -> Tensor:
    """Return the row of an earlier table through which each history goes, [B, S]."""
    if table.log_probability.shape[1] == 1:
        return torch.zeros_like(example)
    return table.of_chain.gather(1, example)


def _look_up(values: Tensor, rows: Tensor, options: Tensor) -> Tensor:
    """Return values[b, rows[b, s], options[b, s]]."""
    question = torch.arange(len(rows), device=rows.device)[:, None]
    return values[question, rows, options]


def chain_log_probabilities(tables: Sequence[Table], plan: Plan, chains: Tensor) -> Tensor:
    """Return the log-probability of every selection of every chain of C, [B, C, steps]; padding gets any number."""
    options = [chains[..., step.role].clamp(min=0) for step in plan.steps]
    logs = [_look_up(table.log_probability, table.of_chain, o) for table, o in zip(tables, options, strict=True)]
    return torch.stack(logs, dim=-1)


def expected_reward(tables: Sequence[Table], plan: Plan, rewards: Sequence[Tensor]) -> Tensor:
    """Return the exact expected reward of each question, [B]: its gradient needs no sampling.

    `rewards` has for every step the reward of every selection after every history, [B, S, O]. Histories outside C are
    left out only if no selection after them has a reward: the sum is over all selections.
    """
    total = torch.zeros(len(rewards[0]), device=rewards[0].device)
    for table, step, reward in zip(tables, plan.steps, rewards, strict=True):
        log_history = torch.zeros_like(table.example, dtype=torch.float)  # [B, S]
        for number, role in enumerate(step.given):
            before, options = tables[plan.step_of(role)], table.history[..., number]
            rows = _row_in(before, table.example)
            log_history = log_history + _look_up(before.log_probability, rows, options)
        probability = (log_history.exp() * table.is_real)[..., None] * table.log_probability.exp()
        total = total + (probability * reward).sum((1, 2))
    return total


def entropy(log_probability: Tensor) -> Tensor:
    """Return the entropy of selections, [..., O] -> [...]."""
    return -(log_probability.exp() * log_probability).sum(-1)


def mean_entropy(table: Table) -> Tensor:
    """Return the entropy of a selection, averaged over histories, [B]."""
    return (entropy(table.log_probability) * table.is_real).sum(-1) / table.is_real.sum(-1)


@dataclass(frozen=True)
class Sample:
    """Chains drawn from the policy, S a question."""

    selected: Tensor  # [B, S, L] options by role
    log_probability: Tensor  # [B, S, steps] of every selection, given those before
    entropy: Tensor  # [B, S, steps] of the distribution that it was drawn from


def sample(ranker: Ranker, encoded: Encoded, plan: Plan, samples: int, greedy: bool = False) -> Sample:
    """Draw chains from all options of each question: p_tau = Sampling(P^t) (equation 1). Greedy: take the best."""
    size, device = len(encoded.question), encoded.question.device
    selected = torch.zeros(size, samples, plan.hops, dtype=torch.long, device=device)
    states: dict[int, Tensor] = {}
    logs, entropies = [], []
    for step in plan.steps:
        query = ranker.start(encoded)
        for role in step.given:
            query = ranker.select(query, selected[..., role], states[role])
        log_probability, matched = ranker.step(encoded, query, plan.name(step.role), plan.place(step.role))
        log_probability, matched = log_probability.expand(-1, samples, -1), matched.expand(-1, samples, -1, -1)
        if greedy:
            options = log_probability.argmax(-1)
        else:  # NaN counts as weight 1 here: the loss then shows it
            chances = log_probability.detach().flatten(0, 1).exp().nan_to_num(1.0)
            options = torch.multinomial(chances, 1).view(size, samples)
        rows = torch.arange(samples, device=device).expand(size, -1)
        selected[..., step.role], states[step.role] = options, _look_up(matched, rows, options)
        logs.append(_look_up(log_probability, rows, options))
        entropies.append(entropy(log_probability))
    return Sample(selected, torch.stack(logs, -1), torch.stack(entropies, -1))


def reinforce(log_probability: Tensor, rewards: Tensor) -> Tensor:
    """Return the loss whose gradient is REINFORCE's (Williams 1992), averaged over questions and samples.

    Both are [B, S, steps], with at least two samples: every selection is credited with its own reward and those that
    follow, less the mean of the question's other samples (leave-one-out, which leaves the gradient unbiased).
    """
    to_go = rewards.flip(-1).cumsum(-1).flip(-1)
    baseline = (to_go.sum(1, keepdim=True) - to_go) / (to_go.shape[1] - 1)
    return -(log_probability * (to_go - baseline).detach()).sum(-1).mean()
