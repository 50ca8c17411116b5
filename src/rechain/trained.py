"""A trained Ranker and Reasoner as a model that scores candidate chains."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from rechain.candidates import Candidates
from rechain.errors import QuestionError
from rechain.game.checkpoints import load_weights, read_tensors
from rechain.game.data import Prepared
from rechain.game.decoding import Decoded, decode
from rechain.game.players import Players
from rechain.game.settings import GameSettings
from rechain.lexicon import Lexicon, vector_rows
from rechain.model import Contributions
from rechain.preparation import Preparation
from rechain.runs import WEIGHTS, RunFolder


class TrainedModel:
    """What `rechain train` has written, behind the interface that every model has."""

    def __init__(self, players: Players, settings: GameSettings, rows: dict[str, int]) -> None:
        self._players = players.eval()
        self._settings = settings
        self._rows = rows

    @classmethod
    def load(cls, folder: Path, device: str = "cpu") -> "TrainedModel":
        """Read a model from the folder of a finished run."""
        weights, told = read_tensors(folder / WEIGHTS)
        settings = GameSettings.of(told["settings"], str(folder / WEIGHTS))
        vectors = RunFolder(folder).vectors()
        players = Players(torch.from_numpy(vectors.table), int(told["hops"]), settings).to(device)
        load_weights(players, weights, folder / WEIGHTS)
        return cls(players, settings, vector_rows(vectors.words))

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return what Ranker, Reasoner, links and words contribute to every chain."""
        hops = self._players.plan.hops
        if candidates.hops != hops:
            raise QuestionError("other_hops", f"the model recovers chains of {hops} passages, not {candidates.hops}")
        preparation = Preparation(Lexicon(self._rows))
        preparation.add(candidates)
        device = self._players.mean_reward.device
        data = Prepared(preparation.arrays(), device, self._settings.max_tokens, self._settings.mark_answer)
        batch = data.batch(np.arange(1))
        return self._contributions(
            decode(self._players, batch), batch.link_weight[0].tolist(), batch.lexical[0].tolist()
        )

    def _contributions(self, decoded: Decoded, links: list[float], lexical: list[float]) -> list[Contributions]:
        settings = self._settings
        told = {
            "ranker": (1.0, decoded.ranker[0].tolist()),
            "reasoner": (settings.reasoner_weight * (settings.row == "cooperative"), decoded.reasoner[0].tolist()),
            "links": (settings.link_weight, links),
            "lexical": (settings.lexical_weight, lexical),
        }
        used = {name: (weight, values) for name, (weight, values) in told.items() if weight}
        return [{name: weight * values[n] for name, (weight, values) in used.items()} for n in range(len(links))]
