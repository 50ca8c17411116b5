"""The linker spacy, with a pipeline made here: no model can be fetched."""

from pathlib import Path

import pytest
import spacy

from rechain.errors import RechainError
from rechain.schema import Passage, Question
from rechain.text.candidates import CandidateSettings, find_candidates
from rechain.text.linking import LINKERS
from rechain.text.linking.linkers import Context
from rechain.text.passage_views import PassageView


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A pipeline that knows one name."""
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "ORG", "pattern": "National Film Board"}])
    pipeline.to_disk(tmp_path / "model")
    return str(tmp_path / "model")


def test_the_names_are_the_entities_of_the_texts(model: str) -> None:
    views = [PassageView(Passage(id="1", text="The National Film Board moved, and the National Film Board grew."))]
    assert list(LINKERS["spacy"].phrases(Context(views, [0], 0.0, model))) == [" national film board "]


def test_a_name_that_spacy_finds_links_two_passages(model: str) -> None:
    question = Question(
        id="q",
        question="Who?",
        answer="Ottawa",
        passages=[
            Passage(id="1", text="It was made for the National Film Board."),
            Passage(id="2", text="The National Film Board sat in Ottawa."),
        ],
    )
    settings = CandidateSettings(linkers=("spacy",), min_weight=3.0, spacy_model=model)
    [chain] = find_candidates(question, settings).chains
    assert chain.links[0].entity == "National Film Board"
    assert chain.links[0].mentions == ((20, 39), (4, 23))


def test_a_model_that_is_not_there_gets_one_sentence() -> None:
    with pytest.raises(RechainError, match="no_such_model"):
        LINKERS["spacy"].phrases(Context([PassageView(Passage(id="1", text="Text."))], [0], 0.0, "no_such_model"))
