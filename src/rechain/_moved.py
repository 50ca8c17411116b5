"""Names that moved: the old ones go on, with a DeprecationWarning."""

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any
from warnings import warn

_MODULES = {
    "rechain.baselines": "rechain.scoring",
    "rechain.engines.growing": "rechain.bulk.resume",  # before its package: the first match counts
    "rechain.engines.local": "rechain.bulk.work",
    "rechain.engines": "rechain.bulk",
    "rechain.gold": "rechain.evaluation.gold",
    "rechain.model": "rechain.scoring.model",
    "rechain.pseudo": "rechain.preparation.pseudo",
    "rechain.reproduction.staging": "rechain.tables.stage",
    "rechain.reproduction": "rechain.tables",
}
PLACE = str(Path(__file__).with_name("old names"))
"""no folder: where Python looks last for modules of the package, and asks OldModules"""


class OldModules:
    """Imports modules of this package by their old names; Python asks it for nothing else."""

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return how an old name is loaded; None if there never was such a module."""
        loader: Any = self  # by its methods: importlib.abc takes time to import
        return ModuleSpec(name, loader) if _new_name(name) else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python to make an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of the new name in place of the empty one, as the import system allows."""
        new = import_module(_new_name(module.__name__))
        warn(f"the module {module.__name__} is now {new.__name__}.", DeprecationWarning, stacklevel=2)
        if hasattr(new, "__path__"):  # in whose place Python would load its modules once more, by their old names
            module.__path__ = [PLACE]
            vars(module)["__getattr__"] = partial(getattr, new)
        else:
            sys.modules[module.__name__] = new


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
