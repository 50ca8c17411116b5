"""BERT without padding: the same states as with it, and to the last bit whatever stands beside a text."""

import pickle
from copy import deepcopy

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from rechain.models.cpu import packed as module
from rechain.models.cpu.packed import PackedEncoder, can_pack, packed
from rechain.models.cpu.quantised import has_byte_kernel, quantise
from rechain.models.text_encoders import GruEncoder, PretrainedEncoder, untrained

in_bytes = pytest.mark.skipif(not has_byte_kernel(), reason="this CPU does not sum products of bytes exactly")

MARKS = 3
VOCABULARY = 1100
LENGTHS = [17, 1, 90, 40, 64, 3, 33, 75]
SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 128,
}
BERT: dict[str, object] = SMALL | {"model_type": "bert"}
WIDER = BERT | {"hidden_size": 64, "intermediate_size": 512}  # wide enough for two threads to share the work


def make(config: dict[str, object] = BERT, in_int8: bool = False) -> PretrainedEncoder:
    """Return an encoder whose weights are large enough for errors to show."""
    pytest.importorskip("transformers")
    torch.manual_seed(0)
    encoder = untrained(config, MARKS).eval()
    for weight in encoder.parameters():
        torch.nn.init.normal_(weight, mean=float(weight.dim() == 1), std=0.3)
    if in_int8:
        quantise(encoder)
    return encoder


def texts(lengths: list[int] = LENGTHS) -> list[tuple[Tensor, Tensor]]:
    """Return the tokens and the marks of each text."""
    torch.manual_seed(1)
    return [(torch.randint(VOCABULARY, (n,)), torch.randint(MARKS, (n,))) for n in lengths]


