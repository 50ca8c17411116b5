"""The same input gives the same bytes, whatever the seed of Python's hashes."""

import os
import subprocess
import sys
from importlib.resources import files

import pytest


@pytest.mark.parametrize("model", ["lexical", "bm25", "random"])
def test_the_output_does_not_depend_on_the_seed_of_hashes(model: str) -> None:
    demo = str(files("rechain").joinpath("data/demo.jsonl"))
    command = [sys.executable, "-m", "rechain.cli.main", "recover", demo, "--model", model, "--top", "50"]
    outputs = {
        subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": seed}, check=True, capture_output=True).stdout
        for seed in ("0", "1", "2", "3")
    }
    assert len(outputs) == 1
