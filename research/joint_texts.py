"""Would steps help where links are found in texts? python research/joint_texts.py DATA [--model lexical] [--first N].

HotpotQA open (unambiguous bridge questions) and MuSiQue (linear), where `rechain recover --jointly` lets every question
alone. A step could be a passage between link and link or link and answer (where the data names no entity of the
question, the head has none), or with the question itself as the first entity, so that a passage that is often the head
by one link is so again. Exactly the right passages, in %. Nothing is drawn at random but the bootstrap's samples, with
seed 0.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise

import numpy as np
from common import MUSIQUE_HOPS, Pair, bridge_pairs, musique_pairs, parser, percent, print_heading, print_rows

from rechain.errors import QuestionError
from rechain.evaluation.judging import is_correct
from rechain.evaluation.statistics import mean_with_interval
from rechain.models import load_model
from rechain.scoring.beliefs import Offers
from rechain.scoring.interface import BatchModel, Model
from rechain.scoring.steps import step_name
from rechain.system.processes import batches
from rechain.system.tensors import Array
from rechain.text.candidates import Candidate, Candidates, find_candidates
from rechain.text.evidence.search import find_evidence

SCALE = {"lexical": 0.35, "default": 1.0}
"""what scores are multiplied by before they become probabilities; of the lexical rule as in the paper's teaching"""


def steps_of(candidates: Candidates, chain: Candidate, with_question: bool) -> list[str]:
    """Return the steps that a chain would have."""
    if chain.shape != "chain":
        return []
    first = [""] if with_question else []
    entities = [*first, *(edge.key for edge in chain.edges), candidates.question.answer]
    passages = chain.passages if with_question else chain.passages[1:]
    texts = [candidates.views[number].passage for number in passages]
    return [
        step_name(passage, (one.strip(), two.strip()))
        for passage, (one, two) in zip(texts, pairwise(entities), strict=True)
    ]


def rows(name: str, pairs: Sequence[Pair], model: str) -> Iterator[Sequence[object]]:
    """Yield accuracy alone and with steps of either kind."""
    loaded, scored = load_model(model), list[tuple[Pair, Candidates, Array]]()
    find = find_evidence if isinstance(loaded, BatchModel) else find_candidates
    for batch in batches(pairs, 32):
        kept = []
        for pair in batch:
            with suppress(QuestionError):  # without candidates
                kept.append((pair, find(pair[0])))
        for (pair, one), scores in zip(kept, score(loaded, [one for _, one in kept]), strict=True):
            scored.append((pair, one, SCALE[model] * scores))
    alone = [is_right(*one) for one in scored]
    yield name, len(scored), model, "alone", percent(mean_with_interval(alone)), ""
    for with_question in (False, True):
        offers, steps = Offers(), []
        for _, candidates, scores in scored:
            steps.append([steps_of(candidates, chain, with_question) for chain in candidates.chains])
            offers.add(steps[-1], scores - np.logaddexp.reduce(scores), -np.inf)
        beliefs, right = offers.learn(), []
        for position, (pair, candidates, scores) in enumerate(scored):
            names = sorted({step for of_chain in steps[position] for step in of_chain})
            told = dict(zip(names, beliefs.told(position).tolist(), strict=True))
            added = np.array([sum(told[step] for step in of_chain) for of_chain in steps[position]])
            right.append(is_right(pair, candidates, scores + added))
        gain = [float(new) - old for new, old in zip(right, alone, strict=True)]
        way = "steps of links, answer" + (" and question" if with_question else "")
        shared = f"{way}; {beliefs.shared} of {len(beliefs.steps)} shared"
        yield name, len(scored), model, shared, percent(mean_with_interval(right)), percent(mean_with_interval(gain))


def score(model: Model | BatchModel, batch: Sequence[Candidates]) -> Iterator[Array]:
    """Yield the scores of the chains of each question."""
    if isinstance(model, BatchModel):
        scores = [one.contributions for one in model.score_many(batch)]
    else:
        scores = [model.score(candidates) for candidates in batch]
    for of_question in scores:
        yield np.array([sum(parts.values()) for parts in of_question])


def is_right(pair: Pair, candidates: Candidates, scores: Array) -> bool:
    """Return whether the best chain has the right passages."""
    best = candidates.chains[int(scores.argmax())]
    passages = [candidates.views[number].passage.id for number in best.passages]
    gold = pair[1].model_copy(update={"same": "passages"})
    return is_correct(passages, [], gold, best.shape)


def main() -> None:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument("--model", default="lexical")
    options.add_argument("--first", type=int)
    given = options.parse_args()
    print_heading()
    musique = [pair for kind in MUSIQUE_HOPS for pair in musique_pairs(given.data, kind)]
    sets = {"HotpotQA open, bridge": bridge_pairs(given.data)[: given.first], "MuSiQue train_100, linear": musique}
    header = ("questions", "number", "model", "steps", "right passages, %", "over alone, points")
    print_rows(header, [row for name, pairs in sets.items() for row in rows(name, pairs, given.model)])


if __name__ == "__main__":
    main()
