"""A trained Ranker and Reasoner as a model that scores candidate chains."""

from collections.abc import Mapping, Sequence

import numpy as np

from rechain.candidates import Candidates
from rechain.errors import QuestionError
from rechain.game.data import Prepared
from rechain.game.decoding import Decoded, decode
from rechain.game.players import Players
from rechain.game.settings import GameSettings
from rechain.models.batch import Batch
from rechain.preparation.lexicon import Lexicon
from rechain.preparation.questions import Preparation
from rechain.scoring.model import Contributions, PlayerStep


class TrainedModel:
    """What `rechain train` has written, behind the interface that every model has."""

    def __init__(self, players: Players, settings: GameSettings, rows: Mapping[str, int]) -> None:
        """Take the players, how they were trained, and the row of every word in their table of vectors."""
        self.players = players.eval()
        self.settings = settings
        self.rows = rows

    def to(self, device: str) -> "TrainedModel":
        """Return the model on a device."""
        self.players.to(device)
        return self

    def read(self, preparation: Preparation) -> Batch:
        """Return prepared questions as the players read them, all in one batch."""
        device, settings = self.players.mean_reward.device, self.settings
        data = Prepared(preparation.arrays(), device, *settings.reading)
        return data.batch(np.arange(len(data)))

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return what Ranker, Reasoner, links and words contribute to every chain."""
        batch = self._batch(candidates)
        decoded = self._decode(batch)
        return self._contributions(decoded, batch.link_weight[0].tolist(), batch.lexical[0].tolist())

    def steps(self, candidates: Candidates) -> list[list[PlayerStep]]:
        """Return what Ranker and Reasoner say on the way to every chain, in the order in which they play."""
        plan = self.players.plan
        decoded = self._decode(self._batch(candidates))
        selections, namings = decoded.selections[0].exp().tolist(), decoded.namings[0].exp().tolist()
        return [
            [
                *(PlayerStep("ranker", chance, step.role) for step, chance in zip(plan.steps, selected, strict=True)),
                *(
                    PlayerStep("reasoner", chance, r.role, r.link)
                    for r, chance in zip(plan.readings, named, strict=False)
                ),
            ]
            for selected, named in zip(selections, namings, strict=True)
        ]

    def _batch(self, candidates: Candidates) -> Batch:
        hops = self.players.plan.hops
        if candidates.hops != hops:
            raise QuestionError("other_hops", f"the model recovers chains of {hops} passages, not {candidates.hops}")
        if self.settings.selects == "steps" and not candidates.names_entities:
            raise QuestionError("other_entities", "the model selects steps, but the data does not name the entities")
        preparation = Preparation(Lexicon(self.rows))
        preparation.add(candidates)
        return self.read(preparation)

    def _decode(self, batch: Batch) -> Decoded:
        """Ask the Ranker and, where it counts, the Reasoner."""
        return decode(self.players, batch, asks_reasoner=self._reasoner_weight > 0)

    @property
    def _reasoner_weight(self) -> float:
        """How much the Reasoner counts; only the cooperative row has taught it."""
        return self.settings.reasoner_weight if self.settings.teaches_reasoner else 0.0

    def _contributions(self, decoded: Decoded, links: list[float], lexical: list[float]) -> list[Contributions]:
        settings = self.settings
        parts = {
            "ranker": (1.0, decoded.ranker[0].tolist()),
            "reasoner": (self._reasoner_weight, decoded.reasoner[0].tolist()),
            "links": (settings.link_weight, links),
            "lexical": (settings.lexical_weight, lexical),
        }
        used = {name: (weight, values) for name, (weight, values) in parts.items() if weight}
        return [{name: weight * values[n] for name, (weight, values) in used.items()} for n in range(len(links))]