def batch(some: list[tuple[Tensor, Tensor]], padding: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    ids, marks = (pad_sequence(list(each), batch_first=True) for each in zip(*some, strict=True))
    lengths = torch.tensor([len(text) for text, _ in some])
    return torch.nn.functional.pad(ids, (0, padding)), torch.nn.functional.pad(marks, (0, padding)), lengths


def states(encoder: PretrainedEncoder, some: list[tuple[Tensor, Tensor]], padding: int = 0) -> list[Tensor]:
    """Return the states of each text, without padding."""
    with torch.inference_mode():
        found = encoder(*batch(some, padding))
    return [text[: len(ids)] for text, (ids, _) in zip(found, some, strict=True)]


def test_states_are_those_with_padding() -> None:
    encoder = make()
    for found, wanted in zip(states(PackedEncoder(encoder), texts()), states(encoder, texts()), strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


def test_states_of_int8_are_near_those_with_padding() -> None:
    encoder = make(in_int8=True)
    for found, wanted in zip(states(PackedEncoder(encoder), texts()), states(encoder, texts()), strict=True):
        assert torch.cosine_similarity(found, wanted, dim=-1).min() > 0.999


def test_padding_has_zeros() -> None:
    found = PackedEncoder(make())(*batch(texts([2, 5]), padding=3))
    assert found.shape == (2, 8, 32) and not found.requires_grad
    assert not found[0, 2:].any() and not found[1, 5:].any() and found[0, :2].all()


@in_bytes
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("tokens", [1, 100, 10_000])
def test_a_text_has_the_same_states_in_any_company(threads: int, tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, some = PackedEncoder(make(WIDER, in_int8=True)), texts()
    alone = [states(encoder, [text])[0] for text in some]
    monkeypatch.setattr(module, "TOKENS", tokens)
    torch.set_num_threads(threads)
    order = [6, 1, 3, 0, 7, 2, 5, 4]
    together, reordered = states(encoder, some), states(encoder, [some[n] for n in order], padding=7)
    assert all(map(torch.equal, together, alone))
    assert all(map(torch.equal, reordered, [alone[n] for n in order]))


def test_groups_keep_the_order_and_hold_as_much_as_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOKENS", 10)
    assert list(module._groups([4, 6, 1, 30, 9, 2])) == [[4, 6], [1], [30], [9], [2]]
    assert list(module._groups([])) == []


def test_a_text_of_one_token_attends_to_itself() -> None:
    encoder = make()
    torch.testing.assert_close(states(PackedEncoder(encoder), texts([1])), states(encoder, texts([1])))


@pytest.mark.parametrize("in_int8", [False, True])
def test_where_there_are_no_tokens_there_are_zeros(in_int8: bool) -> None:
    encoder, some = PackedEncoder(make(in_int8=in_int8)), texts([0, 4, 0])
    nothing = torch.zeros(0, 5, dtype=torch.long)
    assert encoder(nothing, nothing, nothing[:, 0]).shape == (0, 5, 32)
    assert encoder(*batch(some[:1], padding=2)).tolist() == torch.zeros(1, 2, 32).tolist()
    assert torch.equal(encoder(*batch(some))[1], encoder(*batch(some[1:2]))[0])


def test_parameters_are_shared_and_named_alike() -> None:
    encoder = make()
    tight = PackedEncoder(encoder)
    shared, own = dict(tight.named_parameters()), dict(encoder.named_parameters())
    assert shared.keys() == own.keys() and all(shared[name] is own[name] for name in own)
    assert tight.state_dict().keys() == encoder.state_dict().keys()


def test_queries_keys_and_values_at_once_are_those_of_each() -> None:
    layers = [child for name, child in make(in_int8=True).named_modules() if name.endswith(("query", "key", "value"))]
    rows = torch.randn(9, 32)
    fused = module._Fused(layers[:3]).layer(rows)
    assert torch.equal(fused, torch.cat([layer(rows) for layer in layers[:3]], dim=-1))


@pytest.mark.parametrize("assign", [False, True])
def test_loaded_weights_are_used(assign: bool) -> None:
    tight, some = PackedEncoder(make(in_int8=True)), texts([5])
    before = states(tight, some)[0]
    assert len(tight._fused) == 2
    other = deepcopy(tight.model.encoder.layer[1].attention.self.state_dict())
    other["query.scale"] *= 2
    tight.model.encoder.layer[1].attention.self.load_state_dict(other, assign=assign)
    after = states(tight, some)[0]
    assert not torch.equal(after, before) and torch.equal(after, states(PackedEncoder(deepcopy(tight)), some)[0])


@pytest.mark.parametrize("copied", [deepcopy, lambda encoder: pickle.loads(pickle.dumps(encoder))])
def test_it_can_be_copied_and_sent(copied: object) -> None:
    assert callable(copied)
    tight, some = PackedEncoder(make(in_int8=True)), texts([5, 2])
    before = states(tight, some)
    assert all(map(torch.equal, states(copied(tight), some), before))


def test_while_it_learns_it_pads() -> None:
    tight = PackedEncoder(make()).train()
    assert tight(*batch(texts([2, 3]))).requires_grad
    with torch.no_grad():
        once, again = (tight(*batch(texts([2, 3]))) for _ in range(2))
    assert torch.equal(once, again)  # no dropout


def test_a_bert_is_packed_once() -> None:
    tight = packed(make())
    assert isinstance(tight, PackedEncoder) and packed(tight) is tight


@pytest.mark.parametrize(
    "config",
    [
        SMALL | {"model_type": "roberta"},
        {"model_type": "distilbert", "vocab_size": 50, "dim": 32, "n_layers": 1, "n_heads": 4, "hidden_dim": 40},
        BERT | {"hidden_act": "gelu_new"},
        BERT | {"is_decoder": True},
        BERT | {"position_embedding_type": "relative_key"},
    ],
)
def test_others_stay_padded(config: dict[str, object]) -> None:
    encoder = make(config)
    assert not can_pack(encoder) and packed(encoder) is encoder


def test_a_gru_stays_as_it_is() -> None:
    encoder = GruEncoder(10, MARKS, 4)
    assert not can_pack(encoder) and packed(encoder) is encoder
