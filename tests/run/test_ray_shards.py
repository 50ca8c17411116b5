"""An index on a Ray cluster: the lines are those of one machine, wherever its shards are, whatever becomes of them."""

import json
import pickle
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rechain.errors import InputError, RechainError
from rechain.formats.datasets.questions import read_chunks
from rechain.index import BuildSettings, Index, build_index
from rechain.index.index import open_shard
from rechain.index.shard import Ask, Condition, Hit, Shard
from rechain.recoverer import RecovererConfig
from rechain.run import PartFormat, ray_shards
from rechain.run.parts import PartsFolder
from rechain.run.ray import Cluster, recover_parts
from rechain.run.ray_shards import RemoteShards, ShardActor, _Node, deal, with_shards
from rechain.run.work import Tally, Work, recover_chunks
from rechain.schema import Question

SMALL = Cluster(batch_size=5, part_size=10)
SHARDS = 4

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
    """A folder with a log of 38 questions without passages, and indexes of all their passages with 1 and 4 shards."""
    folder = tmp_path_factory.mktemp("collection")
    questions = towns(37)
    write_passages(questions, folder / "passages.jsonl")
    records = [{"id": one.id, "question": one.question, "answer": one.answer} for one in questions]
    records.insert(7, {"id": "nowhere", "question": "Of which town was Xyzzy a native?", "answer": "Plugh"})
    (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    for shards in (1, SHARDS):
        build_index([folder / "passages.jsonl"], folder / f"{shards}.index", BuildSettings(shards=shards, workers=0))
    return folder


def work_on(index: Index) -> Work:
    return Work(RecovererConfig("lexical", corpus=index))


def not_here(folder: Path) -> Index:
    """Return an index of which only what it says of itself is read, as the command does for a cluster."""
    return Index(folder, shards=[])


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


# ---- where shards are read


def node(name: str, *shards: int) -> _Node:
    return _Node(name, f"address of {name}", frozenset(shards))


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([node("a", 0, 1, 2, 3)], "aaaa"),
        ([node("a", 0, 1, 2, 3), node("b", 0, 1, 2, 3)], "abab"),
        ([node("a", 0, 1, 2, 3), node("b", 0, 1)], "bbaa"),
        ([node("a", 1, 3), node("b"), node("c", 0, 2)], "caca"),
        ([node(name, 0, 1, 2, 3) for name in "abcdef"], "abcd"),
    ],
)
def test_a_shard_is_read_where_its_files_are_and_none_reads_more_than_it_must(
    collection: Path, nodes: list[_Node], expected: str
) -> None:
    readers = deal(Index(collection / f"{SHARDS}.index"), nodes)
    assert "".join(readers[number].id for number in range(SHARDS)) == expected


def test_a_shard_that_no_node_sees_is_named(collection: Path) -> None:
    folder = collection / f"{SHARDS}.index"
    with pytest.raises(RechainError) as raised:
        deal(Index(folder), [node("a", 0, 1), node("b", 3)])
    assert str(raised.value).startswith(f"no node of the cluster sees {folder / 'generation-1' / 'shard-2'} as it was")


def test_an_actor_needs_no_files_but_those_of_its_shard(collection: Path, tmp_path: Path) -> None:
    index = Index(collection / f"{SHARDS}.index")
    shutil.copytree(index.folder / "generation-1" / "shard-2", tmp_path / "generation-1" / "shard-2")
    asks = [Ask(("maker", "native"), limit=50)]
    copied, own = (ShardActor(folder, index.info, 2).answer("search", asks) for folder in (tmp_path, index.folder))
    assert copied == own
    with pytest.raises(InputError, match=r"the node .* cannot read shard 1 of the index: .* is missing"):
        ShardActor(tmp_path, index.info, 1).answer("count", [Condition("phrase", ("native",))])


# ---- the same index in another process


def test_another_process_opens_the_same_collection_or_says_that_it_is_another(towns: Towns, tmp_path: Path) -> None:
    write_passages(towns(3), tmp_path / "passages.jsonl")
    settings = BuildSettings(workers=0)
    build_index([tmp_path / "passages.jsonl"], tmp_path / "index", settings)
    sent = pickle.dumps(Index(tmp_path / "index"))
    assert pickle.loads(sent).stamp == Index(tmp_path / "index").stamp
    write_passages(towns(4), tmp_path / "passages.jsonl")
    build_index([tmp_path / "passages.jsonl"], tmp_path / "index", settings)
    with pytest.raises(InputError, match="was built again while it was read"):
        pickle.loads(sent)


