"""Rewards by distant supervision (Section 3.1) and the Reasoner's bonus (Section 3.2): pure functions of tensors.

C is given as `chains` [B, C, L], places of passages with the head first, and `weights` [B, C]: 1 for every chain of C
as in the paper, or less for chains whose links say less; 0 for padding.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

_SMALLEST = 1e-9
"""no chance is divided by less"""


def reward(chains: Tensor, weights: Tensor, roles: Sequence[int], chosen: Tensor) -> Tensor:
    """Return the weight of the heaviest chain in C that has the chosen passages in these roles; 0 if there is none.

    `chosen` [B, ..., n] are places of passages, one a role. With all weights 1 this is
    r_t = 1 iff p_t is in P_T for roles = (tail,), r_h = 1 iff p_h is in P_H for roles = (head,) (equation 2), and
    r_m = 1 iff the path (p_h, p_m, p_t) is in C for roles = (head, middle, tail) (equation 3).
    """
    between = [1] * (chosen.dim() - 2)
    wanted = chains[..., list(roles)].view(len(chains), *between, chains.shape[1], len(roles))  # [B, 1.., C, n]
    agrees = (wanted == chosen.unsqueeze(-2)).all(-1)  # [B, ..., C]
    return (agrees * weights.view(len(weights), *between, -1)).amax(-1)


def with_bonus(rewards: Tensor, shares: Tensor, bonus: float, is_added: bool = False) -> Tensor:
    """Return the reward of a selection to which the Reasoner's entities lead (equation 5).

    `shares` says what share of the bonus a selection earns. By the Reasoner's top-1 entity it is 0 or 1 for two
    passages; 0, 1 or 2 for the middle one of three, between head and tail. The bonus is multiplied into the reward, or
    added to it, which is the same where rewards are 0 and 1. A selection that earns nothing gets no bonus.
    """
    return torch.where(rewards > 0, rewards + bonus * shares, rewards) if is_added else rewards * (1 + bonus * shares)


def walk_chances(holders: Tensor, places: Tensor | None, probability: Tensor) -> Tensor:
    """Return how likely a walk from passages by way of an entity comes to each other passage, [B, S, K].

    The entity is drawn by the Reasoner's P(e | p, q) `probability` [B, S, X] from the passage at `places` [B, S], then
    one of the other passages that hold it: the sum over e of P(e | p, q) [e in p'] / (number of other passages with e).
    Where the walk comes to steps, among which those it comes from are not, there are no such places.
    """
    others = holders.sum(-1)[:, None]
    if places is not None:
        question = torch.arange(len(holders), device=holders.device)[:, None]
        others = others - holders.transpose(1, 2)[question, places].long()  # [B, S, X]
    share = torch.where(others > 0, probability / others.clamp(min=1), 0.0)
    with torch.autocast(share.device.type, enabled=False):  # rounded to 16 bits, passages that differ would tie
        chances = share.float() @ holders.float()
    return chances if places is None else chances.scatter(2, places[..., None], 0.0)


def walk_shares(chances: Tensor) -> Tensor:
    """Return the chances of passages, [B, S, K], in parts of the greatest: all of the bonus is the likeliest's."""
    return chances / chances.amax(-1, keepdim=True).clamp(min=_SMALLEST)


def linking_targets(holders: Tensor, chosen: Tensor, holding: Tensor, following: Tensor) -> Tensor:
    """Return y_e: which entities of the chosen passage also stand in what follows (equation 4), [B, S, X].

    `holders` [B, X, K] says which passage holds which entity, `holding` [B, X, O] which of what is selected next does;
    `chosen` and `following` [B, S] are places in them.
    """
    question = torch.arange(len(holders), device=holders.device)[:, None]
    return holders.transpose(1, 2)[question, chosen] & holding.transpose(1, 2)[question, following]


def chain_weights(evidence: Tensor, is_chain: Tensor, sharpness: float) -> Tensor:
    """Return the weights of C: 1 for the chain of most evidence, less for others, by exp(sharpness x difference).

    With a sharpness of 0 all chains weigh 1, as in the paper. `evidence` is [B, C].
    """
    most = evidence.masked_fill(~is_chain, -torch.inf).amax(-1, keepdim=True)
    return torch.exp(sharpness * (evidence - most)).masked_fill(~is_chain, 0.0)
