"""How well the bonus of a Reasoner that knows nothing tells the chain of most evidence from others: no gold is read.

    python benchmarks/entities.py FOLDER

The folder is one that `rechain reproduce … --prepare-only` has written. A Reasoner that knows nothing finds all
mentions of a passage alike, so that what is shown is what the inventory of entities and the form of the bonus are worth
before anything is learned; the control of the tables is near it.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from common import print_heading, print_rows

from rechain.game.data import Prepared
from rechain.game.players import Players
from rechain.game.settings import GameSettings
from rechain.models.batch import Batch
from rechain.models.reasoner import Named
from rechain.system.tensors import load_arrays

SIZE = 64


class Uniform(torch.nn.Module):
    """Finds every mention as likely as any other."""

    def forward(self, batch: Batch, places: torch.Tensor, link: int) -> Named:
        """Return the share of each entity in the mentions of passages."""
        chosen = batch.at(places)
        entity = chosen.mention_entity
        counts = torch.zeros(*places.shape, batch.holders.shape[1] + 1)
        counts = counts.scatter_add(2, entity.where(entity >= 0, counts.shape[-1] - 1), torch.ones(entity.shape))
        shares = counts[..., :-1] / counts[..., :-1].sum(-1, keepdim=True).clamp(min=1)
        return Named(shares.clamp(min=1e-9).log(), (entity >= 0).any(-1))


def main() -> None:
    """Print a row for each inventory and form of the bonus."""
    folder = Path(sys.argv[1])
    arrays = load_arrays(folder / "questions.safetensors")
    arrays.pop("fold")
    print_heading()
    rows = []
    for entities in ("all", "merged"):
        for bonus_by in ("top-1", "walk"):
            settings = GameSettings(entities=entities, bonus_by=bonus_by, max_tokens=150, hidden=1)
            data = Prepared(arrays, "cpu", *settings.reading)
            players = Players(torch.zeros(1, 1), data.hops, settings)
            setattr(players, "reasoner", Uniform())  # noqa: B010 - in the place of a network
            seen = [players.watch_reasoner(batch) for batch in data.batches(np.arange(len(data)), SIZE)]
            auc, common = (torch.cat(values) for values in zip(*seen, strict=True))
            rows.append((entities, bonus_by, f"{100 * auc.mean():.1f}", f"{100 * common.mean():.1f}", len(auc)))
    header = ("entities", "bonus", "AUC by evidence, %", "passages that hold what is named, %", "questions with rivals")
    print_rows(header, rows)


if __name__ == "__main__":
    main()
