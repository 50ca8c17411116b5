"""Models by name: the bundled encoder embeds texts."""

import numpy as np
import pytest

from rechain.models import BundledEncoder

pytestmark = pytest.mark.torch


def test_texts_of_like_meaning_have_like_vectors() -> None:
    texts = ["When can I see a doctor?", "The physician sees patients on Mondays.", "Lunch is served at noon."]
    vectors = BundledEncoder(device="cpu")(texts)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


def test_a_vector_depends_on_its_text_alone() -> None:
    encoder = BundledEncoder(device="cpu")
    alone = encoder(["Lunch is served at noon."])
    together = encoder(["Lunch is served at noon.", "A much longer text stands next to it here. " * 20])
    assert np.array_equal(alone[0], together[0])


def test_only_the_beginning_of_a_text_counts() -> None:
    start = "word " * 200
    one, other = BundledEncoder(device="cpu")([f"{start} cats", f"{start} dogs"])
    assert np.array_equal(one, other)


def test_the_name_says_which_model_it_is() -> None:
    name, digest = BundledEncoder().name.split()
    assert name == "default"
    assert len(digest) == 12
