"""Rewards by distant supervision (Section 3.1) and the Reasoner's bonus (Section 3.2): pure functions of tensors.

C is given as `chains` [B, C, L], the options (passages or steps) of each chain by their numbers, head first, and
`weights` [B, C]: 1 for every chain as in the paper, or less for chains with less evidence; 0 for padding.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def selection_reward(chains: Tensor, weights: Tensor, roles: Sequence[int], selected: Tensor) -> Tensor:
    """Return the weight of the heaviest chain in C that has the selected options in these roles, or 0 (equations 2, 3).

    `selected` [B, ..., n] has one option for each role; the result is [B, ...]. With all weights 1 this is

    - equation 2: r_t = 1 iff p_t is in P_T, for roles = (tail,); r_h = 1 iff p_h is in P_H, for roles = (head,)
    - equation 3: r_m = 1 iff the path (p_h, p_m, p_t) is in C, for roles = (head, middle, tail)
    """
    between = [1] * (selected.dim() - 2)
    of_chains = chains[..., list(roles)].view(len(chains), *between, chains.shape[1], len(roles))  # [B, 1.., C, n]
    agrees = (of_chains == selected.unsqueeze(-2)).all(-1)  # [B, ..., C]
    return (agrees * weights.view(len(weights), *between, -1)).amax(-1)


def with_bonus(rewards: Tensor, shares: Tensor, bonus: float) -> Tensor:
    """Return r_h with the Reasoner's bonus (equation 5): 1 + r if the selection is in C and contains the entity.

    `shares` is how many predicted entities the selection contains: 0 or 1 for two passages; 0, 1 or 2 for the middle
    one of three, between head and tail. A selection without reward gets no bonus.
    """
    return torch.where(rewards > 0, rewards + bonus * shares, rewards)


def linking_targets(contains: Tensor, passages: Tensor, options_with: Tensor, following: Tensor) -> Tensor:
    """Return y_e (equation 4), [B, S, X]: which entities of a passage also occur in the option selected after it.

    `contains` [B, X, K] says which passage mentions which entity, `options_with` [B, X, O] which option does;
    `passages` and `following` [B, S] are the numbers of the passage that is read and of the next option.
    """
    question = torch.arange(len(contains), device=contains.device)[:, None]
    return contains.transpose(1, 2)[question, passages] & options_with.transpose(1, 2)[question, following]


def evidence_weights(evidence: Tensor, is_real: Tensor, sharpness: float) -> Tensor:
    """Return weights [..., C]: 1 for the greatest evidence, exp(sharpness x difference) for less, 0 if not real.

    With a sharpness of 0 all weigh 1, as in the paper.
    """
    greatest = evidence.masked_fill(~is_real, -torch.inf).amax(-1, keepdim=True)
    return torch.exp(sharpness * (evidence - greatest)).masked_fill(~is_real, 0.0)


def cross_entropy(log_probability: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy of selections with targets, both [B, S, O], over the rows that have a target.

    Targets need not sum to 1: each row is normalized. Averaged over the rows of a question, then over questions.
    """
    total = targets.sum(-1)  # [B, S]
    of_row = -(targets * log_probability).sum(-1) / total.clamp(min=1e-9)
    return (of_row.sum(-1) / (total > 0).sum(-1).clamp(min=1)).mean()
