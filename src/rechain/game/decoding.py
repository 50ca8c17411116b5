"""How likely each chain of C is to a trained Ranker and Reasoner: decoding is restricted to C."""

from dataclasses import dataclass

import torch
from torch import Tensor

from rechain.game.plan import Reading
from rechain.game.players import Players
from rechain.game.policy import chain_log_probability, tables
from rechain.models.batch import Batch


@dataclass(frozen=True)
class Decoded:
    """What the two players say of every chain of C."""

    ranker: Tensor
    """[B, C] log-probability of the passages"""
    reasoner: Tensor
    """[B, C] log-probability of the linking entities"""
    named: Tensor
    """[B, C, readings] the entity that the Reasoner would name for each link that it reads, among those shared there"""


@torch.no_grad()
def decode(players: Players, batch: Batch, asks_reasoner: bool = True) -> Decoded:
    """Score all chains of C; where the Reasoner is not asked, it says 0 of all and names nothing."""
    players.eval()
    read = players.ranker.read(batch)
    ranker = chain_log_probability(tables(players.ranker, read, players.plan), players.plan, batch.chains)
    reasoner, named = torch.zeros_like(ranker), []
    for reading in players.plan.readings if asks_reasoner else ():
        log_probability, best = _read(players, batch, reading)
        reasoner = reasoner + log_probability
        named.append(best)
    entities = torch.stack(named, dim=-1) if named else batch.chains.new_zeros(*ranker.shape, 0)
    return Decoded(ranker, reasoner, entities)


def _read(players: Players, batch: Batch, reading: Reading) -> tuple[Tensor, Tensor]:
    """Return the log-probability of a link of every chain, and the entity that the Reasoner would name, [B, C].

    Where the data tells linking entities apart, the link is the chain's own entity; else it is any that both passages
    hold.
    """
    question = torch.arange(len(batch.chains), device=batch.chains.device)[:, None]
    here = batch.chains[..., reading.role].clamp(min=0)
    there = batch.chains[..., reading.next].clamp(min=0)
    places = torch.arange(batch.passages.shape[1], device=here.device).expand(len(here), -1)
    log_probability = players.name(batch, places, reading).log_probability[question, here]  # [B, C, X]
    shared = batch.holders.transpose(1, 2)[question, there] & batch.may_link[:, None, :, reading.link]
    among = log_probability.masked_fill(~shared, _NEVER)
    own = batch.chain_links[..., reading.link]
    of_own = log_probability.gather(2, own.clamp(min=0)[..., None]).squeeze(-1)
    return torch.where(own >= 0, of_own, among.exp().sum(-1).clamp(min=_SMALLEST).log()), among.argmax(-1)


_NEVER = -50.0
_SMALLEST = 1e-9
