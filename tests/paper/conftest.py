"""What the tests of the game share: tiny batches, the networks in NumPy, and a small prepared data set."""

from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import torch

from rechain.paper.data import Prepared
from rechain.paper.lexicon import Lexicon
from rechain.paper.prepare import prepare
from rechain.paper.settings import GameSettings
from rechain.schema import Passage, Question
from rechain.text.candidates import Candidates, find_candidates


def _load(name: str) -> ModuleType:
    """Return a module next to this file."""
    spec = spec_from_file_location(f"{__name__}.{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def tiny() -> ModuleType:
    """Batches and players that can be worked by hand."""
    return _load("tiny")


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """The networks in NumPy."""
    return _load("reference")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny tensors are slower on several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def question(name: str, asked: str, answer: str, *passages: tuple[str, str]) -> Question:
    rows = [Passage(id=str(n), title=title, text=text) for n, (title, text) in enumerate(passages)]
    return Question(id=name, question=asked, answer=answer, hops=2, passages=rows)


def many_passages() -> Question:
    """Ten passages, so that who holds an entity takes two bytes; the last two are linked, two have nothing."""
    filling = [(f"Part {n}", f"Quorvath was seen here {n} times") for n in range(6)]
    ends = [("Brimlad", "a friend of Quorvath and of Zimbelot"), ("Zimbelot", "Zimbelot and Quorvath went to Ostrela")]
    return question("many", "Where did Brimlad's friend go?", "Ostrela", *filling, ("", "it rained"), ("", "a"), *ends)


@pytest.fixture(scope="session")
def questions() -> list[Question]:
    """Three questions of ten, two and four passages."""
    few = question("few", "Who?", "Prague", ("Zorilla", "an opera by Quill"), ("Quill", "Quill was born in Prague"))
    bridge = question(
        "bridge",
        "Where was the composer of the Zorilla opera born?",
        "Prague",
        ("Zorilla", "Zorilla is an opera by Anton Quillfeather."),
        ("Anton Quillfeather", "Anton Quillfeather was born in Prague."),
        ("Prague", "Prague lies on a river and has many bridges."),
        ("Weather", "It rains often in autumn."),
    )
    return [many_passages(), few, bridge]


@pytest.fixture(scope="session")
def found(questions: list[Question]) -> list[Candidates]:
    """C of each question."""
    return [find_candidates(one) for one in questions]


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    """Some words have a vector."""
    return Lexicon({"quorvath": 1, "prague": 2, "was": 3, "born": 4, "in": 5, "of": 6, "zorilla": 7})


@pytest.fixture(scope="session")
def prepared(questions: list[Question], lexicon: Lexicon) -> Prepared:
    """The three questions as tensors, with every entity that was found."""
    return Prepared(prepare(questions, lexicon).arrays(), GameSettings(row="as written"))
