"""Inference on a CPU: bytes worked by hand, and states that are the same to the last bit in any company."""

import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial
from os import environ
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from rechain.errors import RechainError
from rechain.reader import cpu
from rechain.reader.cpu import (
    Int8Embedding,
    Int8Linear,
    PackedEncoder,
    dequantise,
    has_byte_kernel,
    in_threads,
    is_plain_bert,
    quantise,
    quantise_rows,
    tokens_a_thread,
)
from rechain.reader.encoders import PretrainedEncoder

in_bytes = pytest.mark.skipif(not has_byte_kernel(), reason="this CPU does not sum products of bytes exactly")


@pytest.fixture
def in_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "has_byte_kernel", lambda: False)


def make(seed: int = 0, outputs: int = 12) -> Int8Linear:
    torch.manual_seed(seed)
    return linear(torch.randn(outputs, 20), torch.randn(outputs))


def linear(weight: Tensor, bias: Tensor | None = None) -> Int8Linear:
    return Int8Linear(*quantise_rows(weight), bias)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(1001, 8), nn.ModuleDict({"a": nn.Linear(8, 4)}), nn.Embedding(1000, 8))


def rows(count: int, width: int = 20) -> Tensor:
    """Return rows of very different sizes and means."""
    torch.manual_seed(1)
    return torch.randn(count, width) * 10 ** torch.randn(count, 1) + torch.randn(count, 1)


def test_a_row_is_quantised_by_its_largest_value() -> None:
    weight = torch.tensor([[127.0, -63.5, 0.4, 0.6], [0.0, 0.0, 0.0, 0.0], [0.5, -2.54, 0.03, -0.05]])
    steps, scale = quantise_rows(weight)
    assert steps.dtype == torch.int8 and scale.dtype == torch.float32
    torch.testing.assert_close(scale, torch.tensor([1.0, 0.0, 0.02]))
    assert steps.tolist()[:2] == [[127, -64, 0, 1], [0, 0, 0, 0]]  # halves go to the even side
    assert steps[2, :2].tolist() == [25, -127]


@pytest.mark.parametrize(("least", "steps"), [(1e-45, 0), (2e-43, 127), (1e-36, 127)])
def test_the_smallest_numbers_do_not_overflow(least: float, steps: int) -> None:
    assert quantise_rows(torch.tensor([[least, -least]]))[0].tolist() == [[steps, -steps]]


@pytest.mark.parametrize("kernel", [pytest.param("bytes", marks=in_bytes), "floats"])
def test_what_bytes_can_hold_is_multiplied_exactly(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "has_byte_kernel", lambda: kernel == "bytes")
    layer = linear(torch.tensor([[127.0, 3.0, 0.0], [-254.0, 2.0, 8.0]]), torch.tensor([0.5, 0.0]))
    inputs = torch.tensor([[128.0, -126.0, 1.0], [5.0, 5.0, 5.0], [0.0, 0.0, 0.0]])  # steps of 1; none; none
    expected = torch.tensor([[15878.5, -32756.0], [650.5, -1220.0], [0.5, 0.0]])
    assert layer(inputs).tolist() == expected.tolist()
    assert layer(inputs[0]).tolist() == expected[0].tolist()
    assert layer(inputs[None, :0]).shape == (1, 0, 2)


@in_bytes
@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 1000),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 70), st.integers(1, 40)),
    size=st.floats(1e-3, 1e3),
    mean=st.floats(-10, 10),
)
def test_no_output_is_further_off_than_the_rounding_allows(
    seed: int, shape: tuple[int, int, int], size: float, mean: float
) -> None:
    count, inputs, outputs = shape
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(outputs, inputs, generator=generator)
    given_rows = size * torch.randn(count, inputs, generator=generator) + mean
    layer = linear(weight)
    step = (given_rows.amax(1) - given_rows.amin(1)) / 254
    of_weight = given_rows.abs().sum(1)[:, None] * layer.scale / 2
    of_inputs = step[:, None] / 2 * (layer.weight.abs().sum(1) * layer.scale)
    of_floats = 1e-5 * (given_rows.abs() @ weight.abs().T)
    assert ((layer(given_rows) - given_rows @ weight.T).abs() <= of_weight + of_inputs + of_floats).all()


