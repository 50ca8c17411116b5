"""Chain readers in folders and on the Hub; what is wrong with a folder is said in one sentence."""

import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from rechain.errors import InputError, RechainError
from rechain.reader.cpu import Int8Linear, PackedEncoder, quantise
from rechain.reader.model import ChainReaderModel
from rechain.reader.network import ChainReader, TextBatch
from rechain.reader.pretrained import (
    BUNDLED,
    CARD,
    CONFIG,
    TOKENIZER,
    WEIGHTS,
    find,
    load,
    load_trainable,
    push,
    save,
    write_card,
)
from rechain.reader.settings import ReaderSettings
from rechain.schema import Question
from rechain.system.files import file_digest, sealed
from rechain.text.candidates import Candidates
from rechain.text.evidence.search import find_evidence

Make = Callable[[int], ChainReader]
Towns = Callable[..., list[Question]]

FILES = {CARD, CONFIG, TOKENIZER, WEIGHTS}


@pytest.fixture
def asked(towns: Towns) -> list[Candidates]:
    return [find_evidence(question) for question in towns(3, traps=True)]


@pytest.fixture
def model(tiny_reader: Make, tokenizer: Tokenizer) -> ChainReaderModel:
    return ChainReaderModel(tiny_reader(0), tokenizer, ReaderSettings(max_tokens=200, margin=20.0))


@pytest.fixture
def folder(model: ChainReaderModel, tmp_path: Path) -> Path:
    save(model, tmp_path / "saved")
    return tmp_path / "saved"


def change(path: Path, *keys: str, value: Any) -> None:
    """Change a value of a config by hand."""
    content = inner = json.loads(path.read_text())
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    path.write_text(json.dumps(content))


def seal(folder: Path) -> None:
    """Write the digests that the files of a folder have now, as one does who wants to deceive."""
    content = json.loads((folder / CONFIG).read_text())
    digests = {name: file_digest(folder / name) for name in (WEIGHTS, TOKENIZER)}
    (folder / CONFIG).write_text(json.dumps(sealed({**content, "sha256": {}}, CONFIG, digests)))


