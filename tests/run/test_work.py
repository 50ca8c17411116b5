"""What a worker makes of a chunk of raw records, and the same lines, however many processes work."""

import json
import multiprocessing
import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.errors import InputError, QuestionError, RechainError
from rechain.formats.datasets import read_entries
from rechain.formats.datasets.questions import Chunk, read_chunks
from rechain.formats.datasets.records import RawRecord
from rechain.models import network_modules
from rechain.recoverer import RecovererConfig
from rechain.run.work import Tally, Work, Worker, WorkResult, reads_apart, recover_chunks
from rechain.schema import Chain, Passage, Problem, Question, Recovered
from rechain.text.candidates import CandidateSettings
from rechain.text.collection import PassageCollection

Towns = Callable[..., list[Question]]
LEXICAL = RecovererConfig("lexical")


def records_of(questions: Sequence[Question], kinds: Sequence[str]) -> list[bytes]:
    """Return the questions' JSON, with a type each."""
    typed = (question.model_copy(update={"type": kind}) for question, kind in zip(questions, kinds, strict=True))
    return [question.model_dump_json(exclude_none=True).encode() for question in typed]


def chunk_of(records: Sequence[bytes]) -> Chunk:
    count = len(records)
    return Chunk("plain", [RawRecord(f"f, line {n}", record, n / count) for n, record in enumerate(records, start=1)])


@pytest.fixture(scope="module")
def records(towns: Towns) -> list[bytes]:
    """Three questions, the second of them cut off."""
    first, second, third = records_of(towns(3), ["bridge", "bridge", "comparison"])
    return [first, second[:50], third]


def test_every_question_has_a_line_also_one_that_cannot_be_read(records: list[bytes]) -> None:
    done = Worker(Work(LEXICAL))(chunk_of(records))
    rows = [json.loads(line) for line in done.lines.splitlines()]
    assert done.lines.endswith(b"\n")
    assert [row["id"] for row in rows] == ["town-0", None, "town-2"]
    assert [bool(row["chains"]) for row in rows] == [True, False, True]
    assert rows[1]["error"]["message"].startswith("f, line 2: ")
    assert done.tally == Tally(3, 2, Counter(bad_json=1))
    assert (done.share, done.stopped_by) == (1.0, None)


def test_the_lines_are_those_of_recovery_in_one_go(town_file: Path) -> None:
    expected = "".join(row.to_json() + "\n" for row in LEXICAL.load().recover_many(read_entries(town_file)))
    for size in (1, 5, 12, 99):
        worker = Worker(Work(LEXICAL))
        assert b"".join(worker(chunk).lines for chunk in read_chunks(town_file, size)) == expected.encode()


def test_strict_work_stops_at_the_first_error_and_keeps_what_came_before(records: list[bytes]) -> None:
    done = Worker(Work(LEXICAL, strict=True))(chunk_of(records))
    (line,) = done.lines.splitlines()
    assert json.loads(line)["id"] == "town-0"
    assert done.tally == Tally(1, 1)
    assert done.stopped_by
    assert (done.stopped_by.code, str(done.stopped_by)[:11]) == ("bad_json", "f, line 2: ")


@pytest.mark.parametrize(
    ("only", "ids"),
    [
        ((), ["town-0", None, "town-2"]),
        (("bridge",), ["town-0", None]),
        (("comparison",), [None, "town-2"]),
        (("other",), [None]),
    ],
)
def test_the_lines_of_a_chunk_are_counted_without_recovering_chains(
    records: list[bytes], only: tuple[str, ...], ids: list[str | None]
) -> None:
    work, chunk = Work(LEXICAL, only=only), chunk_of(records)
    done = Worker(work)(chunk)
    assert [json.loads(line)["id"] for line in done.lines.splitlines()] == ids
    assert done.tally.questions == len(ids)


def test_a_chunk_without_a_wanted_question_has_no_line(records: list[bytes]) -> None:
    done = Worker(Work(LEXICAL, only=("other",)))(chunk_of([records[0], records[2]]))
    assert done[:4] == WorkResult(b"", Tally(), 1.0)[:4]


@pytest.mark.parametrize("is_file", [False, True], ids=["mapping", "file"])
def test_questions_may_name_passages_that_the_work_brings(towns: Towns, tmp_path: Path, is_file: bool) -> None:
    (question,) = towns(1)
    ids = [passage.id for passage in question.passages]
    record = question.model_dump(exclude_none=True, exclude={"passages"}) | {"passage_ids": ids}
    path = tmp_path / "passages.jsonl"
    path.write_text("".join(passage.model_dump_json() + "\n" for passage in question.passages))
    known = path if is_file else {passage.id: passage for passage in question.passages}
    done = Worker(Work(LEXICAL, known))(chunk_of([json.dumps(record).encode()]))
    assert done.tally == Tally(1, 1)


