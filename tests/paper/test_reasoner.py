"""The Reasoner of Appendix A against the same in NumPy, and how the scores of words become those of entities."""

from types import ModuleType

import numpy as np
import pytest
import torch

from rechain.paper.reasoner import Attention, Reasoner, span_means
from rechain.paper.settings import GameSettings

PLACES = torch.tensor([[0, 2], [1, 0]])


def make_reasoner(tiny: ModuleType, features: str = "none") -> Reasoner:
    torch.manual_seed(7)
    reasoner = Reasoner(tiny.vectors(), GameSettings(hidden=3, features=features)).eval()
    with torch.no_grad():
        reasoner.classify.weight.mul_(5)
    return reasoner


def word_scores(reasoner: Reasoner, reference: ModuleType, question: np.ndarray, passage: np.ndarray) -> np.ndarray:
    """g(h_k) of every word, from Q^r [N, d] and H^r [M, d]."""
    m_1 = reference.attention(question, passage, reasoner.question_attention.project)
    h_1 = reference.bigru(m_1, reasoner.first_gru)
    m_2 = reference.attention(h_1, h_1, reasoner.self_attention.project)
    h_p = reference.bigru(m_1 + m_2, reasoner.second_gru)
    return reference.linear(h_p, reasoner.classify)[:, 0]


def scores_of(tiny: ModuleType, reference: ModuleType, reasoner: Reasoner, number: int, place: int) -> np.ndarray:
    batch = tiny.make_batch()
    question = reference.array(reasoner.encoder.question(batch)[number, : len(tiny.QUESTIONS[number])])
    passage = reasoner.encoder.passages(batch)[number, place, : len(tiny.PASSAGES[number][place])]
    return word_scores(reasoner, reference, question, reference.array(passage))


def test_attention_of_b_on_a(reference: ModuleType) -> None:
    torch.manual_seed(8)
    attention, a, b = Attention(3), torch.randn(2, 4, 3), torch.randn(2, 5, 3)
    lengths = [4, 2]
    found = attention(a, b, torch.arange(4) < torch.tensor(lengths)[:, None])
    assert found.shape == b.shape
    for number, length in enumerate(lengths):
        expected = reference.attention(
            reference.array(a[number, :length]), reference.array(b[number]), attention.project
        )
        np.testing.assert_allclose(reference.array(found[number]), expected, atol=1e-6)


@pytest.mark.parametrize("features", ["none", "matches"])
def test_two_attentions_two_gru_and_a_skip_connection_score_the_words_of_entities(
    tiny: ModuleType, reference: ModuleType, features: str
) -> None:
    reasoner = make_reasoner(tiny, features)
    named = reasoner(tiny.make_batch(), PLACES, 0, role=0)
    assert named.log_probability.shape == (2, 2, 3)
    for number, side in np.ndindex(2, 2):
        place = int(PLACES[number, side])
        scores = scores_of(tiny, reference, reasoner, number, place)
        mentions = tiny.MENTIONS[number][place]
        shares = reference.softmax(np.array([scores[token] for _, token in mentions]))
        expected = np.zeros(3)
        for (entity, _), share in zip(mentions, shares, strict=True):
            expected[entity] += share
        np.testing.assert_allclose(np.exp(reference.array(named.log_probability[number, side])), expected, atol=1e-6)


def test_an_entity_with_several_mentions_gets_the_sum_over_them(tiny: ModuleType, reference: ModuleType) -> None:
    reasoner = make_reasoner(tiny)
    scores = scores_of(tiny, reference, reasoner, 0, 0)
    first, other, second = np.exp(scores[[1, 3, 4]]) / np.exp(scores[[1, 3, 4]]).sum()  # entity 0, 1, then 0 again
    probability = reasoner(tiny.make_batch(), PLACES, 0, role=0).log_probability[0, 0].exp().tolist()
    assert probability[:2] == pytest.approx([first + second, other], abs=1e-6)


def test_a_mention_is_scored_by_the_mean_over_its_words(tiny: ModuleType) -> None:
    # passage 0 mentions entity 0 by its words 1 and 2, and by 4; entity 1 by 3; padding is a mention of the word 0
    ends = tiny.make_batch().mention_end.clone()
    ends[0, 0, 0] = 3
    batch = tiny.make_batch(mention_end=ends)
    scores = torch.tensor([1.0, 2.0, 6.0, 5.0, -3.0]).expand(2, 3, 5)
    assert span_means(scores, batch)[0, 0].tolist() == [4.0, 5.0, -3.0]
    assert span_means(scores, batch)[0, 1].tolist() == [2.0, 1.0, 1.0]


