"""How likely each chain of C is to a trained Ranker and Reasoner: decoding is restricted to C."""

from dataclasses import dataclass

import torch
from torch import Tensor

from rechain.game.plan import Reading
from rechain.game.players import Players
from rechain.game.policy import step_log_probabilities, tables
from rechain.models.batch import Batch
from rechain.models.reasoner import Named

_NEVER = -50.0
"""the log-probability of an entity that cannot link: its exponential vanishes in any sum"""
_SMALLEST = 1e-9
"""a probability below it has the logarithm of this, not that of 0"""


@dataclass(frozen=True)
class Decoded:
    """What the two players say of every chain of C."""

    selections: Tensor
    """[B, C, steps] log-probability of each passage or step, in the order in which they are selected"""
    namings: Tensor
    """[B, C, readings] log-probability of each linking entity that the Reasoner names"""
    named: Tensor
    """[B, C, readings] the entity that the Reasoner would name for each link that it reads, among those shared there"""
    shares: Tensor
    """[B, C, readings] which share of the bonus the Reasoner would pay for each link that it reads"""

    @property
    def bonus(self) -> Tensor:
        """[B, C] shares of the bonus together: 0 to the number of readings."""
        return self.shares.sum(-1)

    @property
    def ranker(self) -> Tensor:
        """[B, C] log-probability of the passages."""
        return self.selections.sum(-1)

    @property
    def reasoner(self) -> Tensor:
        """[B, C] log-probability of the linking entities; 0 where the Reasoner names none."""
        return self.namings.sum(-1)


@torch.no_grad()
def decode(players: Players, batch: Batch, asks_reasoner: bool = True) -> Decoded:
    """Score all chains of C; the Reasoner reads only where it counts."""
    players.eval()
    read = players.ranker.read(batch)
    selections = step_log_probabilities(tables(players.ranker, read, players.plan), players.plan, batch.chains)
    asked = players.plan.readings if asks_reasoner else ()
    names = players.names(batch, asked) if asked else []
    readings = [_read(players, batch, reading, named) for reading, named in zip(asked, names, strict=True)]
    if not readings:
        return Decoded(selections, selections[..., :0], selections[..., :0].long(), selections[..., :0])
    return Decoded(selections, *(torch.stack(parts, dim=-1) for parts in zip(*readings, strict=True)))


def _read(players: Players, batch: Batch, reading: Reading, named: Named) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log-probability of a link of every chain, what the Reasoner would name, and what it would pay, [B, C].

    Where the data tells linking entities apart, the link is the chain's own entity; else it is any that both passages
    hold. `named` is what the Reasoner says of all passages.
    """
    question = torch.arange(len(batch.chains), device=batch.chains.device)[:, None]
    here = batch.passages_of(batch.chains[..., reading.role].clamp(min=0))
    there = batch.chains[..., reading.next].clamp(min=0)
    places = torch.arange(batch.passages.shape[1], device=here.device).expand(len(here), -1)
    log_probability = named.log_probability[question, here]  # [B, C, X]
    held = batch.holders.transpose(1, 2)[question, batch.passages_of(there)]
    shared = held & batch.may_link[:, None, :, reading.link]
    among = log_probability.masked_fill(~shared, _NEVER)
    own = batch.chain_links[..., reading.link]
    of_own = log_probability.gather(2, own.clamp(min=0)[..., None]).squeeze(-1)
    of_any = among.exp().sum(-1).clamp(min=_SMALLEST).log()
    shares = players.shares(batch, places, reading, named)[question, here, there]
    return torch.where(own >= 0, of_own, of_any), among.argmax(-1), shares
