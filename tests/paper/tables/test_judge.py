"""Judging: accuracies worked by hand from fabricated plays."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from rechain.errors import InputError, RechainError
from rechain.paper.entities import entity_names
from rechain.paper.judge import (
    LEXICAL,
    VOTE,
    Game,
    Outcome,
    Results,
    Row,
    choose,
    common_games,
    difference,
    judge_plays,
)
from rechain.paper.settings import GameSettings
from rechain.paper.stage import TableQuestions, stage
from rechain.paper.tables import CONDITIONS
from rechain.paper.vectors import Vectors
from rechain.schema import Gold, GoldChain, Mention, Passage, Question
from rechain.system.files import write_sealed
from rechain.system.tensors import load_arrays, save_arrays
from rechain.text.candidates import CandidateSettings, find_candidates

WEIGHTS = dict.fromkeys(CONDITIONS, GameSettings(reasoner_weight=0.0, lexical_weight=1.0))
FOLD_0, FOLD_1 = ["q0", "q1", "q3", "q5"], ["q2", "q4", "q6"]
Fabricate = Callable[..., None]


@pytest.fixture
def results(folder: Path, questions: list[Question], golds: dict[str, Gold], fabricate: Fabricate) -> Results:
    """One row is right for three of eight questions with one seed, five with the other; another always."""
    fabricate("cooperative", 0, 0, ["q0"])
    fabricate("cooperative", 1, 0, ["q2", "q4"])
    fabricate("cooperative", 0, 1, ["q0", "q1", "q3"])
    fabricate("cooperative", 1, 1, ["q2", "q4"])
    fabricate("tail-to-head", 0, 0, FOLD_0)
    return judge_plays(folder, questions, golds, WEIGHTS)


def test_chains_are_counted_over_all_questions_asked(results: Results) -> None:
    assert (results.questions, results.with_gold, results.without_chain, results.folds) == (8, 8, 1, 2)
    figure = results.rows["cooperative"].figure()
    assert figure is not None
    assert figure.value == pytest.approx((1 + 0.5 + 0.5 + 0 + 1 + 1 + 0 + 0) / 8)
    assert figure.questions == 8


def test_seeds_are_averaged_question_by_question(results: Results) -> None:
    means = results.rows["cooperative"].means("correct")
    assert means == {"q0": 1, "q1": 0.5, "q3": 0.5, "q5": 0, "q2": 1, "q4": 1, "q6": 0, "q7": 0}
    alone = results.rows["cooperative"].means("correct", [Game(0, 0)])
    assert alone == {"q0": 1, "q1": 0, "q3": 0, "q5": 0, "q7": 0}


def test_a_question_without_candidates_counts_as_wrong_in_every_row(results: Results) -> None:
    assert all(row.means("correct")["q7"] == 0 for row in results.rows.values())
    assert results.rows["tail-to-head"].figure().value == pytest.approx(4 / 5)  # type: ignore[union-attr]


def test_head_and_tail_are_told(results: Results) -> None:
    row = results.rows["cooperative"]
    assert row.means("head", [Game(1, 0)]) == {"q2": 1, "q4": 1, "q6": 0}
    assert row.means("tail", [Game(1, 0)]) == {"q2": 1, "q4": 1, "q6": 1}
    assert row.figure("links") is None
    assert row.figure("named") is None


def test_the_lexical_rule_is_a_row_and_helps_the_others(results: Results) -> None:
    assert results.rows["lexical"].figure().value == pytest.approx(7 / 8)  # type: ignore[union-attr]
    assert results.rows["cooperative" + LEXICAL].figure().value == pytest.approx(7 / 8)  # type: ignore[union-attr]


def test_random_is_drawn_with_several_seeds(results: Results) -> None:
    row = results.rows["random"]
    assert len(row.games) == 20
    assert {value * 10 % 1 for value in row.means("correct").values()} == {0.0}
    assert 0.3 < row.figure().value < 0.6  # type: ignore[union-attr]


def test_differences_are_taken_on_common_games_alone(results: Results) -> None:
    rows = results.rows
    better = difference(rows["tail-to-head"], rows["cooperative"])
    assert better is not None
    assert better.value == pytest.approx((0 + 1 + 1 + 1 + 0) / 5)
    assert better.low >= 0
    worse = difference(rows["cooperative"], rows["tail-to-head"])
    assert worse is not None
    assert worse.value == pytest.approx(-better.value)
    assert worse.high <= 0
    assert common_games([rows["tail-to-head"], rows["cooperative"], rows["random"]]) == [Game(0, 0)]


def test_a_baseline_is_compared_on_the_folds_that_were_played(results: Results) -> None:
    figure = difference(results.rows["lexical"], results.rows["tail-to-head"])
    assert figure is not None
    assert (figure.value, figure.questions) == (0, 5)


def test_rows_without_a_common_game_have_no_difference() -> None:
    one, two = Row("one"), Row("two")
    one.games[Game(0, 0)]["q"] = Outcome(1.0)
    two.games[Game(1, 0)]["q"] = Outcome(1.0)
    assert common_games([one, two]) == []
    assert difference(one, two) is None


def test_the_reasoner_votes_in_cooperative_rows_alone(
    folder: Path, questions: list[Question], golds: dict[str, Gold], fabricate: Fabricate
) -> None:
    for row in ("cooperative", "cooperative untaught", "tail-to-head"):
        setting = {"cooperative": "cooperative", "tail-to-head": "tail to head"}.get(row, "untaught")
        fabricate(row, 1, 0, FOLD_1, {"settings": asdict(GameSettings(row=setting))})
        path = folder / "plays" / f"{row}.1.0.safetensors"
        arrays = load_arrays(path)
        save_arrays(arrays | {"reasoner": -3 * arrays["ranker"]}, path)
    rows = judge_plays(folder, questions, golds, dict.fromkeys(CONDITIONS, GameSettings(reasoner_weight=1.0))).rows
    figures = {name: row.figure().value for name, row in rows.items() if not row.is_baseline}  # type: ignore[union-attr]
    assert figures == {
        "cooperative": 1,
        "cooperative" + VOTE: 0,
        "cooperative untaught": 1,
        "cooperative untaught" + VOTE: 0,
        "tail-to-head": 1,
    }


def test_ambiguous_questions_and_those_without_gold_are_left_out(
    questions: list[Question], golds: dict[str, Gold]
) -> None:
    both = questions[0].passages[0].model_copy(update={"text": "Played in Prague."})
    ambiguous = questions[0].model_copy(update={"passages": [both, *questions[0].passages[1:]]})
    golds = golds | {"q1": Gold(id="q1", chains=[])}
    del golds["q2"]
    assert [q.id for q in choose([ambiguous, *questions[1:]], golds)] == ["q3", "q4", "q5", "q6", "q7"]


def test_other_questions_than_those_prepared_are_noticed(
    folder: Path, questions: list[Question], golds: dict[str, Gold]
) -> None:
    turned = questions[0].model_copy(update={"passages": questions[0].passages[::-1]})
    with pytest.raises(RechainError, match="other candidate chains of the question 'q0'"):
        judge_plays(folder, [turned, *questions[1:]], golds, WEIGHTS)


def test_a_play_of_other_questions_is_noticed(
    folder: Path, questions: list[Question], golds: dict[str, Gold], fabricate: Fabricate
) -> None:
    fabricate("independent", 0, 0, [])
    path = folder / "plays" / "independent.0.0.safetensors"
    arrays = load_arrays(path)
    save_arrays(arrays | {"ranker": arrays["ranker"][1:]}, path)
    with pytest.raises(RechainError, match="is of other chains"):
        judge_plays(folder, questions, golds, WEIGHTS)


def test_a_play_without_its_metadata_is_noticed(
    folder: Path, questions: list[Question], golds: dict[str, Gold], fabricate: Fabricate
) -> None:
    fabricate("independent", 0, 0, [])
    (folder / "plays" / "independent.0.0.json").unlink()
    with pytest.raises(InputError, match=r"independent\.0\.0\.json cannot be read"):
        judge_plays(folder, questions, golds, WEIGHTS)


def passage(name: str, *entities: str) -> Passage:
    """A passage that mentions some entities, a sentence each."""
    words = [entity.partition(":")[2] for entity in entities]
    text = " acts. ".join(words) + " acts."
    spans = [(text.index(word), text.index(word) + len(word)) for word in words]
    mentions = [Mention(entity=e, start=s, end=t) for e, (s, t) in zip(entities, spans, strict=True)]
    return Passage(id=name, text=text, mentions=mentions)


@pytest.fixture
def drugs() -> Question:
    """Head and middle share the genes X1 and X2, middle and tail the drug C: two chains over the same passages."""
    return Question(
        id="d",
        question="interacts_with Aspirol?",
        answer="Yolk",
        question_entities=["drug:Aspirol"],
        answer_entity="gene:Yolk",
        hops=3,
        link_types=["gene", "drug"],
        passages=[
            passage("head", "drug:Aspirol", "gene:Xone", "gene:Xtwo"),
            passage("middle", "gene:Xone", "gene:Xtwo", "drug:Cetrol"),
            passage("tail", "drug:Cetrol", "gene:Yolk"),
        ],
    )


@pytest.mark.parametrize(("named", "share"), [("gene:Xone", 1.0), ("gene:Xtwo", 0.5)])
def test_linking_entities_are_judged_where_gold_names_them(
    tmp_path: Path, vectors: Vectors, drugs: Question, named: str, share: float
) -> None:
    table = TableQuestions([drugs.model_copy(update={"id": "other"})], [drugs])
    stage(tmp_path, table, vectors, CandidateSettings())
    candidates = find_candidates(drugs)
    number = entity_names(candidates, is_merged=True).index
    links = [[edge.key for edge in chain.edges] for chain in candidates.chains]
    chosen = links.index([named, "drug:Cetrol"])
    ranker = np.eye(2, dtype=np.float32)[chosen]
    said = np.array([[number(named), number("drug:Cetrol")]] * 2, np.float32)
    arrays = {"questions": np.array([0]), "ranker": ranker, "reasoner": np.zeros(2, np.float32), "predicted": said}
    (tmp_path / "plays").mkdir()
    save_arrays(arrays, tmp_path / "plays" / "cooperative.0.0.safetensors")
    write_sealed(tmp_path / "plays" / "cooperative.0.0.json", {"settings": asdict(GameSettings())})
    gold = Gold(id="d", chains=[GoldChain(passages=["head", "middle", "tail"], links=["gene:Xone", "drug:Cetrol"])])
    outcome = judge_plays(tmp_path, [drugs], {"d": gold}, WEIGHTS).rows["cooperative"].games[Game(0, 0)]["d"]
    is_right = named == "gene:Xone"
    assert outcome == Outcome(correct=is_right, ordered=1, head=1, tail=1, links=is_right, named=share)
