"""Which shape evidence has: the numbers of small questions by hand, and odds that are probabilities."""

from collections.abc import Sequence
from math import exp, log

import numpy as np
import pytest

from rechain.schema import SHAPES, Passage, Question
from rechain.text.evidence.features import PRIOR, weigh
from rechain.scoring.interface import weights
from rechain.scoring.shape_weights import best_of_shapes, describe, shape_odds, weigh_answer, weigh_prior
from rechain.text.candidates import Candidates, find_of_any_shape
from rechain.text.languages import idf, phrase_idf

RAREST = idf("zimbelot")


def find(asked: str, answer: str, passages: Sequence[tuple[str, str]], hops: int | None = None) -> Candidates:
    rows = [Passage(id=str(n), title=title, text=text) for n, (title, text) in enumerate(passages)]
    return find_of_any_shape(Question(id="q", question=asked, answer=answer, passages=rows, hops=hops))


BRIDGE = find(
    "Where was the maker of Zimbelot born?", "Ostrela", [("Zimbelot", "by Vexlor"), ("", "Vexlor of Ostrela")]
)
COMPARED = find("Which is older, Zimbelot or Quorvath?", "Quorvath", [("Zimbelot", "Old."), ("Quorvath", "Older.")])
JUDGED = find("Is Zimbelot older than Quorvath?", "no", [("Zimbelot", "Old."), ("Quorvath", "Older.")])
ALL = (BRIDGE, COMPARED, JUDGED)


def described(candidates: Candidates) -> dict[str, dict[str, float]]:
    features = weigh(candidates)
    return dict(
        describe(candidates, features, best_of_shapes(candidates, weigh_prior(features, weigh_answer(candidates))))
    )


def odds(candidates: Candidates) -> dict[str, float]:
    features = weigh(candidates)
    return dict(shape_odds(candidates, features, weigh_prior(features, weigh_answer(candidates))))


def test_a_chain_beside_the_passage_that_may_suffice_alone() -> None:
    found = described(BRIDGE)
    assert list(found) == ["chain", "single"]
    total = sum(map(idf, ("where", "was", "the", "maker", "of", "zimbelot", "born")))
    held, alone = (RAREST + idf("of")) / total, idf("of") / total
    names = RAREST / (RAREST + idf("maker"))  # which is rare enough for a name
    assert found["chain"] == pytest.approx(
        {
            "chain: question": held,
            "chain: names": names,
            "answer": 1.0,
            "chain: weakest link": idf("vexlor") / 10,
            "chain: names passage": phrase_idf(["zimbelot"]) / 10,
            "chain: passages": 0.0,
            "chain: title link": 0.0,
            "chain: adds title": phrase_idf(["zimbelot"]) / 10,
            "chain: adds whole title": 1.0,
            "chain: adds words": RAREST / total,
            "chain: adds names": names,
        }
    )
    assert found["single"] == pytest.approx(
        {
            "single: question": alone,
            "single: names": 0.0,
            "answer": 1.0,
            "single": 1.0,
            "single: answering sentence": alone,
            "single: names passage": 0.0,
            "single: title words": 0.0,
        }
    )


def test_passages_side_by_side_beside_one_of_them() -> None:
    found = described(COMPARED)
    assert list(found) == ["parallel", "single"]
    parallel = found["parallel"]
    assert {name: parallel[name] for name in ("parallel", "parallel: chooses", "parallel: compares")} == {
        "parallel": 1.0,
        "parallel: chooses": 1.0,
        "parallel: compares": 1.0,
    }
    assert (parallel["parallel: judgement"], parallel["parallel: answer in question"]) == (0, 1)
    assert parallel["parallel: all hold answer"] == 0
    assert parallel["parallel: affinity"] == pytest.approx(COMPARED.chains[-1].weight / 20)
    assert parallel["parallel: names passages"] == pytest.approx(2 * phrase_idf(["zimbelot"]) / 10)
    assert parallel["parallel: names"] == 1
    assert found["single"]["single: names"] == pytest.approx(0.5)
    assert found["single"]["single: title words"] == pytest.approx(phrase_idf(["quorvath"]) / 10)


def test_a_judgement_says_so_and_each_passage_holds_a_part_of_it() -> None:
    parallel = described(JUDGED)["parallel"]
    assert (parallel["parallel: judgement"], parallel["parallel: answer in question"]) == (1, 0)
    assert (parallel["parallel: chooses"], parallel["parallel: compares"]) == (0, 1)
    assert parallel["parallel: all hold answer"] == float(set(JUDGED.tails) == {0, 1})


@pytest.mark.parametrize("asked", ["佐里拉还是卡门更早?", "佐里拉或卡门?"])
def test_chinese_questions_offer_a_choice_too(asked: str) -> None:
    found = described(find(asked, "卡门", [("卡门", "歌剧。"), ("佐里拉", "歌剧。")]))
    assert found["parallel"]["parallel: chooses"] == 1


def test_the_weights_name_every_number() -> None:
    used = {name for candidates in ALL for numbers in described(candidates).values() for name in numbers}
    assert used == set(weights("shapes"))


def test_odds_are_the_softmax_of_the_weighed_numbers() -> None:
    for candidates in ALL:
        found = odds(candidates)
        assert set(found) <= set(SHAPES) and len(found) > 1
        assert sum(map(exp, found.values())) == pytest.approx(1)
        logits = {
            shape: sum(weights("shapes")[name] * value for name, value in numbers.items())
            for shape, numbers in described(candidates).items()
        }
        total = log(sum(map(exp, logits.values())))
        assert found == pytest.approx({shape: logit - total for shape, logit in logits.items()})


def test_each_question_has_its_shape() -> None:
    assert [max(found, key=found.__getitem__) for found in map(odds, ALL)] == ["chain", "parallel", "parallel"]


def test_one_shape_is_certain() -> None:
    alone = find("Where?", "Ostrela", [("", "by Vexlor"), ("", "Vexlor of Ostrela")], hops=2)
    assert odds(alone) == {"chain": 0.0}


def test_holding_less_of_an_answer_than_others_tells_against_a_candidate() -> None:
    candidates = find("What is there?", "- red\n- Zimbelot", [("", "It is red."), ("", "A Zimbelot and Vexlor.")])
    against = dict(zip([chain.passages for chain in candidates.chains], weigh_answer(candidates), strict=True))
    affinity = 0.3 * 8.0  # of passages that hold the claims side by side
    assert against == pytest.approx({(0,): -6.0, (1,): -6.0, (0, 1): affinity})
    assert not weigh_answer(BRIDGE).any()


def test_the_prior_adds_what_is_compared() -> None:
    features = weigh(COMPARED)
    added = weigh_prior(features, weigh_answer(COMPARED)) - features @ PRIOR
    weighed = [0.3 * chain.weight if chain.shape == "parallel" else 0.0 for chain in COMPARED.chains]
    np.testing.assert_allclose(added, weighed, rtol=1e-5, atol=1e-5)


def test_the_best_of_each_shape_comes_best_first_and_the_first_of_equals() -> None:
    shapes = [chain.shape for chain in COMPARED.chains]
    assert shapes == ["single", "parallel"]
    assert best_of_shapes(COMPARED, np.array([1.0, 2.0])) == {"parallel": 1, "single": 0}
    singles = find("Where?", "Ostrela", [("", "of Ostrela"), ("", "in Ostrela")], hops=1)
    assert best_of_shapes(singles, np.zeros(2)) == {"single": 0}
