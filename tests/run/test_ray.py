"""Recovery on a real Ray cluster of several nodes: the same as on one machine, whatever becomes of nodes and actors."""

import gzip
import json
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from rechain.errors import DamagedInputError, InputError, QuestionError, RechainError
from rechain.formats.datasets.questions import read_chunks
from rechain.formats.datasets.records import read_rows
from rechain.formats.exports.arrow import from_row
from rechain.recoverer import Recoverer, RecovererConfig
from rechain.run import PartFormat
from rechain.run.parts import PartsFolder
from rechain.run.ray import Cluster, _actors, _results, _StopError, recover_dataset, recover_parts
from rechain.run.work import Tally, Work, WorkResult, recover_chunks
from rechain.schema import Question, Recovered
from rechain.scoring import BASELINES
from rechain.text.candidates import Candidates

LEXICAL = Work(RecovererConfig("lexical"))
SMALL = Cluster(batch_size=5, part_size=10)

Towns = Callable[..., list[Question]]


def recover(
    questions: Path, out: Path, work: Work = LEXICAL, form: PartFormat = PartFormat.jsonl, **options: bool
) -> Tally:
    """Recover chains on the cluster, and return what came of all questions."""
    tally = Tally()
    for done in recover_parts(work, str(questions), PartsFolder(str(out), form), SMALL, **options):
        tally.add(done.tally)
        if done.stopped_by:
            raise done.stopped_by
    return tally


def local(questions: Path, work: Work = LEXICAL, size: int = 5) -> bytes:
    """Return what the local engine makes of the questions."""
    return b"".join(done.lines for done in recover_chunks(work, read_chunks(questions, size), size, 2))


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fail if something takes longer."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"not done in {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def parts_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("0*"))


def joined(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in parts_of(folder))


