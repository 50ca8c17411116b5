"""How the chain reader learns: E step and losses by hand, and a toy task that it masters."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rechain.errors import InputError, RechainError
from rechain.reader.network import NEVER, ChainReader, TextBatch
from rechain.reader.prepare import ReaderMaterial, prepare_reader
from rechain.reader.pretrained import load
from rechain.reader.settings import ReaderSettings
from rechain.reader.train import (
    CaseBatch,
    JudgeData,
    QuestionBatch,
    ReaderData,
    ReaderTraining,
    Views,
    examine,
    judge_cases,
    judge_loss,
    look,
    masked_softmax,
    start_training,
    train_reader,
    view_losses,
)
from rechain.recoverer import Recoverer
from rechain.schema import Question
from rechain.system.tensors import Array, load_tensors, save_tensors
from rechain.system.training import CHECKPOINT, RUN_FILE, WEIGHTS, RunFolder, TrainingLog
from rechain.text.candidates import CandidateSettings

Arrays = Callable[..., dict[str, Array]]
Make = Callable[[int], ChainReader]
Towns = Callable[..., list[Question]]

QUICK = ReaderSettings(learning_rate=0.02, head_learning_rate=0.02, epochs=4, batch_size=16, dropout=0.0)


def set_up(make: Make, data: ReaderData, settings: ReaderSettings, learned: Array) -> ReaderTraining:
    data.learned = learned
    return ReaderTraining(make(settings.seed), data, settings)


def train(*arguments: Any) -> ChainReader:
    """Return the reader at the end of a run."""
    training = set_up(*arguments)
    training.train()
    return training.reader


def tensor(*rows: list[float]) -> Tensor:
    return torch.tensor(rows)


def two_and_one() -> QuestionBatch:
    """A question with chains 0 and 1, and one with chain 2 alone."""
    is_chain = torch.tensor([[True, True], [True, False]])
    nothing = torch.zeros(2, 2)
    return QuestionBatch(is_chain, torch.tensor([[0, 1], [2, 2]]), nothing[..., None], nothing, is_chain)


def softmax(*logits: float) -> list[float]:
    total = sum(map(exp, logits))
    return [exp(logit) / total for logit in logits]


# ---- by hand


def test_views_count_by_their_weights() -> None:
    settings = ReaderSettings(ranker_weight=0.5, reasoner_weight=0.25)
    views = Views(tensor([2.0, 4.0]), tensor([-4.0, 0.0]), tensor([1.0, 10.0]))
    assert views.joint(settings).tolist() == [[1.0, 12.0]]


def test_the_belief_joins_the_last_views(toy_reader: Make, toy_arrays: Arrays) -> None:
    settings = ReaderSettings(ranker_weight=0.5, reasoner_weight=0.25)
    batch, training = two_and_one(), ReaderTraining(toy_reader(0), ReaderData(toy_arrays(2), "cpu"), settings)
    evidence = tensor([1.0, 0.0], [5.0, 0.0])
    assert training.belief(batch, evidence).tolist() == [pytest.approx(softmax(1.0, 0.0)), pytest.approx([1.0, 0.0])]
    training.remember(batch, Views(tensor([8.0, 0.0], [0.0, 0.0]), torch.zeros(2, 2), evidence))
    training.remember(batch, Views(tensor([2.0, 6.0], [9.0, 7.0]), tensor([-4.0, 0.0], [0.0, 7.0]), evidence))
    first, second = training.belief(batch, evidence).tolist()
    assert first == pytest.approx(softmax(1.0 + 0.5 * 2.0 - 0.25 * 4.0, 0.0 + 0.5 * 6.0))
    assert second == pytest.approx([1.0, 0.0])


def test_padding_has_no_probability() -> None:
    assert masked_softmax(tensor([0.0, log(3)], [0.0, 50.0]), two_and_one()).tolist() == [
        pytest.approx([0.25, 0.75]),
        pytest.approx([1.0, 0.0]),
    ]


def test_losses_are_cross_entropies_with_the_belief() -> None:
    views = Views(tensor([0.0, log(3)], [2.0, 9.0]), tensor([-1.0, -2.0], [-3.0, 0.0]), tensor([0.0, 0.0], [1.0, 9.0]))
    ranker, evidence, reasoner = view_losses(views, tensor([0.5, 0.5], [1.0, 0.0]), two_and_one()).tolist()
    assert ranker == pytest.approx((-0.5 * log(0.25) - 0.5 * log(0.75) + 0) / 2)
    assert evidence == pytest.approx(log(2) / 2)
    assert reasoner == pytest.approx((0.5 * 1 + 0.5 * 2 + 3) / 2)


def test_learning_rates_grow_and_then_fall_to_nothing(
    toy_reader: Make, toy_arrays: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = {"learning_rate": 1e-6, "head_learning_rate": 3e-6, "evidence_learning_rate": 2e-6}
    settings = replace(QUICK, warm_up_share=0.2, epochs=5, batch_size=1, **rates)
    training, seen = set_up(toy_reader, ReaderData(toy_arrays(2), "cpu"), settings, np.arange(2)), []
    groups, step = training.optimiser.param_groups, training.optimiser.step

    def record() -> None:
        step()
        seen.append(groups[0]["lr"] * 1e6)
        assert [group["lr"] / groups[0]["lr"] for group in groups] == pytest.approx([1, 3, 2])

    monkeypatch.setattr(training.optimiser, "step", record)
    training.train()
    assert seen == pytest.approx([0.5, 1.0, 1.0, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8])


def test_every_parameter_is_taught_once(toy_reader: Make, toy_arrays: Arrays) -> None:
    training = set_up(toy_reader, ReaderData(toy_arrays(2), "cpu"), QUICK, np.arange(2))
    groups, reader = training.optimiser.param_groups, training.reader
    taught = [parameter for group in groups for parameter in group["params"]]
    assert sorted(map(id, taught)) == sorted(map(id, reader.parameters()))
    assert [parameter is reader.evidence.weight for parameter in groups[2]["params"]] == [True]
    assert any(parameter is reader.encoder.marks.weight for parameter in groups[1]["params"])  # type: ignore[attr-defined]


# ---- data


def test_a_batch_has_the_chains_of_its_questions(toy_arrays: Arrays) -> None:
    arrays = toy_arrays(3)
    arrays["chain_start"] = np.array([0, 1, 4, 6])  # one chain, three, two
    data = ReaderData(arrays, "cpu")
    assert len(data) == 3
    batch = data.batch(np.array([2, 0, 1]))
    assert batch.is_chain.tolist() == [[True, True, False], [True, False, False], [True, True, True]]
    assert batch.chains.tolist() == [[4, 5, 4], [0, 0, 0], [1, 2, 3]]
    np.testing.assert_array_equal(batch.features[2], arrays["features"][1:4])


def test_answers_of_questions_are_gathered_in_their_order(toy_cases: Arrays) -> None:
    arrays = toy_cases(5)
    starts = arrays["case_start"].tolist()
    batch = JudgeData(arrays, "cpu").batch(np.array([3, 0]))
    assert batch.texts.tolist() == [*range(starts[3], starts[4]), *range(starts[1])]
    assert batch.is_case.sum(1).tolist() == [starts[4] - starts[3], starts[1]]


# ---- looking


def test_a_chain_is_looked_at_as_the_heads_say(toy_reader: Make, toy_arrays: Arrays) -> None:
    data, reader = ReaderData(toy_arrays(3), "cpu"), toy_reader(1).eval()
    batch = data.batch(np.array([2, 0]))
    with torch.inference_mode():
        views = look(reader, data, batch)
        for row, question in enumerate((2, 0)):
            for place in range(2):
                chain = 2 * question + place
                rank = reader.rank(data.texts.batch(data.chain_text[chain : chain + 1]))
                links = reader.name_links(data.texts.batch(data.link_text[chain]), 2)
                assert views.ranker[row, place] == pytest.approx(rank.item(), abs=1e-5)
                named = links[0, data.link_slot[chain, 0] - 1].item()
                assert views.reasoner[row, place] == pytest.approx(named, abs=1e-5)
                assert views.evidence[row, place] == pytest.approx(batch.features[row, place].item())
    assert views.reasoner.exp().sum(1).tolist() == pytest.approx([1, 1], abs=1e-5)


def test_the_links_of_a_chain_add_up_and_padding_adds_nothing(toy_reader: Make, toy_arrays: Arrays) -> None:
    arrays = toy_arrays(2)
    texts, slots = arrays["link_text"], arrays["link_slot"]
    # the second question's chains have two links, both named in the same text
    arrays["link_text"] = np.concatenate([texts, np.array([[0], [0], *texts[2:]])], axis=1)
    arrays["link_slot"] = np.concatenate([slots, np.array([[0], [0], *slots[2:]])], axis=1)
    short, long = ReaderData(toy_arrays(2), "cpu"), ReaderData(arrays, "cpu")
    reader = toy_reader(1).eval()
    with torch.inference_mode():
        once, twice = (look(reader, data, data.batch(np.array([0, 1]))).reasoner for data in (short, long))
    torch.testing.assert_close(twice[0], once[0])
    torch.testing.assert_close(twice[1], 2 * once[1])


def test_shared_beliefs_count_in_the_e_step_alone(toy_reader: Make, toy_arrays: Arrays) -> None:
    arrays = toy_arrays(1)
    arrays["shared"] = np.float32([0.0, 0.5])
    data, reader = ReaderData(arrays, "cpu"), toy_reader(1).eval()
    batch = data.batch(np.array([0]))
    with torch.inference_mode():
        views = look(reader, data, batch)
    features = batch.features[0, :, 0]
    torch.testing.assert_close(views.evidence[0], features)
    belief = ReaderTraining(reader, data, QUICK).belief(batch, views.evidence)
    torch.testing.assert_close(belief[0], (features + torch.tensor([0.0, 0.5])).softmax(0))


def test_where_one_entity_alone_can_link_no_passage_is_read(
    toy_reader: Make, toy_arrays: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = toy_arrays(2)
    arrays["link_slot"] = np.array([[1], [1], [1], [2]])
    data, reader, read = ReaderData(arrays, "cpu"), toy_reader(1), []

    def name_links(batch: TextBatch, entities: int) -> Tensor:
        read.append((len(batch.ids), entities))
        return torch.full((len(batch.ids), entities), -0.5)

    monkeypatch.setattr(reader, "name_links", name_links)
    assert look(reader, data, data.batch(np.array([0, 1]))).reasoner.tolist() == [[0, 0], [-0.5, -0.5]]
    assert read == [(1, 2)]
    assert look(reader, data, data.batch(np.array([0]))).reasoner.tolist() == [[0, 0]]
    assert len(read) == 1


# ---- a toy task


def _is_right(arrays: dict[str, Array], batch: QuestionBatch) -> Tensor:
    return torch.from_numpy(arrays["right"])[batch.chains]


def accuracy(reader: ChainReader, arrays: dict[str, Array], view: str) -> float:
    """Return the share of questions in which a view finds the right one of the two chains."""
    data = ReaderData(arrays, "cpu")
    right = []
    for batch, views in examine(look, reader, data, np.arange(len(data)), size=7):
        right += (getattr(views, view).argmax(1) == _is_right(arrays, batch).int().argmax(1)).tolist()
    return sum(right) / len(right)


@pytest.mark.parametrize("flipped", [False, True])
def test_evidence_for_some_questions_is_learned_for_all(toy_reader: Make, toy_arrays: Arrays, flipped: bool) -> None:
    data = ReaderData(toy_arrays(96, flipped=flipped), "cpu")
    reader = train(toy_reader, data, QUICK, np.arange(96))
    untold = toy_arrays(40, told=0.0, seed=1, flipped=flipped)
    assert accuracy(reader, untold, "ranker") == accuracy(reader, untold, "reasoner") == 1


def test_only_the_questions_of_given_numbers_are_learnt(toy_reader: Make, toy_arrays: Arrays) -> None:
    arrays = toy_arrays(64)
    arrays["features"][64:] *= -50  # evidence of the second half is wrong
    data = ReaderData(arrays, "cpu")
    assert accuracy(train(toy_reader, data, QUICK, np.arange(32)), toy_arrays(40, seed=1), "ranker") == 1
    assert accuracy(train(toy_reader, data, QUICK, np.arange(32, 64)), toy_arrays(40, seed=1), "ranker") == 0


def test_beliefs_are_estimated_again(toy_reader: Make, toy_arrays: Arrays) -> None:
    arrays = toy_arrays(64)
    data = ReaderData(arrays, "cpu")
    training = set_up(toy_reader, data, replace(QUICK, ranker_weight=1.0, epochs=6), np.arange(64))
    training.train()
    batch = data.batch(np.arange(64))
    belief = training.belief(batch, torch.zeros_like(batch.features[..., 0]))
    assert belief[_is_right(arrays, batch)].min() > 0.97


def test_a_trained_reader_is_believed_from_the_beginning(toy_reader: Make, toy_arrays: Arrays) -> None:
    data, reader = ReaderData(toy_arrays(8), "cpu"), toy_reader(3)
    batch = data.batch(np.arange(8))
    with torch.inference_mode():
        views = look(reader.eval(), data, batch)
    assert not ReaderTraining(reader, data, QUICK).last["ranker"].any()
    belief = ReaderTraining(reader, data, QUICK, is_trained=True).belief(batch, views.evidence)
    torch.testing.assert_close(belief, masked_softmax(views.joint(QUICK), batch))


def test_the_seed_decides_everything(toy_reader: Make, toy_arrays: Arrays) -> None:
    data = ReaderData(toy_arrays(24), "cpu")
    settings = replace(QUICK, epochs=1)

    def taught(seed: int) -> Tensor:
        seeded = replace(settings, seed=seed)
        reader = train(toy_reader, data, seeded, np.arange(24))
        return torch.cat([parameter.detach().flatten() for parameter in reader.parameters()])

    first = taught(0)
    assert torch.equal(first, taught(0))
    assert not torch.equal(first, taught(1))


def test_evidence_is_held_to_the_prior(toy_reader: Make, toy_arrays: Arrays) -> None:
    data = ReaderData(toy_arrays(64), "cpu")
    moved = []
    for pull in (0.0, 100.0):
        settings = replace(QUICK, evidence_pull=pull, evidence_learning_rate=0.02)
        moved.append(abs(train(toy_reader, data, settings, np.arange(64)).evidence.weight.item() - 1))
    assert moved[1] < 0.3 * moved[0]


# ---- held-out questions


def test_agreement_is_the_probability_that_ranker_and_evidence_draw_the_same_chain(
    toy_reader: Make, toy_arrays: Arrays
) -> None:
    data = ReaderData(toy_arrays(6), "cpu")
    data.learned, data.held_out = np.arange(3), np.arange(3, 6)
    training = ReaderTraining(toy_reader(0), data, QUICK)
    with torch.no_grad():
        training.reader.evidence.weight.fill_(-9.0)  # what evidence weighs now does not count
        batch = data.batch(np.arange(3, 6))
        ranks = look(training.reader.eval(), data, batch).ranker
    expected = [
        sum(p * q for p, q in zip(softmax(*ranker), softmax(*evidence), strict=True))
        for ranker, evidence in zip(ranks.tolist(), batch.features[..., 0].tolist(), strict=True)
    ]
    assert training.held_out_figures() == {"agreement": pytest.approx(sum(expected) / 3)}


def test_agreement_grows_as_the_reader_learns_and_does_not_when_it_learns_mistakes(
    toy_reader: Make, toy_arrays: Arrays
) -> None:
    ends = []
    for flipped in (False, True):
        arrays = toy_arrays(96)
        if flipped:  # evidence says of the questions that are learnt what is wrong of those that are held out
            arrays["features"][: 2 * 64] = toy_arrays(96, flipped=True)["features"][: 2 * 64]
        data = ReaderData(arrays, "cpu")
        data.learned, data.held_out = np.arange(64), np.arange(64, 96)
        training = ReaderTraining(toy_reader(0), data, replace(QUICK, patience=9))
        training.train()
        ends.append([epoch["agreement"] for epoch in training.state.progress.curve])
    assert ends[0][-1] > 0.65
    assert ends[1][-1] < 0.4


# ---- the judge


def test_right_and_wrong_count_alike_however_many_are_wrong() -> None:
    batch = CaseBatch(torch.tensor([[True, True, True], [True, True, False]]), torch.arange(5))
    logits = tensor([2.0, -1.0, 0.5], [0.0, 1.0, NEVER])
    first = -log(softmax(2.0, -1.0, 0.5)[0]) + (log(1 + exp(-2)) + (log(1 + exp(-1)) + log(1 + exp(0.5))) / 2) / 2
    second = -log(softmax(0.0, 1.0)[0]) + (log(2) + log(1 + exp(1))) / 2
    assert judge_loss(logits, batch).item() == pytest.approx((first + second) / 2, rel=1e-5)


def test_the_reader_learns_to_judge(toy_reader: Make, toy_arrays: Arrays, toy_cases: Arrays) -> None:
    data, judged = ReaderData(toy_arrays(48), "cpu"), JudgeData(toy_cases(48), "cpu")
    for rows in (data, judged):
        rows.hold_out(1 / 6, seed=0)
    training = ReaderTraining(toy_reader(0), data, replace(QUICK, judge_weight=1.0), judged=judged)
    training.train()
    assert training.state.progress.curve[-1]["preference"] == 1
    assert training.state.progress.curve[-1]["judge"] < training.state.progress.curve[-4]["judge"]
    others = JudgeData(toy_cases(20, seed=1), "cpu")
    for batch, logits in examine(judge_cases, training.reader, others, np.arange(20), size=7):
        assert (logits[:, 0] > 0).all() and (logits[:, 1:][batch.is_case[:, 1:]] < 0).all()


def test_every_answer_is_learnt_once_an_epoch(toy_reader: Make, toy_arrays: Arrays, toy_cases: Arrays) -> None:
    data, judged = ReaderData(toy_arrays(40), "cpu"), JudgeData(toy_cases(25), "cpu")
    judged.learned = np.arange(5, 25)
    training = ReaderTraining(toy_reader(0), data, QUICK, judged=judged)
    orders = [[int(number) for _, numbers in training.batches(epoch) for number in numbers] for epoch in (0, 1)]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]) == list(range(5, 25))


# ---- a run in a folder: stopped anywhere and resumed, it ends the same; and it is a model

SETTINGS = ReaderSettings(
    max_tokens=64, epochs=2, batch_size=4, held_out=0.25, checkpoint_steps=2, seed=1, learning_rate=0.01
)


def prepare(towns: Towns, encoder: Path, count: int = 12) -> ReaderMaterial:
    return prepare_reader(towns(count), SETTINGS, CandidateSettings(), encoder)


@pytest.fixture(scope="module")
def material(towns: Towns, tiny_encoder: Path) -> ReaderMaterial:
    """Twelve questions, for a tiny encoder."""
    return prepare(towns, tiny_encoder)


class StopAt(TrainingLog):
    """Ends a run, as Ctrl-C does."""

    def __init__(self, *moment: Any) -> None:
        super().__init__()
        self._moment = moment

    def step(self, phase: str, epoch: int, step: int, steps: int) -> None:
        if (epoch, step) == self._moment:
            raise KeyboardInterrupt


def stop(folder: RunFolder, material: ReaderMaterial, epoch: int = 0, step: int = 3) -> None:
    with pytest.raises(KeyboardInterrupt):
        train_reader(material, SETTINGS, folder, log=StopAt(epoch, step))


@pytest.fixture(scope="module")
def whole(material: ReaderMaterial, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The run that all others are compared with."""
    torch.set_num_threads(1)
    folder = RunFolder(tmp_path_factory.mktemp("whole") / "run")
    train_reader(material, SETTINGS, folder)
    return folder


