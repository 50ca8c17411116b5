"""The kept chains of questions, and answers to be judged, on a device, cut into batches without a loop."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rechain.models.chain_reader import Texts
from rechain.system.tensors import Array, Arrays


class QuestionBatch(NamedTuple):
    """The chains of B questions, up to K each."""

    is_chain: Tensor
    """[B, K] whether there is a chain; all else is padded where there is none"""
    chains: Tensor
    """[B, K] numbers of the chains, on the CPU, where texts are gathered"""
    features: Tensor
    """[B, K, F] cheap evidence"""
    beside: Tensor
    """[B, K] what tells for each chain beside it, and is not learnt"""
    told: Tensor
    """[B, K] what other questions tell of each chain by the steps they share"""
    made: Tensor
    """[B, K] whether a pseudo question was made from the chain"""


class ReaderData:
    """The kept chains of questions."""

    def __init__(self, arrays: Arrays, device: torch.device | str) -> None:
        self.device = torch.device(device)
        self.texts = Texts(arrays, device)
        self.chain_text = torch.from_numpy(arrays["chain_text"])
        self.link_text = torch.from_numpy(arrays["link_text"])  # [chains, links]
        self.link_slot = torch.from_numpy(arrays["link_slot"])
        self._starts = torch.from_numpy(arrays["chain_start"])
        self._features = torch.from_numpy(arrays["features"]).to(self.device)
        self._beside = torch.from_numpy(arrays["beside"]).to(self.device)
        self._told = torch.from_numpy(arrays.get("told", np.zeros_like(arrays["beside"]))).to(self.device)
        self._made = torch.from_numpy(arrays["made"]).to(self.device)

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self._starts) - 1

    @property
    def chains(self) -> int:
        """The number of chains."""
        return len(self.chain_text)

    def batch(self, questions: Array | Tensor) -> QuestionBatch:
        """Return the chains of questions of these numbers, [B]."""
        chains, is_chain = _numbers(self._starts, questions)
        index = chains.to(self.device)
        features, beside, told, made = (
            column[index] for column in (self._features, self._beside, self._told, self._made)
        )
        return QuestionBatch(is_chain.to(self.device), chains, features, beside, told, made.bool())


class CaseBatch(NamedTuple):
    """The answers of B questions that are to be judged, up to K each; the first of each is right, the others wrong."""

    is_case: Tensor
    """[B, K] whether there is an answer"""
    texts: Tensor
    """[cases] the numbers of their texts, on the CPU"""


class JudgeData:
    """Right and wrong answers of questions with their evidence, as the judge reads them."""

    def __init__(self, arrays: Arrays, device: torch.device | str) -> None:
        self.device = torch.device(device)
        self.texts = Texts(arrays, device)
        self._starts = torch.from_numpy(arrays["case_start"])

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self._starts) - 1

    def batch(self, questions: Array | Tensor) -> CaseBatch:
        """Return the answers to questions of these numbers, [B]."""
        cases, is_case = _numbers(self._starts, questions)
        return CaseBatch(is_case.to(self.device), cases[is_case])


def _numbers(starts: Tensor, questions: Array | Tensor) -> tuple[Tensor, Tensor]:
    """Return the numbers of what belongs to each question, [B, K], and where there is something, [B, K].

    It begins at each question's start and ends at the next one's; where there is no more, the first is repeated.
    """
    questions = torch.as_tensor(questions)
    first, after = starts[questions, None], starts[questions + 1, None]  # [B, 1]
    place = torch.arange(int((after - first).max()))  # [K]
    exists = place < after - first  # [B, K]
    return (first + place).where(exists, first), exists
