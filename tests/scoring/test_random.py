"""A chain picked at random."""

from collections import Counter

import pytest

from rechain.candidates import find_candidates
from rechain.recovery import Recoverer
from rechain.schema import Passage, Question
from rechain.scoring import Random

CHAINS = 5


def question(name: str) -> Question:
    heads = [Passage(id=str(number), text="a song of Quorvath") for number in range(CHAINS)]
    # entries about their titles: what many parts of documents share would not link
    others = [Passage(id=f"other {n}", title=f"Other{n}", text=f"Other{n} is.") for n in range(CHAINS)]
    tail = Passage(id="t", text="Quorvath, Ostrela")
    return Question(id=name, question="Who?", answer="Ostrela", passages=[*heads, tail, *others])


def pick(name: str, seed: int = 0) -> str:
    return Recoverer(Random(seed)).recover(question(name)).chains[0].passages[0]


@pytest.mark.parametrize("seed", [0, 1])
def test_every_chain_is_picked_equally_often(seed: int) -> None:
    draws = 1000
    counts = Counter(pick(f"q{number}", seed) for number in range(draws))
    expected = draws / CHAINS
    chi_square = sum((counts[str(number)] - expected) ** 2 / expected for number in range(CHAINS))
    assert chi_square < 18.47  # 99.9 % of fair draws, 4 degrees of freedom


def test_a_pick_depends_on_question_id_and_seed_alone() -> None:
    names = [f"q{number}" for number in range(50)]
    picks = {name: pick(name) for name in names}
    model = Recoverer(Random())
    assert {name: model.recover(question(name)).chains[0].passages[0] for name in reversed(names)} == picks
    assert {name: pick(name, seed=1) for name in names} != picks


def test_every_chain_has_one_score() -> None:
    scores = Random().score(find_candidates(question("q")))
    assert len(scores) == CHAINS
    assert len({score["chance"] for score in scores}) == CHAINS