def assert_same(folder: RunFolder, whole: RunFolder) -> None:
    assert (folder.path / WEIGHTS).read_bytes() == (whole.path / WEIGHTS).read_bytes()
    assert folder.checkpoint.read_bytes() == whole.checkpoint.read_bytes()


@pytest.mark.parametrize(("epoch", "step"), [(0, 1), (0, 2), (0, 3), (1, 1), (1, 3)])
def test_a_run_that_is_stopped_ends_as_if_it_were_not(
    material: ReaderMaterial, whole: RunFolder, tmp_path: Path, epoch: int, step: int
) -> None:
    folder = RunFolder(tmp_path / "run")
    stop(folder, material, epoch, step)
    assert not (folder.path / WEIGHTS).exists()
    with pytest.raises(InputError, match="is not finished; finish it with `rechain train … --resume`"):
        Recoverer(folder.path)
    torch.rand(3)  # random numbers drawn elsewhere do not count
    train_reader(material, SETTINGS, folder, resume=True)
    assert_same(folder, whole)


def test_the_beliefs_are_in_the_checkpoint(whole: RunFolder, material: ReaderMaterial) -> None:
    chains = (len(material.questions["chain_text"]),)
    tensors = load_tensors(whole.checkpoint)[0]
    assert {name: value.shape for name, value in tensors.items() if name.startswith("more.")} == {
        "more.ranker": chains,
        "more.reasoner": chains,
    }