def complaint(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        load(folder)
    (sentence,) = str(caught.value).splitlines()
    assert str(folder) in sentence
    return sentence


# ---- there and back


def test_a_saved_model_scores_as_before(model: ChainReaderModel, folder: Path, asked: list[Candidates]) -> None:
    loaded = load(folder)
    assert {path.name for path in folder.iterdir()} == FILES
    assert loaded.settings == model.settings
    assert isinstance(loaded.network.encoder, PackedEncoder)
    for scores, before in zip(loaded.score_many(asked), model.score_many(asked), strict=True):
        assert scores.confidences == pytest.approx(before.confidences, abs=1e-5)
        for one, other in zip(scores.contributions, before.contributions, strict=True):
            assert one == pytest.approx(other, abs=1e-4)
    for name, value in model.network.state_dict().items():
        assert torch.equal(loaded.network.state_dict()[name], value)


def test_a_saved_model_of_int8_scores_the_same(
    model: ChainReaderModel, tmp_path: Path, asked: list[Candidates]
) -> None:
    quantise(model.network.encoder.model)  # type: ignore[attr-defined]
    save(model, tmp_path / "one")
    loaded = load(tmp_path / "one")
    assert any(isinstance(layer, Int8Linear) for layer in loaded.network.modules())
    assert json.loads((tmp_path / "one" / CONFIG).read_text())["quantised"] is True
    save(loaded, tmp_path / "two")
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert load(tmp_path / "two").score_many(asked) == loaded.score_many(asked)


def test_a_card_of_its_own_is_kept(model: ChainReaderModel, folder: Path, tmp_path: Path) -> None:
    assert load(folder).card == (folder / CARD).read_text()
    (folder / CARD).write_text("# Mine")
    save(load(folder), tmp_path / "again")
    assert (tmp_path / "again" / CARD).read_text() == "# Mine"
    (folder / CARD).unlink()
    assert load(folder).card == ""


def test_a_folder_does_not_tell_where_the_encoder_came_from(folder: Path) -> None:
    assert not {"_name_or_path", "transformers_version"} & set(json.loads((folder / CONFIG).read_text())["encoder"])


def test_the_bundled_model_is_small_and_complete(default_model: ChainReaderModel) -> None:
    folder = find(BUNDLED)
    assert {path.name for path in folder.iterdir()} == FILES
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 36_000_000
    assert (folder / CARD).read_text() == default_model.card != ""
    assert default_model.chooses_hops


# ---- to train


@pytest.mark.parametrize("in_int8", [False, True])
def test_a_model_can_be_trained_further_from_its_weights(
    model: ChainReaderModel, tmp_path: Path, asked: list[Candidates], in_int8: bool
) -> None:
    if in_int8:
        quantise(model.network.encoder.model)  # type: ignore[attr-defined]
    save(model, tmp_path)
    trainable = load_trainable(tmp_path)
    network = trainable.network
    assert trainable.settings == model.settings
    assert all(weight.requires_grad and weight.dtype == torch.float32 for weight in network.parameters())
    assert not any(isinstance(layer, Int8Linear) for layer in network.modules())
    for name, value in model.network.state_dict().items():
        if value.dtype != torch.int8 and not name.endswith(".scale"):
            assert torch.equal(network.state_dict()[name], value)
    for scores, before in zip(trainable.score_many(asked), load(tmp_path).score_many(asked), strict=True):
        assert scores.confidences == pytest.approx(before.confidences, abs=0.01)


def test_the_bundled_model_can_be_trained_further() -> None:
    trainable = load_trainable(settings=ReaderSettings(dropout=0.5))
    network = trainable.network.train()
    assert network.dropout.p == trainable.settings.dropout == 0.5
    batch = TextBatch(*torch.ones(3, 1, 4, dtype=torch.long), torch.tensor([4]))
    (network.rank(batch).sum() + network.name_links(batch, 1).sum()).backward()
    assert all(weight.grad is not None for weight in network.encoder.model.parameters())  # type: ignore[attr-defined]


@pytest.fixture
def encoder(tiny_reader: Make, tmp_path: Path) -> Path:
    """A folder as the transformers library writes it."""
    tiny_reader(0).encoder.model.save_pretrained(tmp_path / "encoder")  # type: ignore[attr-defined]
    shutil.copy(find(BUNDLED) / TOKENIZER, tmp_path / "encoder")
    return tmp_path / "encoder"


def test_an_encoder_gets_new_heads_and_the_prior(encoder: Path, tiny_reader: Make, tmp_path: Path) -> None:
    one, same, other = (load_trainable(encoder, ReaderSettings(max_tokens=300), seed).network for seed in (1, 1, 2))
    for name, value in one.state_dict().items():
        assert torch.equal(value, same.state_dict()[name])
        is_new = not name.startswith(("encoder.model.", "evidence."))
        assert torch.equal(value, other.state_dict()[name]) != is_new
    expected = tiny_reader(0)
    assert torch.equal(one.evidence.weight, expected.evidence.weight)
    name = "encoder.model.encoder.layer.0.output.dense.weight"
    assert torch.equal(one.state_dict()[name], expected.state_dict()[name])
    save(load_trainable(encoder), tmp_path / "saved")
    assert load(tmp_path / "saved").settings == ReaderSettings()


def test_an_encoder_that_cannot_be_read_is_one_sentence(encoder: Path) -> None:
    with pytest.raises(InputError, match=r"^the setting max_tokens should be at most the 320 tokens .*, not 400"):
        load_trainable(encoder, ReaderSettings(max_tokens=400))
    weights = load_file(encoder / WEIGHTS)
    del weights["encoder.layer.0.output.dense.weight"]
    save_file(weights, encoder / WEIGHTS, metadata={"format": "pt"})
    with pytest.raises(
        InputError, match=r"encoder does not contain an encoder that can be read: .*dense.weight has no"
    ):
        load_trainable(encoder)
    (encoder / WEIGHTS).unlink()
    torch.save(weights, encoder / "pytorch_model.bin")
    with pytest.raises(InputError, match="does not contain an encoder that can be read"):
        load_trainable(encoder)
    (encoder / CONFIG).unlink()
    with pytest.raises(InputError, match=r"config\.json cannot be read"):
        load_trainable(encoder)


# ---- what is wrong with a folder


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER, CONFIG])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(
    folder: Path, make_pipe: Callable[[Path], None], name: str
) -> None:
    (folder / name).unlink()
    make_pipe(folder / name)
    assert "it is not a file" in complaint(folder)


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, TOKENIZER])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert name in complaint(folder)