def content(folder: Path) -> dict[str, bytes]:
    """Return the files that are seen; the entries of parts are hidden beside them."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def timeless(files: dict[str, bytes]) -> dict[str, Any]:
    """Return files without the time at which the last of them was written, and the digest of that."""
    made_by = json.loads(files["_rechain.json"])
    del made_by["sha256"], made_by["end"]["ended"]
    return files | {"_rechain.json": made_by}


def lines_of(questions: Sequence[Question]) -> list[bytes]:
    return [question.model_dump_json(exclude_none=True).encode() + b"\n" for question in questions]


@pytest.fixture
def lines(towns: Towns) -> list[bytes]:
    """47 questions and, as number 24, one that cannot be read: five parts, the last of which is short."""
    lines = lines_of(towns(48))
    lines[23] = b'{"id": "half"\n'
    return lines


@pytest.fixture
def questions(tmp_path: Path, lines: list[bytes]) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b"".join(lines))
    return path


# ---- how a cluster is used


@pytest.mark.parametrize(
    ("batch", "part", "chunks"), [(32, 1024, 32), (32, 32, 1), (32, 31, 1), (32, 95, 2), (1, 3, 3), (64, 1, 1)]
)
def test_a_part_is_of_whole_chunks_and_has_at_least_one(batch: int, part: int, chunks: int) -> None:
    assert Cluster(batch, part).chunks_a_part == chunks


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (RecovererConfig("default"), Cluster(32, 256)),
        (RecovererConfig("default", device="cpu"), Cluster(32, 256, gpus=0.0)),
        (RecovererConfig("lexical"), Cluster(32, 1024, gpus=0.0)),
        (RecovererConfig(), Cluster(32, 256)),
    ],
    ids=["named", "on the CPU", "lexical", "default"],
)
def test_what_is_left_open_is_chosen_for_the_model(make: Any, expected: Cluster) -> None:
    assert Cluster(32).suited_to(make) == expected
    assert Cluster(32, 7, gpus=0.5).suited_to(make) == Cluster(32, 7, gpus=0.5)


def nodes_with(*resources: dict[str, float]) -> list[dict[str, Any]]:
    """Return nodes as Ray lists them, and a dead one."""
    alive = [{"Alive": True, "Resources": each} for each in resources]
    return [*alive, {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}}]


@pytest.mark.parametrize(
    ("workers", "gpus", "nodes", "expected"),
    [
        (None, None, [{"CPU": 8.0}], (8, 0.0)),
        (3, None, [{"CPU": 8.0}], (3, 0.0)),
        (None, None, [{"CPU": 8.0, "GPU": 2.0}], (2, 1.0)),
        (None, None, [{"CPU": 8.0, "GPU": 1.0}, {"CPU": 8.0}, {"CPU": 4.0, "GPU": 2.0}], (3, 1.0)),
        (None, 2.0, [{"CPU": 8.0, "GPU": 5.0}, {"CPU": 8.0, "GPU": 1.0}], (2, 2.0)),
        (None, 0.25, [{"CPU": 8.0, "GPU": 2.0}], (8, 0.25)),
        (None, 0.0625, [{"CPU": 8.0, "GPU": 1.0}], (8, 0.0625)),
        (3, 0.5, [{"CPU": 8.0, "GPU": 2.0}], (3, 0.5)),
        (None, 0.0, [{"CPU": 8.0, "GPU": 2.0}], (8, 0.0)),
        (None, None, [{"CPU": 8.0, "GPU": 0.5}], (1, 0.5)),
        (None, None, [{}, {"CPU": 4.0}], (4, 0.0)),
        (None, None, [{}], (1, 0.0)),
    ],
)
def test_there_is_an_actor_a_core_or_as_many_as_the_gpus_of_nodes_have_room_for(
    workers: int | None, gpus: float | None, nodes: list[dict[str, float]], expected: tuple[int, float]
) -> None:
    assert _actors(Cluster(32, workers=workers, gpus=gpus), nodes_with(*nodes)) == expected


@pytest.mark.parametrize(
    ("gpus", "sentence"),
    [
        (2.0, "no node of the cluster has more than 1 GPUs, but a worker is to have 2."),
        (0.5, None),
        (1.0, None),
    ],
)
def test_a_worker_cannot_have_more_gpus_than_a_node(gpus: float, sentence: str | None) -> None:
    nodes = nodes_with({"CPU": 8.0, "GPU": 1.0}, {"CPU": 8.0, "GPU": 1.0})
    if sentence is None:
        assert _actors(Cluster(32, gpus=gpus), nodes)[1] == gpus
        return
    with pytest.raises(RechainError) as raised:
        _actors(Cluster(32, gpus=gpus), nodes)
    assert str(raised.value) == sentence


def test_a_worker_has_a_part_of_a_gpu_or_whole_ones() -> None:
    with pytest.raises(RechainError, match=r"but not 1\.5"):
        _actors(Cluster(32, gpus=1.5), nodes_with({"CPU": 8.0, "GPU": 4.0}))


# ---- the same as the local engine


@pytest.mark.slow
def test_a_node_killed_in_the_middle_changes_no_byte(nodes: Any, towns: Towns, tmp_path: Path) -> None:
    import ray

    questions, out = tmp_path / "towns.jsonl", tmp_path / "out"
    real = Path(__file__).parents[3] / "shared" / "data" / "hotpotqa" / "open.json.gz"
    if real.exists():
        questions = real
    else:
        questions.write_bytes(b"".join(lines_of(towns(200)) * 20))
    victim = nodes.add_node(num_cpus=1)
    nodes.wait_for_nodes()
    tally, parts = Tally(), 0
    for done in recover_parts(LEXICAL, str(questions), PartsFolder(str(out), PartFormat.jsonl), Cluster(32, 128)):
        tally.add(done.tally)
        parts += 1
        if parts == 4:
            nodes.remove_node(victim, allow_graceful=False)
    assert sum(node["Alive"] for node in ray.nodes()) == 2
    expected = local(questions, size=32)
    assert joined(out) == expected
    assert tally.questions == expected.count(b"\n")
    assert parts == len(parts_of(out)) > 12
    assert done.share == pytest.approx(1)
    assert (out / "_SUCCESS").exists()


class DiesOnce:
    """The lexical rule, which kills its process when it first meets a question, and notes what it scores."""

    def __init__(self, notes: Path, at: str) -> None:
        self._notes, self._at = notes, at

    def score(self, candidates: Candidates) -> Any:
        name = candidates.question.id
        with (self._notes / f"{os.getpid()}").open("a") as file:
            file.write(f"{name}\n")
        if name == self._at and not (self._notes / "died").exists():
            (self._notes / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return BASELINES["lexical"]().score(candidates)


@pytest.mark.slow
def test_an_actor_that_dies_is_replaced_and_nothing_is_lost_or_twice(
    nodes: Any, questions: Path, tmp_path: Path
) -> None:
    import ray

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the nodes cannot import this file
    notes, out = tmp_path / "notes", tmp_path / "out"
    notes.mkdir()
    tally = recover(questions, out, Work(RecovererConfig(DiesOnce(notes, "town-17"))))
    assert (notes / "died").exists()
    assert [path for path in notes.iterdir() if path.read_text().endswith("town-17\n")]  # who died there
    assert joined(out) == local(questions)
    assert (tally.questions, tally.with_chain, tally.problems) == (48, 47, {"bad_json": 1})


@pytest.mark.slow
@pytest.mark.parametrize("form", PartFormat)
def test_a_folder_of_parquet_files_gives_the_records_of_the_local_engine(
    nodes: Any, towns: Towns, tmp_path: Path, form: PartFormat
) -> None:
    folder, out = tmp_path / "questions", tmp_path / "out"
    folder.mkdir()
    rows = [question.model_dump(exclude_none=True) for question in towns(37)]
    rows[30]["answer"] = "yes"
    for name, part in {"b": rows[:14], "a": rows[14:]}.items():
        table = pyarrow.Table.from_pylist(part)
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet", row_group_size=6)
    tally = recover(folder, out, form=form)
    assert [path.stem for path in parts_of(out)] == [
        *("00000-000000", "00000-000001", "00000-000002"),
        *("00001-000000", "00001-000001"),
    ]
    expected = [Recovered.model_validate_json(line) for line in local(folder).splitlines()]
    assert [each for path in parts_of(out) for _, each in read_rows(path, Recovered)] == expected
    assert [each.id for each in expected][:2] == ["town-14", "town-15"]
    assert (tally.questions, tally.problems) == (37, {"no_tail": 1})


@pytest.mark.slow
def test_a_folder_of_json_files_gives_what_the_local_engine_does(
    nodes: Any, lines: list[bytes], tmp_path: Path
) -> None:
    folder, out = tmp_path / "questions", tmp_path / "out"
    (folder / "within").mkdir(parents=True)
    (folder / "b.jsonl").write_bytes(b"".join(lines[:13]))
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(b"".join(lines[13:33])))
    (folder / "within" / "c.json").write_bytes(b"[" + b",".join(lines[33:]) + b"]")
    (folder / "notes.txt").write_text("no questions")
    (folder / "empty.jsonl").write_text("")
    (folder / "blank.jsonl").write_text("\n\n")
    (folder / "nothing.jsonl.gz").write_bytes(gzip.compress(b""))
    assert recover(folder, out).questions == 48
    assert joined(out) == local(folder)
    assert f"{folder}/a.jsonl.gz, line 11".encode() in joined(out)
    assert len(parts_of(out)) == 2 + 2 + 2


@pytest.mark.slow
def test_only_and_passages_of_a_file_are_heeded(nodes: Any, towns: Towns, tmp_path: Path) -> None:
    questions, passages = tmp_path / "questions.jsonl", tmp_path / "passages.jsonl"
    known, rows = [], []
    for number, question in enumerate(towns(30)):
        ids = [f"{question.id}-{passage.id}" for passage in question.passages]
        known += [p.model_copy(update={"id": name}) for name, p in zip(ids, question.passages, strict=True)]
        fields = question.model_dump(include={"id", "question", "answer", "hops"})
        rows.append(fields | {"passage_ids": ids, "type": "bridge" if number % 4 == 0 else "other"})
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    passages.write_text("".join(passage.model_dump_json() + "\n" for passage in known))
    work = Work(RecovererConfig("lexical", top=2, explain=True), passages, ("bridge",))
    tally = recover(questions, tmp_path / "out", work)
    assert joined(tmp_path / "out") == local(questions, work)
    assert (tally.questions, tally.with_chain) == (8, 8)


# ---- going on


@pytest.mark.slow
def test_resume_makes_the_parts_that_are_missing_and_no_other(nodes: Any, questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    recover(questions, out)
    whole = content(out)
    kept = {name for name in whole if name.endswith(("0.jsonl", "3.jsonl"))}
    for name in whole.keys() - kept - {"_rechain.json"}:
        (out / name).unlink()
    times = {name: (out / name).stat().st_mtime_ns for name in kept}
    assert recover(questions, out, resume=True).questions == 10 + 10 + 8
    assert timeless(content(out)) == timeless(whole)
    assert {name: (out / name).stat().st_mtime_ns for name in kept} == times
    assert recover(questions, out, resume=True).questions == 0
    assert timeless(content(out)) == timeless(whole)
    assert joined(out) == local(questions)


@pytest.mark.slow
def test_a_damaged_file_leaves_whole_parts_and_goes_on_when_it_is_mended(
    nodes: Any, lines: list[bytes], tmp_path: Path
) -> None:
    """Each of four gzip members holds twelve lines; the third does not begin as one should."""
    questions, out = tmp_path / "questions.jsonl.gz", tmp_path / "out"
    members = [gzip.compress(b"".join(lines[at : at + 12]), mtime=0) for at in range(0, 48, 12)]
    questions.write_bytes(members[0] + members[1] + b"XX" + members[2][2:] + members[3])
    with pytest.raises(InputError) as raised:
        recover(questions, out)
    assert str(raised.value).startswith(f"{questions} is damaged: ")
    assert "\n" not in str(raised.value)
    assert content(out).keys() == {"_rechain.json", "00000-000000.jsonl", "00000-000001.jsonl"}
    questions.write_bytes(b"".join(members))
    assert recover(questions, out, resume=True).questions == 28
    assert joined(out) == local(questions)
    assert (out / "_SUCCESS").exists()


@pytest.mark.slow
def test_damage_in_the_last_chunk_of_a_part_leaves_no_half_part(nodes: Any, lines: list[bytes], tmp_path: Path) -> None:
    """The third part would have eight lines of ten; the mended file is as large as the damaged one."""
    questions, out = tmp_path / "questions.jsonl.gz", tmp_path / "out"
    members = [gzip.compress(b"".join(part), mtime=0) for part in (lines[:28], lines[28:])]
    questions.write_bytes(members[0] + b"XX" + members[1][2:])
    with pytest.raises(InputError, match="is damaged"):
        recover(questions, out)
    assert content(out).keys() == {"_rechain.json", "00000-000000.jsonl", "00000-000001.jsonl"}
    questions.write_bytes(b"".join(members))
    assert recover(questions, out, resume=True).questions == 28
    assert joined(out) == local(questions)
    assert json.loads(content(out)["_rechain.json"])["questions"] == {questions.name: questions.stat().st_size}


@pytest.mark.slow
def test_what_asks_for_no_question_that_is_there_replaces_nothing_and_finishes_nothing(
    nodes: Any, lines: list[bytes], tmp_path: Path
) -> None:
    questions, out = tmp_path / "questions.jsonl", tmp_path / "out"
    questions.write_bytes(b"".join(lines[:12]))
    none = Work(RecovererConfig("lexical"), only=("nonsense",))
    with pytest.raises(InputError, match="holds no question of type nonsense"):
        recover(questions, tmp_path / "new", none)
    assert "_SUCCESS" not in content(tmp_path / "new")
    recover(questions, out)
    before = content(out)
    with pytest.raises(InputError, match="holds no question of type nonsense"):
        recover(questions, out, none, overwrite=True)
    assert content(out) == before


@pytest.mark.slow
def test_parts_of_a_file_that_has_changed_are_looked_at_again(nodes: Any, lines: list[bytes], tmp_path: Path) -> None:
    """The file grows, so that its last part is of more questions; then it shrinks."""
    questions, out = tmp_path / "questions.jsonl", tmp_path / "out"
    questions.write_bytes(b"".join(lines[:25]))
    recover(questions, out)
    kept = {name: (out / f"00000-00000{name}.jsonl").stat().st_mtime_ns for name in range(2)}
    questions.write_bytes(b"".join(lines))
    assert recover(questions, out, resume=True).questions == 48 - 20
    assert joined(out) == local(questions)
    assert {name: (out / f"00000-00000{name}.jsonl").stat().st_mtime_ns for name in range(2)} == kept
    for number, what in (
        (15, "line 11 on: these questions were changed"),
        (20, "questions.jsonl: questions were removed"),
    ):
        questions.write_bytes(b"".join(lines[:number]))
        with pytest.raises(RechainError, match=what):
            recover(questions, out, resume=True)
    assert len(parts_of(out)) == 5


@pytest.mark.slow
def test_a_changed_answer_of_the_same_length_is_named(nodes: Any, lines: list[bytes], tmp_path: Path) -> None:
    """Also where a run was killed: of each part an entry tells what it was made of."""
    questions, out = tmp_path / "questions.jsonl", tmp_path / "out"
    questions.write_bytes(b"".join(lines[:30]))
    recover(questions, out)
    for name in ("_SUCCESS", "00000-000002.jsonl"):
        (out / name).unlink()
    before = content(out)
    answer = json.loads(lines[15])["answer"].encode()
    changed = lines[15].replace(b'"%s"' % answer, b'"%s"' % answer[::-1])
    assert changed != lines[15]
    questions.write_bytes(b"".join([*lines[:15], changed, *lines[16:30]]))
    for _ in range(2):
        with pytest.raises(RechainError) as raised:
            recover(questions, out, resume=True)
        assert str(raised.value) == (
            f"from {questions}, line 11 on: these questions were changed or swapped after their chains were written to "
            f"{out / '00000-000001.jsonl'}; delete this part, name another folder, or replace it with --overwrite."
        )
        assert content(out).items() >= before.items()
    questions.write_bytes(b"".join(lines[:30]))
    recover(questions, out, resume=True)
    assert joined(out) == local(questions)


@pytest.mark.slow
def test_a_half_record_at_the_end_is_read_again_when_it_is_whole(
    nodes: Any, lines: list[bytes], tmp_path: Path
) -> None:
    questions, out = tmp_path / "questions.jsonl", tmp_path / "out"
    questions.write_bytes(b"".join(lines[:12])[:-40])
    recover(questions, out)
    questions.write_bytes(b"".join(lines[:12]))
    assert recover(questions, out, resume=True).questions == 2
    assert joined(out) == local(questions)


@pytest.mark.slow
def test_a_finished_folder_stays_so_when_going_on_is_refused(nodes: Any, lines: list[bytes], tmp_path: Path) -> None:
    questions, out = tmp_path / "questions.jsonl", tmp_path / "out"
    questions.write_bytes(b"".join(lines[:12]))
    recover(questions, out)
    before = content(out)
    questions.write_bytes(b"".join(lines[1:12]))
    with pytest.raises(RechainError, match="line 1 on: these questions were changed or swapped"):
        recover(questions, out, resume=True)
    assert content(out) == before


@pytest.mark.slow
def test_what_cannot_work_replaces_nothing(nodes: Any, lines: list[bytes], tmp_path: Path) -> None:
    questions, out = tmp_path / "questions.jsonl", tmp_path / "out"
    questions.write_bytes(b"".join(lines[:12]))
    recover(questions, out)
    before = content(out)
    with pytest.raises(RechainError, match="there is no model 'nonsense'"):
        recover(questions, out, Work(RecovererConfig("nonsense")), overwrite=True)
    assert content(out) == before


@pytest.mark.slow
def test_after_a_strict_stop_one_can_go_on_without(nodes: Any, questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(QuestionError):
        recover(questions, out, Work(RecovererConfig("lexical"), strict=True))
    recover(questions, out, resume=True)
    assert joined(out) == local(questions)


def test_what_is_wrong_with_a_file_is_told_last_and_all_else_at_once() -> None:
    def row(questions: int, error: RechainError | None = None) -> dict[str, Any]:
        return {"part": "a", "content": pickle.dumps((WorkResult(b"", Tally(questions), 0.25), None, error))}

    told = _results([row(3), row(0, DamagedInputError("a file is damaged.")), row(4)], {})
    assert [next(told).tally.questions for _ in range(3)] == [3, 0, 4]
    with pytest.raises(DamagedInputError, match="a file is damaged"):
        next(told)
    told = _results([row(3), row(0, _StopError("there is no model.")), row(4)], {})
    assert next(told).tally.questions == 3
    with pytest.raises(InputError, match="there is no model"):
        next(told)


@pytest.mark.slow
def test_of_a_file_that_is_cut_off_the_whole_parts_are_written_and_other_files_too(
    nodes: Any, lines: list[bytes], tmp_path: Path
) -> None:
    folder, out = tmp_path / "questions", tmp_path / "out"
    folder.mkdir()
    cut = gzip.compress(b"".join(lines[:12])) + gzip.compress(b"".join(lines[12:24]))[:-9]
    (folder / "a.jsonl.gz").write_bytes(cut)
    (folder / "b.jsonl").write_bytes(b"".join(lines[24:]))
    with pytest.raises(InputError) as raised:
        recover(folder, out)
    assert str(raised.value) == (
        f"{folder}/a.jsonl.gz is cut off: its gzip stream ends early. What came before was read."
    )
    written = [path.stem for path in parts_of(out)]
    assert written[-3:] == ["00001-000000", "00001-000001", "00001-000002"]
    assert set(written[:-3]) <= {"00000-000000", "00000-000001"} and "00000-000000" in written
    assert all(path.read_bytes().count(b"\n") == 10 for path in parts_of(out)[:-1])
    assert not (out / "_SUCCESS").exists()


@pytest.mark.slow
def test_strict_work_stops_at_an_error_and_writes_no_part_of_it(nodes: Any, questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(QuestionError) as raised:
        recover(questions, out, Work(RecovererConfig("lexical"), strict=True))
    assert raised.value.code == "bad_json"
    assert str(raised.value).startswith(f"{questions}, line 24: ")
    assert "00000-000002.jsonl" not in content(out)
    assert "_SUCCESS" not in content(out)
    assert joined(out).count(b'"error":null') == joined(out).count(b"\n")


@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_is_told_as_anywhere(nodes: Any, questions: Path, tmp_path: Path) -> None:
    with pytest.raises(RechainError) as expected:
        Recoverer("nonsense")
    with pytest.raises(RechainError) as raised:
        recover(questions, tmp_path / "out", Work(RecovererConfig("nonsense")))
    assert str(raised.value) == str(expected.value)
    assert parts_of(tmp_path / "out") == []


@pytest.mark.slow
@pytest.mark.parametrize("there", ["nothing", "an empty folder", "a folder of texts"])
def test_questions_that_are_not_there_leave_no_folder(nodes: Any, tmp_path: Path, there: str) -> None:
    questions = tmp_path / "questions"
    if there != "nothing":
        questions.mkdir()
    if there == "a folder of texts":
        (questions / "notes.txt").write_text("no questions")
    with pytest.raises(InputError) as raised:
        recover(questions, tmp_path / "out")
    assert str(raised.value) == f"{questions} is not there, or holds no Parquet, JSON or CSV files."
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_damaged_parquet_file_is_told_as_by_the_local_engine(nodes: Any, towns: Towns, tmp_path: Path) -> None:
    questions = tmp_path / "questions.parquet"
    table = pyarrow.Table.from_pylist([question.model_dump(exclude_none=True) for question in towns(60)])
    pyarrow.parquet.write_table(table, questions)
    data = questions.read_bytes()
    questions.write_bytes(data[:3000] + bytes(400) + data[3400:])
    with pytest.raises(InputError) as expected:
        list(read_chunks(questions, 5))
    with pytest.raises(InputError) as raised:
        recover(questions, tmp_path / "out")
    assert str(questions) in str(raised.value) and str(questions) in str(expected.value)


@pytest.mark.slow
def test_resume_in_another_format_is_refused(nodes: Any, questions: Path, tmp_path: Path) -> None:
    questions.write_bytes(b"".join(questions.read_bytes().splitlines(keepends=True)[:3]))
    recover(questions, tmp_path / "out")
    before = content(tmp_path / "out")
    with pytest.raises(RechainError, match="another input, model or option"):
        recover(questions, tmp_path / "out", form=PartFormat.parquet, resume=True)
    assert content(tmp_path / "out") == before


@pytest.mark.slow
def test_a_path_may_be_typed_in_any_way(
    nodes: Any, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in recover_parts(LEXICAL, "./questions.jsonl", PartsFolder("out", PartFormat.jsonl), SMALL):
        pass
    assert joined(tmp_path / "out") == local(Path("./questions.jsonl"))


@pytest.mark.slow
def test_a_hugging_face_folder_is_refused(nodes: Any, towns: Towns, tmp_path: Path) -> None:
    import datasets

    folder = tmp_path / "hf"
    datasets.Dataset.from_list([question.model_dump(exclude_none=True) for question in towns(12)]).save_to_disk(folder)
    with pytest.raises(InputError, match="was saved by datasets; save it as Parquet for Ray"):
        recover(folder, tmp_path / "out")


# ---- Ray's own datasets


@pytest.fixture
def rows(towns: Towns) -> list[dict[str, Any]]:
    rows = [question.model_dump(exclude_none=True) for question in towns(40)]
    rows[0]["answer"] = "yes"  # the first batch has an error, others have none
    return rows


def by_id(rows: Sequence[dict[str, Any]]) -> list[Recovered]:
    """Return what the rows hold, in the order of their questions' numbers."""
    read = [from_row({name: row[name] for name in ("id", "chains", "error")}) for row in rows]
    return sorted(read, key=lambda recovered: int(str(recovered.id).partition("-")[2]))


