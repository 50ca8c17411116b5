"""What is kept in memory: up to a limit, the oldest dropped first, and made once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from rechain.errors import QuestionError
from rechain.schema import Passage, Question
from rechain.text.candidates import CandidateSettings
from rechain.text.collection import Statistics
from rechain.web.chains import recent_candidates, recent_units, remember

SETTINGS = CandidateSettings()


def asked(name: str, length: int = 0) -> Question:
    return Question(id=name, question="Who?", answer="Anna", passages=[Passage(id="1", title="", text="x" * length)])


class Finder:
    """Returns the id of a question, and keeps which were looked at."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, question: Question, settings: CandidateSettings, collection: Statistics | None) -> str:
        self.seen.append(question.id)
        return question.id


def test_the_same_question_is_looked_at_once_and_an_equal_one_again() -> None:
    finder, question = Finder(), asked("a", 10)
    recent = remember(finder)
    assert [recent(question, SETTINGS, None) for _ in range(3)] == ["a"] * 3
    assert recent(question.model_copy(), SETTINGS, None) == "a"
    assert recent(question, CandidateSettings(hops=3), None) == "a"
    assert finder.seen == ["a"] * 3


def test_a_question_larger_than_the_memory_is_not_kept() -> None:
    finder, large, small = Finder(), asked("large", 9000), asked("small", 1)
    recent = remember(finder, most=4000)
    for question in (large, large, small, small):
        assert recent(question, SETTINGS, None) == question.id
    assert finder.seen == ["large", "large", "small"]


def test_threads_may_share_it() -> None:
    questions = [asked(str(number), 10) for number in range(20)]
    recent = remember(Finder(), most=5000)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: recent(questions[number % 20], SETTINGS, None), range(400)))
    assert found == [str(number % 20) for number in range(400)]


def test_candidates_and_units_are_those_of_the_question(towns: Callable[..., list[Question]]) -> None:
    (question,) = towns(1)
    candidates, units = recent_candidates(question, SETTINGS, None), recent_units(question, SETTINGS, None)
    assert candidates.question is units.question is question
    assert recent_candidates(question, SETTINGS, None) is candidates
    with pytest.raises(QuestionError):
        recent_candidates(asked("none", 1), SETTINGS, None)
