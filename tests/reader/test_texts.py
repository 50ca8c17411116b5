"""A chain as the network reads it: marks, windows, and that nothing which matters is cut away."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.passages import named_passages
from tokenizers import Tokenizer

from rechain.reader import texts
from rechain.reader.settings import FIRST_END, FROM_BEFORE, LAST_END, TO_NEXT
from rechain.reader.texts import Arrival, Arrivals, Case, ChainTexts, TokenText, flat_texts, share_out
from rechain.schema import Passage, Question
from rechain.text.candidates import Candidates, CandidateSettings, find_candidates
from rechain.text.evidence.search import find_evidence

FILLING = ["It rained on that day.", "Some went home early.", "Nothing else is known.", "The others slept on."]


def question(asked: str, answer: str, passages: Sequence[tuple[str, str]], **fields: object) -> Question:
    rows = [Passage(id=str(n), title=title, text=text) for n, (title, text) in enumerate(passages)]
    return Question.model_validate({"id": "q", "question": asked, "answer": answer, "passages": rows, **fields})


def filling(sentences: int) -> str:
    return " ".join(FILLING[number % len(FILLING)] for number in range(sentences))


def chain(candidates: Candidates, tokenizer: Tokenizer, passages: Sequence[int], max_tokens: int = 272) -> TokenText:
    number = [chain.passages for chain in candidates.chains].index(tuple(passages))
    return ChainTexts(candidates, tokenizer).chain(candidates.chains[number], max_tokens)


def read(text: TokenText, tokenizer: Tokenizer) -> str:
    return tokenizer.decode(text.ids.tolist(), skip_special_tokens=False)


def marked(text: TokenText, tokenizer: Tokenizer, kind: int) -> str:
    return tokenizer.decode(text.ids[text.marks == kind].tolist())


def test_question_and_passages_are_read_in_order_with_their_link_marked(
    bridge_question: Question, tokenizer: Tokenizer
) -> None:
    text = chain(find_candidates(bridge_question), tokenizer, (0, 1))
    assert read(text, tokenizer) == (
        "[CLS] where was the composer of the zorilla opera born? [SEP] zorilla is an opera by anton quillfeather. "
        "[SEP] anton quillfeather was born in prague. [SEP]"
    )
    assert marked(text, tokenizer, TO_NEXT) == marked(text, tokenizer, FROM_BEFORE) == "anton quillfeather"
    ends = np.flatnonzero(text.ids == tokenizer.encode("").ids[-1])
    assert set(np.searchsorted(ends, np.flatnonzero(text.marks == TO_NEXT))) == {1}
    assert set(np.searchsorted(ends, np.flatnonzero(text.marks == FROM_BEFORE))) == {2}
    assert not text.slots.any()


def test_the_middle_of_a_longer_chain_has_both_links(tokenizer: Tokenizer) -> None:
    passages = [("", "Zimbelot met Quorvath."), ("", "Quorvath met Brimlad."), ("", "Brimlad saw Ostrela.")]
    candidates = find_evidence(question("Who knew Zimbelot?", "Ostrela", passages))
    text = chain(candidates, tokenizer, (0, 1, 2))
    assert marked(text, tokenizer, TO_NEXT) == "quorvath brimlad"
    assert marked(text, tokenizer, FROM_BEFORE) == "quorvath brimlad"
    kinds = [int(kind) for kind, after in pairwise(text.marks) if kind != after]
    assert [kind for kind in kinds if kind] == [TO_NEXT, FROM_BEFORE, TO_NEXT, FROM_BEFORE]


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("Quorvath", "Quorvath died in Ostrela.", "quorvath died in ostrela."),
        ("Quorvath", "He died in Ostrela.", "quorvath : he died in ostrela."),
        ("Quorvath (man)", "Quorvath died in Ostrela.", "quorvath ( man ) : quorvath died in ostrela."),
        ("Quorvath", "Quorvathia is in Ostrela.", "quorvath : quorvathia is in ostrela."),
        (" Quorvath ", "Quorvath, of Ostrela.", "quorvath, of ostrela."),
    ],
)
def test_the_title_is_read_unless_the_text_begins_with_it(
    tokenizer: Tokenizer, title: str, text: str, expected: str
) -> None:
    candidates = find_candidates(question("Who?", "Ostrela", [("", "Zimbelot by Quorvath."), (title, text)]))
    written = chain(candidates, tokenizer, (0, 1))
    assert read(written, tokenizer) == f"[CLS] who? [SEP] zimbelot by quorvath. [SEP] {expected} [SEP]"
    assert marked(written, tokenizer, FROM_BEFORE).startswith("quorvath")


def test_a_link_in_the_title_alone_marks_the_title(tokenizer: Tokenizer) -> None:
    candidates = find_candidates(question("Who?", "Ostrela", [("", "by Quorvath"), ("Quorvath", "He of Ostrela")]))
    assert marked(chain(candidates, tokenizer, (0, 1)), tokenizer, FROM_BEFORE) == "quorvath :"


def given_question() -> Question:
    texts = ["DRUG and GENE. GENE with DRUG.", "GENE and GUNE. GUNE with DRUG."]
    named = {"DRUG": "drug:1", "GENE": "gene:1", "GUNE": "gene:9"}
    passages = named_passages(texts, named)
    ends = {"question_entities": ["drug:1"], "answer_entity": "gene:9", "hops": 2}
    return Question.model_validate({"id": "q", "question": "What?", "answer": "GUNE", "passages": passages, **ends})


def test_entities_of_the_data_are_marked_wherever_they_stand_and_the_ends_at_the_ends(tokenizer: Tokenizer) -> None:
    candidates = find_candidates(given_question())
    (number,) = [
        n for n, one in enumerate(candidates.chains) if one.edges[0].key == "gene:1" and one.passages == (0, 1)
    ]
    text = ChainTexts(candidates, tokenizer).chain(candidates.chains[number], 272)
    assert marked(text, tokenizer, TO_NEXT) == "gene gene"
    assert marked(text, tokenizer, FROM_BEFORE) == "gene"
    assert marked(text, tokenizer, FIRST_END) == "drug drug"  # not the one of the tail
    assert marked(text, tokenizer, LAST_END).replace(" ##", "").split() == ["gune", "gune"]


def test_a_passage_alone_has_a_slot_for_every_entity_that_may_lead_there(tokenizer: Tokenizer) -> None:
    passages = [("", "Zimbelot by Quorvath."), ("", "Zimbelot by Brimlad."), ("", "Brimlad knew Quorvath of Ostrela.")]
    candidates = find_candidates(question("Who?", "Ostrela", passages))
    edges = [one.edges[0] for passage in (0, 1) for one in candidates.chains if one.passages == (passage, 2)]
    text = ChainTexts(candidates, tokenizer).arrival(Arrival(2, None, edges), 160)
    assert read(text, tokenizer) == "[CLS] who? [SEP] brimlad knew quorvath of ostrela. [SEP]"
    assert tokenizer.decode(text.ids[text.slots == 1].tolist()) == "quorvath"
    assert tokenizer.decode(text.ids[text.slots == 2].tolist()) == "brimlad"
    assert not text.marks.any()


# ---- windows


def long_question(before: int = 60, between: int = 60, after: int = 60) -> Question:
    tail = [
        filling(before),
        "Quorvath lived quietly.",
        filling(between),
        "The end came in Ostrela.",
        filling(between),
        "A zimbelot was composed by somebody.",
        filling(after),
    ]
    # the head does not begin with what it defines, which would be its title and the stronger link
    passages = [("", "An old Zimbelot is by Quorvath."), ("A life", " ".join(tail))]
    return question("Where did who composed the Zimbelot live?", "Ostrela", passages)


def test_sentences_with_link_answer_and_question_are_kept_in_their_order(tokenizer: Tokenizer) -> None:
    text = chain(find_candidates(long_question()), tokenizer, (0, 1), 80)
    assert len(text.ids) <= 80
    tail = read(text, tokenizer).split(" [SEP] ")[2]
    places = [
        tail.index(words) for words in ("a life :", "quorvath lived quietly", "came in ostrela", "a zimbelot was")
    ]
    assert places == sorted(places)
    assert marked(text, tokenizer, FROM_BEFORE) == "quorvath"
    assert "zimbelot is by quorvath." in read(text, tokenizer)  # the short one is whole


def test_with_little_room_the_link_comes_before_the_answer_before_the_question(tokenizer: Tokenizer) -> None:
    candidates = find_candidates(long_question())
    wanted = ("quorvath lived quietly", "came in ostrela", "zimbelot was composed")

    def kept(max_tokens: int) -> list[bool]:
        tail = read(chain(candidates, tokenizer, (0, 1), max_tokens), tokenizer).split(" [SEP] ")[2]
        return [words in tail for words in wanted]

    seen = [kept(max_tokens) for max_tokens in range(40, 81)]
    for one in seen:
        assert one == sorted(one, reverse=True)
    assert {sum(one) for one in seen} >= {1, 2, 3}


@given(
    max_tokens=st.integers(24, 300),
    asked=st.integers(1, 400),
    lengths=st.tuples(st.integers(0, 90), st.integers(0, 90)),
)
def test_never_more_tokens_than_there_is_room_for(
    tokenizer: Tokenizer, max_tokens: int, asked: int, lengths: tuple[int, int]
) -> None:
    first, second = map(filling, lengths)
    passages = [("Zimbelot", f"{first} It is by Quorvath."), ("Quorvath", f"{second} Of Ostrela. {first}")]
    candidates = find_candidates(question("who " * asked, "Ostrela", passages))
    text = chain(candidates, tokenizer, (0, 1), max_tokens)
    assert len(text.ids) == len(text.marks) == len(text.slots) <= max_tokens
    begin, end = tokenizer.encode("").ids
    assert (text.ids[0], text.ids[-1], int((text.ids == end).sum())) == (begin, end, 3)
    if 4 + min(asked, max_tokens // 3) + 6 * sum(lengths) + 6 * lengths[0] + 12 <= max_tokens:
        assert "ostrela" in read(text, tokenizer)


@pytest.mark.parametrize("place", [0, 60, 120])
def test_of_a_long_sentence_what_stands_around_the_link_is_read(tokenizer: Tokenizer, place: int) -> None:
    words = ["slowly"] * 120
    passages = [("", "Zimbelot is by Quorvath."), ("Ostrela", " ".join([*words[:place], "Quorvath", *words[place:]]))]
    text = chain(find_candidates(question("Who?", "Ostrela", passages)), tokenizer, (0, 1), 60)
    assert len(text.ids) == 60
    assert marked(text, tokenizer, FROM_BEFORE) == "quorvath"
    tail = read(text, tokenizer).split(" [SEP] ")[2].removesuffix(" [SEP]").split()
    before = tail.index("quorvath") - tail.index("slowly") if place else 0
    assert abs(before - {0: 0, 60: 18, 120: len(tail) - 3}[place]) <= 3


def test_of_a_long_question_beginning_and_end_are_read(tokenizer: Tokenizer) -> None:
    asked = f"Zimbelot {'was seen ' * 500} Brimlad"
    candidates = find_candidates(question(asked, "Ostrela", [("", "by Quorvath"), ("", "Quorvath of Ostrela")]))
    first = read(chain(candidates, tokenizer, (0, 1), 90), tokenizer).split(" [SEP] ")[0]
    assert first.startswith("[CLS] zimbelot was seen") and first.endswith("seen brimlad")


@pytest.mark.parametrize("answer_at_the_end", [True, False])
def test_link_and_answer_at_the_end_of_twenty_thousand_words_are_read(
    tokenizer: Tokenizer, answer_at_the_end: bool
) -> None:
    ending = (
        "Quorvath moved away. He died in Ostrela." if answer_at_the_end else "He died in Ostrela. Quorvath moved away."
    )
    passages = [("Zimbelot", "Zimbelot is by Quorvath."), ("A life", f"{filling(5000)} {ending}")]
    candidates = find_evidence(question("Where did the author of Zimbelot die?", "Ostrela", passages))
    text = chain(candidates, tokenizer, (0, 1))
    assert len(passages[1][1].split()) > 20_000
    assert len(text.ids) <= 272
    assert "quorvath moved away." in read(text, tokenizer) and "he died in ostrela." in read(text, tokenizer)
    assert marked(text, tokenizer, FROM_BEFORE) == "quorvath"


@pytest.mark.parametrize("link_at_the_end", [True, False])
def test_link_and_answer_far_apart_in_a_text_without_sentences_are_read(
    tokenizer: Tokenizer, link_at_the_end: bool
) -> None:
    words = ["about Quorvath", "it rained and then " * 1000, "in Ostrela"]
    passages = [("Zimbelot", "Zimbelot is by Quorvath."), ("", " ".join(words[::-1] if link_at_the_end else words))]
    candidates = find_evidence(question("Where did the author of Zimbelot die?", "Ostrela", passages))
    text = chain(candidates, tokenizer, (0, 1))
    assert marked(text, tokenizer, FROM_BEFORE) == "quorvath"
    assert "ostrela" in read(text, tokenizer)


# ---- shares


@given(room=st.integers(-5, 300), wanted=st.lists(st.integers(0, 200), min_size=1, max_size=4))
def test_room_is_shared_out_evenly_and_none_is_left_that_someone_wants(room: int, wanted: list[int]) -> None:
    shares = share_out(room, wanted)
    assert all(0 <= share <= need for share, need in zip(shares, wanted, strict=True))
    assert sum(shares) == min(max(room, 0), sum(wanted))
    cut = [share for share, need in zip(shares, wanted, strict=True) if share < need]
    assert max(cut, default=0) - min(cut, default=0) <= 1
    assert not cut or max(shares) - min(cut) <= 1


def test_what_one_does_not_need_goes_to_the_others() -> None:
    assert share_out(100, [10, 200, 200]) == [10, 45, 45]
    assert share_out(100, [30, 200, 20]) == [30, 50, 20]
    assert share_out(0, [3, 4]) == [0, 0]
    assert share_out(100, [3, 4]) == [3, 4]


def test_arrivals_have_a_slot_for_every_entity(web: Candidates) -> None:
    candidates = web
    arrivals = Arrivals(candidates.chains)
    places = {chain.passages: arrivals.places(chain)[-1] for chain in candidates.chains}
    assert places[0, 3] == places[1, 3]
    assert places[2, 3][0] == places[0, 3][0] != places[2, 4][0]
    assert {places[0, 3][1], places[2, 3][1]} == {1, 2}
    assert places[2, 4][1] == 1
    assert {arrival.passage: len(arrival.ways) for arrival in arrivals.all} == {3: 2, 4: 1}
    for chain in candidates.chains:
        number, slot = places[chain.passages]
        assert arrivals.all[number].passage == chain.passages[-1]
        assert arrivals.all[number].ways[slot - 1].key == chain.edges[-1].key
    assert Arrivals([]).all == []


def test_every_passage_but_the_first_is_an_arrival_by_how_the_chain_goes_on(tokenizer: Tokenizer) -> None:
    passages = [
        ("", "Zimbelot by Quorvath."),
        ("", "Quorvath knew Brimlad and Talorin."),
        ("", "Brimlad of Ostrela."),
        ("", "Talorin of Ostrela."),
    ]
    candidates = find_candidates(question("Who made Zimbelot?", "Ostrela", passages), CandidateSettings(hops=3))
    chains = {chain.passages: chain for chain in candidates.chains}
    arrivals = Arrivals(candidates.chains)
    (middle, _), (tail, _) = arrivals.places(chains[0, 1, 2])
    (other, _), (other_tail, _) = arrivals.places(chains[0, 1, 3])
    assert len({middle, tail, other, other_tail}) == 4  # the same middle goes on in two ways
    assert [arrivals.all[number].passage for number in (middle, tail, other, other_tail)] == [1, 2, 1, 3]
    assert arrivals.all[tail].way_on is None
    text = ChainTexts(candidates, tokenizer).arrival(arrivals.all[middle], 160)
    assert marked(text, tokenizer, TO_NEXT) == "brimlad"
    assert tokenizer.decode(text.ids[text.slots == 1].tolist()) == "quorvath"


def test_texts_stand_one_after_another() -> None:
    def text(*ids: int) -> TokenText:
        return TokenText(np.array(ids, dtype=np.uint32), *(np.full(len(ids), n, dtype=np.uint8) for n in (1, 2)))

    flat = flat_texts([text(5, 6), text(7)])
    assert (flat["ids"].tolist(), flat["text_start"].tolist()) == ([5, 6, 7], [0, 2, 3])
    assert (flat["marks"].tolist(), flat["slots"].tolist()) == ([1, 1, 1], [2, 2, 2])
    assert flat["ids"].dtype == np.uint16
    assert flat_texts([text(2**16)])["ids"].tolist() == [2**16]


# ---- what the judge reads


def test_a_judge_reads_question_answer_and_passages_that_mark_where_they_hold_it(
    bridge_question: Question, tokenizer: Tokenizer
) -> None:
    candidates = find_candidates(bridge_question)
    chain = next(chain for chain in candidates.chains if chain.passages == (0, 1))
    case = Case(chain.passages, "It is Prague.", {1: [(31, 37)]}, chain.edges, chain.between)
    text = ChainTexts(candidates, tokenizer).case(case, 192)
    assert read(text, tokenizer) == (
        "[CLS] where was the composer of the zorilla opera born? [SEP] it is prague. [SEP] zorilla is an opera by "
        "anton quillfeather. [SEP] anton quillfeather was born in prague. [SEP]"
    )
    assert tokenizer.decode(text.ids[text.slots == 1].tolist()) == "it is prague."
    assert marked(text, tokenizer, LAST_END) == "prague"
    assert marked(text, tokenizer, TO_NEXT) == marked(text, tokenizer, FROM_BEFORE) == "anton quillfeather"


def test_passages_side_by_side_have_no_links_and_a_title_can_hold_the_answer(tokenizer: Tokenizer) -> None:
    candidates = find_candidates(question("Who?", "Ostrela", [("", "by Quorvath"), ("Quorvath", "He of Ostrela")]))
    text = ChainTexts(candidates, tokenizer).case(Case((1, 0), "Quorvath", {1: [None]}), 192)
    assert read(text, tokenizer) == "[CLS] who? [SEP] quorvath [SEP] quorvath : he of ostrela [SEP] by quorvath [SEP]"
    assert marked(text, tokenizer, LAST_END) == "quorvath :"
    assert set(text.marks.tolist()) == {0, LAST_END}


def test_a_judge_reads_the_sentence_that_holds_the_answer_however_long_all_is(tokenizer: Tokenizer) -> None:
    long = f"{filling(80)} Vexlor of Brimlad came. {filling(80)}"
    passages = [("", "Quorvath"), ("", "Quorvath of Ostrela"), ("", long)]
    candidates = find_candidates(question("Who knew Quorvath? " * 90, "Ostrela", passages))
    span = long.index("Vexlor"), long.index(" of Brimlad")
    text = ChainTexts(candidates, tokenizer).case(Case((2,), "word " * 20_000 + "end", {2: [span]}), 96)
    assert len(text.ids) <= 96
    assert marked(text, tokenizer, LAST_END) == "vexlor"
    answer = tokenizer.decode(text.ids[text.slots == 1].tolist())
    assert len(answer.split()) <= 48


def test_what_is_beyond_the_longest_text_is_not_cut_into_tokens(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "_LONGEST", 4000)
    passages = [("A", "Quorvath knew Zimbelot. " + filling(400)), ("B", filling(400) + " Zimbelot was in Ostrela.")]
    candidates = find_evidence(question("Where was the friend of Quorvath?", "Ostrela", passages))
    written = ChainTexts(candidates, tokenizer)
    for one in candidates.chains:
        assert len(written.chain(one, 272).ids) <= 272
    assert all(one.size <= 4000 for one in written._passages.values())
