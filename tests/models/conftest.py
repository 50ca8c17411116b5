"""What the tests of the networks share."""

from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import torch


def load(name: str) -> ModuleType:
    """Return a module that lies beside this file."""
    spec = spec_from_file_location(f"{__name__}.{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def tiny() -> ModuleType:
    """Batches and players that can be worked by hand."""
    return load("tiny")


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """The networks in NumPy."""
    return load("reference")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny tensors are slower on several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
