"""Chain readers in folders and on the Hub: weights as safetensors, settings and tokeniser as JSON, and a model card."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from rechain.errors import InputError, RechainError
from rechain.models.chain_reader import ChainReader
from rechain.models.cpu import dequantise, packed, quantise
from rechain.models.text_encoders import PretrainedEncoder, TextEncoder, pretrained, unfilled, untrained
from rechain.preparation.arrays import TEXT_MARKS
from rechain.reader.card import plain_card
from rechain.reader.model import ChainReaderModel
from rechain.reader.settings import ReaderSettings
from rechain.scoring.evidence import FEATURES, PRIOR
from rechain.scoring.model import BUNDLED
from rechain.system.files import write_atomically

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WEIGHTS, CONFIG, TOKENIZER, CARD = "model.safetensors", "config.json", "tokenizer.json", "README.md"
_FORMAT = 1
"""of the folder; a change that older versions cannot read counts it up"""
_NOT_SHAPE = {
    "_name_or_path",
    "architectures",
    "transformers_version",
    "dtype",
    "torch_dtype",
    "gradient_checkpointing",
}
"""of an encoder's config: what says where it came from and nothing of its shape"""


def find(name: str | Path) -> Path:
    """Return the folder of a model: the bundled one, a local one, or one that is fetched from the Hub."""
    if name == BUNDLED:
        return Path(str(files("rechain").joinpath("data/default")))
    if Path(name).is_dir():
        return Path(name)
    return _fetch(str(name))


def _fetch(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=[WEIGHTS, CONFIG, TOKENIZER, CARD]))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = _first_line(error)
        raise RechainError(f"there is no folder '{name}', and it cannot be fetched from the Hub: {reason}") from error


def load(name: str | Path = BUNDLED, device: str = "cpu") -> ChainReaderModel:
    """Load a model to recover with, by the path of its folder or its name on the Hub."""
    folder = find(name)
    config = _read_config(folder / CONFIG)
    encoder = _make_encoder(unfilled, config, folder)
    network = ChainReader(encoder, len(FEATURES))
    if config["quantised"]:
        quantise(encoder.model)
    _load_weights(network, folder / WEIGHTS)
    network.encoder = packed(encoder)
    tokenizer = _read_fitting_tokenizer(encoder, config["settings"], folder)
    card = folder / CARD
    text = card.read_text(encoding="utf-8", errors="replace") if card.exists() else ""
    return ChainReaderModel(network, tokenizer, config["settings"], text).to(device)


class Trainable(NamedTuple):
    """A network in floats, and what goes with it."""

    network: ChainReader
    tokenizer: "Tokenizer"
    settings: ReaderSettings


def load_trainable(name: str | Path = BUNDLED, settings: ReaderSettings | None = None, seed: int = 0) -> Trainable:
    """Load a network to train: that of a model, or a new one on top of an encoder of the transformers library.

    The folder, or the name on the Hub, is one of either; int8 weights of a model become floats. Settings are those of
    the model, or the default ones, unless passed. The seed is that of the weights that are new.
    """
    folder = find(name)
    torch.manual_seed(seed)
    if is_model(folder / CONFIG):
        config = _read_config(folder / CONFIG)
        settings = settings or config["settings"]
        network = ChainReader(_make_encoder(untrained, config, folder), len(FEATURES), settings.dropout)
        _load_weights(network, folder / WEIGHTS, dequantise)
    else:
        settings = settings or ReaderSettings()
        network = ChainReader(_read_encoder(folder), len(FEATURES), settings.dropout)
        network.evidence.weight.data.copy_(torch.from_numpy(PRIOR)[None])
    return Trainable(network, _read_fitting_tokenizer(network.encoder, settings, folder), settings)


