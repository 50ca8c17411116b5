"""The proof, tiny and on a CPU: retrievers and selectors are trained, tried, packed, collected and judged."""

import gzip
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from rechain.system.tensors import load_arrays

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


class Proof(NamedTuple):
    """The modules of the benchmark, and a folder that it has prepared."""

    main: ModuleType
    plays: ModuleType
    figures: ModuleType
    stage: Path


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory, data: Path, tiny_encoder: Path) -> Iterator[Proof]:
    """The benchmark, with a prepared folder."""
    sys.path[:0] = [str(ROOT / "research"), str(ROOT / "benchmarks")]
    try:
        import proof
        import proof_figures
        import proof_plays
    finally:
        del sys.path[:2]
    folder = tmp_path_factory.mktemp("proof")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        patch.syspath_prepend(str(ROOT / "research"))
        proof.prepare(data, folder / "stage", tiny_encoder, tiny_encoder, "mean")
        yield Proof(proof, proof_plays, proof_figures, folder / "stage")


@pytest.fixture
def tiny(proof: Proof) -> Any:
    """The stage with settings of a moment."""
    settings = proof.plays.Settings(batch=8, batches=2, selector_batches=2, beam=4, rate=1e-3)
    return proof.plays.Stage(proof.stage / "arrays", "cpu", settings)


def test_labels_are_what_each_supervision_names(proof: Proof) -> None:
    arrays, gold = (
        load_arrays(proof.stage / "arrays" / "texts.safetensors"),
        load_arrays(proof.stage / "gold.safetensors"),
    )
    assert (arrays["labels.gold"][:, :2] == gold["gold"][:30]).all()
    right = {name: (arrays[f"labels.{name}"][:, :2] == gold["gold"][:30]).all(1).mean() for name in ("default", "bm25")}
    assert right["default"] > 0.6
    assert (arrays["labels.default"][:, 0] >= 0).mean() > 0.9
    assert set(arrays["fold"][:30]) == set(range(5))
    assert (arrays["fold"][30:] == -1).all()


def test_no_play_learns_from_the_fold_that_it_is_tried_on(tiny: Any, proof: Proof) -> None:
    for row in (*proof.plays.SUPERVISED, *proof.plays.SHARES, proof.plays.MIXED, proof.plays.WEIGHTED):
        for fold in range(5):
            learnt = tiny.labels(row, fold, seed=1).questions
            assert not set(learnt) & set(tiny.questions_of("hotpotqa", fold)), row
            assert len(learnt) == len(set(learnt))


def test_shares_of_gold_are_nested_and_mixed_has_gold_for_the_first_of_them(tiny: Any) -> None:
    ten, half = (tiny.labels(row, 0, seed=0) for row in ("gold10", "gold50"))
    assert len(ten.questions) == 2
    assert list(half.questions[:2]) == list(ten.questions)
    mixed, default = (tiny.labels(row, 0, seed=0) for row in ("default+gold10", "default"))
    assert (mixed.rows[:2, :2] == ten.rows[:, :2]).all()
    assert set(mixed.questions) >= set(default.questions)


def test_texts_are_encoded_as_sentence_transformers_does(
    tiny: Any, proof: Proof, data: Path, tiny_encoder: Path
) -> None:
    """But for the rounding of the weights that are carried; the second query is question and passage in one text."""
    from sentence_transformers import SentenceTransformer

    network = proof.plays.read_encoder(tiny.folder / "encoder", head=False)
    encoder = proof.plays.Encoder(network, "mean").eval()
    question = json.loads(gzip.decompress((data / "hotpotqa" / "open.json.gz").read_bytes()))[0]
    passage = question["context"][0]
    text = passage[1][0] if passage[1][0].startswith(passage[0]) else f"{passage[0]}: {passage[1][0]}"
    zero = torch.zeros(1, dtype=torch.int64)
    with torch.inference_mode():
        vectors = torch.cat([encoder(*tiny.question_batch(zero)), encoder(*tiny.second_batch(zero, zero))])
    expected = SentenceTransformer(str(tiny_encoder), device="cpu").encode(
        [question["question"], f"{question['question']} {text}"], convert_to_tensor=True, normalize_embeddings=True
    )
    lengths = [46, 142]  # what is cut off here is not cut off there
    for place, length in enumerate(lengths):
        if (tiny.asked.lengths[0], tiny.asked.lengths[0] + tiny.passages.lengths[0])[place] < length:
            assert torch.allclose(vectors[place], expected[place], atol=0.02)


def test_a_pair_has_its_marks_and_segments(tiny: Any) -> None:
    zero = torch.zeros(1, dtype=torch.int64)
    tokens, segments = tiny.second_batch(zero, zero, is_pair=True)
    cls, sep = tiny.marks.tolist()
    asked = int(tiny.asked.lengths[0])
    assert tokens[0, 0] == cls
    assert [place for place, token in enumerate(tokens[0].tolist()) if token == sep] == [asked + 1, tokens.shape[1] - 1]
    assert segments[0].tolist() == [0] * (asked + 2) + [1] * (tokens.shape[1] - asked - 2)


def test_the_loss_is_the_weighted_cross_entropy_of_the_right_passage(proof: Proof) -> None:
    queries, passages = torch.eye(2), torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    wrong = torch.tensor([[False, True, False], [True, False, True]])
    loss = proof.plays.ranking_loss(queries, passages, wrong, torch.tensor([3.0, 1.0]), scale=1.0)
    # the first sees its own and one of 0; the second its own and two of 0
    expected = (3 * np.log(1 + np.exp(-1)) + np.log(1 + 2 * np.exp(-1))) / 4
    assert float(loss) == pytest.approx(expected, abs=1e-6)


