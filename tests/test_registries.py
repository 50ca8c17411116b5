"""A new linker and a new model, added as CONTRIBUTING says: a module's worth of code, and a line in a list.

(Those of formats and exports are tested with their rooms, in tests/formats.)
"""

import re
from collections.abc import Iterator, Sequence

import pytest
from typer.testing import CliRunner

from rechain import CandidateSettings, Question, Recoverer
from rechain.cli.main import app
from rechain.paper.settings import GameSettings
from rechain.scoring import BASELINES
from rechain.scoring.interface import BUNDLED, Contributions
from rechain.text.candidates import Candidates
from rechain.text.linking import LINKERS
from rechain.text.linking.linkers import NAME, Context, Entity, Holders, Linker

# ---- what a module linking/hashtags.py would hold


def phrases(context: Context) -> Iterator[str]:
    """Yield the hashtags of the passages."""
    for view in context.views:
        yield from (f" {tag.lower()} " for tag in re.findall(r"#(\w+)", view.passage.text))


def find(context: Context, holders: Holders) -> Iterator[Entity]:
    """Yield every hashtag that two passages hold, with or without its sign."""
    for name, numbers in holders.items():
        yield Entity(name, NAME.name, 9.0, numbers)


HASHTAGS = Linker("hashtags", (NAME,), find, phrases)

# ---- what a module scoring/shortest.py would hold


class Shortest:
    """Prefers chains of few words."""

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return the number of words, less is better."""
        lengths = [len(view.text.words) for view in candidates.views]
        return [{"words": -float(sum(lengths[p] for p in chain.passages))} for chain in candidates.chains]


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line in each list."""
    monkeypatch.setitem(LINKERS, HASHTAGS.name, HASHTAGS)
    monkeypatch.setitem(BASELINES, "shortest", Shortest)


QUESTION = Question.model_validate(
    {
        "id": "q",
        "question": "Where was the composer born?",
        "answer": "Oslo",
        "passages": [
            {"id": "long", "text": "she wrote it for the town and the river #song"},
            {"id": "short", "text": "she wrote it #song"},
            {"id": "end", "text": "this song comes from Oslo"},
        ],
    }
)


@pytest.mark.usefixtures("added")
def test_a_new_linker_and_a_new_model_recover_by_their_names() -> None:
    recoverer = Recoverer("shortest", settings=CandidateSettings(linkers=["hashtags"]), top=2, explain=True)
    best, other = recoverer.recover(QUESTION)
    assert (best.passages, other.passages) == (["short", "end"], ["long", "end"])
    assert [(link.entity, link.kind, link.mentions) for link in best.links] == [("song", "name", ((14, 18), (5, 9)))]
    assert best.why == {"words": -9.0}


def test_without_their_lines_they_are_not_there() -> None:
    with pytest.raises(Exception, match="there is no linker 'hashtags'"):
        CandidateSettings(linkers=["hashtags"])
    with pytest.raises(Exception, match="there is no model 'shortest'"):
        Recoverer("shortest")
    assert Recoverer("lexical").recover(QUESTION).error


# ---- what the help lists by hand, since it must not load what the lists hold


def test_the_help_names_every_linker_model_and_configuration() -> None:
    def help_of(command: str) -> str:
        shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "300"}).output
        return " ".join(shown.replace("│", " ").split())  # however wide the terminal is taken to be

    assert f"Linkers, with commas: {', '.join(LINKERS)}." in help_of("recover")
    for command in ("recover", "demo"):
        assert all(name in help_of(command) for name in (BUNDLED, *BASELINES))
    assert all(name in help_of("train") for name in GameSettings.names)
