"""What the tests of the tables share: small questions, and a folder prepared for them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from rechain.paper.settings import GameSettings
from rechain.paper.stage import TableQuestions, stage
from rechain.paper.vectors import Vectors
from rechain.schema import Gold, GoldChain, Passage, Question
from rechain.system.files import write_sealed
from rechain.system.tensors import load_arrays, save_arrays
from rechain.text.candidates import CandidateSettings, find_candidates

NAMES = ("Quillfeather", "Brimlad", "Zimbelot", "Ostrela", "Vornhame", "Lithgrew", "Purvane", "Hosselby")
Fabricate = Callable[..., None]
Metadata = Mapping[str, object] | None


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny tensors are slower on several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def bridge(number: int) -> Question:
    """Two passages name the tail by its title: the opera, which is the head, and a rumour."""
    name = NAMES[number]
    return Question(
        id=f"q{number}",
        question=f"Where was the composer of opera number {number} born?",
        answer="Prague",
        hops=2,
        passages=[
            Passage(id="opera", title=f"Opera number {number}", text=f"An opera by {name}."),
            Passage(id="rumour", title="A rumour", text=f"It is said that {name} went away."),
            Passage(id="composer", title=name, text=f"{name} was born in Prague."),
        ],
    )


@pytest.fixture
def questions() -> list[Question]:
    """Seven questions with two chains each, and one without any; q2, q4 and q6 are fold 1 of two, the others fold 0."""
    last = bridge(7)
    unlinked = [last.passages[0].model_copy(update={"text": "An opera."}), last.passages[2]]
    return [*map(bridge, range(7)), last.model_copy(update={"passages": unlinked})]


@pytest.fixture
def golds(questions: list[Question]) -> dict[str, Gold]:
    """The opera leads to the composer."""
    chain = GoldChain(passages=["opera", "composer"])
    return {question.id: Gold(id=question.id, chains=[chain], same="passages") for question in questions}


@pytest.fixture
def vectors() -> Vectors:
    """Vectors of a few words."""
    return Vectors(["was", "born", "unused"], np.arange(12, dtype=np.float16).reshape(3, 4))


@pytest.fixture
def folder(tmp_path: Path, questions: list[Question], vectors: Vectors) -> Path:
    """The questions, prepared in two folds."""
    stage(tmp_path / "folder", TableQuestions(questions, None), vectors, CandidateSettings(), folds=2)
    return tmp_path / "folder"


@pytest.fixture
def fabricate(folder: Path, questions: list[Question]) -> Fabricate:
    """Write what a play would: `right` names the questions for which the gold chain has the greatest score."""

    def write(row: str, fold: int, seed: int, right: Sequence[str], metadata: Metadata = None) -> None:
        ids = json.loads((folder / "index.json").read_text())["ids"]
        tested = np.flatnonzero(load_arrays(folder / "questions.safetensors")["fold"] == fold)
        known = {question.id: question for question in questions}
        scores: list[float] = []
        for number in tested:
            chains = find_candidates(known[ids[number]]).chains
            scores += [float((chain.passages == (0, 2)) == (ids[number] in right)) for chain in chains]
        ranker = np.array(scores, dtype=np.float32)
        arrays = {"questions": tested, "ranker": ranker, "reasoner": np.zeros_like(ranker)}
        (folder / "plays").mkdir(exist_ok=True)
        path = folder / "plays" / f"{row}.{fold}.{seed}.safetensors"
        save_arrays(arrays | {"predicted": np.zeros((len(ranker), 1), np.float32)}, path)
        content = {"settings": asdict(GameSettings()), "curve": [], **(metadata or {})}
        write_sealed(path.with_suffix(".json"), content)

    return write