def test_a_reasoner_reads_spans_or_first_words(tiny: ModuleType, reference: ModuleType) -> None:
    ends = tiny.make_batch().mention_end.clone()
    ends[0, 0, 0] = 3
    batch, reasoner = tiny.make_batch(mention_end=ends), make_reasoner(tiny)
    scores = scores_of(tiny, reference, reasoner, 0, 0)
    span, *others = np.exp([scores[1:3].mean(), scores[3], scores[4]])
    expected = [(span + others[1]) / (span + sum(others)), others[0] / (span + sum(others))]
    probability = reasoner(batch, PLACES, 0, role=0).log_probability[0, 0].exp().tolist()
    assert probability[:2] == pytest.approx(expected, abs=1e-6)
    reasoner.scores_first_words = True
    by_first = reasoner(batch, PLACES, 0, role=0).log_probability
    assert torch.equal(by_first, reasoner(tiny.make_batch(), PLACES, 0, role=0).log_probability)


def test_what_is_not_an_entity_of_the_passage_has_no_probability(tiny: ModuleType) -> None:
    probability = make_reasoner(tiny)(tiny.make_batch(), PLACES, 0, role=0).log_probability.exp()
    held = tiny.make_batch().contains.transpose(1, 2)[torch.arange(2)[:, None], PLACES]
    assert probability[~held].max() < 1e-8
    assert torch.allclose(probability.sum(-1), torch.ones(2, 2), atol=1e-5)


def test_an_entity_that_may_not_be_this_link_has_no_probability_and_the_others_share_it(tiny: ModuleType) -> None:
    may_link = torch.ones(2, 3, 2, dtype=torch.bool)
    may_link[0, 0, 1] = False
    batch = tiny.make_batch(chains=[[(0, 1, 2)], [(0, 1, 0)]], may_link=may_link)
    reasoner = make_reasoner(tiny)
    assert reasoner(batch, PLACES, 0, role=0).log_probability.exp()[0, 0, 0] > 0.01
    assert reasoner(batch, PLACES, 1, role=0).log_probability.exp()[0, 0].tolist() == pytest.approx([0, 1, 0], abs=1e-6)


def test_a_passage_without_any_entity_is_told_and_all_its_probabilities_are_finite(tiny: ModuleType) -> None:
    mentions = [[[], [(0, 1)], [(1, 0), (2, 2)]], [[(0, 0)], []]]
    named = make_reasoner(tiny)(tiny.make_batch(mentions=mentions), PLACES, 0, role=0)
    assert named.has_entity.tolist() == [[False, True], [False, True]]
    assert named.log_probability.isfinite().all()
    assert named.log_probability[0, 0].exp().max() < 1e-8


def test_the_best_entity_is_the_likeliest(tiny: ModuleType) -> None:
    named = make_reasoner(tiny)(tiny.make_batch(), PLACES, 0, role=0)
    assert named.best.tolist() == [
        [max(range(3), key=side.__getitem__) for side in row] for row in named.log_probability
    ]


def test_padding_changes_nothing_that_the_reasoner_says(tiny: ModuleType) -> None:
    parts = (tiny.QUESTIONS, tiny.PASSAGES, tiny.TITLES, tiny.MENTIONS)
    reasoner = make_reasoner(tiny, features="matches")
    alone = reasoner(tiny.make_batch(*([one[1]] for one in parts), [[(0, 1)]]), PLACES[1:], 0, role=0).log_probability[
        0
    ]
    together = reasoner(tiny.make_batch(), PLACES, 0, role=0).log_probability[1]
    assert torch.allclose(together[:, :2], alone, atol=1e-6)


def test_all_parts_of_the_reasoner_learn(tiny: ModuleType) -> None:
    reasoner = make_reasoner(tiny)
    reasoner(tiny.make_batch(), PLACES, 0, role=0).log_probability[0, :, 1].sum().backward()
    untaught = {name for name, p in reasoner.named_parameters() if p.grad is None or p.grad.abs().sum() < 1e-6}
    assert untaught == {"classify.bias"}  # which softmax does not see