def is_model(path: Path) -> bool:
    """Return whether a config should be that of a rechain model: an encoder's says which of the library's it is."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return True
    return not isinstance(config, dict) or "model_type" not in config


def _read_encoder(folder: Path) -> PretrainedEncoder:
    try:
        return pretrained(folder, TEXT_MARKS)
    except Exception as error:  # the library raises much for a folder that it cannot read
        raise InputError(f"{folder} does not hold an encoder that can be read: {_first_line(error):.200}") from error


def save(model: ChainReaderModel, folder: Path) -> None:
    """Write a model into a folder, which is created if it does not exist."""
    from safetensors.torch import save as as_bytes

    encoder = model.network.encoder
    if not isinstance(encoder, PretrainedEncoder):
        raise RechainError("only a reader with a pretrained encoder can be saved.")
    shape: dict[str, Any] = encoder.model.config.to_diff_dict()
    config = {
        "library": "rechain",
        "format": _FORMAT,
        "encoder": {name: value for name, value in shape.items() if name not in _NOT_SHAPE},
        "quantised": any(value.dtype.itemsize == 1 for value in model.network.state_dict().values()),
        "features": FEATURES,
        "settings": asdict(model.settings),
    }
    weights = {name: value.contiguous().cpu() for name, value in model.network.state_dict().items()}
    contents = {
        WEIGHTS: as_bytes(weights),
        TOKENIZER: model.tokenizer.to_str().encode(),
        CARD: (model.card or plain_card(model)).encode(),
        # last, as a folder without it is no model: one that was cut short is not read
        CONFIG: (json.dumps(config, indent=2) + "\n").encode(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            write_atomically(folder / name, content)
    except OSError as error:
        raise RechainError(f"the model cannot be written to {folder}: {error.strerror}.") from error


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


def read_tokenizer(path: Path) -> "Tokenizer":
    """Read a tokeniser, which cuts nothing off and pads nothing."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more specific
        raise InputError(f"{path} cannot be read as a tokeniser: {error}.") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # "[SEP]" in a text is a text
    return tokenizer


def _read_fitting_tokenizer(encoder: TextEncoder, settings: ReaderSettings, folder: Path) -> "Tokenizer":
    """Read the tokeniser of a folder; say where it or the settings do not fit the encoder, before a text is read."""
    tokenizer = read_tokenizer(folder / TOKENIZER)
    shape: Any = encoder.model.config  # type: ignore[attr-defined]
    positions = getattr(shape, "max_position_embeddings", settings.max_tokens)
    if len(tokenizer.encode("").ids) < 2 or tokenizer.get_vocab_size() > shape.vocab_size:
        raise InputError(f"{folder / TOKENIZER} is the tokeniser of another model than {folder / WEIGHTS}.")
    if settings.max_tokens > positions:
        raise InputError(f"{folder / CONFIG}: max_tokens is {settings.max_tokens}, but the encoder reads {positions}.")
    return tokenizer


def _read_config(path: Path) -> dict[str, Any]:
    """Read the description of a model; folders of other libraries have a config.json too."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read: {error}; a model's folder holds {CONFIG}, {WEIGHTS} and {TOKENIZER}."
        ) from error
    if not isinstance(config, dict) or config.get("library") != "rechain":
        raise InputError(f"{path} is not that of a rechain model; `Recoverer.save_pretrained` writes one.")
    if config.get("format") != _FORMAT or config.get("features") != list(FEATURES):
        raise InputError(f"{path} was written by another version of rechain, whose models this one cannot read.")
    if not isinstance(config.get("quantised"), bool) or not {"encoder", "settings"} <= config.keys():
        raise InputError(f"{path} does not say what the model is; was it changed by hand?")
    try:
        return config | {"settings": ReaderSettings.of(config["settings"], str(path))}
    except RechainError as error:
        raise InputError(str(error)) from error


def _make_encoder(
    make: Callable[[Mapping[str, Any], int], PretrainedEncoder], config: Mapping[str, Any], folder: Path
) -> PretrainedEncoder:
    try:
        return make(config["encoder"], TEXT_MARKS)
    except Exception as error:  # the library raises much for a shape that cannot be
        reason = _first_line(error)
        raise InputError(f"{folder / CONFIG} does not describe an encoder that can be built: {reason:.200}") from error


def _load_weights(
    network: ChainReader, path: Path, convert: Callable[[dict[str, Tensor]], dict[str, Tensor]] = dict
) -> None:
    """Load weights that fit exactly; a file that is not safetensors is never opened as anything else."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        weights = load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is damaged or no safetensors file: {error}.") from error
    try:
        network.load_state_dict(convert(weights))
    except RuntimeError as error:
        reason = str(error).split("\n")[1].strip() if "\n" in str(error) else str(error)
        raise InputError(f"{path} does not hold the weights of this model: {reason:.200}") from error
