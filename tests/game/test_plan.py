"""In what order passages are selected, and what the Reasoner reads."""

import pytest

from rechain.game.plan import Plan, Reading, Step, make_plan


def test_two_hops_from_the_tail() -> None:
    plan = make_plan(2, "tail to head")
    assert plan == Plan(2, (Step(1), Step(0, (1,))), (Reading(role=1, link=0, next=0),))
    assert [plan.name(step.role) for step in plan.steps] == ["tail", "head"]


def test_two_hops_from_the_head() -> None:
    plan = make_plan(2, "head to tail")
    assert plan == Plan(2, (Step(0), Step(1, (0,))), (Reading(role=0, link=0, next=1),))
    assert [plan.name(step.role) for step in plan.steps] == ["head", "tail"]


def test_three_hops_head_and_tail_independently_then_the_middle_given_both() -> None:
    plan = make_plan(3)
    assert plan.steps == (Step(0), Step(2), Step(1, (0, 2)))
    assert plan.readings == (Reading(role=0, link=0, next=1), Reading(role=2, link=1, next=1))
    assert [plan.name(role) for role in range(3)] == ["head", "middle", "tail"]


def test_four_hops_the_middles_from_left_to_right_each_given_all_before() -> None:
    plan = make_plan(4)
    assert plan.steps == (Step(0), Step(3), Step(1, (0, 3)), Step(2, (0, 3, 1)))
    assert plan.readings == (Reading(0, 0, 1), Reading(3, 2, 2))
    assert [plan.name(role) for role in range(4)] == ["head", "middle", "middle", "tail"]


@pytest.mark.parametrize("hops", [2, 3, 4])
def test_independent_selection_gives_nothing_to_a_step_and_reads_nothing(hops: int) -> None:
    plan = make_plan(hops, "independent")
    assert plan.steps == tuple(Step(role) for role in range(hops))
    assert plan.readings == ()
    assert {plan.name(role) for role in range(hops)} == {"tail"}


@pytest.mark.parametrize("hops", range(2, 9))
@pytest.mark.parametrize("direction", ["tail to head", "head to tail", "independent"])
def test_every_role_is_selected_once_and_given_only_to_later_steps(hops: int, direction: str) -> None:
    plan = make_plan(hops, direction)
    assert sorted(step.role for step in plan.steps) == list(range(hops))
    for number, step in enumerate(plan.steps):
        assert plan.step_of(step.role) == number
        assert all(plan.step_of(role) < number for role in step.given)
    for reading in plan.readings:
        assert reading.role in plan.steps[plan.step_of(reading.next)].given
        assert {reading.role, reading.next} == {reading.link, reading.link + 1}
