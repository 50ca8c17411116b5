"""The public names of the package."""

import ast
from pathlib import Path

import pytest

import rechain


def test_every_public_name_is_there() -> None:
    assert "Recoverer" in rechain.__all__
    assert {name for name in rechain.__all__ if not hasattr(rechain, name)} == set()
    assert dir(rechain) == sorted(rechain.__all__)
    with pytest.raises(AttributeError, match="module 'rechain' has no attribute 'nothing'"):
        _ = rechain.nothing


def test_type_checkers_see_the_same_names_as_python() -> None:
    tree = ast.parse(Path(rechain.__file__).read_text(encoding="utf-8"))
    imported = {
        (node.module, alias.name, alias.asname)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    at_run_time = {(f"rechain.{home}", name, name) for home, names in rechain._PUBLIC.items() for name in names}
    assert imported == at_run_time
