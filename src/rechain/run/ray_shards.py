"""An index on a Ray cluster: every shard is read by one actor, on a node that has its files, and all workers ask it.

So an index may be larger than the memory of a node, and a node needs only the files of the shards that it serves. An
index of one shard is opened by every worker itself, which is quicker if the node has enough memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from socket import gethostname
from typing import Any, NamedTuple

from rechain.errors import InputError, RechainError, ResumableError
from rechain.index.index import Index, IndexInfo, check_files, merge_hits, open_again, open_shard
from rechain.index.shard import Ask, Condition, Hit, shard_name
from rechain.index.vectors import Near, merge_nearest
from rechain.run.work import Work
from rechain.system.tensors import Array

_CALLS = 16
"""calls that an actor answers at the same time: the engine lets other threads run while it searches"""
_RESTARTS = 10
"""how often an actor that died is started again: one that always runs out of memory would never end"""


class _Node(NamedTuple):
    """A node of the cluster."""

    id: str
    address: str
    shards: frozenset[int]
    """those whose files it sees"""


class ShardActor:
    """Reads a shard, and answers what workers ask of it."""

    def __init__(self, folder: Path, info: IndexInfo, number: int) -> None:
        """Open the shard; if that fails, each call raises the reason: Ray would only say that the actor died."""
        self._problem: InputError | None = None
        try:
            self._shard = open_shard(folder, info, number)
        except InputError as error:
            self._problem = InputError(f"the node {gethostname()} cannot read shard {number} of the index: {error}")

    def answer(self, method: str, *arguments: Any) -> Any:
        """Return what a method of the shard returns."""
        if self._problem:
            raise self._problem
        return getattr(self._shard, method)(*arguments)


class RemoteShards:
    """All shards of an index, each read by an actor; they answer as one. It can be pickled."""

    def __init__(self, actors: Sequence[Any]) -> None:
        """Take the actors, in the order of the shards."""
        self._actors = actors

    def search(self, asks: Sequence[Ask]) -> list[list[Hit]]:
        """Return the best passages for each of some asks; all shards search at the same time."""
        return merge_hits(asks, self._answers("search", asks))

    def count(self, conditions: Sequence[Condition]) -> list[int]:
        """Return for each condition how many passages have its value."""
        return [sum(counts) for counts in zip(*self._answers("count", conditions), strict=True)]

    def nearest(self, queries: Array, limit: int) -> list[list[Near]]:
        """Return the passages that are nearest each of some vectors; all shards search at the same time."""
        return merge_nearest(self._answers("nearest", queries, limit), limit)

    def _answers(self, method: str, what: Any, *others: int) -> list[Any]:
        """Return what each shard answers."""
        import ray

        argument = ray.put(what)  # once for all shards: the names of a round of questions are many
        calls = [actor.answer.remote(method, argument, *others) for actor in self._actors]
        try:
            return list(ray.get(calls))
        except ray.exceptions.RayTaskError as error:
            raise (error.cause if isinstance(error.cause, RechainError) else error) from None
        except ray.exceptions.RayActorError as error:
            raise ResumableError(
                f"a shard of the index is lost, since its actor died more than {_RESTARTS} times; go on with --resume."
            ) from error

    def stop(self) -> None:
        """End the actors."""
        import ray

        for actor in self._actors:
            ray.kill(actor)


@contextmanager
def with_shards(ray: Any, work: Work) -> Iterator[Work]:
    """Return work whose index, if it has one, is read where the cluster has its files, until the work is done."""
    index, shards = work.config.corpus, None
    if not isinstance(index, Index):
        yield work
        return
    nodes = _nodes(ray, index)
    if index.info.shards == 1:
        for node in nodes:
            if not node.shards:
                raise RechainError(
                    f"the node {node.address} does not see {index.folder} as it was built; put the index on storage "
                    "that every node sees, or build it with --shards 2 or more, of which each node needs its own alone."
                )
        index = open_again(index.folder, index.stamp)
    else:
        shards = _start(ray, index, deal(index, nodes))
        index = Index(index.folder, [shards], index.info)
    try:
        yield replace(work, config=replace(work.config, corpus=index))
    finally:
        if shards:
            shards.stop()


def _nodes(ray: Any, index: Index) -> list[_Node]:
    """Return the nodes on which work is done, and which shards each of them sees."""
    alive = [node for node in ray.nodes() if node["Alive"]]
    working = [node for node in alive if node["Resources"].get("CPU")] or alive
    look = ray.remote(num_cpus=0)(_visible)
    calls = [
        look.options(scheduling_strategy=_on(ray, node["NodeID"], soft=False)).remote(index.folder, index.info)
        for node in working
    ]
    nodes = []
    for node, call in zip(working, calls, strict=True):
        try:
            shards = frozenset(ray.get(call))
        except ray.exceptions.RayError:  # the node is gone meanwhile
            shards = frozenset()
        nodes.append(_Node(node["NodeID"], node["NodeManagerAddress"], shards))
    return nodes


def _visible(folder: Path, info: IndexInfo) -> list[int]:
    """Return the shards of an index whose files are here, whole."""
    visible = []
    for number in range(info.shards):
        with suppress(InputError):
            check_files(folder, info, f"{shard_name(number)}/")
            visible.append(number)
    return visible


def deal(index: Index, nodes: Sequence[_Node]) -> Mapping[int, _Node]:
    """Return on which node each shard is read: one that sees it, and reads as few others as possible."""
    readers: dict[int, _Node] = {}
    load = dict.fromkeys(nodes, 0)
    choices = {number: [node for node in nodes if number in node.shards] for number in range(index.info.shards)}
    for number, seeing in sorted(choices.items(), key=lambda choice: (len(choice[1]), choice[0])):
        if not seeing:
            raise RechainError(
                f"no node of the cluster sees {index.folder / index.info.generation / shard_name(number)} as it was "
                "built; put the index on storage that every node sees, or copy this folder to a node, to the same path."
            )
        readers[number] = min(seeing, key=load.__getitem__)
        load[readers[number]] += 1
    return readers


def _start(ray: Any, index: Index, readers: Mapping[int, _Node]) -> RemoteShards:
    """Start the actors. They take no core of their own: while they search, the workers that ask them wait."""
    options = {"num_cpus": 0, "max_restarts": _RESTARTS, "max_task_retries": -1, "max_concurrency": _CALLS}
    make, actors = ray.remote(**options)(ShardActor), []
    for number in range(index.info.shards):
        place = _on(ray, readers[number].id, soft=True)  # soft: another node that sees the files may replace a lost one
        actors.append(make.options(scheduling_strategy=place).remote(index.folder, index.info, number))
    return RemoteShards(actors)


def _on(ray: Any, node: str, *, soft: bool) -> Any:
    return ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=soft)
