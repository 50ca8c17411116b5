"""Models by name: the bundled one, the baselines, a saved model, the folder of a training run, or one on the Hub."""

import hashlib
from contextlib import suppress
from pathlib import Path

from rechain.errors import RechainError
from rechain.scoring import BASELINES
from rechain.scoring.interface import BUNDLED, BatchModel, Model, bundled_folder
from rechain.system.files import SHA256, file_digest, read_json
from rechain.system.tensors import device_named

AnyModel = str | Path | Model | BatchModel
"""a model, or the name or folder that it is loaded by"""


def load_model(name: str, device: str | None = None) -> Model | BatchModel:
    """Load a baseline, a chain reader or a run of the game; `device` is a GPU if there is one, unless it is named."""
    if name in BASELINES:
        return BASELINES[name]()
    if is_reader(name):
        from rechain.reader.pretrained import load

        return load(name, device_named(device))
    if _is_folder(name):
        from rechain.paper.model import load_model as load_run

        return load_run(Path(name), device_named(device))
    names = ", ".join((BUNDLED, *BASELINES))
    raise RechainError(f"there is no model '{name}'; the models are {names}, or a model's folder or name on the Hub.")


def is_reader(model: AnyModel) -> bool:
    """Return whether a model is named and, by its name, a chain reader: neither a baseline nor a run of the game."""
    if not isinstance(model, str | Path) or str(model) in BASELINES:
        return False
    name = str(model)
    return (Path(name) / "config.json").exists() if _is_folder(name) else name == BUNDLED or "/" in name


def network_modules(model: AnyModel) -> list[str]:
    """Return the modules to import before worker processes are forked: importing torch takes each of them seconds."""
    return ["rechain.reader.pretrained"] if is_reader(model) else []


def describe_model(model: AnyModel) -> dict[str, str]:
    """Return the name of a model and the digest of its files, if it is loaded from files."""
    if not isinstance(model, str | Path):
        return {"name": type(model).__name__}
    name = str(model)
    if name == BUNDLED:
        folder = bundled_folder()
    elif name not in BASELINES and _is_folder(name):
        folder = Path(name)
    elif is_reader(name):
        from rechain.reader.pretrained import find

        folder = find(name)
    else:  # a baseline, or a name that loading will reject
        return {"name": name}
    return {"name": name, "sha256": _digest(folder)}


def _digest(folder: Path) -> str:
    """Return the digest of the files that a model is loaded from: not its checkpoints, logs and card."""
    with suppress(OSError, ValueError, TypeError, LookupError):  # a config with digests of itself and the other files
        return str(read_json(folder / "config.json")[SHA256]["config.json"])
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        is_other = file.name.startswith((".", "checkpoint")) or file.suffix in (".md", ".provenance")
        if file.is_file() and not is_other:
            digest.update(f"{file.name} {file_digest(file)}\n".encode())
    return digest.hexdigest()


def _is_folder(name: str) -> bool:
    return bool(name) and Path(name).is_dir()  # an empty name is not the working folder
