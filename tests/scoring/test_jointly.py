"""Offers as lines, and what becomes of chains when other questions tell of their steps."""

from math import exp, log

import pytest

from rechain.schema import Chain, Problem, Recovered
from rechain.scoring.beliefs import Offers
from rechain.scoring.confidences import JOINTLY
from rechain.scoring.jointly import Offer

ONE, TWO, THREE = (f"{number:016x}" for number in (1, 2, 3))


def chain(name: str, score: float, confidence: float | None = None, explained: bool = False) -> Chain:
    why = {"words": score, "steps": []} if explained else None
    return Chain(passages=[name, "tail"], links=[], score=score, confidence=confidence, why=why)


def offer(*chains: Chain, steps: list[list[str]]) -> Offer:
    """Offer chains whose confidences are their shares; those of a model that has none divide all by their scores."""
    total = sum(exp(chain.score) for chain in chains)
    shares = [exp(one.score) / total if one.confidence is None else one.confidence for one in chains]
    return Offer.of(Recovered(id="q", chains=list(chains)), steps, "f, line 1", shares)


def test_an_offer_survives_being_written() -> None:
    one = offer(chain("a", 0.1 + 0.2, 0.7, explained=True), chain("b", 1e-17, 0.1), steps=[[ONE, TWO], []])
    assert Offer.of_json(one.to_json()) == one
    assert one.recovered[0].score == 0.1 + 0.2
    assert one.to_json().startswith('{"id":')  # as the lines of a file that can be resumed do
    failed = Offer.of(Recovered(id=None, chains=[], error=Problem(code="no_link", message="f: no link")))
    assert Offer.of_json(failed.to_json()).recovered == failed.recovered


def test_what_is_told_is_added_to_the_score_and_may_change_which_chain_is_best() -> None:
    one = offer(chain("a", 2.0, explained=True), chain("b", 1.0, explained=True), steps=[[ONE], [TWO, THREE]])
    recovered = one.weigh({ONE: -0.5, TWO: 0.5, THREE: 0.25}, top=2, min_confidence=None)
    assert [(c.passages[0], c.score, c.confidence) for c in recovered] == [("b", 1.75, None), ("a", 1.5, None)]
    assert recovered[0].why == {"words": 1.0, "jointly": 0.75, "steps": []}
    assert len(one.weigh({ONE: 0.0, TWO: 0.0, THREE: 0.0}, top=1, min_confidence=None)) == 1


def test_confidence_is_the_share_among_all_chains_and_none_of_them() -> None:
    one = offer(chain("a", 2.0, 0.5), chain("b", 1.0, 0.2), steps=[[ONE], [TWO]])
    recovered = one.weigh({ONE: 0.0, TWO: log(2)}, top=2, min_confidence=None)
    total = 0.5 + 0.4 + 0.3
    expected = [JOINTLY.confidence(share / total) for share in (0.5, 0.4)]
    assert [c.confidence for c in recovered] == pytest.approx(expected)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_model_may_be_certain(share: float) -> None:
    one, offers = offer(chain("a", 2.0, share), steps=[[ONE]]), Offers()
    one.add_to(offers)
    (best,) = one.settle(offers.learn(), 0, 1, None)
    assert 0 < (best.confidence or 0.0) < 1


def test_chains_of_less_confidence_are_left_out_or_there_is_none() -> None:
    one = offer(chain("a", 2.0, 0.6), chain("b", 1.0, 0.3), steps=[[ONE], [TWO]])
    told = {ONE: 0.0, TWO: 0.0}
    first, second = (c.confidence or 0.0 for c in one.weigh(told, 2, None))
    assert len(one.weigh(told, 2, (first + second) / 2)) == 1
    refused = one.weigh(told, 2, min(first + 0.01, 1.0))
    assert refused.error
    assert not refused.chains
    assert refused.error.code == "low_confidence"
    assert refused.error.message.startswith("f, line 1: the best chain has confidence")


def test_a_question_hears_from_the_others_of_its_input_and_one_without_steps_stays_as_it_is() -> None:
    doubtful = offer(chain("a", 0.1), chain("b", 0.0), steps=[[ONE], [TWO]])
    sure = [
        offer(chain("b", 1.0), chain("c", 1.0 - number), steps=[[TWO], [f"{9 + number:016x}"]]) for number in (5, 6)
    ]
    apart = Offer.of(Recovered(id="p", chains=[chain("x", 1.0)]))
    asked, offers = [doubtful, *sure, apart], Offers()
    for one in asked:
        one.add_to(offers)
    beliefs = offers.learn()
    settled = [one.settle(beliefs, position, 1, None) for position, one in enumerate(asked)]
    assert [recovered[0].passages[0] for recovered in settled] == ["b", "b", "b", "x"]
    assert settled[3] == apart.recovered
    assert settled[0][0].score == pytest.approx(0.0 + beliefs.told(0)[1])
    assert exp(beliefs.told(0)[1]) > 1.5
