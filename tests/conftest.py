"""What the tests share: the real data where it is, and small questions written for them."""

from pathlib import Path

import pytest

from rechain.schema import Passage, Question

REAL_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with real data; tests that need it are skipped where it is absent."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"the real data is not at {REAL_DATA}")
    return REAL_DATA


@pytest.fixture
def bridge_question() -> Question:
    """A 2-hop question whose head names the tail by its title, with distractors."""
    return Question(
        id="q1",
        question="Where was the composer of the Zorilla opera born?",
        answer="Prague",
        hops=2,
        passages=[
            Passage(id="opera", title="Zorilla", text="Zorilla is an opera by Anton Quillfeather."),
            Passage(id="composer", title="Anton Quillfeather", text="Anton Quillfeather was born in Prague."),
            Passage(id="city", title="Prague", text="Prague lies on a river and has many bridges."),
            Passage(id="other", title="Weather", text="It rains often in autumn."),
        ],
    )
