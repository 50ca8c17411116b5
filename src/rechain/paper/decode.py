"""How likely each chain of C is to the two players: decoding is restricted to C (Section 4.1)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from rechain.paper.data import Batch
from rechain.paper.game import Players
from rechain.paper.policy import Reading, chain_log_probabilities, selection_tables
from rechain.paper.reasoner import Prediction

_IMPOSSIBLE = -50.0
"""the log-probability of an entity that cannot link: its exponential vanishes in any sum"""
_SMALLEST = 1e-9
"""of probabilities, as 0 has no logarithm"""


@dataclass(frozen=True)
class ChainScores:
    """The two players' scores of every chain of C."""

    selections: Tensor  # [B, C, steps] log-probability of each selection, in their order
    links: Tensor  # [B, C, readings] log-probability of each linking entity
    predicted: Tensor  # [B, C, readings] the entity that the Reasoner would name for each link, among those shared

    @property
    def ranker(self) -> Tensor:
        """[B, C] log-probability of the passages."""
        return self.selections.sum(-1)

    @property
    def reasoner(self) -> Tensor:
        """[B, C] log-probability of the links: the Reasoner's vote; 0 if it is not asked."""
        return self.links.sum(-1)


@torch.no_grad()
def decode(players: Players, batch: Batch, asks_reasoner: bool = True) -> ChainScores:
    """Score all chains of C."""
    players.eval()
    tables = selection_tables(players.ranker, players.ranker.encode(batch), players.plan)
    selections = chain_log_probabilities(tables, players.plan, batch.chains)
    if not asks_reasoner or not players.plan.readings:
        return ChainScores(selections, selections[..., :0], selections[..., :0].long())
    links = [_score_link(batch, *both) for both in players.predict(batch).items()]
    return ChainScores(selections, *(torch.stack(parts, dim=-1) for parts in zip(*links, strict=True)))


def _score_link(batch: Batch, reading: Reading, prediction: Prediction) -> tuple[Tensor, Tensor]:
    """Return the log-probability of a link of every chain, and the likeliest shared entity, [B, C] each.

    If the data names linking entities, the link is the chain's own entity, else any that both passages contain.
    """
    question = torch.arange(len(batch.chains), device=batch.chains.device)[:, None]
    passages = batch.passages_of(batch.chains.clamp(min=0))
    log_probability = prediction.log_probability[question, passages[..., reading.role]]  # [B, C, X]
    contains = batch.contains.transpose(1, 2)[question, passages[..., reading.next]]
    shared = contains & batch.may_link[:, None, :, reading.link]
    among = log_probability.masked_fill(~shared, _IMPOSSIBLE)
    own = batch.chain_links[..., reading.link]
    of_own = log_probability.gather(2, own.clamp(min=0)[..., None]).squeeze(-1)
    of_any = among.exp().sum(-1).clamp(min=_SMALLEST).log()
    return torch.where(own >= 0, of_own, of_any), among.argmax(-1)
