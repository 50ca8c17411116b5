import pytest
import torch

from rechain.errors import RechainError
from rechain.system.devices import device_named, precision


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
