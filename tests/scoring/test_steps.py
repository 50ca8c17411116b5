"""The steps of chains: what tells them apart, and where there are none."""

from rechain.candidates import find_candidates
from rechain.schema import Question
from rechain.scoring.steps import find_steps


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