@pytest.mark.slow
def test_a_dataset_of_rays_gets_the_columns_of_chains(nodes: Any, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    import ray

    recoverer = Recoverer("lexical", top=2)
    mapped = recover_dataset(ray.data.from_items(rows, override_num_blocks=3), recoverer).take_all()
    assert by_id(mapped) == list(recoverer.recover_many(rows))
    assert {row["id"]: row["question"] for row in mapped} == {row["id"]: row["question"] for row in rows}
    for number in range(2):
        table = pyarrow.Table.from_pylist(rows[number::2])
        pyarrow.parquet.write_table(table, tmp_path / f"{number}.parquet")
    recover_dataset(ray.data.read_parquet(str(tmp_path)), recoverer, workers=1).write_parquet(str(tmp_path / "out"))
    written = [row for path in (tmp_path / "out").glob("*") for row in pyarrow.parquet.read_table(path).to_pylist()]
    assert by_id(written) == by_id(mapped)


@pytest.mark.slow
def test_reading_files_and_recovering_find_room_beside_each_other(
    nodes: Any, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    import ray

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    mapped = recover_dataset(ray.data.read_parquet(str(tmp_path / "rows.parquet")), Recoverer("lexical"))
    with within(120):  # a hang guard: without room for both, neither would ever end
        assert by_id(mapped.take_all()) == list(Recoverer("lexical").recover_many(rows))


@pytest.mark.slow
def test_rows_of_rays_need_no_id(nodes: Any, rows: list[dict[str, Any]]) -> None:
    import ray

    nameless = [{name: value for name, value in row.items() if name != "id"} for row in rows[1:4]]
    mapped = recover_dataset(ray.data.from_items(nameless), Recoverer("lexical")).take_all()
    assert [row["error"] for row in mapped] == [None] * 3


@pytest.mark.slow
def test_columns_of_an_earlier_run_are_replaced(nodes: Any, rows: list[dict[str, Any]]) -> None:
    import ray

    earlier = [row | {"chains": "earlier", "error": "earlier"} for row in rows[1:4]]
    mapped = recover_dataset(ray.data.from_items(earlier), Recoverer("lexical")).take_all()
    assert by_id(mapped) == list(Recoverer("lexical").recover_many(rows[1:4]))
