"""An index on a Ray cluster: the lines are those of one machine, and a node that does not see it is named."""

import json
import pickle
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rechain.errors import InputError, RechainError
from rechain.formats.datasets.questions import read_chunks
from rechain.index import Index, build_index
from rechain.recoverer import RecovererConfig
from rechain.run import PartFormat
from rechain.run.parts import PartsFolder
from rechain.run.ray import Cluster, recover_parts
from rechain.run.work import Tally, Work, recover_chunks
from rechain.schema import Question

SMALL = Cluster(batch_size=5, part_size=10)

Towns = Callable[..., list[Question]]


def write_passages(questions: Sequence[Question], file: Path) -> None:
    """Write the passages of all questions as one collection."""
    with file.open("w") as lines:
        for question in questions:
            for passage in question.passages:
                record = {"id": f"{question.id}/{passage.id}", "title": passage.title, "text": passage.text}
                lines.write(json.dumps(record) + "\n")


@pytest.fixture(scope="module")
def collection(towns: Towns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log of 38 questions without passages, and an index of all their passages."""
    folder = tmp_path_factory.mktemp("collection")
    questions = towns(37)
    write_passages(questions, folder / "passages.jsonl")
    records = [{"id": one.id, "question": one.question, "answer": one.answer} for one in questions]
    records.insert(7, {"id": "nowhere", "question": "Of which town was Xyzzy a native?", "answer": "Plugh"})
    (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    build_index([folder / "passages.jsonl"], folder / "index")
    return folder


def work_on(index: Index) -> Work:
    return Work(RecovererConfig("lexical", corpus=index))


def recover(log: Path, out: Path, index: Index, **options: bool) -> Tally:
    tally = Tally()
    for done in recover_parts(work_on(index), str(log), PartsFolder(str(out), PartFormat.jsonl), SMALL, **options):
        tally.add(done.tally)
    return tally


def local(log: Path, index: Path, workers: int = 0) -> bytes:
    chunks = read_chunks(log, 5, needs_passages=False)
    return b"".join(done.lines for done in recover_chunks(work_on(Index(index)), chunks, 5, workers))


def joined(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("0*")))


# ---- the same index in another process


def test_another_process_opens_the_same_collection_or_says_that_it_is_another(towns: Towns, tmp_path: Path) -> None:
    write_passages(towns(3), tmp_path / "passages.jsonl")
    build_index([tmp_path / "passages.jsonl"], tmp_path / "index")
    sent = pickle.dumps(Index(tmp_path / "index"))
    assert pickle.loads(sent).stamp == Index(tmp_path / "index").stamp
    write_passages(towns(4), tmp_path / "passages.jsonl")
    build_index([tmp_path / "passages.jsonl"], tmp_path / "index")
    with pytest.raises(InputError, match="was built again while it was read"):
        pickle.loads(sent)


# ---- on a cluster


@pytest.mark.slow
def test_the_lines_are_those_of_one_machine(nodes: Any, collection: Path, tmp_path: Path) -> None:
    log, folder, out = collection / "log.jsonl", collection / "index", tmp_path / "out"
    expected = local(log, folder)
    assert local(log, folder, workers=2) == expected
    tally = recover(log, out, Index(folder))
    assert joined(out) == expected
    stamp = Index(folder).stamp
    assert {json.loads(line)["collection"] for line in expected.splitlines()} == {stamp}
    assert json.loads((out / "_rechain.json").read_text())["settings"]["collection"] == stamp
    assert tally.questions == 38
    assert tally.with_chain > 30
    assert tally.problems["no_tail"] + tally.problems["too_few_passages"] >= 1


@pytest.mark.slow
def test_a_folder_is_gone_on_with_but_not_with_another_collection(
    nodes: Any, towns: Towns, collection: Path, tmp_path: Path
) -> None:
    out, folder = tmp_path / "out", tmp_path / "copy.index"
    passages = tmp_path / "passages.jsonl"
    write_passages(towns(37), passages)
    build_index([passages], folder)
    recover(collection / "log.jsonl", out, Index(folder))
    whole = joined(out)
    (out / "00000-000001.jsonl").unlink()
    assert recover(collection / "log.jsonl", out, Index(folder), resume=True).questions == 10
    assert joined(out) == whole
    (out / "00000-000001.jsonl").unlink()
    write_passages(towns(38), passages)
    build_index([passages], folder)
    with pytest.raises(RechainError, match=r"was begun with another input, model or option .*collection"):
        recover(collection / "log.jsonl", out, Index(folder), resume=True)


@pytest.mark.slow
def test_an_index_that_no_node_sees_is_told_before_anything_is_replaced(
    nodes: Any, collection: Path, tmp_path: Path
) -> None:
    folder, out = tmp_path / "index", tmp_path / "out"
    shutil.copytree(collection / "index", folder)
    index = Index(folder)
    shutil.rmtree(folder)  # as another node would see it
    with pytest.raises(RechainError, match="put the index on storage that every node sees, or") as raised:
        recover(collection / "log.jsonl", out, index)
    assert "\n" not in str(raised.value)
    assert not out.exists()
