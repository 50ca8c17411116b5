"""Settings as dataclasses: a field states type and limits, and every value is checked, wherever it comes from.

@dataclass(frozen=True)
class TeaSettings(Settings):
    minutes: Annotated[float, Limits(above=0)] = 4.0
    kind: Literal["green", "black"] = "black"

TeaSettings.read(Path("tea.toml"), minutes=3)
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.resources import as_file, files
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from rechain.errors import RechainError


@dataclass(frozen=True)
class Limits:
    """What a number is compared with; None is no limit."""

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None


_COMPARISONS: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "least": ("at least", ge),
    "above": ("more than", gt),
    "most": ("at most", le),
    "below": ("less than", lt),
}
_TYPES: Mapping[type, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}

Count = Annotated[int, Limits(least=0)]
Positive = Annotated[int, Limits(least=1)]
AboveZero = Annotated[float, Limits(above=0)]
NotNegative = Annotated[float, Limits(least=0)]
Share = Annotated[float, Limits(least=0, most=1)]
PartShare = Annotated[float, Limits(least=0, below=1)]
"""of something that must not be used up"""
Rate = Annotated[float, Limits(least=0, most=1e30)]
"""a learning rate; a step of the greatest is still a finite number"""
Seed = Annotated[int, Limits(least=0, below=2**63)]
"""torch takes no more than 63 bits"""


@dataclass(frozen=True)
class Settings:
    """The base of settings: a frozen dataclass whose fields all have a default."""

    names: ClassVar[Sequence[str]] = ()
    """under which the package has such settings; an error names them where a file is missing"""

    def __post_init__(self) -> None:
        """Raise an error that names the wrong setting; settings may come from a file."""
        kinds = get_type_hints(type(self), include_extras=True)
        for field in fields(self):
            value = getattr(self, field.name)
            if what := fault_of(value, kinds[field.name]):
                raise RechainError(f"the setting {field.name} should be {what}, not {value!r:.80}.")

    @classmethod
    def read(cls, path: Path, **changes: Any) -> Self:
        """Read settings from a TOML file; what it does not name stays as it is by default."""
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            names = f"; known by name are {', '.join(cls.names)}" if cls.names else ""
            raise RechainError(f"{path} cannot be read: {error.strerror}{names}.") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise RechainError(f"{path} is not a TOML file: {error}.") from error
        return cls.of(values, str(path), **changes)

    @classmethod
    def for_data(cls, name: str, **changes: Any) -> Self:
        """Return the settings that the package has under one of the names."""
        with as_file(files("rechain").joinpath(f"data/settings/{name}.toml")) as path:
            return cls.read(path, **changes)

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str, **changes: Any) -> Self:
        """Return settings from names and values; `where` is the source that an error names."""
        names = {field.name for field in fields(cls)}
        if not isinstance(values, Mapping):
            raise RechainError(f"{where}: the settings should be names with values.")
        if unknown := sorted((values.keys() | changes.keys()) - names):
            raise RechainError(
                f"{where}: there is no setting '{unknown[0]}'; the settings are {', '.join(sorted(names))}."
            )
        try:
            return cls(**{**values, **changes})
        except RechainError as error:
            raise RechainError(f"{where}: {error}") from error

    def but(self, **changes: Any) -> Self:
        """Return the settings with some changes."""
        return replace(self, **changes)


def fault_of(value: Any, kind: Any) -> str | None:
    """Return what a value should be to be of a type, which may be annotated with limits; None if it is."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        bounds = ((*_COMPARISONS[name], bound) for name, bound in vars(arguments[1]).items() if bound is not None)
        beyond = (f"{words} {bound:,}" for words, holds, bound in bounds if not holds(value, bound))
        return fault_of(value, arguments[0]) or next(beyond, None)
    if origin is Literal:
        return None if value in arguments else f"one of {', '.join(map(str, arguments))}"
    if origin is tuple:
        if not isinstance(value, tuple) or len(value) != len(arguments):
            return f"{len(arguments)} values"
        return next(filter(None, map(fault_of, value, arguments)), None)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return None if abs(value) < float("inf") else "finite"
    return None if type(value) is kind else _TYPES[kind]
