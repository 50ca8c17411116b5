"""The steps of chains: what tells them apart, and where there are none."""

from collections.abc import Sequence
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rechain.paper.lexicon import Lexicon
from rechain.paper.prepare import Preparation, prepare
from rechain.schema import Mention, Passage, Question
from rechain.scoring import steps as steps_module
from rechain.scoring.steps import find_steps
from rechain.text.candidates import Candidates, find_candidates
from rechain.text.collection import PassageCollection


def test_chains_share_the_steps_in_which_they_go_through_the_same(medhop: Question) -> None:
    candidates = find_candidates(medhop)
    steps = dict(zip((chain.passages for chain in candidates.chains), find_steps(candidates), strict=True))
    one, other = steps[0, 1, 2], steps[0, 3, 2]
    assert len(set(one)) == len(set(other)) == 3
    assert one[0] != other[0]  # drug 1 with another protein, in the same passage
    assert one[1] != other[1]  # another passage
    assert one[2] == other[2]


def test_a_passage_is_known_by_what_it_says_and_not_by_its_id(medhop: Question) -> None:
    passages = [passage.model_copy(update={"id": f"other {passage.id}"}) for passage in medhop.passages]
    renamed = medhop.model_copy(update={"passages": passages, "id": "MH_2"})
    assert find_steps(find_candidates(renamed)) == find_steps(find_candidates(medhop))
    passages[2] = passages[2].model_copy(update={"text": passages[2].text + " So it is."})
    changed = find_steps(find_candidates(renamed.model_copy(update={"passages": passages})))
    assert [one[2] == two[2] for one, two in zip(changed, find_steps(find_candidates(medhop)), strict=True)] == [
        False,
        False,
    ]


def test_there_are_none_where_the_data_names_no_entities(bridge_question: Question) -> None:
    candidates = find_candidates(bridge_question)
    assert candidates.chains
    assert not any(find_steps(candidates))


NAMES = {"aspirin": "drug:A", "ibuprofen": "drug:I", "cox": "gene:C", "tnf": "gene:T", "kit": "gene:K", "dna": "gene:D"}


def passage(number: int, text: str, title: str = "") -> Passage:
    """A passage in which every known word is mentioned."""
    mentions, at = [], 0
    for word in text.split(" "):
        name = NAMES.get(word.strip(".").lower())
        if name:
            mentions.append(Mention(entity=name, start=at, end=at + len(word.strip("."))))
        at += len(word) + 1
    return Passage(id=str(number), title=title, text=text, mentions=mentions)


def question(*texts: str, name: str = "q", answer: str = "gene:K") -> Question:
    """From aspirin by a gene and a drug to a gene."""
    return Question(
        id=name,
        question="interacts_with aspirin?",
        question_entities=["drug:A"],
        answer=answer.partition(":")[2],
        answer_entity=answer,
        hops=3,
        link_types=["gene", "drug"],
        passages=[passage(number, text) for number, text in enumerate(texts)],
    )


TEXTS = (
    "aspirin inhibits cox. Then tnf was seen.",
    "cox was seen with ibuprofen.",
    "ibuprofen inhibits kit.",
    "tnf and cox were seen.",
)
QUESTION = question(*TEXTS)


def taken(*questions: Question, collection: PassageCollection | None = None) -> dict[str, np.ndarray[Any, Any]]:
    preparation = prepare(questions, Lexicon({}), collection=collection)
    assert len(preparation.ids) == len(questions)
    return preparation.arrays()


def rows(candidates: Candidates, collection: PassageCollection | None = None) -> dict[Any, Any]:
    """Return the roles and features of every step by its passage and the names of its entities."""
    names = sorted({mention for view in candidates.views for mention in view.entities} - candidates.ends)
    holders = [[n for n, view in enumerate(candidates.views) if view.mentions(name)] for name in names]
    numbers = {name: number for number, name in enumerate(names)}
    found = steps_module.QuestionSteps(candidates, numbers, holders)
    return {
        (row.passage, *(names[n] if n >= 0 else None for n in (row.enter, row.leave))): (row.roles, row.features)
        for row in found.rows()
    }


def test_a_step_is_a_passage_with_the_entity_that_leads_to_it_and_the_one_that_leads_on() -> None:
    found = rows(find_candidates(QUESTION))
    head, middle, tail = 1, 2, 4
    assert {key: roles for key, (roles, _) in found.items()} == {
        (0, None, "gene:C"): head,
        (0, None, "gene:T"): head,
        (1, None, "gene:C"): head,  # without the question's entity: it can be selected, and never in C
        (3, None, "gene:C"): head,
        (3, None, "gene:T"): head,
        (1, "gene:C", "drug:I"): middle,
        (1, "drug:I", None): tail,
        (2, "drug:I", None): tail,
    }


def test_its_numbers_say_how_closely_its_two_entities_stand_together() -> None:
    found = rows(find_candidates(QUESTION))
    together, never = log(1.1), log(0.1)
    assert found[0, None, "gene:C"][1] == pytest.approx((together, 0, log(1 + 1), 0, 0))  # "inhibits" between
    assert found[0, None, "gene:T"][1] == pytest.approx((never, 0, log(1 + 3), 0, 0))  # another sentence
    assert found[1, None, "gene:C"][1] == pytest.approx((never, 0, log(1 + 5), 0, 0))  # it has no aspirin


def test_rarity_is_the_logarithm_of_how_many_passages_of_the_collection_hold_each_entity() -> None:
    more = [*QUESTION.passages, passage(4, "cox again."), passage(5, "ibuprofen again.")]
    collection = PassageCollection({one.id: one for one in more})
    found = rows(find_candidates(QUESTION, collection=collection))
    assert found[1, "gene:C", "drug:I"][1][3:] == pytest.approx((log(4), log(3)))
    assert found[0, None, "gene:C"][1][3:] == pytest.approx((log(1), log(4)))


