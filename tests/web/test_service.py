"""Recovery for many who ask at once: batches, order, limits, and nobody waits for ever."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, wait
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.web.models import HANG_S, Held

from rechain.errors import RechainError
from rechain.formats.datasets import Entry
from rechain.recoverer import Recoverer
from rechain.schema import Passage, Question, Recovered
from rechain.scoring.interface import Scores
from rechain.scoring.results import Options
from rechain.text.candidates import Candidates
from rechain.web.service import BusyError, RecoveryService, StartingError

Towns = Callable[..., list[Question]]


Make = Callable[..., RecoveryService]


@pytest.fixture
def make() -> Iterator[Make]:
    services: list[RecoveryService] = []

    def service(model: Any, **options: Any) -> RecoveryService:
        options = {"most_seconds": HANG_S} | options
        services.append(RecoveryService(lambda: Recoverer(model), **options))
        return services[-1]

    yield service
    for one in services:
        one.close()


@pytest.fixture
def entries(towns: Towns) -> list[Entry]:
    return [Entry("", question.id, question) for question in towns(12)]


def names(future: "Future[list[Recovered]]") -> list[str | None]:
    return [recovered.id for recovered in future.result(HANG_S)]


def hold(service: RecoveryService, model: Held, entry: Entry) -> "Future[list[Recovered]]":
    """Ask for one question, and return when the model is at it."""
    future = service.ask([entry], Options())
    assert model.has_begun.wait(HANG_S)
    return future


def test_everybody_gets_what_he_wants_of_a_batch(make: Make, entries: list[Entry]) -> None:
    model = Held()
    service = make(model)
    hold(service, model, entries[0])
    traps = [service.ask([entries[3]], wanted) for wanted in (Options(top=1), Options(top=9, explain=True))]
    too_sure = service.ask([entries[3]], Options(min_confidence=0.6))
    model.may_go_on.set()
    (one,), (all_of_them,) = (future.result(HANG_S) for future in traps)
    assert (len(one), one.chains[0].why) == (1, None)
    assert len(all_of_them) > 1
    assert all_of_them.chains[0].why == {"x": 1.0}
    (refused,) = too_sure.result(HANG_S)
    assert refused.error is not None
    assert refused.error.code == "low_confidence"


def test_heavy_questions_are_recovered_apart_so_that_they_can_be_given_up(make: Make, towns: Towns) -> None:
    heavy = [Passage(id=str(place), text="It rains. " * 100) for place in range(500)]
    questions = [one.model_copy(update={"passages": [*one.passages, *heavy]}) for one in towns(3)]
    entries, model = [Entry("", one.id, one) for one in questions], Held()
    service = make(model)
    given_up = service.ask(entries, Options())
    assert model.has_begun.wait(HANG_S)
    assert given_up.cancel()
    model.may_go_on.set()
    light = [Entry("", one.id, one) for one in towns(5)[3:]]
    assert names(service.ask(light, Options())) == ["town-3", "town-4"]
    assert model.batches == [["town-0"], ["town-3", "town-4"]]


def test_small_questions_do_not_wait_for_the_large_one_of_another(make: Make, towns: Towns) -> None:
    large, *small = towns(4)
    heavy = [Passage(id=str(place), text="It rains. " * 100) for place in range(500)]
    large = large.model_copy(update={"passages": [*large.passages, *heavy]})
    model = Held()
    service = make(model)
    first = hold(service, model, Entry("", small[0].id, small[0]))
    others = [service.ask([Entry("", one.id, one)], Options()) for one in (small[1], large, small[2])]
    model.may_go_on.set()
    assert [names(future) for future in (first, *others)] == [["town-1"], ["town-2"], ["town-0"], ["town-3"]]
    assert model.batches == [["town-1"], ["town-2"], ["town-0"], ["town-3"]]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(min_value=1, max_value=7), min_size=1, max_size=6), st.integers(min_value=1, max_value=6))
def test_batches_are_full_and_have_a_question_of_each_in_turn(
    entries: list[Entry], sizes: list[int], batch_size: int
) -> None:
    model = Held()
    service = RecoveryService(lambda: Recoverer(model), batch_size=batch_size, most_seconds=HANG_S)
    hold(service, model, entries[0])
    futures = [service.ask(entries[:size], Options()) for size in sizes]
    assert service.waiting == 1 + sum(sizes)
    model.may_go_on.set()
    assert [names(future) for future in futures] == [[entry.id for entry in entries[:size]] for size in sizes]
    service.close()
    asked = [entry.id for turn, entry in enumerate(entries) for size in sizes if turn < size]
    expected = [asked[place : place + batch_size] for place in range(0, len(asked), batch_size)]
    assert model.batches == [["town-0"], *expected]
    assert service.waiting == 0


def test_nothing_asked_is_answered_at_once(make: Make) -> None:
    assert make(Held()).ask([], Options()).result(0) == []


def test_an_error_meets_only_who_asked_for_it(make: Make, entries: list[Entry]) -> None:
    model = Held(breaks_over=["town-2"])
    service = make(model)
    first = hold(service, model, entries[0])
    broken, well = service.ask(entries[1:5], Options()), service.ask(entries[5:7], Options())
    model.may_go_on.set()
    assert names(first) == ["town-0"]
    with pytest.raises(RuntimeError, match="broken"):
        broken.result(HANG_S)
    assert names(well) == ["town-5", "town-6"]
    assert ["town-3"] not in model.batches  # the rest of what is lost is left
    assert names(service.ask([entries[7]], Options())) == ["town-7"]
    assert service.waiting == 0


def test_a_job_that_fails_in_its_first_batch_ends_there(make: Make, entries: list[Entry]) -> None:
    model = Held(breaks_over=["town-0"])
    model.may_go_on.set()
    service = make(model, batch_size=2)
    with pytest.raises(RuntimeError):
        service.ask(entries[:6], Options()).result(HANG_S)
    assert names(service.ask([entries[7]], Options())) == ["town-7"]
    assert model.batches == [["town-0", "town-1"], ["town-0"], ["town-7"]]


def test_past_the_limit_one_is_told_when_to_ask_again(make: Make, entries: list[Entry]) -> None:
    model = Held()
    service = make(model, most_waiting=4)
    first = hold(service, model, entries[0])
    second = service.ask(entries[1:4], Options())
    singles: list[Future[list[Recovered]]] = []
    for count in (3, 2, 1):  # who asks for one waits for one of each, so that there is room for two more
        while count == 1 and len(singles) < 2:
            singles.append(service.ask(entries[4:5], Options()))
        with pytest.raises(BusyError, match="ask again in 1 s") as busy:
            service.ask(entries[:count], Options())
        assert busy.value.retry_after == 1
    model.may_go_on.set()
    assert len(names(first) + names(second)) == 4
    assert [names(one) for one in singles] == [["town-4"]] * 2
    assert names(service.ask(entries[:4], Options())) == ["town-0", "town-1", "town-2", "town-3"]


class Clock:
    """A clock that goes on when a model scores, by a second a question, and when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Slow(Held):
    """A model that takes a second a question, by a clock of its own."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def score_many(self, batch: Sequence[Candidates]) -> Sequence[Scores]:
        self.clock.now += len(batch)
        return super().score_many(batch)


def test_a_question_that_would_wait_too_long_is_refused(make: Make, towns: Towns) -> None:
    question = towns(1)[0]
    long = Passage(id="long", title="Long", text="and so on " * 1000)  # not so small that its time is no measure
    question = question.model_copy(update={"passages": [*question.passages, long]})
    entry, clock = Entry("", question.id, question), Clock()
    model = Slow(clock)
    model.may_go_on.set()
    service = make(model, most_seconds=4.0, clock=clock)
    for _ in range(40):  # until the first guess is forgotten
        service.ask([entry], Options()).result(HANG_S)
    model.may_go_on.clear()
    model.has_begun.clear()
    running = hold(service, model, entry)  # its second is over already by the clock, so nothing is left of it
    waiting = [service.ask([entry], Options()) for _ in range(3)]
    with pytest.raises(BusyError) as busy:
        service.ask([entry] * 3, Options())  # 3 s of others and 3 s of its own: after 2 s there will be room
    assert busy.value.retry_after == 2
    waiting.append(service.ask([entry], Options()))
    with pytest.raises(BusyError) as busy:
        service.ask([entry], Options())
    assert busy.value.retry_after == 1
    model.may_go_on.set()
    assert all(names(future) == [question.id] for future in (running, *waiting))
    assert len(names(service.ask([entry] * 9, Options()))) == 9  # nobody waits, and it would never be quicker


def test_many_questions_of_one_keep_no_other_waiting(make: Make, entries: list[Entry]) -> None:
    model = Held()
    service = make(model, batch_size=2)
    hold(service, model, entries[0])
    many, one = service.ask(entries[:5], Options()), service.ask([entries[7]], Options())
    model.may_go_on.set()
    assert (len(names(many)), names(one)) == (5, ["town-7"])
    assert model.batches[1] == ["town-0", "town-7"]


def test_who_asks_while_the_model_is_loaded_is_told_so(entries: list[Entry]) -> None:
    has_begun, may_go_on, clock = Event(), Event(), Clock()

    def load() -> Recoverer:
        has_begun.set()
        assert may_go_on.wait(HANG_S)
        return Recoverer("lexical")

    service = RecoveryService(load, most_seconds=4.0, clock=clock)
    assert service.state == "unused"
    late = service.ask(entries[:1], Options())
    assert has_begun.wait(HANG_S)
    assert service.state == "starting"
    clock.now = 4.5
    service.refuse_late()
    with pytest.raises(StartingError) as refused:
        late.result(HANG_S)
    assert (refused.value.status, refused.value.retry_after) == (503, 5)
    may_go_on.set()
    assert names(service.ask([entries[2]], Options())) == ["town-2"]
    assert service.state == "ok"
    service.close()


class Restarted(Recoverer):
    """A recoverer whose process is started anew, in ten seconds, at the first call."""

    starts = 1

    def __init__(self, model: Any, clock: Clock) -> None:
        super().__init__(model)
        self.clock = clock

    def recover_together(self, batch: Any) -> Any:
        self.clock.now += 10.0 if self.starts == 1 else 0.0
        self.starts = 2
        return super().recover_together(batch)


def test_to_load_a_model_anew_is_no_measure_of_its_pace(entries: list[Entry]) -> None:
    clock, model = Clock(), Held()
    service = RecoveryService(lambda: Restarted(model, clock), most_seconds=4.0, clock=clock)
    model.may_go_on.set()
    names(service.ask([entries[0]], Options()))
    model.may_go_on.clear()
    model.has_begun.clear()
    first = hold(service, model, entries[1])
    second = service.ask([entries[2]], Options())
    model.may_go_on.set()
    assert names(first) + names(second) == ["town-1", "town-2"]
    service.close()


def test_what_has_waited_too_long_is_refused_when_its_turn_comes(make: Make, entries: list[Entry]) -> None:
    clock, model = Clock(), Held()
    service = make(model, most_seconds=4.0, clock=clock)
    running = hold(service, model, entries[0])
    late = service.ask([entries[1]], Options())
    clock.now = 4.5
    soon = service.ask([entries[2]], Options())
    model.may_go_on.set()
    assert (names(running), names(soon)) == (["town-0"], ["town-2"])
    with pytest.raises(BusyError):
        late.result(HANG_S)
    assert service.waiting == 0


def test_more_than_could_ever_wait_is_a_mistake(make: Make, entries: list[Entry]) -> None:
    with pytest.raises(RechainError, match="12 questions are more than the 4"):
        make(Held(), most_waiting=4).ask(entries, Options())


def test_under_stress_no_job_is_lost_or_stuck(make: Make, batch_fake: type[Any], entries: list[Entry]) -> None:
    service = make(batch_fake(), most_waiting=20, batch_size=4)
    outcomes: list[str] = []

    def user(number: int) -> None:
        for turn in range(15):
            chosen = entries[: 1 + (number * 7 + turn) % 9]
            try:
                future = service.ask(chosen, Options())
                if turn % 5 == 4 and future.cancel():
                    outcomes.append("given up")
                else:
                    outcomes.append("right" if names(future) == [one.id for one in chosen] else "wrong")
            except BusyError as busy:
                outcomes.append("busy" if busy.retry_after >= 1 else "wrong")

    users = [Thread(target=user, args=(number,)) for number in range(8)]
    for one in users:
        one.start()
    for one in users:
        one.join(HANG_S)
    assert len(outcomes) == 8 * 15
    assert "wrong" not in outcomes
    assert "right" in outcomes
    assert names(service.ask(entries[:1], Options())) == ["town-0"]
    service.close()
    assert service.waiting == 0


def test_other_work_is_done_when_nobody_asks_and_goes_on_after(make: Make, entries: list[Entry]) -> None:
    model, is_idle, done = Held(), Event(), Event()
    model.may_go_on.set()
    order: list[str] = []

    def other_work(_: Recoverer) -> bool:
        order.append("work")
        if len(order) == 1:
            is_idle.set()
            assert model.has_begun.wait(0) is False
            assert asked.wait(HANG_S)
        if order.count("work") == 3:
            done.set()
        return order.count("work") < 3

    asked = Event()
    service = make(model, idle=other_work)
    service.start()
    assert is_idle.wait(HANG_S)
    future = service.ask([entries[0]], Options())
    future.add_done_callback(lambda _: order.append("answer"))
    asked.set()
    assert done.wait(HANG_S)
    assert names(future) == ["town-0"]
    assert order == ["work", "answer", "work", "work"]


def test_other_work_that_fails_is_given_up_and_requests_are_answered(
    make: Make, entries: list[Entry], caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[int] = []
    has_failed = Event()

    def broken(_: Recoverer) -> bool:
        calls.append(1)
        has_failed.set()
        raise ValueError("broken")

    service = make("lexical", idle=broken)
    service.start()
    assert has_failed.wait(HANG_S)
    assert names(service.ask(entries[:2], Options())) == ["town-0", "town-1"]
    assert len(calls) == 1
    assert "has failed; it is given up" in caplog.text


def test_a_model_that_cannot_be_had_is_told_to_who_asks(entries: list[Entry]) -> None:
    tries: list[int] = []

    def fail_once() -> Recoverer:
        tries.append(1)
        if len(tries) == 1:
            raise RechainError("there is no such model.")
        return Recoverer("lexical")

    service = RecoveryService(fail_once)
    with pytest.raises(RechainError, match="no such model"):
        service.ask(entries[:1], Options()).result(HANG_S)
    assert names(service.ask(entries[:1], Options())) == ["town-0"]
    service.close()
    assert len(tries) == 2


def test_close_ends_the_batch_at_hand_and_gives_up_the_others(entries: list[Entry]) -> None:
    model = Held()
    service = RecoveryService(lambda: Recoverer(model), batch_size=1)
    first = hold(service, model, entries[0])
    others = [service.ask(entries[1:3], Options()), service.ask([entries[3]], Options())]
    closing = Thread(target=service.close)
    closing.start()
    wait([first], 0.05)
    assert not first.done()
    model.may_go_on.set()
    closing.join(HANG_S)
    assert names(first) == ["town-0"]
    for future in others:
        with pytest.raises(CancelledError):
            future.result(HANG_S)
    with pytest.raises(BusyError):
        service.ask([entries[4]], Options())
    service.close()


def test_to_close_what_never_began_is_nothing() -> None:
    made: list[int] = []
    service = RecoveryService(lambda: made.append(1))  # type: ignore[arg-type,func-returns-value]
    service.close()
    service.start()
    assert made == []
