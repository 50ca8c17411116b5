"""The Ranker: selection probabilities and the update of the query, against NumPy."""

from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rechain.paper.data import Batch
from rechain.paper.ranker import ROLES, Encoded, Ranker, Selected
from rechain.paper.settings import GameSettings


def make_ranker(tiny: ModuleType, features: str = "none", update: str = "paper") -> Ranker:
    torch.manual_seed(6)
    return Ranker(tiny.vectors(), GameSettings(hidden=3, features=features, update=update)).eval()


def choose(
    ranker: Ranker, read: Encoded, role: str, places: list[list[int]], before: Selected | None = None
) -> Selected:
    """Select a passage for each question."""
    before = before or ranker.start(read)
    states = ranker.step(read, before, role)[1]
    chosen = torch.tensor(places)
    state = torch.stack([states[number, 0, place] for number, place in enumerate(chosen)])
    return ranker.select(before, chosen, state)


@pytest.mark.parametrize("role", ROLES)
def test_the_probability_of_a_passage_is_a_softmax_over_linear_scores_of_matching_states(
    tiny: ModuleType, reference: ModuleType, role: str
) -> None:
    ranker, batch = make_ranker(tiny), tiny.make_batch()
    read = ranker.encode(batch)
    log_probability, states = ranker.step(read, ranker.start(read), role)
    for number, (question, passages) in enumerate(zip(tiny.QUESTIONS, tiny.PASSAGES, strict=True)):
        query = reference.array(read.question[number, : len(question)])
        words = [reference.array(read.passages[number, i, : len(p)]) for i, p in enumerate(passages)]
        matched = np.array([reference.match(query, one, ranker.match.gru) for one in words])
        scores = reference.linear(matched, ranker.score)[:, ROLES.index(role)]
        found = reference.array(log_probability[number, 0, : len(passages)])
        np.testing.assert_allclose(np.exp(found), reference.softmax(scores), atol=1e-6)
        np.testing.assert_allclose(reference.array(states[number, 0, : len(passages)]), matched, atol=1e-6)


def test_the_query_is_updated_by_the_matching_state_of_the_passage_selected(
    tiny: ModuleType, reference: ModuleType
) -> None:
    ranker = make_ranker(tiny)
    read = ranker.encode(tiny.make_batch())
    first = choose(ranker, read, "tail", [[2], [0]])
    second = choose(ranker, read, "head", [[1], [1]], first)
    assert second.options.tolist() == [[[2, 1]], [[0, 1]]]
    words = [reference.array(read.passages[0, i, : len(p)]) for i, p in enumerate(tiny.PASSAGES[0])]
    query = reference.array(read.question[0])
    for place, made in ((2, first), (1, second)):
        query = reference.update(query, reference.match(query, words[place], ranker.match.gru), ranker.update)
        np.testing.assert_allclose(reference.array(made.query[0, 0]), query, atol=1e-6)


def test_a_residual_update_begins_with_the_question_and_adds_the_ffn(tiny: ModuleType, reference: ModuleType) -> None:
    ranker = make_ranker(tiny, update="residual")
    encoded = ranker.encode(tiny.make_batch())
    assert torch.equal(choose(ranker, encoded, "tail", [[2], [0]]).query, ranker.start(encoded).query)
    with torch.no_grad():
        ranker.update[2].weight.copy_(torch.randn(6, 6))
    query = reference.array(encoded.question[0])
    words = reference.array(encoded.passages[0, 2, : len(tiny.PASSAGES[0][2])])
    expected = query + reference.update(query, reference.match(query, words, ranker.match.gru), ranker.update)
    updated = choose(ranker, encoded, "tail", [[2], [0]]).query
    np.testing.assert_allclose(reference.array(updated[0, 0]), expected, atol=1e-6)


