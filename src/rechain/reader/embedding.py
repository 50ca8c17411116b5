"""The encoder of the bundled model as what embeds passages and questions; torch is loaded when the first text comes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rechain.scoring.model import BUNDLED, bundled_folder
from rechain.system.digests import SHA256, read_json
from rechain.system.tensors import Array

if TYPE_CHECKING:
    from rechain.reader.model import ChainReaderModel

_TOKENS = 128
"""of a text: what most passages have, and what they are about is said at their beginning"""
_DIGITS = 12
"""of the model's digest, which tell its versions apart"""


class BundledEncoder:
    """Embeds texts by the mean states of the bundled encoder, of unit length (a `retrieval.vectors.Embedder`)."""

    def __init__(self, model: "ChainReaderModel | None" = None, device: str | None = None) -> None:
        """Take the bundled model, if it is loaded already; else it is, on the device named or a GPU if there is one."""
        self._model, self._device = model, device

    @property
    def name(self) -> str:
        """The name of the model and the beginning of its digest."""
        digest = str(read_json(bundled_folder() / "config.json")[SHA256]["config.json"])
        return f"{BUNDLED} {digest[:_DIGITS]}"

    def __call__(self, texts: Sequence[str]) -> Array:
        """Return a vector for each text, [texts, dimensions]."""
        if self._model is None:
            from rechain.reader.pretrained import load
            from rechain.system.devices import device_named

            self._model = load(BUNDLED, device_named(self._device))
        return self._model.embed(texts, _TOKENS)
