"""Pairs: AUC by hand, and what the Reasoner is asked."""

import json
from dataclasses import asdict
from math import isclose
from pathlib import Path

import numpy as np
import pytest
import torch

from rechain.errors import InputError, RechainError
from rechain.evaluation.gold import PairLabel
from rechain.evaluation.statistics import auc
from rechain.paper.game import Players
from rechain.paper.model import GameModel, load_game
from rechain.paper.pairs import (
    Pair,
    guess_scores,
    judge_pairs,
    lexical_scores,
    pairs_of,
    read_pair_labels,
    reasoner_scores,
)
from rechain.paper.settings import GameSettings
from rechain.paper.vectors import Vectors
from rechain.schema import Passage, Question
from rechain.system.tensors import save_tensors

TOGETHER = Passage(id="0", text="DB00001 binds P12345 . Q23456 was seen .")
APART = Passage(id="1", text="P12345 was measured . DB00001 was given . Q23456 too .")
QUESTION = Question(id="MH_1", question="interacts_with DB00001?", answer="DB00002", hops=3, passages=[TOGETHER, APART])
SETTINGS = GameSettings(hidden=3)


def label(support: int, a: str, b: str, interacts: bool, question: str = "MH_1") -> PairLabel:
    return PairLabel(id=question, support=support, a=a, b=b, interacts=interacts)


LABELS = [
    label(0, "DB00001", "P12345", True),
    label(0, "P12345", "DB00001", True),
    label(0, "P12345", "Q23456", False),
    label(1, "DB00001", "P12345", False),
    label(1, "DB00001", "P12345", False, question="MH_2"),
    label(7, "DB00001", "P12345", True),
]


@pytest.fixture
def reader(vectors: Vectors) -> GameModel:
    """A Reasoner that was never trained."""
    torch.manual_seed(0)
    return GameModel(Players(torch.from_numpy(vectors.table), 3, SETTINGS), {"was": 1, "born": 2})


def test_pair_labels_are_read_where_a_file_has_them(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps({"id": "MH_1", "support": 3, "a": "DB00001", "b": "P12345", "interacts": True}))
    assert [(label.id, label.support, label.interacts) for label in read_pair_labels(path)] == [("MH_1", 3, True)]
    path.write_text(json.dumps({"id": "q1", "chains": []}))
    assert read_pair_labels(path) == []


def test_every_pair_of_a_known_passage_counts_once() -> None:
    pairs = pairs_of([QUESTION], LABELS)
    assert [(pair.passage.id, pair.one, pair.two, pair.interacts) for pair in pairs] == [
        ("0", "drug:DB00001", "protein:P12345", True),
        ("0", "protein:P12345", "protein:Q23456", False),
        ("1", "drug:DB00001", "protein:P12345", False),
    ]


def test_the_interval_holds_the_value_and_comes_from_both_kinds() -> None:
    passages = [TOGETHER if number % 2 else APART for number in range(20)]
    pairs = [Pair(passage, "drug:DB00001", "protein:P12345", passage is TOGETHER) for passage in passages]
    assert judge_pairs(pairs)["lexical"] == (1.0, 1.0, 1.0, 20)
    noisy = judge_pairs([pair._replace(interacts=number % 3 == 0) for number, pair in enumerate(pairs)])["lexical"]
    assert noisy.low < noisy.value < noisy.high


def test_auc_needs_both_kinds_of_pairs() -> None:
    for labels in ([LABELS[0]], LABELS[2:4], []):
        with pytest.raises(RechainError, match="some that interact and some that do not"):
            judge_pairs(pairs_of([QUESTION], labels))


def test_the_lexical_rule_prefers_pairs_in_one_sentence() -> None:
    scores = lexical_scores(pairs_of([QUESTION], LABELS))
    assert scores[0] > scores[1] == scores[2]
    assert judge_pairs(pairs_of([QUESTION], LABELS))["lexical"].value == 1.0


def test_the_reasoner_is_asked_for_either_entity_among_the_others(reader: GameModel) -> None:
    torch.nn.init.zeros_(reader.players.reasoner.classify.weight)
    pairs = pairs_of([QUESTION], LABELS)
    assert np.allclose(reasoner_scores(reader, pairs), np.log(1 / 2))  # two others in each, all equally likely
    only = Pair(Passage(id="2", text="DB00001 binds P12345 ."), "drug:DB00001", "protein:P12345", True)
    assert isclose(float(reasoner_scores(reader, [only])[0]), 0.0, abs_tol=1e-6)


def test_an_entity_with_two_mentions_gets_the_sum_of_both(reader: GameModel) -> None:
    torch.nn.init.zeros_(reader.players.reasoner.classify.weight)
    twice = Passage(id="2", text="DB00001 binds P12345 . Then P12345 binds Q23456 .")
    score = reasoner_scores(reader, [Pair(twice, "drug:DB00001", "protein:P12345", True)])
    assert float(score[0]) == pytest.approx((np.log(2 / 3) + np.log(1 / 2)) / 2, abs=1e-5)


def test_a_guess_knows_the_mentions_alone(reader: GameModel) -> None:
    torch.nn.init.zeros_(reader.players.reasoner.classify.weight)
    twice = Passage(id="2", text="DB00001 binds P12345 . Then P12345 binds Q23456 .")
    pairs = [*pairs_of([QUESTION], LABELS), Pair(twice, "drug:DB00001", "protein:P12345", True)]
    assert guess_scores(pairs)[0] == pytest.approx(np.log(1 / 2))
    assert guess_scores(pairs)[-1] == pytest.approx((np.log(2 / 3) + np.log(1 / 2)) / 2)
    assert np.allclose(reasoner_scores(reader, pairs), guess_scores(pairs), atol=1e-5)
    assert judge_pairs(pairs[:-1])["a guess among the mentions"].value == 1 / 2


def test_an_entity_that_the_passage_does_not_hold_is_very_unlikely(reader: GameModel) -> None:
    score = reasoner_scores(reader, [Pair(TOGETHER, "drug:DB00001", "protein:P99999", False)])
    assert float(score[0]) < -5


def test_the_scores_do_not_depend_on_what_else_is_asked(reader: GameModel) -> None:
    pairs = pairs_of([QUESTION], LABELS)
    alone = np.array([float(reasoner_scores(reader, [pair])[0]) for pair in pairs])
    assert np.allclose(reasoner_scores(reader, pairs), alone, atol=1e-5)
    expected, over_guess = (
        auc(values, np.array([True, False, False])) for values in (alone, alone - guess_scores(pairs))
    )
    figures = judge_pairs(pairs, reader, "run")
    assert figures["Reasoner of run"].value == expected
    assert figures["Reasoner of run, over the guess"].value == over_guess


def test_kept_weights_are_read_with_vectors_of_their_width(tmp_path: Path, reader: GameModel, vectors: Vectors) -> None:
    path = tmp_path / "cooperative.0.0.model"
    save_tensors(reader.players.state_dict(), {"settings": asdict(SETTINGS), "hops": 3}, path)
    again = load_game(path, vectors)
    pairs = pairs_of([QUESTION], LABELS)
    assert again.rows == {"was": 1, "born": 2, "unused": 3}
    assert np.allclose(reasoner_scores(again, pairs), reasoner_scores(reader, pairs))
    with pytest.raises(InputError, match="is of other networks or word vectors than these"):
        load_game(path, Vectors([], np.zeros((0, 2), np.float16)))