def test_the_next_selection_is_made_with_the_updated_query(tiny: ModuleType, reference: ModuleType) -> None:
    ranker = make_ranker(tiny)
    read = ranker.encode(tiny.make_batch())
    first = choose(ranker, read, "tail", [[2], [0]])
    log_probability, _ = ranker.step(read, first, "head")
    query = reference.array(first.query[0, 0])
    words = [reference.array(read.passages[0, i, : len(tiny.PASSAGES[0][i])]) for i in (0, 1)]
    matched = np.array([reference.match(query, one, ranker.match.gru) for one in words])
    expected = reference.softmax(reference.linear(matched, ranker.score)[:, 0])
    np.testing.assert_allclose(np.exp(reference.array(log_probability[0, 0])), [*expected, 0], atol=1e-6)


def test_links_to_what_was_selected_count_in_the_score_too(tiny: ModuleType) -> None:
    ranker = make_ranker(tiny, features="matches")
    read = ranker.encode(tiny.make_batch())
    first = choose(ranker, read, "tail", [[1], [1]])
    log_probability, matched = ranker.step(read, first, "head")
    assert read.matches is not None
    links = read.matches.links(first.options)
    assert links[0, 0, 0].sum() > 0  # the title of passage 0 stands in passage 1
    scores = ranker.score(torch.cat([matched, links], dim=-1))[0, 0, [0, 2], 0]
    assert torch.allclose(log_probability[0, 0, [0, 2]], scores.log_softmax(-1), atol=1e-6)


def test_selections_side_by_side_are_what_each_is_alone(tiny: ModuleType) -> None:
    ranker = make_ranker(tiny, features="matches")
    read = ranker.encode(tiny.make_batch())
    states = ranker.step(read, ranker.start(read), "tail")[1][:, 0]
    together = ranker.select(ranker.start(read), torch.tensor([[0, 1, 2], [0, 1, 0]]), states[:, [0, 1, 2]])
    told = ranker.step(read, together, "head")[0]
    for side in range(2):
        alone = ranker.step(read, choose(ranker, read, "tail", [[side], [side]]), "head")[0]
        assert torch.allclose(told[:, side], alone[:, 0], atol=1e-6)


def shuffled_batch(tiny: ModuleType, order: list[int]) -> Batch:
    parts = (tiny.PASSAGES, tiny.TITLES, tiny.MENTIONS)
    return tiny.make_batch([tiny.QUESTIONS[0]], *([[one[0][place] for place in order]] for one in parts), [[(0, 1)]])


@settings(max_examples=20)
@given(order=st.permutations(range(3)))
def test_the_order_of_the_passages_does_not_matter(tiny: ModuleType, order: list[int]) -> None:
    ranker = make_ranker(tiny, features="matches")
    found = []
    for batch in (shuffled_batch(tiny, order), shuffled_batch(tiny, [0, 1, 2])):
        read = ranker.encode(batch)
        found.append(ranker.step(read, ranker.start(read), "tail")[0][0, 0])
    assert torch.allclose(found[0], found[1][order], atol=1e-6)


@settings(max_examples=20)
@given(taken=st.lists(st.integers(0, 2), max_size=2), seed=st.integers(0, 99))
def test_probabilities_sum_to_one_and_neither_padding_nor_a_selected_passage_has_any(
    tiny: ModuleType, taken: list[int], seed: int
) -> None:
    ranker = make_ranker(tiny, features="matches")
    batch = tiny.make_batch()
    read = ranker.encode(batch)
    query = torch.randn(2, 1, 3, 6, generator=torch.Generator().manual_seed(seed))
    places = (
        torch.tensor([[taken], [[min(place, 1) for place in taken[:1]] * len(taken)]]).view(2, 1, len(taken)).long()
    )
    probability = ranker.step(read, Selected(places, query), "head")[0].exp()[:, 0]
    assert torch.allclose(probability.sum(-1), torch.ones(2), atol=1e-5)
    assert probability[0, taken].eq(0).all()
    assert probability[1, [2, *places[1, 0].tolist()]].eq(0).all()
