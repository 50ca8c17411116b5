"""Chain readers in folders and on the Hub: weights as safetensors, settings and tokeniser as JSON, and a model card."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer
from torch import Tensor

from rechain.errors import InputError, RechainError
from rechain.reader.cpu import PackedEncoder, dequantise, is_plain_bert, quantise
from rechain.reader.encoders import (
    PretrainedEncoder,
    check_shapes,
    check_size,
    pretrained,
    shape_of,
    shapes_alone,
)
from rechain.reader.model import ChainReaderModel
from rechain.reader.network import ChainReader
from rechain.reader.settings import TEXT_MARKS, ReaderSettings
from rechain.reader.tokenizer_file import check_tokenizer
from rechain.scoring.interface import BUNDLED, bundled_folder
from rechain.system.files import SHA256, check_digests, opened_seal, read_json, sealed, write_atomically
from rechain.system.tensors import not_finite, open_tensors, read_shapes
from rechain.text.evidence.features import FEATURES, prior

WEIGHTS, CONFIG, TOKENIZER, CARD = "model.safetensors", "config.json", "tokenizer.json", "README.md"
_FORMAT = 3  # of the folder
_SEALED = (WEIGHTS, TOKENIZER)  # the files whose SHA-256 a config has, next to its own
_KEYS = {"library", "format", "encoder", "quantised", "judges", "features", "settings", SHA256}  # of a config


def find(name: str | Path) -> Path:
    """Return the folder of a model: the bundled one, a local one, or one that is fetched from the Hub."""
    if name == BUNDLED:
        return bundled_folder()
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(str(name), allow_patterns=[WEIGHTS, CONFIG, TOKENIZER, CARD]))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = _first_line(error)
        raise RechainError(f"there is no folder '{name}', and it cannot be fetched from the Hub: {reason}") from error


def load(name: str | Path = BUNDLED, device: str = "cpu") -> ChainReaderModel:
    """Load a model to recover with, by the path of its folder or its name on the Hub."""
    folder = find(name)
    config = _read_config(folder / CONFIG)
    network = _load_network(folder, config)
    tokenizer = _read_fitting_tokenizer(network.encoder, config["settings"], folder)
    card = folder / CARD
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    return ChainReaderModel(network, tokenizer, config["settings"], text).to(device)


def load_trainable(
    name: str | Path = BUNDLED, settings: ReaderSettings | None = None, seed: int = 0, judges: bool | None = None
) -> ChainReaderModel:
    """Load a network to train: that of a model, or a new one on top of an encoder of the transformers library.

    The folder, or the name on the Hub, is one of either; int8 weights of a model become floats. Settings are those of
    the model, or the default ones, unless passed. The seed is that of the weights that are new. `judges` decides
    whether the network has a judge; by default it has one if the model has.
    """
    folder = find(name)
    torch.manual_seed(seed)
    if is_model(folder / CONFIG):
        config = _read_config(folder / CONFIG)
        own = settings or config["settings"]
        network = _load_network(folder, config, own.dropout)
        if judges is not None and network.judges != judges:
            trained = network
            network = ChainReader(trained.encoder, len(FEATURES), own.dropout, judges, trained.judge_layers)
            network.load_state_dict(trained.state_dict(), strict=False)  # all but the judge
    else:
        own = settings or ReaderSettings()
        network = ChainReader(_read_encoder(folder), len(FEATURES), own.dropout, bool(judges), own.judge_layers)
        network.evidence.weight.data.copy_(torch.from_numpy(prior())[None])
    tokenizer = _read_fitting_tokenizer(network.encoder, own, folder, is_passed=settings is not None)
    return ChainReaderModel(network, tokenizer, own)


def is_model(path: Path) -> bool:
    """Return whether a config should be that of a rechain model; an encoder's has a `model_type`."""
    try:
        config = read_json(path)
    except (OSError, ValueError):
        return True
    return not isinstance(config, dict) or "model_type" not in config


def _read_encoder(folder: Path) -> PretrainedEncoder:
    """Read an encoder as the transformers library writes it, without any code of the folder's own."""
    try:
        shapes = read_shapes(folder / WEIGHTS)
        return pretrained(read_json(folder / CONFIG), shapes, lambda: _read_weights(folder / WEIGHTS), TEXT_MARKS)
    except InputError:
        raise
    except Exception as error:  # the library raises much for a folder that it cannot read
        reason = _first_line(error).removesuffix(".")
        raise InputError(f"{folder} does not contain an encoder that can be read: {reason:.300}.") from error


