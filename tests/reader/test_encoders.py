"""Encoders of whole texts, built and read by the transformers library."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from rechain.errors import RechainError
from rechain.reader.cpu import PackedEncoder
from rechain.reader.encoders import MODEL_TYPES, PretrainedEncoder, pretrained
from rechain.system.tensors import read_shapes

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


def tiny_encoder() -> PretrainedEncoder:
    torch.manual_seed(0)
    return PretrainedEncoder({"model_type": "bert", **SHAPE}, 3).eval()


def states(encoder: PretrainedEncoder, marks: Tensor | None = None, ids: Tensor = IDS) -> Tensor:
    with torch.inference_mode():
        return encoder(ids, torch.zeros_like(ids) if marks is None else marks, LENGTHS)


def test_an_encoder_has_its_width() -> None:
    encoder = tiny_encoder()
    assert encoder.width == 8
    assert states(encoder).shape == (2, 4, 8)


def test_marks_change_states() -> None:
    encoder, marks = tiny_encoder(), torch.zeros_like(IDS)
    marks[0, 1] = 2
    plain, marked = states(encoder), states(encoder, marks)
    assert not torch.allclose(plain[0], marked[0])
    torch.testing.assert_close(plain[1], marked[1])
    marks[0, 1] = 1
    assert not torch.allclose(states(encoder, marks)[0], marked[0])


def test_the_first_layers_can_be_read_alone() -> None:
    encoder = tiny_encoder()
    tight, marks = PackedEncoder(encoder.shape, 3), torch.zeros_like(IDS)
    tight.load_state_dict(encoder.state_dict())
    model: Any = encoder.model
    is_token = torch.arange(IDS.shape[1]) < LENGTHS[:, None]
    with torch.inference_mode():
        inputs = model.get_input_embeddings()(IDS) + encoder.marks(marks)
        every = model(inputs_embeds=inputs, attention_mask=is_token.long(), output_hidden_states=True).hidden_states
        for read in (encoder, tight):
            for layers, expected in ((1, every[1]), (2, every[2]), (0, every[2]), (5, every[2])):
                found = read(IDS, marks, LENGTHS, layers)
                torch.testing.assert_close(found[is_token], expected[is_token], atol=1e-5, rtol=1e-4)


def test_a_model_stays_as_it_is_while_its_first_layers_are_read() -> None:
    """Other threads may read with all of them at the same time."""
    encoder, lengths = tiny_encoder(), []
    encoder.model.encoder.layer[0].register_forward_hook(lambda *_: lengths.append(len(encoder.model.encoder.layer)))
    encoder(IDS, torch.zeros_like(IDS), LENGTHS, 1)
    assert lengths == [2]


def test_padding_is_not_read() -> None:
    encoder, other = tiny_encoder(), IDS.clone()
    other[1, 2:] = 9
    torch.testing.assert_close(states(encoder)[1, :2], states(encoder, ids=other)[1, :2])
    other[1, 1] = 9
    assert not torch.allclose(states(encoder)[1, :1], states(encoder, ids=other)[1, :1])


def read(folder: Path) -> PretrainedEncoder:
    path = folder / "model.safetensors"
    config = json.loads((folder / "config.json").read_text())
    return pretrained(config, read_shapes(path), lambda: load_file(path), 3)


def test_a_pretrained_encoder_has_the_weights_of_its_folder(bert: Path) -> None:
    encoder = read(bert).eval()
    assert encoder.marks.weight.shape == (3, 8)
    torch.nn.init.zeros_(encoder.marks.weight)
    with torch.inference_mode():
        is_token = torch.arange(4) < LENGTHS[:, None]
        expected = transformers.BertModel.from_pretrained(bert).eval()(IDS, attention_mask=is_token.long())
    torch.testing.assert_close(states(encoder)[0], expected.last_hidden_state[0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(states(encoder)[1, :2], expected.last_hidden_state[1, :2], atol=1e-5, rtol=1e-5)


def test_what_nothing_asks_for_is_dropped(bert: Path) -> None:
    for encoder in (read(bert), PretrainedEncoder({"model_type": "bert", **SHAPE}, 3)):
        assert not [name for name, _ in encoder.named_parameters() if "pooler" in name]


DISTILLED = {"vocab_size": 20, "dim": 8, "n_layers": 2, "n_heads": 2, "hidden_dim": 16, "max_position_embeddings": 12}


@pytest.mark.parametrize("kind", MODEL_TYPES)
def test_every_known_model_is_read_as_the_library_reads_it(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    shape = DISTILLED if kind == "distilbert" else SHAPE | {"pad_token_id": 0}
    config = transformers.AutoConfig.for_model(kind, **shape)
    with_head = transformers.AutoModelForMaskedLM.from_config(config, dtype=torch.bfloat16)
    with_head.save_pretrained(tmp_path)
    encoder = read(tmp_path).eval()
    torch.nn.init.zeros_(encoder.marks.weight)
    assert encoder.width == 8
    assert {weight.dtype for weight in encoder.parameters()} == {torch.float32}
    attention = "eager" if kind == "mpnet" else "sdpa"
    expected = transformers.AutoModel.from_pretrained(tmp_path, dtype=torch.float32, attn_implementation=attention)
    expected.eval()
    assert torch.equal(encoder.model.get_input_embeddings().weight, expected.get_input_embeddings().weight)
    inputs = expected.get_input_embeddings()(IDS)
    with torch.inference_mode():
        is_token = torch.arange(4) < LENGTHS[:, None]
        theirs = expected(inputs_embeds=inputs, attention_mask=is_token.long()).last_hidden_state
    torch.testing.assert_close(states(encoder)[is_token], theirs[is_token], atol=1e-6, rtol=1e-5)


def test_old_names_of_weights_are_known(bert: Path) -> None:
    weights = load_file(bert / "model.safetensors")
    renamed = {
        f"bert.{name}".replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in weights.items()
    }
    expected = read(bert).model.state_dict()  # type: ignore[union-attr]
    save_file(renamed, bert / "model.safetensors")
    for name, value in read(bert).model.state_dict().items():  # type: ignore[union-attr]
        assert torch.equal(value, expected[name])


def test_what_the_library_cannot_read_is_one_sentence() -> None:
    encoder = PretrainedEncoder({"model_type": "roberta", **SHAPE, "pad_token_id": 1}, 3).eval()
    ids = torch.ones(1, 12, dtype=torch.long)  # RoBERTa's first positions are those of padding
    with pytest.raises(RechainError, match=r"^the encoder of the model cannot read texts of 12 tokens: [^\n]+\.$"):
        encoder(ids, torch.zeros_like(ids), torch.tensor([12]))


def test_heads_must_share_the_units_of_every_model() -> None:
    with pytest.raises(ValueError, match="3 heads cannot share 8 units"):
        PretrainedEncoder({"model_type": "electra", **SHAPE, "num_attention_heads": 3}, 3)
