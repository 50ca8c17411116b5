"""Passages side by side: what a question compares, what it names, and what an answer claims, by hand."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.schema import Passage, Question
from rechain.text.answers.claims import Claim
from rechain.text.answers.matcher import HeldClaim, Holding, Holdings
from rechain.text.candidates import find_parallels
from rechain.text.languages import idf
from rechain.text.passage_views import PassageView
from rechain.text.words import Text

ZIMBELOT, QUORVATH, RAIN = ("Zimbelot", "It is old."), ("Quorvath", "It is older."), ("Rain", "It falls.")
RAREST = idf("zimbelot")


def find(
    asked: str, passages: Sequence[tuple[str, str]], claims: Sequence[Mapping[int, float]] = ()
) -> dict[tuple[int, ...], float]:
    rows = [Passage(id=str(n), title=title, text=text) for n, (title, text) in enumerate(passages)]
    question = Question(id="q", question=asked, answer="yes", passages=rows)
    held = [HeldClaim(Claim("x", (), ()), {n: Holding("words", s) for n, s in one.items()}) for one in claims]
    found = find_parallels(question, [PassageView(passage) for passage in rows], Holdings(held))
    assert [weight for _, weight in found] == sorted((weight for _, weight in found), reverse=True)
    return dict(found)


@pytest.mark.parametrize(
    "asked",
    [
        "Which is older, Zimbelot or Quorvath?",
        "Are Zimbelot and Quorvath old?",
        "Was ist älter, Zimbelot oder Quorvath?",
        "Is Zimbelot as old as Quorvath?",  # without a conjunction
    ],
)
def test_a_passage_about_each_of_the_things_in_the_order_of_the_question(asked: str) -> None:
    assert set(find(asked, [RAIN, ZIMBELOT, QUORVATH])) == {(1, 2)}
    assert set(find(asked, [RAIN, QUORVATH, ZIMBELOT])) == {(2, 1)}


def test_what_stands_nearest_to_the_conjunction_counts_most() -> None:
    found = find("Which, Zimbelot or the Quorvath?", [ZIMBELOT, QUORVATH])
    assert found == {(0, 1): pytest.approx(2 * RAREST + 2 * 0.85 * RAREST)}  # both titles are named in full


def test_a_title_counts_by_the_share_of_it_that_is_named_and_the_text_a_little() -> None:
    asked = "Zimbelot or Quorvath?"
    passages = [("Zimbelot Vexlor", "It is old."), ("", "It is Quorvath's.")]
    assert find(asked, passages) == {}  # 0.3 of a word is too little
    passages = [("Zimbelot Vexlor", "It is old."), ("", "It is Quorvath's Brimlad.")]
    named = find("Zimbelot or Quorvath Brimlad?", passages)
    assert named == {(0, 1): pytest.approx(1.5 * RAREST + 0.3 * (RAREST + 0.85 * RAREST))}


def test_a_title_that_is_named_outweighs_others_with_its_words() -> None:
    passages = [("Zimbelot Vexlor Hall", "It is old."), QUORVATH, ZIMBELOT]
    found = list(find("Which is older, Zimbelot or Quorvath?", passages))
    assert found == [(2, 1), (0, 1)]


def test_a_passage_does_not_stand_beside_itself() -> None:
    assert find("Zimbelot or Quorvath?", [("Zimbelot Quorvath", "Zimbelot and Quorvath.")]) == {}


@pytest.mark.parametrize("asked", ["佐里拉还是卡门更早?", "佐里拉和卡门哪个更早?"])
def test_chinese_words_for_or_and_and(asked: str) -> None:
    assert next(iter(find(asked, [("卡门", "歌剧。"), ("佐里拉", "歌剧。")]))) == (1, 0)


def test_nothing_is_compared_where_nothing_is_named() -> None:
    assert find("Where was the composer born?", [ZIMBELOT, QUORVATH, RAIN]) == {}


def test_the_passages_that_hold_the_claims_best_stand_side_by_side() -> None:
    passages = [ZIMBELOT, QUORVATH, RAIN]
    assert find("What?", passages, [{2: 0.9, 0: 0.5}, {0: 0.8}]) == {(2, 0): 8.0}
    assert find("What?", passages, [{2: 0.9}, {2: 0.8}]) == {}  # one holds them all
    assert find("What?", passages, [{2: 0.9}, {}, {1: 0.3}]) == {(2, 1): 8.0}
    assert find("What?", passages, [{2: 0.9, 0: 0.5}]) == {}
    six = [(f"T{n}", "It is.") for n in range(6)]
    pairs = list(combinations(range(4), 2))  # tails that together hold more than each alone
    assert list(find("What?", six, [{n: 1.0} for n in range(6)])) == [(0, 1, 2, 3), *pairs]


def test_no_more_are_kept_than_the_best_eight() -> None:
    passages = [(f"{name} {n}", "It is.") for name in ("Zimbelot", "Quorvath") for n in range(6)]
    found = find("Zimbelot or Quorvath?", passages)
    assert len(found) == 8
    assert all(one < 4 and 6 <= two < 10 for one, two in found)  # four of each side are tried


@given(st.lists(st.sampled_from(["Zimbelot", "Quorvath", "Vexlor", "Zimbelot Vexlor", "Rain"]), max_size=30))
def test_of_many_passages_that_the_question_names_the_best_pairs_are_kept(titles: list[str]) -> None:
    asked = "Is Zimbelot Vexlor as old as Quorvath, rain?"
    found = find(asked, [(title, ".") for title in titles])
    query = Text(asked)
    places = {number: query.find(Text(title).joined) for number, title in enumerate(titles)}
    in_order = sorted(places, key=lambda number: places[number] or 0)
    pairs = {pair: sum(idf(w) for n in pair for w in Text(titles[n]).words) for pair in combinations(in_order, 2)}
    best = sorted(pairs.values(), reverse=True)[: len(found)]
    assert list(found.values()) == pytest.approx(best)
    assert len(found) == min(len(pairs), 8)


def test_very_many_passages_of_one_title_are_not_paired_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("rechain.text.candidates.idf", lambda word: asked.append(word) or idf(word))
    find("Is Zimbelot old?", [("Zimbelot", ".")] * 1000)
    assert len(asked) < 10_000  # a word of each title, and those of a few pairs; 500,000 pairs have a million
