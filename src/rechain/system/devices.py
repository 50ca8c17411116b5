"""Where networks compute."""

from rechain.errors import RechainError


def device_named(name: str | None) -> str:
    """Return a device that is there: the one named, or a GPU if there is one."""
    import torch

    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError) as error:
        raise RechainError(f"there is no device '{name}' here; --device cpu always works.") from error
    return name
