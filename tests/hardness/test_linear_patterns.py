"""The check that no pattern takes more than linear time finds one that does (.ci/linear_patterns.py)."""

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci/linear_patterns.py"
spec = spec_from_file_location("linear_patterns", SCRIPT)
assert spec and spec.loader
linear_patterns = module_from_spec(spec)
sys.modules[spec.name] = linear_patterns
spec.loader.exec_module(linear_patterns)


def slow_units(pattern: str, is_sought: bool = True) -> list[str]:
    compiled = re.compile(pattern)
    return [unit for unit in linear_patterns.texts(compiled) if linear_patterns.is_slow(compiled, is_sought, unit)]


@pytest.mark.parametrize("pattern", [r"\s+$", r"\d+,", r"(?:ab)+c", r"[^\s:]+: "])
def test_a_quadratic_pattern_is_found(pattern: str) -> None:
    assert slow_units(pattern)


@pytest.mark.parametrize("pattern", [r"(?<!\s)\s++$", r"(?<!\d)\d+,", r"\bword\b", r"[^\s:]{1,30}: "])
def test_a_linear_pattern_is_not(pattern: str) -> None:
    assert not slow_units(pattern)


def test_what_is_only_matched_at_the_beginning_may_run_to_the_end_once() -> None:
    assert not slow_units(r"\s*$", is_sought=False)


def test_all_patterns_of_the_package_are_looked_at() -> None:
    names = {name for name, _, _ in linear_patterns.patterns()}
    assert "rechain.text.passage_views._STOP" in names and len(names) > 100
