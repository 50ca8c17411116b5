"""Texts in batches, the heads of the chain reader by hand, and reading: the same numbers in any process and batch."""

import pickle
from copy import deepcopy
from math import exp, log
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from rechain.reader.encoders import PretrainedEncoder
from rechain.reader.model import ChainReaderModel
from rechain.reader.network import ChainReader, NetworkReader, Reading, TextBatch, Texts, joined_texts
from rechain.reader.texts import TokenText, flat_texts
from rechain.system.tensors import Array


class Numbers(nn.Module):
    """States are the tokens themselves and their squares: [B, L, 2]."""

    width = 2

    def forward(self, ids: Tensor, marks: Tensor, lengths: Tensor, layers: int = 0) -> Tensor:
        return torch.stack([ids, ids**2], dim=-1).float()


def batch(ids: Any, marks: Any = None, slots: Any = None) -> TextBatch:
    """Make a batch of texts of different lengths."""
    length = max(map(len, ids))

    def padded(rows: Any, padding: int) -> Tensor:
        rows = rows or [[0] * len(row) for row in ids]
        return torch.tensor([[*row, *[padding] * (length - len(row))] for row in rows])

    return TextBatch(padded(ids, 99), padded(marks, 0), padded(slots, 0), torch.tensor([len(row) for row in ids]))


def reader(features: int = 3) -> ChainReader:
    """The Ranker adds the mean of tokens and twice that of marked ones; to the Reasoner a token is worth its number."""
    made = ChainReader(Numbers(), features).eval()
    with torch.no_grad():
        made.hidden.weight.copy_(torch.tensor([[1.0, 0, 2.0, 0], [0, 0, 0, 0]]))
        made.hidden.bias.zero_()
        made.chain.weight.copy_(torch.tensor([[1.0, 0.0]]))
        made.link.weight.copy_(torch.tensor([[1.0, 0.0]]))
        made.evidence.weight.copy_(torch.arange(1.0, features + 1)[None])
    return made


def gelu(value: float) -> float:
    return torch.nn.functional.gelu(torch.tensor(value, dtype=torch.double)).item()


def test_the_ranker_sees_all_tokens_and_the_marked_ones() -> None:
    ranks = reader().rank(batch([[1, 2, 3], [2, 4]], marks=[[0, 1, 2], [0, 0]]))
    assert ranks.tolist() == pytest.approx([gelu(2 + 2 * 2.5), gelu(3.0)])
    assert ranks.dtype == torch.float32


def test_the_reasoner_shares_one_among_the_entities() -> None:
    texts = batch([[5, 1, 2, 3], [4, 7]], slots=[[0, 1, 2, 1], [2, 0]])
    links = reader().name_links(texts, 2)
    total = exp(1) + exp(2) + exp(3)
    assert links[0].tolist() == pytest.approx([log((exp(1) + exp(3)) / total), log(exp(2) / total)])
    assert links[1, 1].item() == pytest.approx(0.0)


def test_of_an_entity_without_a_token_the_reasoner_knows_nothing() -> None:
    links = reader().name_links(batch([[5, 1, 2], [4, 7, 1]], slots=[[0, 1, 3], [0, 0, 0]]), 4)
    assert links[0, [1, 3]].tolist() == pytest.approx([-log(2)] * 2)  # as likely as one of the two that it sees
    assert links[1].tolist() == [0.0] * 4
    assert links.isfinite().all()


def test_evidence_is_weighed() -> None:
    assert reader().weigh(torch.tensor([[1.0, 0, 2], [0, 1, 0]])).tolist() == [7.0, 2.0]


def tiny_encoder(vocabulary: int) -> PretrainedEncoder:
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    return PretrainedEncoder(
        {"model_type": "bert", "vocab_size": vocabulary, "max_position_embeddings": 16, **shape}, 5
    )


def test_padding_changes_nothing() -> None:
    torch.manual_seed(0)
    made = ChainReader(tiny_encoder(100), 3).eval()
    alone, beside = (
        batch([[3, 4, 5]], [[0, 1, 2]], [[1, 0, 2]]),
        batch([[3, 4, 5], [6] * 9], [[0, 1, 2], [1] * 9], None),
    )
    beside = beside._replace(slots=batch([[3, 4, 5], [6] * 9], slots=[[1, 0, 2], [1] * 9]).slots)
    with torch.inference_mode():
        torch.testing.assert_close(made.rank(alone)[0], made.rank(beside)[0])
        torch.testing.assert_close(made.name_links(alone, 2)[0], made.name_links(beside, 2)[0])


def test_everything_learns() -> None:
    torch.manual_seed(0)
    made = ChainReader(tiny_encoder(10), 3).train()
    texts = batch([[1, 2, 3]], [[0, 1, 2]], [[1, 2, 2]])
    said = made.rank(texts).sum() + made.name_links(texts, 2)[0, 0] + made.weigh(torch.ones(3))
    said.backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in made.parameters())


# ---- batches of texts

LENGTHS = [3, 1, 4, 1, 5, 2]