def test_work_and_what_is_done_can_be_sent_to_other_processes(records: list[bytes]) -> None:
    config = RecovererConfig("lexical", settings=CandidateSettings(), top=2, explain=True)
    work, chunk = Work(config, Path("p.jsonl"), ("bridge",), strict=True), chunk_of(records)
    sent = pickle.loads(pickle.dumps(work))
    assert (sent.passages, sent.only, sent.strict) == (work.passages, work.only, work.strict)
    assert sent.config == work.config
    assert pickle.loads(pickle.dumps(chunk)) == chunk
    done = WorkResult(
        b"{}\n", Tally(2, 1, Counter(no_link=1), 0.5, 1), 0.25, QuestionError("no_link", "f, line 2: no link.")
    )
    again = pickle.loads(pickle.dumps(done))
    assert again[:3] == done[:3]
    assert (again.stopped_by.code, str(again.stopped_by)) == ("no_link", "f, line 2: no link.")


def test_sent_work_makes_the_same_of_a_sent_chunk(records: list[bytes]) -> None:
    work, chunk = Work(RecovererConfig("lexical", top=2)), chunk_of(records)
    assert Worker(pickle.loads(pickle.dumps(work)))(pickle.loads(pickle.dumps(chunk))) == Worker(work)(chunk)


CONFIDENCES = st.none() | st.integers(0, 8).map(lambda eighths: eighths / 8)  # they add up without rounding
OUTCOMES = st.one_of(
    st.builds(
        lambda confidence: Recovered(
            id="q", chains=[Chain(passages=["p"], links=[], score=1.0, confidence=confidence)] * 2
        ),
        CONFIDENCES,
    ),
    st.builds(
        lambda code: Recovered(id=None, chains=[], error=Problem(code=code, message="why")),
        st.sampled_from(["no_link", "no_tail", "bad_json"]),
    ),
)


def tally_of(outcomes: Sequence[Recovered]) -> Tally:
    tally = Tally()
    for recovered in outcomes:
        tally.count(recovered)
    return tally


@given(st.lists(st.lists(OUTCOMES, max_size=5), max_size=5))
def test_tallies_add_up_to_the_tally_of_everything(chunks: list[list[Recovered]]) -> None:
    total = Tally()
    for chunk in chunks:
        total.add(tally_of(chunk))
    everything = [recovered for chunk in chunks for recovered in chunk]
    assert total == tally_of(everything)
    assert total.questions == len(everything) == total.with_chain + sum(total.problems.values())
    told = [row.chains[0].confidence for row in everything if row.chains and row.chains[0].confidence is not None]
    assert total.mean_confidence == (sum(told) / len(told) if told else None)


# ---- worker processes of this machine


def lines(done: list[WorkResult]) -> bytes:
    return b"".join(each.lines for each in done)