def save(model: ChainReaderModel, folder: Path) -> None:
    """Write a model into a folder, which is created if it does not exist."""
    from safetensors.torch import save as as_bytes

    weights = {name: value.contiguous().cpu() for name, value in model.network.state_dict().items()}
    if bad := not_finite(weights):
        raise RechainError(f"the model is not saved: its weights in {bad} are not all finite numbers.")
    contents = {
        WEIGHTS: as_bytes(weights),
        TOKENIZER: model.tokenizer.to_str().encode(),
        CARD: (model.card or write_card(model)).encode(),
    }
    config = {
        "library": "rechain",
        "format": _FORMAT,
        "encoder": model.network.encoder.shape,
        "quantised": any(value.dtype.itemsize == 1 for value in weights.values()),
        "judges": model.network.judges,
        "features": FEATURES,
        "settings": asdict(model.settings),
    }
    config = sealed(config, CONFIG, {name: sha256(contents[name]).hexdigest() for name in _SEALED})
    # last, as a folder without it is no model: one that was cut short is not read
    contents[CONFIG] = (json.dumps(config, indent=2) + "\n").encode()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            write_atomically(folder / name, content)
    except OSError as error:
        raise RechainError(f"the model cannot be written to {folder}: {error.strerror}.") from error


_CARD = """---
library_name: rechain
license: {licence}
tags: [multi-hop question answering, reasoning chains, weak supervision]
---
# {title}

A chain reader of [rechain](https://arxiv.org/abs/2004.02393): given a question, its answer and candidate passages, it
recovers the ordered passages that lead to the answer and the entities that link them. It was trained on questions and
answers alone, without any evidence labels.

```python
from rechain import Recoverer

Recoverer.from_pretrained("{name}").recover(question, answer, passages)
```

{sections}## Shape

{millions:.1f} million numbers. Settings: {settings}.
"""


def write_card(
    model: ChainReaderModel,
    title: str = "A chain reader",
    name: str = "PATH",
    licence: str = "other",
    sections: Mapping[str, str] | None = None,
) -> str:
    """Return the card of a model, with sections (heading and Markdown) before that of its shape."""
    return _CARD.format(
        title=title,
        name=name,
        licence=licence,
        sections="".join(f"## {heading}\n\n{text}\n\n" for heading, text in (sections or {}).items()),
        millions=sum(value.numel() for value in model.network.state_dict().values()) / 1e6,
        settings=", ".join(f"{name} {value}" for name, value in vars(model.settings).items()),
    )


def push(model: ChainReaderModel, name: str, **options: Any) -> str:
    """Put a model on the Hub and return its address."""
    from huggingface_hub import HfApi

    api = HfApi()
    with TemporaryDirectory() as folder:
        save(model, Path(folder))
        try:
            api.create_repo(name, exist_ok=True, **options)
            return str(api.upload_folder(repo_id=name, folder_path=folder))
        except Exception as error:  # of the client, or of whatever HTTP library it uses
            raise RechainError(f"the model cannot be put on the Hub as '{name}': {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


def read_tokenizer(path: Path) -> Tokenizer:
    """Read a tokeniser, which cuts nothing off and pads nothing."""
    from tokenizers import Tokenizer

    try:
        check_tokenizer(read_json(path))
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more specific
        raise InputError(f"{path} cannot be read as a tokeniser: {error!s:.300}.") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # "[SEP]" in a text is a text
    return tokenizer


def _read_fitting_tokenizer(
    encoder: PretrainedEncoder, settings: ReaderSettings, folder: Path, is_passed: bool = False
) -> Tokenizer:
    """Read the tokeniser of a folder; say where it or the settings do not fit the encoder, before a text is read."""
    tokenizer = read_tokenizer(folder / TOKENIZER)
    positions = encoder.shape["max_position_embeddings"]
    if len(tokenizer.encode("").ids) < 2 or tokenizer.get_vocab_size() > encoder.shape["vocab_size"]:
        raise InputError(f"{folder / TOKENIZER} is the tokeniser of another model than {folder / WEIGHTS}.")
    for setting in ("max_tokens", "passage_tokens", "judge_tokens"):
        if getattr(settings, setting) > positions:
            where = "the setting" if is_passed else f"{folder / CONFIG}:"
            raise InputError(
                f"{where} {setting} should be at most the {positions} tokens that the encoder of {folder} reads, "
                f"not {getattr(settings, setting)}."
            )
    return tokenizer


def _read_config(path: Path) -> dict[str, Any]:
    """Read the description of a model; folders of other libraries have a config.json too."""
    try:
        config = read_json(path)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read: {error}; a model's folder contains {CONFIG}, {WEIGHTS} and {TOKENIZER}."
        ) from error
    if not isinstance(config, dict) or config.get("library") != "rechain":
        raise InputError(f"{path} is not that of a rechain model; `Recoverer.save_pretrained` writes one.")
    if config.get("format") != _FORMAT:
        raise InputError(f"{path} was written by another version of rechain, whose models this one cannot read.")
    if config.keys() != _KEYS or {type(config[name]) for name in ("quantised", "judges")} != {bool}:
        raise InputError(f"{path} does not describe a model; was it changed by hand?")
    _check_digests(path.parent, config)
    if config["features"] != list(FEATURES):
        raise InputError(f"{path} was written by another version of rechain, whose models this one cannot read.")
    try:
        return config | {"settings": ReaderSettings.recorded(config["settings"], str(path))}
    except RechainError as error:
        raise InputError(str(error)) from error