def test_a_retriever_learns_what_it_is_taught(tiny: Any, proof: Proof) -> None:
    """On the questions that it has learnt from: whether it generalises is what the proof measures."""
    settings = proof.plays.Settings(batch=24, batches=30, beam=4, rate=5e-3)
    stage = proof.plays.Stage(tiny.folder, "cpu", settings)
    labels = stage.labels("gold", 0, 0)
    untaught = proof.plays.Encoder(proof.plays.read_encoder(stage.folder / "encoder", head=False), "mean")
    rates = []
    for encoder in (untaught, stage.train_retriever(labels, seed=0)):
        encoder = stage.ready(encoder)
        with torch.inference_mode():
            found = stage.search(encoder, stage.encode_passages(encoder), "hotpotqa", labels.questions, once=False)
        rates.append((found["hotpotqa.path"] == labels.rows[:, :2]).all(1).mean())
    assert rates[1] > rates[0] + 0.3


def test_rows_learn_in_as_many_batches_however_many_labels_they_have(tiny: Any) -> None:
    """Batches of 8 of 20 rows: two a round, of different rows, then another order; 5 rows are one batch."""
    batches = list(tiny.batches(20, 5, np.random.default_rng(0)))
    assert [len(batch) for batch in batches] == [8] * 5
    assert [len({*first, *second}) for first, second in zip(batches[::2], batches[1::2], strict=False)] == [16, 16]
    assert {tuple(sorted(batch)) for batch in tiny.batches(5, 3, np.random.default_rng(0))} == {(0, 1, 2, 3, 4)}


def test_what_is_played_is_of_the_texts_and_settings_it_was_prepared_with(
    proof: Proof, data: Path, tmp_path: Path, tiny_encoder: Path
) -> None:
    stage = shutil.copytree(proof.stage, tmp_path / "stage")
    plans = []
    for pooling in ("mean", "cls", "mean"):
        proof.main.prepare(data, stage, tiny_encoder, tiny_encoder, pooling)
        plan = proof.plays.Plan.read(stage / "carry")
        assert len(plan.plays) == len(proof.plays.all_plays()) - len(plans) // 2
        plan.plays[0].path(plan.played(stage)).touch()
        plans.append(plan.of)
    assert plans[0] == plans[2] != plans[1]
    (tmp_path / "call.json").write_text(json.dumps({"of": plans[1]}))
    with pytest.raises(SystemExit, match="was played with other texts, encoders or settings"):
        proof.main.collect(stage, tmp_path)


@pytest.mark.slow
def test_it_is_played_until_the_time_is_up_collected_and_judged(
    proof: Proof, tmp_path: Path, on_a_bare_machine: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    plays, carry = proof.plays, proof.stage / "carry"
    chosen = [
        play for play in plays.all_plays() if play.fold is None or (play.seed == 0 and play.row in ("default", "gold"))
    ]
    settings = plays.Settings(batch=8, batches=2, selector_batches=2, beam=4)
    plan = replace(plays.Plan.read(carry), settings=settings, plays=chosen)
    plan.write(carry)
    proof.main.play(carry, tmp_path / "none", "cpu", processes=1, limit=0)
    assert f"0 of {len(chosen)} plays are done" in capsys.readouterr().out
    replace(plan, plays=chosen[:5]).write(carry)
    play = ("research/proof.py", "play", carry, tmp_path / "first", "--device", "cpu", "--processes", 1)
    assert "5 of 5 plays are done" in on_a_bare_machine(*play)
    plan.write(carry)
    proof.main.collect(proof.stage, tmp_path / "first")
    assert plays.Plan.read(carry) == replace(plan, plays=chosen[5:])
    proof.main.play(carry, tmp_path / "second", "cpu", processes=2, limit=600)
    proof.main.collect(proof.stage, tmp_path / "second")
    capsys.readouterr()
    proof.figures.judge(proof.stage, tmp_path / "plots")
    written = capsys.readouterr().out
    for name in ("default", "gold", "untrained", "bm25_search"):
        assert f"| {proof.figures.NAMES[name]} |" in written
    assert "- retriever, taught by `lexical` chains: seed 0, all folds" in written
    assert "- retriever, taught by gold: seed 2, all folds" in written
    assert "- retriever, taught by answer matching: seed 1, all folds" in written
    assert "taught by answer matching: seed 2" not in written
    assert "taught by gold: seed 0" not in written
    assert "Where the curves meet is not known yet" in written
    assert (tmp_path / "plots" / proof.figures.PLOT).read_text().startswith("<?xml")
    assert "of gold's gain over" in written


def test_the_curves_meet_between_the_shares_that_were_measured(proof: Proof) -> None:
    results = object.__new__(proof.figures.Results)
    means = {
        "gold10": (100, 0.5),
        "gold25": (200, 0.6),
        "gold50": (400, 0.7),
        "gold": (800, 0.8),
        "default": (790, 0.65),
    }
    results.rows = {
        name: proof.figures.Row({"hotpotqa.10": {0: np.full(10, mean)}}, [count])
        for name, (count, mean) in means.items()
    }
    assert "about 283 gold labels of 800" in proof.figures.meeting(results)
    results.rows["default"] = proof.figures.Row({"hotpotqa.10": {0: np.full(10, 0.9)}}, [790])
    assert "what gold of all 800 questions does" in proof.figures.meeting(results)
