"""How the chain reader learns: E step and losses by hand, and a toy task that it masters."""

from collections.abc import Callable
from dataclasses import replace
from math import exp, log
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rechain.reader.network import NEVER, ChainReader, TextBatch
from rechain.reader.settings import ReaderSettings
from rechain.reader.train import (
    Beliefs,
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
    view_losses,
)
from rechain.system.tensors import Array

Arrays = Callable[..., dict[str, Array]]
Make = Callable[[int], ChainReader]

CPU = torch.device("cpu")
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
    return QuestionBatch(is_chain, torch.tensor([[0, 1], [2, 2]]), nothing[..., None], nothing, nothing)


def softmax(*logits: float) -> list[float]:
    total = sum(map(exp, logits))
    return [exp(logit) / total for logit in logits]


# ---- by hand


def test_views_count_by_their_weights() -> None:
    settings = ReaderSettings(ranker_weight=0.5, reasoner_weight=0.25)
    views = Views(tensor([2.0, 4.0]), tensor([-4.0, 0.0]), tensor([1.0, 10.0]))
    assert views.joint(settings).tolist() == [[1.0, 12.0]]


def test_the_belief_joins_the_last_views() -> None:
    settings = ReaderSettings(ranker_weight=0.5, reasoner_weight=0.25)
    batch, beliefs = two_and_one(), Beliefs(3, CPU, settings)
    evidence = tensor([1.0, 0.0], [5.0, 0.0])
    assert beliefs.joint(batch, evidence).tolist() == [pytest.approx(softmax(1.0, 0.0)), pytest.approx([1.0, 0.0])]
    beliefs.update(batch, Views(tensor([8.0, 0.0], [0.0, 0.0]), torch.zeros(2, 2), evidence))
    beliefs.update(batch, Views(tensor([2.0, 6.0], [9.0, 7.0]), tensor([-4.0, 0.0], [0.0, 7.0]), evidence))
    first, second = beliefs.joint(batch, evidence).tolist()
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


def test_fixed_evidence_counts_everywhere_and_shared_beliefs_in_the_e_step_alone(
    toy_reader: Make, toy_arrays: Arrays
) -> None:
    arrays = toy_arrays(1)
    arrays["fixed"], arrays["shared"] = np.float32([0.25, 0.0]), np.float32([0.0, 0.5])
    data, reader = ReaderData(arrays, "cpu"), toy_reader(1).eval()
    batch = data.batch(np.array([0]))
    with torch.inference_mode():
        views = look(reader, data, batch)
    features = batch.features[0, :, 0]
    torch.testing.assert_close(views.evidence[0], features + torch.tensor([0.25, 0.0]))
    belief = Beliefs(2, CPU, QUICK).joint(batch, views.evidence)
    torch.testing.assert_close(belief[0], (features + torch.tensor([0.25, 0.5])).softmax(0))


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
    belief = training.beliefs.joint(batch, torch.zeros_like(batch.features[..., 0]))
    assert belief[_is_right(arrays, batch)].min() > 0.97


def test_a_trained_reader_is_believed_from_the_beginning(toy_reader: Make, toy_arrays: Arrays) -> None:
    data, reader = ReaderData(toy_arrays(8), "cpu"), toy_reader(3)
    batch = data.batch(np.arange(8))
    with torch.inference_mode():
        views = look(reader.eval(), data, batch)
    assert not ReaderTraining(reader, data, QUICK).beliefs.ranker.any()
    belief = ReaderTraining(reader, data, QUICK, is_trained=True).beliefs.joint(batch, views.evidence)
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
