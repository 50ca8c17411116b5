"""What the tests of the chain reader share: its tokeniser, tiny networks and toy questions as arrays."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from rechain.reader.encoders import PretrainedEncoder
from rechain.reader.network import ChainReader
from rechain.reader.pretrained import BUNDLED, TOKENIZER, find, read_tokenizer
from rechain.reader.settings import LAST_END, TEXT_MARKS
from rechain.schema import Passage, Question
from rechain.system.tensors import Array
from rechain.text.candidates import Candidates, find_candidates
from rechain.text.evidence.features import FEATURES, prior

TINY = {
    "model_type": "bert",
    "vocab_size": 30522,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 8,
    "max_position_embeddings": 320,
}
FIRST, END, HIM, HER, RIGHT, WRONG, NEAR, FAR, WORDS = range(1, 10)


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None:
    """Tiny tensors are slower on several threads."""


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """The tokeniser of the bundled model."""
    return read_tokenizer(find(BUNDLED) / TOKENIZER)


@pytest.fixture
def web() -> Candidates:
    """Two tails; the first is linked by two entities, one of them from two heads."""
    texts = ["about Quorvath", "of Quorvath", "by Brimlad", "Quorvath and Brimlad in Ostrela", "Brimlad of Ostrela"]
    passages = [Passage(id=str(n), text=text) for n, text in enumerate(texts)]
    return find_candidates(Question(id="web", question="Who?", answer="Ostrela", passages=passages, hops=2))


@pytest.fixture(scope="session")
def tiny_reader() -> Callable[[int], ChainReader]:
    """Make an untaught reader with a tiny transformer, from a seed."""

    def make(seed: int = 0) -> ChainReader:
        torch.manual_seed(seed)
        reader = ChainReader(PretrainedEncoder(TINY, TEXT_MARKS), len(FEATURES))
        reader.evidence.weight.data.copy_(torch.from_numpy(prior())[None])
        return reader

    return make


class ToyEncoder(torch.nn.Module):
    """Vectors of tokens and marks, and a GRU: it learns a toy task in a few steps."""

    width = 16

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.marks = torch.nn.Embedding(WORDS, 16), torch.nn.Embedding(TEXT_MARKS, 16)
        self.gru = torch.nn.GRU(16, 8, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, ids: torch.Tensor, marks: torch.Tensor, lengths: torch.Tensor, layers: int = 0) -> torch.Tensor:
        """Return the states of tokens, [B, L, 16]."""
        inputs = self.tokens(ids) + self.marks(marks)
        packed = pack_padded_sequence(inputs, lengths.cpu(), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.gru(packed)[0], batch_first=True)[0]


@pytest.fixture(scope="session")
def toy_reader() -> Callable[[int], ChainReader]:
    """Make an untaught reader of toy questions, from a seed; its one kind of evidence weighs 1."""

    def make(seed: int = 0) -> ChainReader:
        torch.manual_seed(seed)
        reader = ChainReader(ToyEncoder(), 1, judges=True)
        torch.nn.init.ones_(reader.evidence.weight)
        return reader

    return make


def _toy_arrays(count: int, told: float = 0.7, seed: int = 0, flipped: bool = False) -> dict[str, Array]:
    """Make questions of two chains; one has the word RIGHT and the link NEAR, the other WRONG and FAR, in any order.

    Evidence tells which for a share of the questions, and nothing for the others. Flipped, the other one is right.
    """
    draw = np.random.default_rng(seed)
    texts: list[list[int]] = []
    slots: list[list[int]] = []
    features, places, chosen = [], [], []
    for _ in range(count):
        is_right = draw.permutation([True, False])
        is_told = draw.random() < told
        first, asked = len(texts), int(draw.choice([HIM, HER]))
        texts += [[FIRST, asked, END, RIGHT if right else WRONG, END] for right in is_right]
        texts.append([FIRST, asked, END, *(NEAR if right else FAR for right in is_right), END])
        slots += [[0] * 5, [0] * 5, [0, 0, 0, 1, 2, 0]]
        for number, right in enumerate(is_right):
            features.append([3.0 * (right != flipped) * is_told])
            places.append((first + number, first + 2, number + 1))
            chosen.append(right != flipped)
    return {
        "ids": np.concatenate(texts).astype(np.uint16),
        "marks": np.array([int(token in (RIGHT, WRONG)) for text in texts for token in text], dtype=np.uint8),
        "slots": np.concatenate(slots).astype(np.uint8),
        "text_start": np.cumsum([0, *map(len, texts)], dtype=np.int64),
        "features": np.array(features, dtype=np.float32),
        "chain_start": np.arange(0, 2 * count + 1, 2, dtype=np.int64),
        "chain_text": np.array([text for text, _, _ in places]),
        "link_text": np.array([[tail] for _, tail, _ in places]),
        "link_slot": np.array([[slot] for _, _, slot in places]),
        "shared": np.zeros(len(places), dtype=np.float32),
        "may_be": np.ones(len(places), dtype=bool),
        "right": np.array(chosen),
    }


@pytest.fixture(scope="session")
def toy_arrays() -> Callable[..., dict[str, Array]]:
    """Make toy questions as arrays; `right` says which of their chains are right."""
    return _toy_arrays


@pytest.fixture(scope="session")
def toy_cases() -> Callable[..., dict[str, Array]]:
    """Make toy answers as arrays: right is one of the word RIGHT, the one or two others have the word WRONG."""

    def make(count: int, seed: int = 0) -> dict[str, Array]:
        draw = np.random.default_rng(seed)
        texts, starts = [], [0]
        for _ in range(count):
            asked = int(draw.choice([HIM, HER]))
            words = [RIGHT, *[WRONG] * int(draw.integers(1, 3))]
            texts += [[FIRST, asked, END, NEAR, END, word, END] for word in words]
            starts.append(len(texts))
        return {
            "ids": np.concatenate(texts).astype(np.uint16),
            "marks": np.array([LAST_END * (token in (RIGHT, WRONG)) for text in texts for token in text], np.uint8),
            "slots": np.array([int(token == NEAR) for text in texts for token in text], dtype=np.uint8),
            "text_start": np.cumsum([0, *map(len, texts)], dtype=np.int64),
            "case_start": np.array(starts, dtype=np.int64),
        }

    return make
