"""Encoders of whole texts, behind one interface."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from rechain.models.text_encoders import GruEncoder, PretrainedEncoder, pretrained, untrained

transformers = pytest.importorskip("transformers")

SHAPE = {
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 12,
}
IDS = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]])
LENGTHS = torch.tensor([4, 2])


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    """A folder with a tiny BERT."""
    torch.manual_seed(0)
    transformers.BertModel(transformers.BertConfig(**SHAPE)).save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


def encoders() -> list[PretrainedEncoder | GruEncoder]:
    torch.manual_seed(0)
    return [untrained({"model_type": "bert", **SHAPE}, 3).eval(), GruEncoder(20, 3, hidden=4).eval()]


def states(encoder: PretrainedEncoder | GruEncoder, marks: Tensor | None = None, ids: Tensor = IDS) -> Tensor:
    with torch.inference_mode():
        return encoder(ids, torch.zeros_like(ids) if marks is None else marks, LENGTHS)


def test_every_encoder_has_its_width() -> None:
    for encoder in encoders():
        assert encoder.width == 8
        assert states(encoder).shape == (2, 4, 8)


def test_marks_change_states() -> None:
    for encoder in encoders():
        marks = torch.zeros_like(IDS)
        marks[0, 1] = 2
        plain, marked = states(encoder), states(encoder, marks)
        assert not torch.allclose(plain[0], marked[0])
        torch.testing.assert_close(plain[1], marked[1])
        marks[0, 1] = 1
        assert not torch.allclose(states(encoder, marks)[0], marked[0])


def test_padding_is_not_read() -> None:
    for encoder in encoders():
        other = IDS.clone()
        other[1, 2:] = 9
        torch.testing.assert_close(states(encoder)[1, :2], states(encoder, ids=other)[1, :2])
        other[1, 1] = 9
        assert not torch.allclose(states(encoder)[1, :1], states(encoder, ids=other)[1, :1])


def test_a_pretrained_encoder_has_the_weights_of_its_folder(bert: Path) -> None:
    encoder = pretrained(bert, 3).eval()
    assert encoder.marks.weight.shape == (3, 8)
    torch.nn.init.zeros_(encoder.marks.weight)
    with torch.inference_mode():
        is_token = torch.arange(4) < LENGTHS[:, None]
        expected = transformers.BertModel.from_pretrained(bert).eval()(IDS, attention_mask=is_token.long())
    torch.testing.assert_close(states(encoder)[0], expected.last_hidden_state[0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(states(encoder)[1, :2], expected.last_hidden_state[1, :2], atol=1e-5, rtol=1e-5)


def test_what_nothing_asks_for_is_dropped(bert: Path) -> None:
    for encoder in (pretrained(bert, 3), untrained({"model_type": "bert", **SHAPE}, 3)):
        assert not [name for name, _ in encoder.named_parameters() if "pooler" in name]


def test_other_models_of_the_library_will_do() -> None:
    shape = {"vocab_size": 20, "dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 16, "max_position_embeddings": 12}
    encoder = untrained({"model_type": "distilbert", **shape}, 3).eval()
    assert encoder.width == 8
    assert states(encoder).shape == (2, 4, 8)
