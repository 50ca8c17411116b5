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


OVERLAPS = """
from rechain.text.passage_views import PassageView, SentenceOverlaps
from rechain.text.languages import rarities
from rechain.schema import Passage
from rechain.text.words import Text

words = "quellmarine zandvoort borkum amaranth kraan harbour sailed winter opera anton composer verdict".split()
asked = rarities(Text(" ".join(words)))
sentences = SentenceOverlaps(PassageView(Passage(id="p", text=" ".join(words) + ". " + " ".join(words[1:]))), asked)
print([overlap.hex() for overlap in sentences.overlaps])
"""


def test_what_sentences_weigh_for_the_default_model_does_not_depend_on_the_seed_of_hashes() -> None:
    """The last bit may decide which of two like sentences is read."""
    command = [sys.executable, "-c", OVERLAPS]
    outputs = {
        subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": str(seed)}, check=True, capture_output=True).stdout
        for seed in range(8)
    }
    assert len(outputs) == 1