def test_neither_workers_nor_the_size_of_chunks_changes_the_lines(town_file: Path) -> None:
    work = Work(LEXICAL)
    expected = lines(list(recover_chunks(work, read_chunks(town_file, 12), 12, 0)))
    assert expected.count(b"\n") == 12
    for size, workers in ((1, 2), (5, 3), (4, 0), (99, 2), (5, 1)):
        done = list(recover_chunks(work, read_chunks(town_file, size), size, workers))
        assert lines(done) == expected
        assert [each.tally.questions for each in done] == [size] * (12 // size) + [12 % size] * (12 % size > 0)


@pytest.mark.parametrize(("size", "workers", "is_alone"), [(4, 0, True), (13, 2, True), (12, 2, False), (4, 2, False)])
def test_one_short_chunk_needs_no_other_process(town_file: Path, size: int, workers: int, is_alone: bool) -> None:
    done = recover_chunks(Work(LEXICAL), read_chunks(town_file, size), size, workers)
    next(done)
    assert bool(multiprocessing.active_children()) is not is_alone
    done.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_chunks_before_an_error_are_recovered_before_it_is_raised(town_file: Path, workers: int) -> None:
    error = InputError("f is damaged.")

    def chunks() -> Iterator[Chunk]:
        yield from list(read_chunks(town_file, 5))[:2]
        raise error

    done = []
    with pytest.raises(InputError) as failure:
        for each in recover_chunks(Work(LEXICAL), chunks(), 5, workers):
            done.append(each)
    assert failure.value is error
    assert [each.tally.questions for each in done] == [5, 5]


def test_verdicts_are_counted_where_there_are_any() -> None:
    one, other = Tally(), Tally()
    one.count(Recovered(id="q1", verdict="supported", chains=[]))
    other.count_fields(json.loads(Recovered(id="q2", verdict="partly", chains=[]).to_json()))
    other.count(Recovered(id="q3", chains=[]))
    one.add(other)
    assert one.counts()["verdicts"] == {"supported": 1, "partly": 1}
    assert "verdicts" not in Tally().counts()


def by_id(questions: Sequence[Question]) -> tuple[list[bytes], dict[str, Passage]]:
    """Return the JSON of questions that name their passages by id, and the passages."""
    passages = {f"{q.id} {p.id}": p.model_copy(update={"id": f"{q.id} {p.id}"}) for q in questions for p in q.passages}
    records = []
    for question in questions:
        fields = question.model_dump(exclude_none=True, exclude={"passages"})
        records.append(json.dumps(fields | {"passage_ids": [f"{question.id} {p.id}" for p in question.passages]}))
    return [record.encode() for record in records], passages


def test_the_passages_are_a_collection_whose_stamp_every_line_has(towns: Towns, tmp_path: Path) -> None:
    records, passages = by_id(towns(3))
    file = tmp_path / "passages.jsonl"
    file.write_text("".join(passage.model_dump_json() + "\n" for passage in reversed(passages.values())))
    stamp = PassageCollection(passages).stamp
    for source in (passages, file):
        lines = Worker(Work(LEXICAL, source))(chunk_of([*records, b"{}"])).lines.splitlines()
        assert [json.loads(line)["collection"] for line in lines] == [stamp] * 4
    other = PassageCollection({})
    lines = Worker(Work(replace(LEXICAL, corpus=other), passages))(chunk_of(records)).lines.splitlines()
    assert {json.loads(line)["collection"] for line in lines} == {other.stamp}


def test_a_line_does_not_depend_on_the_questions_beside_it(towns: Towns) -> None:
    records, passages = by_id(towns(5))
    worker = Worker(Work(LEXICAL, passages))
    alone = [worker(chunk_of([record])).lines for record in records]
    assert worker(chunk_of(records)).lines == b"".join(alone)
    assert Worker(Work(LEXICAL, passages))(chunk_of(records[::-1])).lines == b"".join(alone[::-1])


def test_a_collection_of_the_recoverers_own_is_among_what_results_depend_on() -> None:
    collection = PassageCollection({"p": Passage(id="p", text="A text.")})
    assert Work(replace(LEXICAL, corpus=collection)).described()["settings"]["collection"] == collection.stamp
    assert "collection" not in Work(LEXICAL).described()["settings"]


# ---- one process that reads for all workers


@pytest.mark.torch
def test_one_reader_for_all_workers_changes_no_byte(town_file: Path) -> None:
    work = Work(RecovererConfig("default", device="cpu", top=2, explain=True))
    expected = lines(list(recover_chunks(work, read_chunks(town_file, 12), 12, 0)))
    done = recover_chunks(work, read_chunks(town_file, 3), 3, 2, apart=True)
    assert lines(list(done)) == expected
    assert expected.count(b'"ranker"') > 0  # the network has read


@pytest.mark.torch
def test_no_process_is_left_when_nobody_wants_the_rest(town_file: Path) -> None:
    before = services()  # a server of an earlier test may still be ending
    done = recover_chunks(Work(RecovererConfig("default", device="cpu")), read_chunks(town_file, 3), 3, 1, apart=True)
    next(done)
    assert len(multiprocessing.active_children()) == len(services() - before) == 1
    done.close()
    assert not multiprocessing.active_children() and not services() - before


def services() -> set[Path]:
    """Return the processes below this one that answer requests."""
    parent = f"PPid:\t{os.getpid()}\n"
    below = set()
    for path in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):  # it may end while we look
            if parent in path.read_text() and "import serve" in (path.parent / "cmdline").read_text():
                below.add(path)
    return below


def test_a_reader_that_cannot_be_loaded_is_one_error(town_file: Path) -> None:
    with pytest.raises(RechainError, match="is not a chain reader"):
        list(recover_chunks(Work(LEXICAL), read_chunks(town_file, 3), 3, 2, apart=True))


@pytest.mark.parametrize(
    ("model", "device", "expected"),
    [
        ("default", "cuda", True),
        ("default", "cuda:1", True),
        ("default", "cpu", False),
        ("lexical", "cuda", False),
        ("someone/model", "cuda", True),
    ],
)
def test_one_process_reads_for_all_where_the_network_is_on_a_gpu(model: str, device: str, expected: bool) -> None:
    assert reads_apart(model, device) is expected


def test_workers_share_what_a_network_needs_and_nothing_else() -> None:
    assert network_modules("default") == ["rechain.reader.pretrained"]
    assert network_modules("lexical") == network_modules(object()) == []  # type: ignore[arg-type]


def test_what_a_game_has_left_is_no_chain_reader(tmp_path: Path) -> None:
    assert not reads_apart(str(tmp_path), "cuda")
    (tmp_path / "config.json").write_text("{}")
    assert reads_apart(str(tmp_path), "cuda")
