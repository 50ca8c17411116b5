"""kill -9 at any moment: every label that was answered is there."""

import json
import signal
from http.client import HTTPException
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pytest

from rechain.formats.datasets import read_questions

pytestmark = pytest.mark.web

KILLS = 8
Given = dict[str, Any]


@pytest.fixture(scope="module")
def labels_to_give(demo: Path) -> list[Given]:
    """One label for every answer of the examples, by two annotators."""
    questions = list(read_questions(demo))
    return [
        {
            "annotator": name,
            "question": question.id,
            "value": ("supported", "partly", "unsupported")[number % 3],
            "evidence": [{"passages": [question.passages[number % 2].id]}],
        }
        for number, question in enumerate(questions)
        for name in ("Ada", "Ben")
    ]


def key(given: Given) -> tuple[str, ...]:
    passages = [chain["passages"] for chain in given["evidence"]]
    return given["annotator"], given["question"], json.dumps(passages), given["value"]


def stored(served: Any, questions: set[str]) -> list[tuple[str, ...]]:
    """Return all labels of some questions, in the order in which they were given."""
    held = [label for name in sorted(questions) for label in served.get(f"/labels?question={name}")]
    return [key({**label, **label["unit"]}) for label in sorted(held, key=lambda label: str(label["at"]))]


def test_what_was_answered_just_before_a_kill_is_there(serve: Any, tmp_path: Path, labels_to_give: list[Given]) -> None:
    options, waiting, answered = ("--model", "lexical", "--labels", tmp_path / "labels"), iter(labels_to_give), []
    served = serve(*options)
    for _ in range(KILLS):
        for given in (next(waiting) for _ in range(3)):
            assert served.post("/labels", [given]) == 1
            answered.append(given)
        served.kill()
        assert served.process.returncode == -signal.SIGKILL
        served = serve(*options)
        assert stored(served, {given["question"] for given in answered}) == list(map(key, answered))


def post_all(served: Any, waiting: list[Given], answered: list[Given], begun: Event) -> None:
    """Give one label after another until nobody answers any more."""
    while waiting:
        try:
            served.post("/labels", [waiting[-1]])
        except (OSError, HTTPException):
            return
        answered.append(waiting.pop())
        begun.set()
    begun.set()


def test_two_who_label_while_the_server_is_killed_lose_nothing_that_was_answered(
    serve: Any, tmp_path: Path, labels_to_give: list[Given]
) -> None:
    options, draw = ("--model", "lexical", "--labels", tmp_path / "labels"), Random(0)
    waiting = [[given for given in labels_to_give if given["annotator"] == name] for name in ("Ada", "Ben")]
    answered: list[list[Given]] = [[], []]
    for _ in range(KILLS // 2):
        served, begun = serve(*options), (Event(), Event())
        posting = [
            Thread(target=post_all, args=(served, given, done, event))
            for given, done, event in zip(waiting, answered, begun, strict=True)
        ]
        for thread in posting:
            thread.start()
        assert all(event.wait(timeout=60) for event in begun)
        posting[0].join(timeout=draw.uniform(0, 0.2))
        served.kill()
        for thread in posting:
            thread.join(timeout=30)
    served, everything = serve(*options), {given["question"] for given in labels_to_give}
    held = set(stored(served, everything))
    assert min(map(len, answered)) >= KILLS // 2  # each of both in every round
    assert held >= {key(given) for done in answered for given in done}
    assert len(held) <= sum(map(len, answered)) + KILLS  # at most one a kill and annotator was not answered
