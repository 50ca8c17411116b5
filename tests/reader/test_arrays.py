"""From candidates to the arrays that the chain reader learns from."""

import numpy as np
import pytest
from tokenizers import Tokenizer

from rechain.candidates import Candidates, find_candidates
from rechain.reader.arrays import ReaderPreparation, Tails, best_by, flat_texts
from rechain.reader.texts import ChainTexts, TokenText
from rechain.schema import Passage, Question
from rechain.scoring.evidence import PRIOR, weigh


def web() -> Candidates:
    """Two tails; the first is linked by two entities, one of them from two heads."""
    texts = ["about Quorvath", "of Quorvath", "by Brimlad", "Quorvath and Brimlad in Ostrela", "Brimlad of Ostrela"]
    passages = [Passage(id=str(n), text=text) for n, text in enumerate(texts)]
    return find_candidates(Question(id="web", question="Who?", answer="Ostrela", passages=passages, hops=2))


def prepared(tokenizer: Tokenizer, *questions: Candidates, most: int = 6) -> ReaderPreparation:
    preparation = ReaderPreparation(tokenizer, 100, most)
    for candidates in questions:
        preparation.add(candidates)
    return preparation


def test_tails_have_a_slot_for_every_entity() -> None:
    candidates = web()
    tails = Tails(candidates.chains)
    places = {chain.passages: tails.place(chain) for chain in candidates.chains}
    assert places[0, 3] == places[1, 3]
    assert places[2, 3][0] == places[0, 3][0] != places[2, 4][0]
    assert {places[0, 3][1], places[2, 3][1]} == {1, 2}
    assert places[2, 4][1] == 1
    assert tails.most_entities == 2
    for chain in candidates.chains:
        tail, slot = chain.passages[-1], places[chain.passages][1]
        assert tails.edges[tail][slot - 1].key == chain.edges[-1].key
    assert Tails([]).most_entities == 0


def test_the_best_come_first_and_ties_in_their_order() -> None:
    assert best_by(np.array([1.0, 3.0, 2.0, 3.0]), 3) == [1, 3, 2]
    assert best_by(np.array([1.0]), 5) == [0]


def test_texts_stand_one_after_another() -> None:
    def text(*ids: int) -> TokenText:
        return TokenText(np.array(ids, dtype=np.uint32), *(np.full(len(ids), n, dtype=np.uint8) for n in (1, 2)))

    flat = flat_texts([text(5, 6), text(7)])
    assert (flat["ids"].tolist(), flat["text_start"].tolist()) == ([5, 6, 7], [0, 2, 3])
    assert (flat["marks"].tolist(), flat["slots"].tolist()) == ([1, 1, 1], [2, 2, 2])
    assert flat["ids"].dtype == np.uint16
    assert flat_texts([text(2**16)])["ids"].tolist() == [2**16]


def test_the_best_chains_by_the_prior_are_kept_with_their_evidence(tokenizer: Tokenizer) -> None:
    candidates = web()
    preparation = prepared(tokenizer, candidates, most=2)
    prior = weigh(candidates) @ PRIOR
    (kept,) = preparation.kept
    assert (preparation.ids, len(kept)) == (["web"], 2)
    assert min(prior[kept]) >= max(np.delete(prior, kept))
    np.testing.assert_array_equal(preparation.arrays()["features"], weigh(candidates)[kept])


def test_every_chain_knows_its_texts(tokenizer: Tokenizer, bridge_question: Question) -> None:
    asked = [web(), find_candidates(bridge_question)]
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
def test_no_more_chains_are_kept_than_asked_for(tokenizer: Tokenizer, most: int) -> None:
    assert len(prepared(tokenizer, web(), most=most).arrays()["chain_text"]) == most
