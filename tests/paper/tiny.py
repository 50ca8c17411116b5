"""Batches and players so small that they can be worked by hand; `conftest.py` gives them to the tests as `tiny`."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rechain.paper.data import Batch, WordTable
from rechain.paper.game import Players
from rechain.paper.reasoner import Prediction
from rechain.paper.settings import MARKS, GameSettings

WIDTH = 4
WORDS = 13
KNOWN = 9
"""words below this number have a vector"""

QUESTIONS = [[1, 2, 3], [4, 5]]
PASSAGES = [[[1, 6, 7, 2, 8], [3, 9, 1], [10, 11, 4, 5]], [[5, 4], [6, 1, 11, 10, 7]]]
TITLES = [[1, 1, 2], [1, 2]]
MENTIONS = [[[(0, 1), (1, 3), (0, 4)], [(0, 1)], [(1, 0), (2, 2)]], [[(0, 0)], [(0, 2), (1, 3)]]]
CHAINS = [[(0, 1), (2, 0)], [(0, 1)]]


def word_table() -> WordTable:
    """Words 1 to 8 have a vector; 9 to 12 are spelt; a word is the rarer the greater its number."""
    numbers = torch.arange(WORDS)
    is_known = numbers < KNOWN
    ngrams = torch.where(is_known, 0, numbers)[:, None] * torch.tensor([1, 7, 0])
    return WordTable(torch.where(is_known, numbers, 0), ngrams, numbers / 2)


def vectors() -> Tensor:
    """[KNOWN, WIDTH], the first row for words that have none."""
    drawn = torch.randn(KNOWN, WIDTH, generator=torch.Generator().manual_seed(5))
    drawn[0] = 0
    return drawn


def padded(lists: Any, shape: Sequence[int], padding: float, dtype: torch.dtype = torch.long) -> Tensor:
    """Return nested lists of different lengths as a tensor."""
    made = torch.full(tuple(shape), padding, dtype=dtype)

    def fill(part: Any, where: tuple[int, ...]) -> None:
        for number, value in enumerate(part):
            if isinstance(value, list):
                fill(value, (*where, number))
            else:
                made[(*where, number)] = torch.as_tensor(value, dtype=dtype)

    fill(lists, ())
    return made


def make_batch(
    questions: Sequence[Sequence[int]] = QUESTIONS,
    passages: Sequence[Sequence[Sequence[int]]] = PASSAGES,
    titles: Sequence[Sequence[int]] = TITLES,
    mentions: Sequence[Sequence[Sequence[tuple[int, int]]]] = MENTIONS,
    chains: Sequence[Sequence[tuple[int, ...]]] = CHAINS,
    **changes: Tensor,
) -> Batch:
    """Return a batch; a mention is (entity, word), and a passage holds the entities that it mentions."""
    size, most = len(questions), max(map(len, passages))
    if "lexical" in changes:
        changes.setdefault("evidence", changes["lexical"])
    words = max(len(passage) for one in passages for passage in one)
    most_mentions = max([1, *(len(told) for one in mentions for told in one)])
    entities = max([1, *(entity + 1 for one in mentions for told in one for entity, _ in told)])
    most_chains, hops = max(map(len, chains)), len(chains[0][0])
    contains = torch.zeros(size, entities, most, dtype=torch.bool)
    for number, one in enumerate(mentions):
        for place, told in enumerate(one):
            for entity, _ in told:
                contains[number, entity, place] = True
    entity_lists = [[[entity for entity, _ in told] for told in one] for one in mentions]
    token_lists = [[[token for _, token in told] for told in one] for one in mentions]
    fields: dict[str, Any] = {
        "words": word_table(),
        "question": padded(questions, (size, max(map(len, questions))), 0),
        "question_lengths": torch.tensor([len(one) for one in questions]),
        "passages": padded(passages, (size, most, words), 0),
        "passage_lengths": padded([[len(p) for p in one] for one in passages], (size, most), 0),
        "title_lengths": padded(titles, (size, most), 0),
        "marks": torch.zeros(size, most, words, MARKS),
        "mention_entity": padded(entity_lists, (size, most, most_mentions), -1),
        "mention_token": padded(token_lists, (size, most, most_mentions), 0),
        "mention_end": padded(token_lists, (size, most, most_mentions), 0) + 1,
        "mention_weight": torch.zeros(size, most, most_mentions),
        "contains": contains,
        "may_link": torch.ones(size, entities, hops - 1, dtype=torch.bool),
        "chains": padded(chains, (size, most_chains, hops), -1),
        "chain_links": torch.full((size, most_chains, hops - 1), -1),
        "lexical": torch.zeros(size, most_chains),
        "evidence": torch.zeros(size, most_chains),
    }
    return Batch(**(fields | changes))


def make_players(hops: int = 2, seed: int = 0, **settings: Any) -> Players:
    """Return players with three units a direction, whose weights are large enough for clear preferences."""
    torch.manual_seed(seed)
    settings = {"hidden": 3, "sharpness": 0.0} | settings
    players = Players(vectors(), hops, GameSettings(**settings))
    with torch.no_grad():
        for parameter in players.parameters():
            parameter.mul_(2)
    return players.eval()


class KnownReasoner(nn.Module):
    """Predicts the entities of every passage with given probabilities, [B, K, X]."""

    def __init__(self, probability: Any) -> None:
        super().__init__()
        self.probability = nn.Parameter(torch.as_tensor(probability).float())
        self.asked: list[tuple[Any, int]] = []
        """what was read: places, and the number of the link"""

    def token_scores(self, batch: Batch, passages: Tensor) -> Tensor:
        """There is nothing to read."""
        return passages

    def predict(self, batch: Batch, passages: Tensor, scores: Tensor, link: int, role: int) -> Prediction:
        """Return the prediction from some passages."""
        return self(batch, passages, link, role)

    def forward(self, batch: Batch, passages: Tensor, link: int, role: int) -> Prediction:
        """Return the prediction from some passages."""
        self.asked.append((passages.tolist(), link))
        probability = self.probability[torch.arange(len(passages))[:, None], passages]
        return Prediction(probability.clamp(min=1e-9).log(), probability.detach().any(-1))


def certain(best: Sequence[Sequence[int]], entities: int = 3) -> KnownReasoner:
    """Return one that names one entity of each passage, [B][K]; none for -1."""
    return KnownReasoner(torch.tensor(best)[..., None] == torch.arange(entities))


def make_larger_batch(chains: Sequence[Sequence[tuple[int, ...]]], **changes: Tensor) -> Batch:
    """Return the batch with one passage more for each question: four and three."""
    passages = [PASSAGES[0] + [[2, 12, 6]], PASSAGES[1] + [[3, 8]]]
    titles = [[1, 1, 2, 1], [1, 2, 0]]
    mentions = [MENTIONS[0] + [[(2, 1), (0, 2)]], MENTIONS[1] + [[(1, 1)]]]
    return make_batch(QUESTIONS, passages, titles, mentions, chains, **changes)
