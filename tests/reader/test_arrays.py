"""From candidates to the arrays that the chain reader learns from."""

import numpy as np
import pytest
from tokenizers import Tokenizer

from rechain.candidates import Candidates, find_candidates
from rechain.reader.arrays import ReaderPreparation
from rechain.reader.texts import ChainTexts
from rechain.schema import Question
from rechain.scoring.evidence import PRIOR, weigh


def prepared(tokenizer: Tokenizer, *questions: Candidates, most: int = 6) -> ReaderPreparation:
    preparation = ReaderPreparation(tokenizer, 100, most)
    for candidates in questions:
        preparation.add(candidates)
    return preparation


def test_the_best_chains_by_the_prior_are_kept_with_their_evidence(tokenizer: Tokenizer, web: Candidates) -> None:
    candidates = web
    preparation = prepared(tokenizer, candidates, most=2)
    prior = weigh(candidates) @ PRIOR
    (kept,) = preparation.kept
    assert (preparation.ids, len(kept)) == (["web"], 2)
    assert min(prior[kept]) >= max(np.delete(prior, kept))
    np.testing.assert_array_equal(preparation.arrays()["features"], weigh(candidates)[kept])


def test_every_chain_knows_its_texts(tokenizer: Tokenizer, bridge_question: Question, web: Candidates) -> None:
    asked = [web, find_candidates(bridge_question)]
    preparation = prepared(tokenizer, *asked)
    arrays = preparation.arrays()
    assert arrays["chain_start"].tolist() == np.cumsum([0, *map(len, preparation.kept)]).tolist()

    def text(number: int) -> tuple[list[int], list[int], list[int]]:
        start, end = arrays["text_start"][number : number + 2]
        return tuple(arrays[name][start:end].tolist() for name in ("ids", "marks", "slots"))  # type: ignore[return-value]

    chains = [(of, of.chains[n]) for of, kept in zip(asked, preparation.kept, strict=True) for n in kept]
    assert len(chains) == len(arrays["chain_text"])
    for number, (of, chain) in enumerate(chains):
        written = ChainTexts(of, tokenizer, 100).chain(chain)
        assert text(arrays["chain_text"][number]) == tuple(column.tolist() for column in written)
        ids, _, slots = text(arrays["tail_text"][number])
        linking = [token for token, slot in zip(ids, slots, strict=True) if slot == arrays["tail_slot"][number]]
        assert tokenizer.decode(linking) == chain.edges[-1].link.entity.lower()
    assert not arrays["made"].any()


def test_the_chain_that_a_pseudo_question_was_made_from_is_told(
    tokenizer: Tokenizer, bridge_question: Question
) -> None:
    candidates = find_candidates(bridge_question)
    preparation = ReaderPreparation(tokenizer, 100, 6)
    preparation.add(candidates, [2, 1])
    made = preparation.arrays()["made"]
    assert [candidates.chains[n].passages for n, is_made in zip(preparation.kept[0], made, strict=True) if is_made] == [
        (2, 1)
    ]


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_chains_are_kept_than_asked_for(tokenizer: Tokenizer, most: int, web: Candidates) -> None:
    assert len(prepared(tokenizer, web, most=most).arrays()["chain_text"]) == most