def test_a_mention_within_another_does_not_count() -> None:
    text = "cox ibuprofen was given."
    whole = Passage(
        id="1",
        text=text,
        mentions=[Mention(entity="gene:C", start=0, end=13), Mention(entity="drug:I", start=4, end=13)],
    )
    candidates = find_candidates(QUESTION.model_copy(update={"passages": [*_but(QUESTION.passages, 1), whole]}))
    assert rows(candidates)[3, "gene:C", "drug:I"][1][0] == pytest.approx(log(0.1))


def _but(passages: Sequence[Passage], number: int) -> list[Passage]:
    return [one for place, one in enumerate(passages) if place != number]


def test_chains_are_rows_of_steps() -> None:
    arrays = taken(QUESTION)
    (chain,) = arrays["chain_steps"].tolist()
    assert arrays["step_passage"][chain].tolist() == arrays["chain_passages"][0].tolist() == [0, 1, 2]
    entities = arrays["step_entity"][chain].tolist()
    gene, drug = arrays["chain_entity"][0].tolist()
    assert entities == [[-1, gene], [gene, drug], [drug, -1]]
    merged = arrays["chain_merged"][0].tolist()
    assert arrays["step_merged"][chain].tolist() == [[-1, merged[0]], merged, [merged[1], -1]]


def test_of_too_many_steps_those_of_chains_are_kept_and_then_the_closest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_module, "MAX_STEPS", 4)
    found = rows(find_candidates(QUESTION))
    assert found.keys() == {
        (0, None, "gene:C"),
        (1, "gene:C", "drug:I"),
        (2, "drug:I", None),
        (0, None, "gene:T"),  # all others share no sentence; of these it is nearest
    }


def test_a_text_that_begins_with_its_title_is_read_once_where_entities_are_named() -> None:
    titled = passage(0, TEXTS[0]).model_copy(update={"title": "Aspirin inhibits COX"})
    named = QUESTION.model_copy(update={"passages": [titled, *QUESTION.passages[1:]]})
    once, plain = taken(named), taken(QUESTION)
    for name in ("tokens", "mention_token", "mark_token", "step_features"):
        assert once[name].tolist() == plain[name].tolist()
    assert (once["title_length"].tolist(), plain["title_length"].tolist()) == ([0, 3, 0, 0, 0], [0, 0, 0, 0, 0])


def test_where_the_data_does_not_name_entities_there_are_no_steps_and_titles_stand_before_texts() -> None:
    passages = [
        Passage(id="0", title="Zorilla", text="Zorilla is an opera by Anton Quillfeather."),
        Passage(id="1", title="Anton Quillfeather", text="Anton Quillfeather was born in Prague."),
    ]
    unnamed = Question(id="u", question="Where?", answer="Prague", passages=passages)
    preparation = prepare([unnamed], Lexicon({}))
    arrays = preparation.arrays()
    assert not any("step" in name or name in ("chain_rarity", "chain_beliefs") for name in arrays)
    assert preparation.beliefs([[0]]) == {}
    assert np.diff(arrays["text_start"]).tolist() == [1, 8, 8]
    # beside such a question, steps are not kept of others either
    both = Preparation(Lexicon({}))
    assert both.take(unnamed)
    assert not both.take(QUESTION)  # its chains are longer


FAR = "cox was seen. Then ibuprofen was seen."
FIRST = question(*TEXTS[:3], FAR)
SECOND = question(*TEXTS[:2], "ibuprofen inhibits dna.", "cox was not seen with ibuprofen.", name="r", answer="gene:D")


def test_questions_tell_others_of_the_steps_they_share_and_nothing_of_themselves() -> None:
    preparation = prepare([FIRST, SECOND], Lexicon({}))
    told = preparation.beliefs([[0], [1], [0, 1], []])["chain_beliefs"]
    middles = preparation.arrays()["chain_passages"][:, 1].tolist()
    assert (sorted(middles[:2]), sorted(middles[2:])) == ([1, 3], [1, 3])
    assert told[:2, 0].tolist() == told[2:, 1].tolist() == [0.0, 0.0]  # nobody else was asked
    near, far = (2 + middles[2:].index(middle) for middle in (1, 3))
    assert told[near, 0] > told[far, 0]  # the first question prefers the middle step that both offer
    assert told[near, 2] > told[far, 2]
    assert not told[:, 3].any()


# ---- what holds for all questions

WORDS = ["aspirin", "ibuprofen", "cox", "tnf", "kit", "was", "seen."]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=7), min_size=2, max_size=6))
def test_the_steps_of_all_chains_are_among_the_steps_and_fit_their_roles(texts: list[list[str]]) -> None:
    preparation = Preparation(Lexicon({}))
    if not preparation.take(question(*map(" ".join, texts))):
        return
    arrays = preparation.arrays()
    hops = arrays["chain_passages"].shape[1]
    for passages, steps, links in zip(
        arrays["chain_passages"], arrays["chain_steps"], arrays["chain_entity"], strict=True
    ):
        assert arrays["step_passage"][steps].tolist() == passages.tolist()
        assert arrays["step_entity"][steps].ravel()[1:-1].tolist() == np.repeat(links, 2).tolist()
        assert all(arrays["step_roles"][step] >> role & 1 for role, step in enumerate(steps))
    assert ((arrays["step_roles"] > 0) & (arrays["step_roles"] < 1 << hops)).all()
    keys = np.column_stack([arrays["step_passage"], arrays["step_entity"], arrays["step_roles"]])
    assert len(np.unique(keys, axis=0)) == len(keys)
