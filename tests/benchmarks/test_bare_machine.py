"""What runs on a borrowed GPU machine needs no more than is there."""

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("name", ["default_model", "proof"])
def test_scripts_for_a_gpu_need_torch_transformers_numpy_and_safetensors_alone(
    name: str, on_a_bare_machine: Callable[..., str]
) -> None:
    assert on_a_bare_machine(name) == "", "an import says nothing, and does not fail"


def test_games_are_played_without_transformers_too(on_a_bare_machine: Callable[..., str]) -> None:
    assert on_a_bare_machine("rechain.paper.plays", without="transformers") == ""