def test_a_finished_run_that_is_resumed_stays_as_it_is(material: ReaderMaterial, whole: RunFolder) -> None:
    before = (whole.path / WEIGHTS).read_bytes()
    train_reader(material, SETTINGS, whole, resume=True)
    assert (whole.path / WEIGHTS).read_bytes() == before


def test_a_finished_run_is_a_model_that_can_be_saved(whole: RunFolder, towns: Towns, tmp_path: Path) -> None:
    questions = towns(4, first=90)
    chains = list(Recoverer(whole.path, top=9).recover_many(questions))
    assert all(one.error is None and one.chains[0].confidence is not None for one in chains)
    Recoverer(whole.path).save_pretrained(tmp_path / "saved")
    assert list(Recoverer(tmp_path / "saved", top=9).recover_many(questions)) == chains
    assert (whole.path / "README.md").read_text().startswith("---\nlibrary_name: rechain")
    settings = load(whole.path).settings
    assert 0 < settings.unlike < 1  # measured: a tiny encoder finds all sentences alike
    assert settings.but(unlike=0.0) == SETTINGS


def test_a_run_can_start_from_a_model_and_believes_it(whole: RunFolder, towns: Towns) -> None:
    training = start_training(prepare(towns, whole.path), SETTINGS, "cpu")
    before = load(whole.path).network.evidence.weight
    assert torch.equal(training.reader.evidence.weight, before)
    assert training.last["ranker"].any()