class Noting:
    """A shard that notes how often it is asked to count."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self.calls: list[int] = []

    def search(self, asks: Sequence[Ask]) -> list[list[Hit]]:
        return self._shard.search(asks)

    def count(self, conditions: Sequence[Condition]) -> list[int]:
        self.calls.append(len(conditions))
        return self._shard.count(conditions)


def test_what_is_counted_ahead_is_not_asked_for_again(collection: Path) -> None:
    here = Index(collection / "1.index")
    shard = Noting(open_shard(here.folder, here.info, 0))
    index = Index(here.folder, [shard], here.info)
    words, titles = ["native", "many", "", "xyzzy", "native"], [" painter "]
    index.count_ahead(words, titles)
    index.count_ahead(words[:2], titles)
    assert [index.count_word(word) for word in words] == [37, 74, 0, 0, 37]
    assert index.count_title(" painter ") == 0
    assert shard.calls == [4]
    assert index.count_name(" many friends ") == here.count_name(" many friends ") == 37
    assert shard.calls == [4, 1]


# ---- on a cluster


@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, SHARDS])
def test_the_lines_are_those_of_one_machine(nodes: Any, collection: Path, tmp_path: Path, shards: int) -> None:
    log, folder, out = collection / "log.jsonl", collection / f"{shards}.index", tmp_path / "out"
    expected = local(log, folder)
    assert local(log, folder, workers=2) == expected
    where = folder
    if shards > 1:  # neither the manifest nor anything else but index.json has to be beside the shards
        where = shutil.copytree(folder, tmp_path / "index", ignore=shutil.ignore_patterns("manifest.sqlite"))
    tally = recover(log, out, not_here(where))
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
    build_index([passages], folder, BuildSettings(shards=2, workers=0))
    recover(collection / "log.jsonl", out, not_here(folder))
    whole = joined(out)
    (out / "00000-000001.jsonl").unlink()
    assert recover(collection / "log.jsonl", out, not_here(folder), resume=True).questions == 10
    assert joined(out) == whole
    (out / "00000-000001.jsonl").unlink()
    write_passages(towns(38), passages)
    build_index([passages], folder, BuildSettings(shards=2, workers=0))
    with pytest.raises(RechainError, match=r"was begun with another input, model or option .*collection"):
        recover(collection / "log.jsonl", out, not_here(folder), resume=True)


@pytest.mark.slow
def test_results_do_not_depend_on_where_shards_are(nodes: Any, collection: Path, tmp_path: Path) -> None:
    """Also their order does not matter, as that of actors that hold several shards might."""
    import ray

    index = Index(collection / f"{SHARDS}.index")
    make = ray.remote(ShardActor).options(num_cpus=0)
    actors = [make.remote(index.folder, index.info, number) for number in range(SHARDS)]
    asks = [Ask(("maker", "native", "made"), limit=limit) for limit in (3, 20, 200)]
    words = ("native", "painter", "xyzzy")
    for order in (actors, actors[::-1]):
        elsewhere = Index(tmp_path / "nothing", [RemoteShards(order)], index.info)
        again = pickle.loads(ray.cloudpickle.dumps(elsewhere))
        assert again.search(asks) == elsewhere.search(asks) == index.search(asks)
        assert [again.count_word(word) for word in words] == [index.count_word(word) for word in words]
        assert again["town-3/maker"] == index["town-3/maker"]
    RemoteShards(actors).stop()


@pytest.mark.slow
def test_a_shard_actor_that_is_killed_loses_no_question(
    nodes: Any, collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four times, each while workers ask: one actor twice."""
    import ray

    actors: list[Any] = []

    class Noted(RemoteShards):
        def __init__(self, started: Sequence[Any]) -> None:
            super().__init__(started)
            actors.extend(started)

        def __reduce__(self) -> Any:
            return RemoteShards, (self._actors,)

    monkeypatch.setattr(ray_shards, "RemoteShards", Noted)
    log, folder, out = collection / "log.jsonl", collection / f"{SHARDS}.index", tmp_path / "out"
    parts, tally = PartsFolder(str(out), PartFormat.jsonl), Tally()
    victims = [0, 1, 3, 1]
    for done in recover_parts(work_on(not_here(folder)), str(log), parts, Cluster(1, 1)):
        tally.add(done.tally)
        if victims and tally.questions % 5 == 0:
            ray.kill(actors[victims.pop()], no_restart=False)
    assert not victims
    assert tally.questions == 38
    assert joined(out) == local(log, folder)


@pytest.mark.slow
def test_shards_of_a_node_that_is_lost_are_read_by_others(nodes: Any, collection: Path, tmp_path: Path) -> None:
    import ray

    log, folder, out = collection / "log.jsonl", collection / f"{SHARDS}.index", tmp_path / "out"
    victim = nodes.add_node(num_cpus=1)
    nodes.wait_for_nodes()
    tally, parts = Tally(), PartsFolder(str(out), PartFormat.jsonl)
    for done in recover_parts(work_on(not_here(folder)), str(log), parts, Cluster(1, 1)):
        tally.add(done.tally)
        if tally.questions == 5:
            nodes.remove_node(victim, allow_graceful=False)
    assert sum(one["Alive"] for one in ray.nodes()) == 2
    assert tally.questions == 38
    assert joined(out) == local(log, folder)


@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, SHARDS])
def test_an_index_that_no_node_sees_is_told_before_anything_is_replaced(
    nodes: Any, collection: Path, tmp_path: Path, shards: int
) -> None:
    folder, out = tmp_path / "index", tmp_path / "out"
    folder.mkdir()
    shutil.copy(collection / f"{shards}.index" / "index.json", folder / "index.json")
    with pytest.raises(RechainError, match="put the index on storage that every node sees, or") as raised:
        recover(collection / "log.jsonl", out, not_here(folder))
    assert "\n" not in str(raised.value)
    assert not out.exists()


@pytest.mark.slow
def test_the_actors_end_with_the_work(nodes: Any, collection: Path) -> None:
    import ray

    with with_shards(ray, work_on(not_here(collection / f"{SHARDS}.index"))) as work:
        index = work.config.corpus
        assert index.count_word("native") > 0
    with pytest.raises(RechainError, match="a shard of the index is lost"):
        index.search([Ask(("native",))])