@pytest.mark.parametrize("kernel", [pytest.param("bytes", marks=in_bytes), "floats"])
def test_the_error_of_a_wide_layer_is_about_one_percent(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "has_byte_kernel", lambda: kernel == "bytes")
    torch.manual_seed(0)
    exact, inputs = nn.Linear(384, 96), torch.randn(64, 384)
    expected = exact(inputs)
    error = quantise(exact)(inputs) - expected
    assert error.norm() < 0.015 * expected.norm()


@in_bytes
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("width", [20, 333])
def test_a_row_does_not_depend_on_its_neighbours(threads: int, width: int) -> None:
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    layer, inputs = linear(torch.randn(77, width), torch.randn(77)), rows(1000, width)
    together = layer(inputs)
    assert torch.equal(torch.cat([layer(row) for row in inputs.split(1)]), together)
    assert torch.equal(torch.cat([layer(part) for part in inputs.split(37)]), together)
    assert torch.equal(layer(inputs.flip(0)).flip(0), together)
    assert torch.equal(layer(inputs.T.contiguous().T), together)


@in_bytes
def test_a_row_that_is_not_finite_spoils_no_other() -> None:
    inputs = rows(3)
    inputs[1, 4] = torch.nan
    outputs = make()(inputs)
    assert outputs[1].isnan().all()
    assert torch.equal(outputs[::2], make()(inputs[::2]))


@in_bytes
def test_floats_give_what_bytes_give(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = torch.randn(50, 20)
    outputs = make()(inputs)
    monkeypatch.setattr(cpu, "has_byte_kernel", lambda: False)
    assert (make()(inputs) - outputs).norm() < 0.01 * outputs.norm()


@pytest.mark.usefixtures("in_floats")
def test_floats_are_those_of_the_inputs() -> None:
    layer = make()
    expected = torch.nn.functional.linear(rows(3), layer.weight * layer.scale[:, None], layer.bias)
    assert torch.equal(layer(rows(3)), expected)
    assert layer(rows(3).bfloat16()).dtype == torch.bfloat16
    torch.testing.assert_close(layer(rows(3).double()).float(), expected)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(rows(3)).dtype == torch.bfloat16


def test_linear_layers_and_large_embeddings_are_replaced_in_place() -> None:
    plain = network()
    assert quantise(plain) is plain
    assert [type(module).__name__ for module in plain.modules()] == [
        "Sequential",
        "Int8Embedding",
        "ModuleDict",
        "Int8Linear",
        "Embedding",
    ]
    tensors = {name: tensor.dtype for name, tensor in plain.state_dict().items()}
    assert tensors == {
        "0.weight": torch.int8,
        "0.scale": torch.float32,
        "1.a.weight": torch.int8,
        "1.a.scale": torch.float32,
        "1.a.bias": torch.float32,
        "2.weight": torch.float32,
    }


def test_an_embedding_gives_its_rows() -> None:
    table = torch.tensor([[127.0, 1.0], [0.0, 0.0], [-254.0, 6.0]])
    numbers = torch.tensor([[2, 0], [1, 2]])
    assert Int8Embedding(*quantise_rows(table))(numbers).tolist() == table[numbers].tolist()


@pytest.mark.parametrize("place", ["cpu", "meta"])
def test_the_state_goes_through_a_file(place: str, tmp_path: Path) -> None:
    saved = quantise(network())
    save_file(saved.state_dict(), tmp_path / "weights.safetensors")
    with torch.device(place):
        loaded = quantise(network())
    result = loaded.load_state_dict(load_file(tmp_path / "weights.safetensors"), strict=True, assign=place == "meta")
    assert not result.missing_keys and not result.unexpected_keys
    numbers, inputs = torch.tensor([0, 5, 1000]), rows(3, 8)
    assert torch.equal(loaded[0](numbers), saved[0](numbers))
    assert torch.equal(loaded[1]["a"](inputs), saved[1]["a"](inputs))


def test_a_layer_made_without_values_can_be_loaded() -> None:
    layer = quantise(nn.utils.skip_init(nn.Linear, 20, 12))
    layer.load_state_dict(make().state_dict())
    assert torch.equal(layer(rows(3)), make()(rows(3)))


def test_what_is_prepared_is_neither_saved_nor_copied() -> None:
    layer, inputs = make(), rows(3)
    expected = layer(inputs)
    assert list(layer.state_dict()) == ["weight", "scale", "bias"]
    for other in (deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(inputs), expected)


WITHOUT_VNNI = """
import torch
from rechain.reader.cpu import Int8Linear, has_byte_kernel, quantise_rows

weight, inputs = 127 * torch.ones(64, 64), torch.cat([-torch.ones(1, 1), torch.ones(1, 63)], dim=1)
print(has_byte_kernel(), Int8Linear(*quantise_rows(weight))(inputs)[0, 0].item())
"""


def test_a_cpu_whose_sums_saturate_uses_floats() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_VNNI],
        env=environ | {"ONEDNN_MAX_CPU_ISA": "AVX2", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["False", str(127.0 * 62)], done.stderr


def test_weights_of_bytes_become_floats_again() -> None:
    plain, weights = network(), quantise(network()).state_dict()
    floats = dequantise(weights)
    plain.load_state_dict(floats)
    assert all(value.dtype == torch.float32 for value in floats.values())
    assert torch.equal(plain[0].weight, weights["0.weight"] * weights["0.scale"][:, None])
    assert all(torch.equal(value, weights[name]) for name, value in quantise(plain).state_dict().items())
    assert dequantise(network().state_dict()).keys() == network().state_dict().keys()


# ---- no padding

MARKS = 3
VOCABULARY = 1100
LENGTHS = [17, 1, 90, 40, 64, 3, 33, 75]
SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 128,
}
BERT: dict[str, object] = SMALL | {
    "model_type": "bert",
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}
WIDER = BERT | {"hidden_size": 64, "intermediate_size": 512}  # wide enough for two threads to share the work


