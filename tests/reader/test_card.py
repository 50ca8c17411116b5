"""Model cards."""

from collections.abc import Callable

import pytest
from tokenizers import Tokenizer

from rechain.models.chain_reader import ChainReader
from rechain.reader.card import Facts, plain_card, write_card
from rechain.reader.model import ChainReaderModel
from rechain.reader.settings import ReaderSettings

FACTS = Facts(
    title="A reader of operas",
    name="me/operas",
    licence="apache-2.0",
    data=["Questions about operas", "Their answers"],
    figures={"right": "93.1 %", "calibration error": "0.02"},
    training="It took a minute.",
    limits=["Knows no ballet", "Reads English"],
)


@pytest.fixture
def model(tiny_reader: Callable[[int], ChainReader], tokenizer: Tokenizer) -> ChainReaderModel:
    return ChainReaderModel(tiny_reader(0), tokenizer, ReaderSettings(max_tokens=123))


def header(card: str) -> dict[str, str]:
    """Return what stands between the first two lines of dashes, as the Hub reads it."""
    start, front, _ = card.split("---\n", 2)
    assert start == ""
    return dict(line.split(": ", 1) for line in front.strip().splitlines())


def test_a_card_tells_everything_that_is_known(model: ChainReaderModel) -> None:
    card = write_card(FACTS, model)
    assert header(card)["license"] == "apache-2.0"
    assert header(card)["library_name"] == "rechain"
    for words in (
        "# A reader of operas\n",
        'from_pretrained("me/operas")',
        "- Questions about operas\n- Their answers\n",
        "It took a minute.",
        "| right | 93.1 % |\n| calibration error | 0.02 |\n",
        "- Knows no ballet\n- Reads English\n",
        "max_tokens 123",
    ):
        assert words in card
    places = [card.index(part) for part in ("## Trained on", "## Figures", "## Limits", "## Shape")]
    assert places == sorted(places)


def test_the_size_is_that_of_the_network(model: ChainReaderModel) -> None:
    numbers = sum(parameter.numel() for parameter in model.network.parameters())
    assert f"{numbers / 1e6:.1f} million numbers" in write_card(FACTS, model)
    assert f"{numbers / 1e6:.1f}" == "0.2"


def test_without_facts_there_is_a_plain_card(model: ChainReaderModel) -> None:
    card = plain_card(model)
    assert header(card)["license"] == "other"
    assert "max_tokens 123" in card and "## Figures" not in card