@pytest.mark.parametrize("left", [0, 5, 100, 5000, -1])
def test_truncated_weights_are_damaged(folder: Path, left: int) -> None:
    weights = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(weights[:left])
    assert f"{WEIGHTS} is damaged: its SHA-256 is not the one in {CONFIG}; save or fetch" in complaint(folder)
    seal(folder)
    assert f"{WEIGHTS} is damaged or no safetensors file" in complaint(folder)


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("write", [pickle.dump, torch.save])
def test_a_pickle_is_never_loaded(folder: Path, tmp_path: Path, write: Callable[..., None]) -> None:
    for name in (WEIGHTS, "pytorch_model.bin"):
        with (folder / name).open("wb") as file:
            write({"weights": Bomb(tmp_path / "exploded")}, file)
    seal(folder)
    assert f"{WEIGHTS} is damaged or no safetensors file" in complaint(folder)
    (folder / WEIGHTS).unlink()
    assert complaint(folder)
    assert not (tmp_path / "exploded").exists()


def test_the_bomb_is_one(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Bomb(tmp_path / "exploded")))
    assert (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "cannot be read"),
        ("\x00\xff", "cannot be read"),
        ("[]", "is not that of a rechain model"),
        ('{"model_type": "bert", "hidden_size": 8}', "is not that of a rechain model"),
        ('{"library": "rechain"}', "was written by another version"),
        ('{"library": "rechain", "format": 3, "features": 3}', "does not describe a model"),
        ("[" * 10_000, "nested too deeply"),
    ],
)
def test_a_foreign_config_is_refused(folder: Path, content: str, words: str) -> None:
    (folder / CONFIG).write_text(content)
    assert words in complaint(folder)


@pytest.mark.parametrize(
    ("keys", "value", "words"),
    [
        (["format"], 99, "was written by another version"),
        (["features"], ["links"], "was written by another version"),
        (["quantised"], None, "does not describe a model"),
        (["quantised"], True, "does not contain the weights of this model: "),
        (["judges"], None, "does not describe a model"),
        (["judges"], True, "does not contain the weights of this model: judge_hidden."),
        (["encoder"], {}, "does not describe an encoder"),
        (["encoder"], None, "does not describe an encoder"),
        (["encoder", "model_type"], "no-such-model", "does not describe an encoder"),
        (["encoder", "num_attention_heads"], 3, "does not describe an encoder"),
        (["encoder", "hidden_size"], "wide", "does not describe an encoder"),
        (["encoder", "num_attention_heads"], -2, "its num_attention_heads should be at least 1, not -2"),
        (["encoder", "pad_token_id"], False, "its pad_token_id should be a whole number, not False"),
        (
            ["encoder", "num_hidden_layers"],
            2,
            "does not contain the weights of this model: encoder.model.encoder.layer.1.",
        ),
        (["encoder", "num_hidden_layers"], 0, "does not describe an encoder"),
        (["encoder", "num_attention_heads"], 2.0, "its num_attention_heads should be a whole number, not 2.0"),
        (["encoder", "layer_norm_eps"], float("nan"), "its layer_norm_eps should be finite, not nan"),
        (["encoder", "num_hidden_layers"], 10**6, "it has more layers than its weights, which are "),
        (["encoder", "intermediate_size"], 12, "does not contain the weights of this model: encoder.model."),
        (["encoder", "vocab_size"], 100, "word_embeddings.weight has the shape [30522, 8], not [100, 8]"),
        (["encoder", "vocab_size"], 10**9, "its vocab_size is greater than anything in its weights"),
        (["encoder", "auto_map"], {"AutoModel": "evil.Model"}, "it names code of its own (auto_map)"),
        (["settings"], None, "the settings should be names with values"),
        (["settings", "most_chains"], 0, "most_chains should be at least 1, not 0"),
        (["settings", "margin"], "wide", "margin should be a number, not 'wide'"),
        (["settings", "temperature"], 0, "temperature should be at least 1e-06, not 0"),
        (["settings", "margin"], -1e308, "margin should be at least 0, not -1e+308"),
        (["settings", "ranker_weight"], 1e308, "ranker_weight should be at most 1,000,000.0, not 1e+308"),
        (
            ["settings", "max_tokens"],
            5000,
            "config.json: max_tokens should be at most the 320 tokens",
        ),
    ],
)
def test_a_config_changed_by_hand_is_refused(folder: Path, keys: list[str], value: Any, words: str) -> None:
    change(folder / CONFIG, *keys, value=value)
    assert complaint(folder)
    seal(folder)
    assert words in complaint(folder)


OTHERS = {
    "hidden_act": "relu",
    "chunk_size_feed_forward": 7,
    "num_labels": 1_048_576,
    "rope_scaling": {"rope_type": "yarn"},
    "use_return_dict": True,
}