# ---- when a run stops


def test_a_run_stops_when_the_agreement_grows_no_more_and_its_best_weights_are_kept(
    material: ReaderMaterial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after: list[dict[str, torch.Tensor]] = []
    figures = iter((0.5, 0.7, 0.6, 0.7))

    def scripted(training: ReaderTraining) -> dict[str, float]:
        after.append({name: value.clone() for name, value in training.reader.state_dict().items()})
        return {"agreement": next(figures)}

    monkeypatch.setattr(ReaderTraining, "held_out_figures", scripted)
    train_reader(material, SETTINGS.but(epochs=9, patience=2), RunFolder(tmp_path / "run"))
    assert len(after) == 4
    kept = load(tmp_path / "run").network.state_dict()
    assert all(torch.equal(value, after[1][name]) for name, value in kept.items() if name in after[1])
    assert not torch.equal(kept["hidden.weight"], after[3]["hidden.weight"])


# ---- other things than the run was started with


@pytest.fixture
def stopped(material: ReaderMaterial, tmp_path: Path) -> RunFolder:
    """A run that was stopped after its first checkpoint."""
    folder = RunFolder(tmp_path / "run")
    stop(folder, material)
    return folder


def test_the_record_has_what_it_was_started_with(
    stopped: RunFolder, material: ReaderMaterial, tiny_encoder: Path
) -> None:
    record = json.loads((stopped.path / RUN_FILE).read_text())
    assert (record["kind"], record["encoder"]) == ("reader", str(tiny_encoder))
    assert record["fingerprint"] == material.record["fingerprint"]
    assert record["settings"] == asdict(SETTINGS)


def test_a_run_is_resumed_only_with_what_it_was_started_with(
    stopped: RunFolder, material: ReaderMaterial, towns: Towns, tiny_encoder: Path, whole: RunFolder
) -> None:
    for other in (prepare(towns, tiny_encoder, 11), prepare(towns, whole.path)):
        with pytest.raises(InputError, match="was started with other questions or another encoder; resume"):
            train_reader(other, SETTINGS, stopped, resume=True)
    with pytest.raises(InputError, match=r"run\.json was written with epochs = 2, not 3; resume with the same"):
        train_reader(material, SETTINGS.but(epochs=3), stopped, resume=True)


@pytest.mark.parametrize("spoil", ["cut", "other encoder"])
def test_a_damaged_checkpoint_is_one_sentence(stopped: RunFolder, material: ReaderMaterial, spoil: str) -> None:
    path = stopped.path / CHECKPOINT
    tensors, metadata = load_tensors(path)
    if spoil == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        save_tensors(tensors | {"network.hidden.weight": torch.zeros(3, 3)}, metadata, path)
    with pytest.raises(InputError) as failure:
        train_reader(material, SETTINGS, stopped, resume=True)
    sentence = str(failure.value)
    assert sentence.startswith(f"{path} is damaged, or not" if spoil == "cut" else f"{path} is of another model or of")
    assert "\n" not in sentence


def test_questions_without_a_chain_are_left_out_and_counted(towns: Towns, tiny_encoder: Path) -> None:
    (lonely,) = towns(1, first=70)
    lonely = lonely.model_copy(update={"answer": "Nowhere at all"})
    material = prepare_reader([*towns(3), lonely], SETTINGS, CandidateSettings(), tiny_encoder)
    assert sum(material.left_out.values()) == 1
    with pytest.raises(RechainError, match="no question has a candidate chain to learn from"):
        prepare_reader([lonely], SETTINGS, CandidateSettings(), tiny_encoder)
