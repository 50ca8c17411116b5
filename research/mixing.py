"""What Ranker and Reasoner should weigh beside evidence, chosen without any gold: by how views agree.

    python research/mixing.py DATA [--limit N]

DATA is a folder as ../shared/data. A view says how likely each chain is, as a softmax of its scores. Evidence and a
player see different things, so what one believes is a noisy label for the other: the weight of a player is that under
which its softmax makes what evidence believes most likely, over the chains that are read (all, 6 at most). Every set is
judged with the weights that the other sets have chosen; its own gold is only for the accuracy that is printed.
The sets are not those that the bundled model has learnt.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from common import Pair, musique_pairs, parser, print_heading, print_rows, two_wiki_pairs

from rechain.errors import QuestionError
from rechain.evaluation.judging import is_gold_chain
from rechain.reader.model import ChainReaderModel, WeighedQuestion
from rechain.reader.pretrained import load
from rechain.system.tensors import Array
from rechain.text.evidence.search import find_evidence

ALL = 1e9
WEIGHTS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0)
PLAYERS = ("ranker", "reasoner")


class Case(NamedTuple):
    """A question whose chains were read: the scores of each view, and which chains are right."""

    evidence: Array
    players: dict[str, Array]
    is_right: Array


def case_of(model: ChainReaderModel, pair: Pair) -> Case | None:
    """Return what the views say of the candidates of a question that are read, if there are at least two."""
    question, gold = pair
    try:
        candidates = find_evidence(question)
    except QuestionError:
        return None
    settings = replace(model.settings, margin=ALL, ranker_weight=1.0, reasoner_weight=1.0)
    weighed = WeighedQuestion(candidates, model.evidence, settings)
    chains, tails = weighed.write(model.tokenizer)
    (ranks,), (links,) = model.read("rank", [chains]), model.read("name_links", [tails], weighed.entities)
    said = weighed.scores(ranks, links).contributions
    numbers = weighed.chosen
    if len(numbers) < 2:
        return None
    return Case(
        np.array([said[number]["evidence"] for number in numbers]),
        {name: np.array([said[number][name] for number in numbers]) for name in PLAYERS},
        np.array([is_gold_chain(candidates, candidates.chains[number], gold) for number in numbers]),
    )


def log_softmax(scores: Array) -> Array:
    """Return the logarithms of the probabilities."""
    shifted: Array = scores - scores.max()
    probabilities: Array = shifted - np.log(np.exp(shifted).sum())
    return probabilities


def disagreement(cases: Sequence[Case], player: str, weight: float) -> float:
    """Return the mean cross-entropy of what evidence believes under what a player says, times a weight."""
    return float(
        np.mean([-(np.exp(log_softmax(c.evidence)) * log_softmax(weight * c.players[player])).sum() for c in cases])
    )


def choose(cases: Sequence[Case]) -> dict[str, float]:
    """Return the weight of each player under which the views agree best."""
    return {name: min(WEIGHTS, key=lambda weight, n=name: disagreement(cases, n, weight)) for name in PLAYERS}  # type: ignore[misc]


def accuracy(cases: Sequence[Case], weights: dict[str, float]) -> float:
    """Return how often the chain with the greatest score is right, in per cent."""
    best = [c.is_right[np.argmax(c.evidence + sum(weights[name] * c.players[name] for name in PLAYERS))] for c in cases]
    return 100 * float(np.mean(best))


def main() -> None:
    """Print the weights that each set chooses, and what every set reaches with those of the others."""
    options = parser(__doc__)
    options.add_argument("--limit", type=int, default=100, help="questions of a set")
    told = options.parse_args()
    print_heading()
    model = load()
    pairs = {
        "2Wiki train_500, chains": two_wiki_pairs(told.data),
        "MuSiQue train_100, 2 hops": musique_pairs(told.data, "2hop"),
        "MuSiQue train_100, 3 hops": musique_pairs(told.data, "3hop1"),
    }
    sets = {}
    for name, some in pairs.items():
        cases = [case for pair in some[: told.limit] if (case := case_of(model, pair))]
        if cases:
            sets[name] = cases
    own = {"ranker": model.settings.ranker_weight, "reasoner": model.settings.reasoner_weight}
    rows = []
    for name, cases in sets.items():
        others = choose([case for other, some in sets.items() if other != name for case in some])
        itself = choose(cases)
        alone = accuracy(cases, dict.fromkeys(PLAYERS, 0.0))
        chosen = (f"{itself['ranker']:g}, {itself['reasoner']:g}", f"{others['ranker']:g}, {others['reasoner']:g}")
        figures = [f"{one:.1f}" for one in (alone, accuracy(cases, own), accuracy(cases, others))]
        rows.append((name, len(cases), *chosen, *figures))
    settings = f"as set ({own['ranker']:g}, {own['reasoner']:g}), %"
    chosen_by = ("Ranker, Reasoner by this set", "by the other sets")
    print_rows(("questions with rivals", "number", *chosen_by, "evidence alone, %", settings, "by others, %"), rows)


if __name__ == "__main__":
    main()
