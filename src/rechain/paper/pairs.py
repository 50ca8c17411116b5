"""How well the Reasoner tells entities that interact from others that share a passage, by MedHop's labelled pairs."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from rechain.errors import InputError, RechainError
from rechain.evaluation.gold import PairLabel, read_label_rows
from rechain.evaluation.statistics import Figure, auc_with_interval
from rechain.paper.lexicon import Lexicon
from rechain.paper.model import GameModel
from rechain.paper.prepare import Preparation
from rechain.schema import Passage, Question
from rechain.system.tensors import Array
from rechain.text.evidence.pairs import MENTION_FACTOR, closeness
from rechain.text.passage_views import PassageView, identifier

_BATCH = 32
_SMALLEST_SHARE = 1e-9
"""of entities that a passage does not mention: a logarithm of 0 would be infinite"""


class Pair(NamedTuple):
    """Two entities of a passage, and whether it says that they interact."""

    passage: Passage
    one: str
    two: str
    interacts: bool


def read_pair_labels(path: Path) -> list[PairLabel]:
    """Read which pairs of entities interact; a file of anything else has none."""
    try:
        return [label for _, label in read_label_rows(path) if isinstance(label, PairLabel)]
    except InputError:  # a questions file with gold in it
        return []


def pairs_of(questions: Iterable[Question], labels: Iterable[PairLabel]) -> list[Pair]:
    """Return every labelled pair of a question's passages once."""
    passages = {(question.id, passage.id): passage for question in questions for passage in question.passages}
    pairs: dict[tuple[str, str, frozenset[str]], Pair] = {}
    for label in labels:
        passage = passages.get((label.id, str(label.support)))
        one, two = identifier(label.a), identifier(label.b)
        if passage is not None and one is not None and two is not None:
            key = label.id, passage.id, frozenset((one, two))
            pairs.setdefault(key, Pair(passage, one, two, label.interacts))
    return list(pairs.values())


def judge_pairs(pairs: Sequence[Pair], model: GameModel | None = None, name: str = "") -> dict[str, Figure]:
    """Return the AUC of the lexical rule, of a guess and of a trained Reasoner, with intervals over pairs.

    A pair is likelier the fewer other entities its passage mentions, whatever a Reasoner has learned. The guess has
    just that, so that what the Reasoner has learned shows over it.
    """
    is_positive = np.array([pair.interacts for pair in pairs], dtype=bool)
    if is_positive.all() or not is_positive.any():
        raise RechainError("AUC needs labelled pairs of these questions, some that interact and some that do not.")
    guess = guess_scores(pairs)
    scores = {"lexical": lexical_scores(pairs), "a guess among the mentions": guess}
    if model is not None:
        reasoner = reasoner_scores(model, pairs)
        scores |= {f"Reasoner of {name}": reasoner, f"Reasoner of {name}, over the guess": reasoner - guess}
    return {title: auc_with_interval(values, is_positive) for title, values in scores.items()}


def lexical_scores(pairs: Sequence[Pair]) -> Array:
    """Return how close the entities of each pair are in their passage."""
    counts = [closeness(PassageView(pair.passage), pair.one, pair.two) for pair in pairs]
    return np.array([count.together + MENTION_FACTOR * count.mentions for count in counts])


def guess_scores(pairs: Sequence[Pair]) -> Array:
    """Return what `reasoner_scores` would be if all mentions of other entities were equally likely."""
    scores = []
    for pair in pairs:
        mentions = {entity: len(spans) for entity, spans in PassageView(pair.passage).entities.items()}
        one, two, total = mentions.get(pair.one, 0), mentions.get(pair.two, 0), sum(mentions.values())
        shares = two / max(total - one, 1), one / max(total - two, 1)
        scores.append(np.log(np.maximum(shares, _SMALLEST_SHARE)).mean())
    return np.array(scores)


def reasoner_scores(model: GameModel, pairs: Sequence[Pair]) -> Array:
    """Return the mean of log P(b | passage, a) and log P(a | passage, b) of every pair."""
    queries = [(pair.passage, *ends) for pair in pairs for ends in ((pair.one, pair.two), (pair.two, pair.one))]
    batches = [_log_probabilities(model, queries[at : at + _BATCH]) for at in range(0, len(queries), _BATCH)]
    scores: Array = np.concatenate(batches).reshape(-1, 2).mean(1)
    return scores


def _log_probabilities(model: GameModel, queries: Sequence[tuple[Passage, str, str]]) -> Array:
    """Ask "interacts_with a?" of each passage and return the log-probability of b among its other entities."""
    places = []
    preparation = Preparation(Lexicon(model.rows))
    for passage, one, two in queries:
        others = [entity for entity in PassageView(passage).entities if entity != one]
        places.append(others.index(two) if two in others else -1)
        text = f"interacts_with {one.partition(':')[2]}?"
        question = Question(id=one, question=text, answer="?", question_entities=[one], passages=[passage])
        preparation.add_reading(question, others, model.players.plan.hops)
    batch = model.read(preparation)
    first = torch.zeros(len(queries), 1, dtype=torch.long, device=batch.question.device)
    with torch.no_grad():
        table = model.players.reasoner(batch, first, link=0, role=0).log_probability[:, 0].float().cpu().numpy()
    chosen: Array = np.where(np.array(places) < 0, table.min(), table[np.arange(len(queries)), places])
    return chosen
