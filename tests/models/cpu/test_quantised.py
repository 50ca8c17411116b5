"""Weights of one byte: worked by hand, against floats, and apart from their neighbours."""

import pickle
import subprocess
import sys
from copy import deepcopy
from os import environ
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from rechain.models.cpu import quantised
from rechain.models.cpu.quantised import Int8Embedding, Int8Linear, has_byte_kernel, quantise, quantise_rows

in_bytes = pytest.mark.skipif(not has_byte_kernel(), reason="this CPU does not sum products of bytes exactly")


@pytest.fixture
def in_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantised, "has_byte_kernel", lambda: False)


def make(seed: int = 0, outputs: int = 12) -> Int8Linear:
    torch.manual_seed(seed)
    return Int8Linear(torch.randn(outputs, 20), torch.randn(outputs))


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
    monkeypatch.setattr(quantised, "has_byte_kernel", lambda: kernel == "bytes")
    layer = Int8Linear(torch.tensor([[127.0, 3.0, 0.0], [-254.0, 2.0, 8.0]]), torch.tensor([0.5, 0.0]))
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
    layer = Int8Linear(weight)
    step = (given_rows.amax(1) - given_rows.amin(1)) / 254
    of_weight = given_rows.abs().sum(1)[:, None] * layer.scale / 2
    of_inputs = step[:, None] / 2 * (layer.weight.abs().sum(1) * layer.scale)
    of_floats = 1e-5 * (given_rows.abs() @ weight.abs().T)
    assert ((layer(given_rows) - given_rows @ weight.T).abs() <= of_weight + of_inputs + of_floats).all()


@pytest.mark.parametrize("kernel", [pytest.param("bytes", marks=in_bytes), "floats"])
def test_the_error_of_a_wide_layer_is_about_one_percent(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantised, "has_byte_kernel", lambda: kernel == "bytes")
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
    layer, inputs = Int8Linear(torch.randn(77, width), torch.randn(77)), rows(1000, width)
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
    monkeypatch.setattr(quantised, "has_byte_kernel", lambda: False)
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


def test_outputs_have_the_type_of_the_inputs() -> None:
    assert make()(rows(3).bfloat16()).dtype == torch.bfloat16
    assert make().bfloat16()(rows(3).bfloat16()).dtype == torch.bfloat16


def test_gradients_reach_the_inputs() -> None:
    layer, inputs = make(), rows(3).requires_grad_()
    with torch.inference_mode():
        layer(rows(3))
    layer(inputs).sum().backward()
    torch.testing.assert_close(inputs.grad, (layer.weight * layer.scale[:, None]).sum(0).expand(3, -1))


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
    assert Int8Embedding(table)(numbers).tolist() == table[numbers].tolist()
    assert Int8Embedding(table).bfloat16()(torch.tensor(2)).dtype == torch.bfloat16


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


@pytest.mark.parametrize("kernel", ["bytes", "floats"])
@pytest.mark.parametrize("assign", [False, True])
def test_loaded_weights_are_used_at_once(kernel: str, assign: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if kernel == "floats":
        monkeypatch.setattr(quantised, "has_byte_kernel", lambda: False)
    layer, inputs = make(seed=1), rows(3)
    layer(inputs)
    layer.load_state_dict(make(seed=2).state_dict(), assign=assign)
    assert torch.equal(layer(inputs), make(seed=2)(inputs))


def test_a_layer_made_without_values_can_be_loaded() -> None:
    layer = quantise(nn.utils.skip_init(nn.Linear, 20, 12))
    layer.load_state_dict(make().state_dict())
    assert torch.equal(layer(rows(3)), make()(rows(3)))


def test_what_is_prepared_is_neither_saved_nor_moved_nor_copied() -> None:
    layer, inputs = make(), rows(3)
    expected = layer(inputs)
    assert list(layer.state_dict()) == ["weight", "scale", "bias"]
    for other in (deepcopy(layer), pickle.loads(pickle.dumps(layer)), layer.to("meta").to_empty(device="cpu")):
        other.load_state_dict(make().state_dict())
        assert torch.equal(other(inputs), expected)


WITHOUT_VNNI = """
import torch
from rechain.models.cpu.quantised import Int8Linear, has_byte_kernel

weight, inputs = 127 * torch.ones(64, 64), torch.cat([-torch.ones(1, 1), torch.ones(1, 63)], dim=1)
print(has_byte_kernel(), Int8Linear(weight)(inputs)[0, 0].item())
"""


def test_a_cpu_whose_sums_saturate_uses_floats() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_VNNI],
        env=environ | {"ONEDNN_MAX_CPU_ISA": "AVX2", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["False", str(127.0 * 62)], done.stderr