def _check_digests(folder: Path, config: Mapping[str, Any]) -> None:
    """Raise InputError with the first file of a model that has changed."""
    again = "install rechain again" if folder == find(BUNDLED) else "save or fetch the model again"
    try:
        digests = opened_seal(config, CONFIG)
        if digests.keys() != set(_SEALED):
            raise ValueError(f"it has no SHA-256 of {' and '.join(_SEALED)}")
    except ValueError as error:
        raise InputError(f"{folder / CONFIG} is damaged or was changed by hand: {error}; {again}.") from error
    check_digests(folder, digests, CONFIG, again)


def _load_network(folder: Path, config: Mapping[str, Any], dropout: float | None = None) -> ChainReader:
    """Load the network of a model: in floats to be trained with this dropout or, without it, to recover with.

    Nothing of its size is allocated before the shapes in the weights' header are known to be those of the config.
    """
    path = folder / WEIGHTS
    try:
        shapes = read_shapes(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path} is damaged or no safetensors file: {error!s:.300}.") from error
    judges, layers = config["judges"], config["settings"].judge_layers
    try:
        shape = shape_of(config["encoder"])
        check_size(shape, shapes)
        is_plain = is_plain_bert(shape)
        with shapes_alone():
            encoder = PackedEncoder(shape, TEXT_MARKS) if is_plain else PretrainedEncoder(shape, TEXT_MARKS)
            network = ChainReader(encoder, len(FEATURES), judges=judges, judge_layers=layers)
            if config["quantised"]:
                quantise(encoder.model)
    except Exception as error:  # the library raises much for a shape that cannot be
        reason = _first_line(error).removesuffix(".")
        raise InputError(f"{folder / CONFIG} does not describe an encoder that can be built: {reason:.300}.") from error
    try:
        check_shapes(network, shapes)
        weights = _fitting(network, _read_weights(path))
    except ValueError as error:
        raise InputError(f"{path} does not contain the weights of this model: {error}.") from error
    if is_plain and dropout is None:
        network.load_state_dict(weights, assign=True)  # nothing is drawn at random or allocated that they replace
        return network
    network = ChainReader(PretrainedEncoder(shape, TEXT_MARKS), len(FEATURES), dropout or 0.0, judges, layers)
    network.load_state_dict(dequantise(weights))
    return network


def _fitting(network: ChainReader, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights in the precision of a network; raise ValueError if they are of another one."""
    expected = network.state_dict()
    if unknown := sorted(weights.keys() - expected.keys()):
        raise ValueError(f"it has no place for {unknown[0]:.80}")
    for name, value in weights.items():
        if value.is_floating_point() != expected[name].is_floating_point():
            raise ValueError(f"{name} has numbers of another type")
    if bad := not_finite(weights):
        raise ValueError(f"the numbers of {bad} are not all finite")
    return {name: value.to(expected[name].dtype) for name, value in weights.items()}


def _read_weights(path: Path) -> dict[str, Tensor]:
    """Read weights; a file that is not safetensors is never opened as anything else."""
    with open_tensors(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