def test_what_says_nothing_of_the_shape_is_passed_over(
    folder: Path, encoder: Path, asked: list[Candidates], capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in OTHERS.items():
        change(folder / CONFIG, "encoder", name, value=value)
        change(encoder / CONFIG, name, value=value)
    seal(folder)
    model = load(folder)
    assert len(model.score_many(asked)) == len(asked)
    for network in (model.network, load_trainable(encoder).network):
        config = network.encoder.model.config  # type: ignore[attr-defined]
        assert (config.hidden_act, config.chunk_size_feed_forward, config.num_labels) == ("relu", 0, 2)
    assert capfd.readouterr() == ("", "")


def test_a_bad_number_of_an_encoder_is_refused(encoder: Path) -> None:
    change(encoder / CONFIG, "layer_norm_eps", value=-5)
    with pytest.raises(InputError, match="that can be read: its layer_norm_eps should be more than 0, not -5"):
        load_trainable(encoder)


def test_weights_of_another_network_are_refused(folder: Path) -> None:
    weights = load_file(folder / WEIGHTS)
    bad = torch.full((1, 8), float("nan"))
    for others, words in (
        (
            {"layer.weight": torch.zeros(3, 3)},
            "weights of this model: encoder.model.embeddings.word_embeddings.weight has no",
        ),
        (
            weights | {"chain.weight": torch.zeros(1, 9)},
            "weights of this model: chain.weight has the shape [1, 9], not",
        ),
        (weights | {"chain.weight": torch.zeros(1, 8, dtype=torch.int8)}, "chain.weight has numbers of another type"),
        (weights | {"chain.weight": bad}, "the numbers of chain.weight are not all finite"),
    ):
        save_file(others, folder / WEIGHTS)
        assert f"{WEIGHTS} is damaged" in complaint(folder)
        seal(folder)
        assert words in complaint(folder)
    save_file(weights, folder / WEIGHTS)
    seal(folder)
    load(folder)


def test_a_foreign_tokeniser_is_refused(folder: Path) -> None:
    (folder / TOKENIZER).write_text("{}")
    assert f"{TOKENIZER} is damaged" in complaint(folder)
    seal(folder)
    assert "cannot be read as a tokeniser" in complaint(folder)
    content = json.loads((find(BUNDLED) / TOKENIZER).read_text())
    (folder / TOKENIZER).write_text(json.dumps(content | {"post_processor": None}))
    seal(folder)
    assert "is the tokeniser of another model" in complaint(folder)
    content["model"]["vocab"]["onemoreword"] = 30522
    (folder / TOKENIZER).write_text(json.dumps(content))
    seal(folder)
    assert "is the tokeniser of another model" in complaint(folder)


def test_a_bundled_file_cut_short_is_damaged(tmp_path: Path) -> None:
    shutil.copytree(find(BUNDLED), tmp_path / "copy")
    with (tmp_path / "copy" / WEIGHTS).open("r+b") as file:
        file.truncate(20_000_000)
    assert "is damaged" in complaint(tmp_path / "copy")


# ---- a judge


def test_a_judge_is_kept(tiny_reader: Make, tokenizer: Tokenizer, asked: list[Candidates], tmp_path: Path) -> None:
    save(ChainReaderModel(tiny_reader(0), tokenizer, ReaderSettings(max_tokens=300)), tmp_path / "without")
    judging = load_trainable(tmp_path / "without", judges=True)
    save(judging, tmp_path)
    found, before = (
        [logit for scores in one.score_many(asked) for logit in scores.support or ()]
        for one in (load(tmp_path), judging)
    )
    assert found == pytest.approx(before, abs=1e-5)
    assert len(set(found)) > 1
    assert load_trainable(tmp_path).network.judges
    without = load_trainable(tmp_path, judges=False).network
    assert without.state_dict().keys() == tiny_reader(0).state_dict().keys()
    assert torch.equal(without.chain.weight, judging.network.chain.weight)


# ---- digests


@pytest.mark.parametrize("name", ["format", "sha256", "features", "settings", "quantised", "judges"])
def test_a_config_with_another_key_is_refused(folder: Path, name: str) -> None:
    text = (folder / CONFIG).read_text()
    (folder / CONFIG).write_text(text.replace(f'"{name}"', f'"{name[:-1]}~"', 1))
    assert complaint(folder)


def test_a_flipped_digit_of_a_setting_is_noticed(folder: Path) -> None:
    text = (folder / CONFIG).read_text()
    (folder / CONFIG).write_text(text.replace('"margin": 20.0', '"margin": 21.0'))
    assert f"{CONFIG} is damaged or was changed by hand: its SHA-256 is another; save or" in complaint(folder)


def test_a_flipped_bit_of_the_bundled_weights_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(find(BUNDLED), tmp_path / "data" / "default")
    monkeypatch.setattr("rechain.scoring.interface.files", lambda _: tmp_path)
    with (tmp_path / "data" / "default" / WEIGHTS).open("r+b") as file:
        file.seek(20_000_000)
        byte = file.read(1)[0]
        file.seek(20_000_000)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(InputError, match=f"{WEIGHTS} is damaged: its SHA-256 is not .*; install rechain again"):
        load()


def test_weights_that_are_no_numbers_are_not_saved(model: ChainReaderModel, tmp_path: Path) -> None:
    model.network.chain.weight.data[0, 0] = float("inf")
    with pytest.raises(RechainError, match=r"not saved: its weights in chain\.weight are not all finite numbers"):
        save(model, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


# ---- nothing is believed, and nothing is run


def test_a_config_takes_no_memory_that_its_weights_do_not_need(folder: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for keys, value in ((["vocab_size"], 900_000), (["hidden_size"], 60_000), (["intermediate_size"], 10**6)):
        text = (folder / CONFIG).read_text()
        change(folder / CONFIG, "encoder", *keys, value=value)
        seal(folder)
        complaint(folder)
        with pytest.raises(InputError):
            load_trainable(folder)
        (folder / CONFIG).write_text(text)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100_000, "KB; the least of these would take ten times as much"


EVIL = """
from pathlib import Path
Path(__file__).with_name("ran").touch()
from transformers import BertModel as Model, BertConfig as Config
"""


@pytest.fixture
def evil(folder: Path, encoder: Path) -> list[Path]:
    """A model and an encoder that name code of their own."""
    code = {"AutoModel": "evil.Model", "AutoConfig": "evil.Config"}
    change(folder / CONFIG, "encoder", "auto_map", value=code)
    change(folder / CONFIG, "encoder", "model_type", value="evil")
    change(encoder / CONFIG, "auto_map", value=code)
    seal(folder)
    for where in (folder, encoder):
        (where / "evil.py").write_text(EVIL)
    return [folder, encoder]


def test_no_code_of_a_folder_is_run_and_nobody_is_asked(
    evil: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, encoder = evil
    monkeypatch.setattr(sys, "stdin", answers := StringIO("y\n" * 9))
    capfd.readouterr()
    for read, path in ((load, folder), (load_trainable, folder), (load_trainable, encoder)):
        with pytest.raises(InputError, match=r"it names code of its own \(auto_map\), which rechain never runs"):
            read(path)  # type: ignore[operator]
    assert answers.tell() == 0
    assert capfd.readouterr() == ("", "")
    assert not [*tmp_path.rglob("ran")]


@pytest.mark.slow
def test_no_command_runs_code_of_a_folder(evil: list[Path], town_file: Path, tmp_path: Path) -> None:
    folder, encoder = evil
    for arguments in (
        ["recover", town_file, "--model", folder, "--out", tmp_path / "chains.jsonl"],
        ["train", town_file, "--model", "reader", "--encoder", encoder, "--out", tmp_path / "run"],
        ["train", town_file, "--model", "reader", "--encoder", folder, "--out", tmp_path / "run"],
    ):
        command = [sys.executable, "-m", "rechain.cli.main", *map(str, arguments)]
        environment = os.environ | {"HF_HUB_TRUST_REMOTE_CODE": "1", "TRUST_REMOTE_CODE": "1"}
        done = subprocess.run(
            command, input="y\n" * 9, capture_output=True, text=True, timeout=300, env=environment, check=False
        )
        assert done.returncode == 2
        assert "it names code of its own (auto_map), which rechain never runs" in done.stderr
        assert "[y/N]" not in done.stdout + done.stderr
    assert not [*tmp_path.rglob("ran")]


@pytest.mark.parametrize("kind", ["gpt2", "t5", "evil", None, 3, ["bert"]])
def test_only_known_encoders_are_built(encoder: Path, kind: Any) -> None:
    change(encoder / CONFIG, "model_type", value=kind)
    with pytest.raises(InputError, match=r"its model_type is .*, but rechain reads albert, bert, "):
        load_trainable(encoder)


def test_an_encoder_takes_no_memory_that_its_weights_do_not_need(encoder: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, value in (("vocab_size", 900_000), ("num_hidden_layers", 10**6), ("hidden_size", 10**12)):
        text = (encoder / CONFIG).read_text()
        change(encoder / CONFIG, name, value=value)
        with pytest.raises(InputError, match="does not contain an encoder that can be read"):
            load_trainable(encoder)
        (encoder / CONFIG).write_text(text)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


def test_a_header_without_end_is_not_read(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes((2**30).to_bytes(8, "little") + b" " * 100)
    seal(folder)
    assert "its header should have at most 16,777,216 bytes" in complaint(folder)


# ---- the card


def header(card: str) -> dict[str, str]:
    """Return the lines between the first two rows of dashes, as the Hub reads them."""
    start, front, _ = card.split("---\n", 2)
    assert start == ""
    return dict(line.split(": ", 1) for line in front.strip().splitlines())


def test_a_card_has_its_sections_and_the_shape_of_the_model(model: ChainReaderModel) -> None:
    card = write_card(model, "A reader of operas", "me/operas", "apache-2.0", {"Limits": "- No ballet", "Other": "x"})
    assert (header(card)["license"], header(card)["library_name"]) == ("apache-2.0", "rechain")
    numbers = sum(parameter.numel() for parameter in model.network.parameters())
    for words in (
        "# A reader of operas\n",
        'from_pretrained("me/operas")',
        "## Limits\n\n- No ballet\n\n## Other\n\nx\n\n## Shape\n\n",
        f"{numbers / 1e6:.1f} million numbers. Settings: max_tokens 200",
    ):
        assert words in card


def test_without_facts_there_is_a_plain_card(model: ChainReaderModel) -> None:
    card = write_card(model)
    assert header(card)["license"] == "other"
    assert card.count("\n## ") == 1


# ---- the Hub


@pytest.mark.parametrize("name", ["nobody/nothing", "not a name/", "a/b/c"])
def test_what_cannot_be_fetched_is_said_in_one_sentence(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(RechainError) as caught:
        load(name)
    assert f"there is no folder '{name}', and it cannot be fetched from the Hub: " in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_model_of_the_hub_is_fetched_without_anything_else(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fetch(name: str, allow_patterns: list[str]) -> str:
        asked.append((name, set(allow_patterns)))
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    assert load("somebody/reader").settings.max_tokens == 200
    assert asked == [("somebody/reader", FILES)]


class FakeHub:
    """Notes what it is told, and the files of the folder that it is given."""

    told: list[Any]
    problem: Exception | None = None

    def create_repo(self, name: str, **options: Any) -> None:
        if self.problem:
            raise self.problem
        self.told.append((name, options))

    def upload_folder(self, *, repo_id: str, folder_path: str) -> str:
        self.told.append((repo_id, {path.name for path in Path(folder_path).iterdir()}))
        self.told.append(load(folder_path).settings)
        return f"https://hub/{repo_id}"


def test_a_model_is_put_on_the_hub(model: ChainReaderModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeHub, "told", [], raising=False)
    monkeypatch.setattr("huggingface_hub.HfApi", FakeHub)
    assert push(model, "me/reader", private=True) == "https://hub/me/reader"
    assert FakeHub.told == [
        ("me/reader", {"exist_ok": True, "private": True}),
        ("me/reader", FILES),
        model.settings,
    ]


def test_a_hub_that_refuses_is_one_sentence(model: ChainReaderModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeHub, "problem", OSError("no token\nsee the manual"))
    monkeypatch.setattr("huggingface_hub.HfApi", FakeHub)
    with pytest.raises(RechainError, match=r"^the model cannot be put on the Hub as 'me/reader': no token$"):
        push(model, "me/reader")


SLOW_TO_IMPORT = """
import sys
from rechain import Recoverer
passages = [{"id": "p", "title": "Ann", "text": "Ann made Clocks."}, {"id": "q", "title": "Clocks", "text": "1920."}]
found = Recoverer(device="cpu").recover({"id": "1", "question": "When?", "answer": "1920", "passages": passages})
assert found.chains, found
print(*sorted(sys.modules.keys() & {"transformers", "triton", "torch._dynamo", "huggingface_hub"}))
"""


def test_the_bundled_model_waits_for_no_library_that_is_slow_to_import() -> None:
    done = subprocess.run([sys.executable, "-c", SLOW_TO_IMPORT], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