def make_encoder(config: dict[str, object] = BERT, in_int8: bool = False) -> PretrainedEncoder:
    """Return an encoder whose weights are large enough for errors to show."""
    pytest.importorskip("transformers")
    torch.manual_seed(0)
    encoder = PretrainedEncoder(config, MARKS).eval()
    for weight in encoder.parameters():
        torch.nn.init.normal_(weight, mean=float(weight.dim() == 1), std=0.3)
    if in_int8:
        quantise(encoder)
    return encoder


def pack(encoder: PretrainedEncoder) -> PackedEncoder:
    """Return a packed encoder with the same weights."""
    tight = PackedEncoder(encoder.shape, MARKS)
    if any(isinstance(layer, Int8Linear) for layer in encoder.modules()):
        quantise(tight)
    tight.load_state_dict(encoder.state_dict())
    return tight


def texts(lengths: list[int] = LENGTHS) -> list[tuple[Tensor, Tensor]]:
    """Return the tokens and the marks of each text."""
    torch.manual_seed(1)
    return [(torch.randint(VOCABULARY, (n,)), torch.randint(MARKS, (n,))) for n in lengths]


def batch(some: list[tuple[Tensor, Tensor]], padding: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    ids, marks = (pad_sequence(list(each), batch_first=True) for each in zip(*some, strict=True))
    lengths = torch.tensor([len(text) for text, _ in some])
    return torch.nn.functional.pad(ids, (0, padding)), torch.nn.functional.pad(marks, (0, padding)), lengths


def states(encoder: PretrainedEncoder, some: list[tuple[Tensor, Tensor]], padding: int = 0) -> list[Tensor]:
    """Return the states of each text, without padding."""
    with torch.inference_mode():
        found = encoder(*batch(some, padding))
    return [text[: len(ids)] for text, (ids, _) in zip(found, some, strict=True)]


def test_states_are_those_with_padding() -> None:
    encoder = make_encoder()
    for found, wanted in zip(states(pack(encoder), texts()), states(encoder, texts()), strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


def test_states_of_int8_are_near_those_with_padding() -> None:
    encoder = make_encoder(in_int8=True)
    for found, wanted in zip(states(pack(encoder), texts()), states(encoder, texts()), strict=True):
        assert torch.cosine_similarity(found, wanted, dim=-1).min() > 0.999


@pytest.mark.parametrize("in_int8", [False, True])
def test_a_gpu_is_given_padded_texts_and_computes_the_same(in_int8: bool, in_floats: None) -> None:
    encoder = make_encoder(in_int8=in_int8)
    ids, marks, lengths = batch(texts(), padding=2)
    positions = torch.arange(ids.shape[1])
    is_token = positions < lengths[:, None]
    with torch.no_grad():
        attend = partial(cpu._attend_padded, is_token=is_token)
        found = pack(encoder)._encode((ids, marks, positions), 0, attend)  # there is no GPU here
        torch.testing.assert_close(found[is_token], encoder(ids, marks, lengths)[is_token])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rounded = pack(encoder)._encode((ids, marks, positions), 0, attend)
    assert rounded.dtype == torch.float32  # what layers add up is not rounded
    assert (rounded - found)[is_token].norm() < 0.05 * found[is_token].norm()


def test_padding_has_zeros() -> None:
    found = pack(make_encoder())(*batch(texts([2, 5]), padding=3))
    assert found.shape == (2, 8, 32) and not found.requires_grad
    assert not found[0, 2:].any() and not found[1, 5:].any() and found[0, :2].all()


@in_bytes
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("tokens", [1, 100, 10_000])
def test_a_text_has_the_same_states_in_any_company(threads: int, tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, some = pack(make_encoder(WIDER, in_int8=True)), texts()
    alone = [states(encoder, [text])[0] for text in some]
    monkeypatch.setattr(cpu, "TOKENS", tokens)
    torch.set_num_threads(threads)
    order = [6, 1, 3, 0, 7, 2, 5, 4]
    together, reordered = states(encoder, some), states(encoder, [some[n] for n in order], padding=7)
    assert all(map(torch.equal, together, alone))
    assert all(map(torch.equal, reordered, [alone[n] for n in order]))


def test_groups_keep_the_order_and_hold_as_much_as_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "TOKENS", 10)
    assert list(cpu._groups([4, 6, 1, 30, 9, 2])) == [[4, 6], [1], [30], [9], [2]]
    assert list(cpu._groups([])) == []


def test_a_text_of_one_token_attends_to_itself() -> None:
    encoder = make_encoder()
    torch.testing.assert_close(states(pack(encoder), texts([1])), states(encoder, texts([1])))


@pytest.mark.parametrize("in_int8", [False, True])
def test_where_there_are_no_tokens_there_are_zeros(in_int8: bool) -> None:
    encoder, some = pack(make_encoder(in_int8=in_int8)), texts([0, 4, 0])
    nothing = torch.zeros(0, 5, dtype=torch.long)
    assert encoder(nothing, nothing, nothing[:, 0]).shape == (0, 5, 32)
    assert encoder(*batch(some[:1], padding=2)).tolist() == torch.zeros(1, 2, 32).tolist()
    assert torch.equal(encoder(*batch(some))[1], encoder(*batch(some[1:2]))[0])


def test_weights_have_the_names_and_shapes_of_the_library() -> None:
    encoder = make_encoder()
    assert shapes(PackedEncoder(encoder.shape, MARKS)) == shapes(encoder)
    assert shapes(quantise(PackedEncoder(encoder.shape, MARKS))) == shapes(quantise(encoder))


def shapes(module: nn.Module) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (value.shape, value.dtype) for name, value in module.state_dict().items()}


def test_queries_keys_and_values_at_once_are_those_of_each() -> None:
    encoder = pack(make_encoder(in_int8=True))
    attention = encoder.model.encoder.layer[0].attention.self
    inputs = torch.randn(9, 32)
    for projected, layer in zip(
        encoder._project(0, attention, inputs), (attention.query, attention.key, attention.value), strict=True
    ):
        assert isinstance(layer, Int8Linear) and torch.equal(projected, layer(inputs))


@pytest.mark.parametrize("copied", [deepcopy, lambda encoder: pickle.loads(pickle.dumps(encoder))])
def test_it_can_be_copied_and_sent(copied: object) -> None:
    assert callable(copied)
    tight, some = pack(make_encoder(in_int8=True)), texts([5, 2])
    before = states(tight, some)
    assert all(map(torch.equal, states(copied(tight), some), before))


@pytest.mark.parametrize("change", [{"model_type": "roberta"}, {"hidden_act": "gelu_new"}])
def test_another_network_is_not_a_plain_bert(change: dict[str, str]) -> None:
    assert is_plain_bert(BERT) and is_plain_bert(BERT | {"hidden_act": "gelu"})
    assert not is_plain_bert(BERT | change)


def test_a_shape_that_is_not_described_in_full_is_left_to_the_library() -> None:
    assert not is_plain_bert({name: value for name, value in BERT.items() if name != "layer_norm_eps"})


def test_heads_must_share_the_units() -> None:
    with pytest.raises(ValueError, match="5 heads cannot share 32 units"):
        PackedEncoder(BERT | {"num_attention_heads": 5}, MARKS)


# ---- threads


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Let torch have two threads, as on a machine with two cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)


