"""Names that moved: the old ones go on, with a DeprecationWarning."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any
from warnings import warn

_MODULES = {
    "rechain.baselines": "rechain.scoring",
    "rechain.engines": "rechain.bulk",
    "rechain.gold": "rechain.evaluation.gold",
    "rechain.model": "rechain.scoring.model",
}


class OldModules:
    """Imports modules by their old names.

    It stands before Python's own finders, which would load a submodule of a package that moved a second time.
    """

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        """Return how an old name is loaded; None for all others."""
        loader: Any = cls()  # a loader by its methods: importlib.abc takes time to import
        return ModuleSpec(name, loader) if _new_name(name) else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python to make an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of the new name in place of the empty one, as the import system allows."""
        new = _new_name(module.__name__)
        warn(f"the module {module.__name__} is now {new}.", DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = import_module(new)


def _new_name(name: str) -> str:
    """Return the new name of a module or of a submodule; empty if it did not move."""
    return next((new + name[len(old) :] for old, new in _MODULES.items() if f"{name}.".startswith(f"{old}.")), "")


def names_from(package: str, *modules: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package that was a module: it finds the old names in the package's modules."""

    def find(name: str) -> Any:
        for module in modules if not name.startswith("_") else ():
            if hasattr(home := import_module(f"{package}.{module}"), name):
                warn(f"{package}.{name} is now {home.__name__}.{name}.", DeprecationWarning, stacklevel=2)
                return getattr(home, name)
        raise AttributeError(f"module '{package}' has no attribute '{name}'")

    return find
