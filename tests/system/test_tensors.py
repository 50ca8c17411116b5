"""Arrays that contain their own SHA-256, so that no damage goes unnoticed, and the devices that compute with them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from rechain.errors import InputError, RechainError
from rechain.system.tensors import device_named, load_arrays, precision, save_arrays


def test_no_flipped_bit_of_arrays_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "arrays.safetensors"
    save_arrays({"ranker": np.arange(9.0), "questions": np.arange(3)}, path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        with pytest.raises(InputError, match="is damaged, or was not written by rechain"):
            load_arrays(path)
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match="is damaged, or was not written by rechain"):
            load_arrays(path)


def test_arrays_of_other_programs_are_read(tmp_path: Path) -> None:
    save_file({"ranker": np.arange(9.0)}, tmp_path / "arrays.safetensors")
    assert load_arrays(tmp_path / "arrays.safetensors")["ranker"].tolist() == [*range(9)]


def test_without_a_name_it_is_a_gpu_if_there_is_one() -> None:
    assert device_named(None) == ("cuda" if torch.cuda.is_available() else "cpu")
    assert device_named("cpu") == "cpu"


@pytest.mark.parametrize("name", ["nonsense", "cuda:99", "meta"])
def test_a_device_that_is_not_there_is_a_mistake(name: str) -> None:
    with pytest.raises(RechainError, match=f"there is no device '{name}' here"):
        device_named(name)


def test_networks_compute_with_32_bits_on_a_cpu() -> None:
    with precision(torch.device("cpu")):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


@pytest.mark.filterwarnings("ignore:CUDA is not available")
def test_networks_compute_with_16_bits_on_a_gpu() -> None:
    with precision(torch.device("cuda")):
        assert torch.is_autocast_enabled("cuda") == torch.cuda.is_available()