def test_work_is_done_in_order_by_threads_that_compute_alone(two_threads: None) -> None:
    def work(number: int) -> tuple[int, int, bool, bool]:
        return number, torch.get_num_threads(), torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    with torch.inference_mode():
        assert in_threads(work, range(5)) == [(number, 1, True, False) for number in range(5)]
    assert in_threads(work, range(3)) == [(number, 1, False, False) for number in range(3)]


def test_settings_of_torch_stay_as_they_are_for_this_thread_and_for_new_ones(two_threads: None) -> None:
    in_threads(lambda number: number, range(3))
    assert torch.get_num_threads() == 2
    with ThreadPoolExecutor(1) as others:
        assert others.submit(torch.get_num_threads).result() == 2


def test_who_has_one_thread_needs_no_others(one_thread: None) -> None:
    assert in_threads(lambda _: threading.current_thread(), range(2)) == [threading.current_thread()] * 2


def test_threads_that_cannot_be_started_are_one_sentence_and_those_that_were_end(
    two_threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's limit is not set, as root has none."""
    cpu._single_threads.cache_clear()
    before, start = set(threading.enumerate()), threading.Thread.start

    def start_one(thread: threading.Thread) -> None:
        if set(threading.enumerate()) - before:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    with pytest.raises(RechainError, match=r"^2 threads cannot be started \(can't start new thread\); set OMP_NUM"):
        in_threads(lambda number: number, range(3))
    assert not set(threading.enumerate()) - before
    assert torch.get_num_threads() == 2
    monkeypatch.undo()
    assert in_threads(lambda number: number, range(3)) == [0, 1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_threads_are_made_anew_in_a_fork(two_threads: None) -> None:
    """As `Dataset.map(num_proc=…)` does: the threads of the parent are not there, and work would wait for ever."""
    in_threads(lambda number: number, range(3))
    process = multiprocessing.get_context("fork").Process(target=in_threads, args=(int, range(3)))
    process.start()
    process.join(60)
    assert process.exitcode == 0


def test_every_thread_gets_its_share_of_tokens_unless_there_are_few(two_threads: None) -> None:
    assert [tokens_a_thread(tokens) for tokens in (0, 2000, 8001)] == [1024, 1024, 4001]