def texts(dtype: type = np.uint16) -> Texts:
    """The tokens of text n are 10 n + 1, 10 n + 2, …"""
    ids = [10 * number + place for number, length in enumerate(LENGTHS) for place in range(1, length + 1)]
    arrays = {
        "ids": np.array(ids, dtype=dtype),
        "marks": np.array([token % 2 for token in ids], dtype=np.uint8),
        "slots": np.array([token // 10 for token in ids], dtype=np.uint8),
        "text_start": np.cumsum([0, *LENGTHS], dtype=np.int64),
    }
    return Texts(arrays, "cpu")


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
def test_a_batch_is_as_long_as_its_longest_text_and_padded_with_zeros(dtype: type) -> None:
    batch = texts(dtype).batch(torch.tensor([5, 0]))
    assert batch.ids.tolist() == [[51, 52, 0], [1, 2, 3]]
    assert batch.marks.tolist() == [[1, 0, 0], [1, 0, 1]]
    assert batch.slots.tolist() == [[5, 5, 0], [0, 0, 0]]
    assert batch.lengths.tolist() == [2, 3]


@given(numbers=st.lists(st.integers(0, 5), min_size=1, max_size=12), most=st.integers(1, 20))
def test_outputs_come_in_order_and_no_more_is_read_at_once_than_allowed(numbers: list[int], most: int) -> None:
    read: list[TextBatch] = []

    def head(batch: TextBatch) -> torch.Tensor:
        read.append(batch)
        return batch.ids.sum(1)

    outputs = texts().read(torch.tensor(numbers), head, most)
    sums = [sum(10 * number + place for place in range(1, length + 1)) for number, length in enumerate(LENGTHS)]
    assert outputs.tolist() == [sums[number] for number in numbers]
    assert all(batch.ids.numel() <= most or len(batch.ids) == 1 for batch in read)
    assert sum(len(batch.ids) for batch in read) == len(numbers)


# ---- reading


def text_of(ids: list[int], slots: list[int] | None = None) -> TokenText:
    kinds = np.array(slots or [0] * len(ids), dtype=np.uint8)
    return TokenText(np.array(ids, dtype=np.uint32), kinds, kinds)


def make_reading(head: str, *texts: TokenText, entities: int = 0) -> Reading:
    return Reading(head, flat_texts(texts), entities)  # type: ignore[arg-type]


ONE = [text_of([101, 2040, 102, 3000, 4000, 102], [0, 0, 0, 1, 2, 0]), text_of([101, 102], [0, 1])]
OTHER = [text_of([101, 5000, 6000, 7000, 102], [0, 1, 2, 3, 0])]
READINGS = [
    make_reading("rank", *ONE),
    make_reading("name_links", *ONE, entities=2),
    make_reading("embed", *OTHER),
    make_reading("rank", *OTHER),
    make_reading("name_links", *OTHER, entities=4),
    make_reading("judge", *OTHER),
]


def test_readings_together_are_each_by_itself_to_the_last_bit(default_model: ChainReaderModel) -> None:
    reader: NetworkReader = default_model.reader
    alone = [reader(one) for one in READINGS]
    together = reader.read_all(READINGS)
    assert [output.shape for output in together] == [(2,), (2, 2), (1, 384), (1,), (1, 4), (1,)]
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
    assert reader.read_all([]) == []


def test_a_reading_can_be_sent(default_model: ChainReaderModel) -> None:
    sent = pickle.loads(pickle.dumps(READINGS[1]))
    np.testing.assert_array_equal(default_model.reader(sent), default_model.reader(READINGS[1]))


def watched(model: ChainReaderModel) -> tuple[ChainReaderModel, list[Reading]]:
    """Return a model with the same network, and a list that gets what it reads."""
    asked: list[Reading] = []

    def ask(one: Reading) -> Array:
        asked.append(one)
        return model.reader(one)

    other = ChainReaderModel(model.network, model.tokenizer, model.settings)
    other.ask = ask
    return other, asked


def test_another_reads_for_a_model_once_it_is_told_to(default_model: ChainReaderModel) -> None:
    model, asked = watched(default_model)
    alike = model.meaning(["a claim"], ["a sentence", "another"])
    assert alike == default_model.meaning(["a claim"], ["a sentence", "another"])
    assert [one.head for one in asked] == ["embed"]


def test_a_sentence_is_embedded_once_in_a_run(default_model: ChainReaderModel) -> None:
    model, asked = watched(default_model)
    model.meaning(["a claim", "a sentence"], ["a sentence", "another", "a sentence"])
    again = model.meaning(["a claim"], ["another", "a sentence", "one more"])
    assert [len(one.texts["text_start"]) - 1 for one in asked] == [3, 1]
    model.to("cpu").meaning(["a claim"], ["another"])
    assert [len(one.texts["text_start"]) - 1 for one in asked] == [3, 1, 2]
    fresh = deepcopy(ChainReaderModel(default_model.network, default_model.tokenizer, default_model.settings))
    assert fresh.meaning(["a claim"], ["another", "a sentence", "one more"]) == again


@given(st.lists(st.lists(st.lists(st.integers(0, 70_000), min_size=1, max_size=4), min_size=1, max_size=3), min_size=1))
def test_joined_texts_are_those_that_were_joined(parts: list[list[list[int]]]) -> None:
    joined = joined_texts([flat_texts([text_of(ids) for ids in part]) for part in parts])
    whole = flat_texts([text_of(ids) for part in parts for ids in part])
    assert joined.keys() == whole.keys()
    for name, column in whole.items():
        np.testing.assert_array_equal(joined[name], column)
