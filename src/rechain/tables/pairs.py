"""How well the Reasoner tells entities that interact from others that share a passage, by MedHop's labelled pairs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from rechain.errors import RechainError
from rechain.evaluation.statistics import Figure, auc_with_interval
from rechain.game.model import TrainedModel
from rechain.preparation.lexicon import Lexicon
from rechain.preparation.questions import Preparation
from rechain.schema import Passage, Question
from rechain.scoring.lexical import MENTION_FACTOR, closeness
from rechain.system.tensors import Array
from rechain.text.identifiers import identifier
from rechain.text.passages import PassageView
from rechain.text.words import Span

_AT_ONCE = 32
_NEVER = 1e-9


class LabelledPair(Protocol):
    """Whether a passage describes an interaction of two entities."""

    @property
    def id(self) -> str: ...
    @property
    def support(self) -> int | str: ...
    @property
    def a(self) -> str: ...
    @property
    def b(self) -> str: ...
    @property
    def interacts(self) -> bool: ...


@dataclass(frozen=True)
class Pair:
    """Two entities of a passage."""

    passage: Passage
    one: str
    two: str
    interacts: bool


def pairs_of(questions: Iterable[Question], labels: Iterable[LabelledPair]) -> list[Pair]:
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


def pair_auc(
    model: TrainedModel, questions: Iterable[Question], labels: Iterable[LabelledPair], over_guess: bool = False
) -> Figure:
    """Return the AUC of the Reasoner's mean log-probability of either entity when it is asked for the other.

    A pair is likelier the fewer other entities its passage mentions, whatever the Reasoner has learned; `over_guess`
    takes that away.
    """

    def score(pairs: Sequence[Pair]) -> Array:
        said = reasoner_scores(model, pairs)
        return said - guess_scores(pairs) if over_guess else said

    return auc_of(pairs_of(questions, labels), score)


def guess_auc(questions: Iterable[Question], labels: Iterable[LabelledPair]) -> Figure:
    """Return the AUC of a guess among the mentions of a passage, which a Reasoner that learned nothing comes to."""
    return auc_of(pairs_of(questions, labels), guess_scores)


def guess_scores(pairs: Sequence[Pair]) -> Array:
    """Return what `reasoner_scores` would be if all mentions of other entities were equally likely."""
    scores = []
    for pair in pairs:
        mentions = {entity: len(spans) for entity, spans in _entities(pair.passage).items()}
        one, two, total = mentions.get(pair.one, 0), mentions.get(pair.two, 0), sum(mentions.values())
        shares = two / max(total - one, 1), one / max(total - two, 1)
        scores.append(np.log(np.maximum(shares, _NEVER)).mean())
    return np.array(scores)


def lexical_auc(questions: Iterable[Question], labels: Iterable[LabelledPair]) -> Figure:
    """Return the AUC of the lexical rule: how closely the two stand together."""
    return auc_of(pairs_of(questions, labels), lexical_scores)


def lexical_scores(pairs: Sequence[Pair]) -> Array:
    """Return how closely the entities of each pair stand together in their passage."""
    told = [closeness(PassageView(pair.passage), pair.one, pair.two) for pair in pairs]
    return np.array([together + MENTION_FACTOR * mentions for together, mentions in told])


def reasoner_scores(model: TrainedModel, pairs: Sequence[Pair]) -> Array:
    """Return the mean of log P(b | passage, a) and log P(a | passage, b) of every pair."""
    asked = [(pair.passage, *ends) for pair in pairs for ends in ((pair.one, pair.two), (pair.two, pair.one))]
    told = [_log_probabilities(model, asked[at : at + _AT_ONCE]) for at in range(0, len(asked), _AT_ONCE)]
    scores: Array = np.concatenate(told).reshape(-1, 2).mean(1)
    return scores


def _log_probabilities(model: TrainedModel, asked: Sequence[tuple[Passage, str, str]]) -> Array:
    """Ask "interacts_with a?" of each passage and return the log-probability of b among its other entities."""
    hops, places = model.players.plan.hops, []
    preparation = Preparation(Lexicon(model.rows))
    for passage, one, two in asked:
        others = [entity for entity in _entities(passage) if entity != one]
        places.append(others.index(two) if two in others else -1)
        preparation.add_reading(_question(passage, one), others, hops)
    batch = model.read(preparation)
    with torch.no_grad():
        first = torch.zeros(len(asked), 1, dtype=torch.long, device=batch.question.device)
        told = model.players.reasoner(batch, first, 0).log_probability[:, 0].float().cpu().numpy()
    wanted: Array = np.where(np.array(places) < 0, told.min(), told[np.arange(len(asked)), places])
    return wanted


def _entities(passage: Passage) -> Mapping[str, Sequence[Span]]:
    view = PassageView(passage)
    return view.given if passage.mentions else view.identifiers


def _question(passage: Passage, entity: str) -> Question:
    name = entity.partition(":")[2]
    asked = f"interacts_with {name}?"
    return Question(id=entity, question=asked, answer="?", question_entities=[entity], passages=[passage])


def auc_of(pairs: Sequence[Pair], score: Callable[[Sequence[Pair]], Array]) -> Figure:
    """Return the AUC of a score with a 95 % bootstrap interval over pairs."""
    is_positive = np.array([pair.interacts for pair in pairs], dtype=bool)
    if is_positive.all() or not is_positive.any():
        raise RechainError("AUC needs labelled pairs of these questions, some that interact and some that do not.")
    return auc_with_interval(score(pairs), is_positive)
