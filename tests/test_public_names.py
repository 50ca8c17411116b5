"""The names of the package, new and old."""

import ast
import subprocess
import sys
import warnings
from importlib import import_module
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


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rechain.baselines", "rechain.scoring"),
        ("rechain.baselines.lexical", "rechain.scoring.lexical"),
        ("rechain.engines", "rechain.bulk"),
        ("rechain.engines.ray", "rechain.bulk.ray"),
        ("rechain.engines.growing", "rechain.bulk.resume"),
        ("rechain.pseudo", "rechain.preparation.pseudo"),
        ("rechain.reproduction.staging", "rechain.tables.stage"),
        ("rechain.gold", "rechain.evaluation.gold"),
        ("rechain.model", "rechain.scoring.model"),
    ],
)
def test_a_module_that_moved_is_found_by_its_old_name(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{old}.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.warns(DeprecationWarning, match=f"the module {old} is now {new}\\.") as caught:
        module = import_module(old)
    public = [name for name in dir(import_module(new)) if not name.startswith("_")]
    assert all(getattr(module, name) is getattr(import_module(new), name) for name in public)
    assert hasattr(module, "__path__") or module is import_module(new)
    assert caught[-1].filename != rechain.__file__


def test_a_submodule_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"rechain\.bulk\.nothing"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module("rechain.engines.nothing")


def test_names_of_the_module_that_evaluation_was_are_found() -> None:
    from rechain.evaluation.judging import judge as new

    with pytest.warns(DeprecationWarning, match="rechain.evaluation.judge is now rechain.evaluation.judging.judge"):
        from rechain.evaluation import judge
    assert judge is new
    with pytest.raises(ImportError, match="nothing"):
        from rechain.evaluation import nothing  # noqa: F401


def test_the_warning_points_to_the_import_and_is_seen_once(tmp_path: Path) -> None:
    script = tmp_path / "old.py"
    script.write_text("from rechain.model import Model\nfrom rechain.model import Model\n")
    told = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stderr
    assert told.startswith(f"{script}:1: DeprecationWarning: the module rechain.model is now rechain.scoring.model.")
    assert told.count("DeprecationWarning") == 1
