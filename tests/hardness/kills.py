"""kill -9 at any moment, of everything that writes: the same bytes in the end, nothing lost, no process left behind.

    python tests/hardness/kills.py --seed 1
    python tests/hardness/kills.py --seed 1 --kills 20 --only recover

Killed are `rechain recover` and its workers, `rechain train`, `rechain index`, the server that takes labels, an import
of labels, and the nodes, workers and driver of a Ray cluster. Half of the kills come at any moment, half just after a
file changed.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any
from urllib.request import Request, urlopen

import examples
import material
from sidecars import check_sidecar

RECHAIN = [sys.executable, "-c", "from rechain.cli.main import main; main()"]
ENVIRONMENT = {"OMP_NUM_THREADS": "1"}
HANG = 180
"""seconds after which a command that should end is said to hang"""
Process = subprocess.Popen[bytes]
Check = Callable[[Path, bool], None]
"""Looks at what a killed run has left, or at what one that came to its end has written."""


@dataclass
class Story:
    """What happened to a command that was killed."""

    draw: Random
    kills: int
    folder: Path
    done: int = 0
    """kills so far"""
    middle: int = 0
    """kills in the middle of the work"""
    finished: int = 0
    """runs that came to their end"""
    failures: list[str] = field(default_factory=list)

    def expect(self, is_true: bool, what: str) -> None:
        """Note a failure unless something is true."""
        if not is_true:
            self.failures.append(f"after {self.done} kills: {what}")

    def kill(self, process: Process, is_middle: bool) -> None:
        """Kill a process, and see that all that it has started ends too."""
        process.kill()
        process.wait()
        self.done += 1
        self.middle += is_middle
        self.expect(are_gone(process.pid), "processes are left behind")


# ---- processes


def begin(folder: Path, *arguments: object, **environment: str) -> Process:
    """Start a command in a session of its own, by which all its processes are known."""
    with (folder / "stderr.txt").open("ab") as errors:
        return subprocess.Popen(
            [*RECHAIN, *map(str, arguments)],
            cwd=folder,
            env=os.environ | ENVIRONMENT | environment,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )


def running(session: int) -> dict[int, int]:
    """Return the processes of a session that run, each with its parent."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, _, its_session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if its_session == str(session) and state != "Z":
            found[int(stat.parent.name)] = int(parent)
    return found


def are_gone(session: int) -> bool:
    """Return whether all processes of a session end."""
    limit = time.monotonic() + HANG
    while running(session):
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True


def size_of(path: Path) -> int:
    """Return the size of a file, or of all files of a folder."""
    try:
        if path.is_dir():
            return sum(size_of(inside) for inside in path.iterdir())
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def wait_for_moment(draw: Random, process: Process, watched: Path, usual: float, most_changes: int = 7) -> None:
    """Wait for a random moment: any of the usual length of a run, or just after a file has changed some times."""
    end = time.monotonic() + draw.uniform(0, usual)
    changes = draw.randint(1, most_changes) if draw.random() < 0.5 else 0
    before = size_of(watched)
    while process.poll() is None and (changes or time.monotonic() < end):
        time.sleep(0.0005 if changes else 0.005)
        if changes and (now := size_of(watched)) != before:
            before, changes = now, changes - 1
            end = 0.0
    time.sleep(draw.choice((0, 0, draw.uniform(0, 0.01))))


def has_content(out: Path) -> bool:
    """Return whether a command has begun to write."""
    return size_of(out) > 0


def until_killed(
    story: Story,
    start: Callable[[Path], Process],
    names: Iterator[Path],
    usual: float,
    check: Check,
    most_changes: int = 7,
    is_begun: Callable[[Path], bool] = has_content,
) -> None:
    """Kill a command, start it again, and again; once a run has come to its end, kill the next one."""
    out = next(names)
    while story.done < story.kills:
        process = start(out)
        wait_for_moment(story.draw, process, out, usual, most_changes)
        if process.poll() is None:
            story.kill(process, is_begun(out))
            check(out, False)
            if story.failures:
                return
        elif not _has_finished(story, process, out, check):
            return
        else:
            out = next(names)
    process = start(out)
    process.wait(HANG)
    _has_finished(story, process, out, check)


def _has_finished(story: Story, process: Process, out: Path, check: Check) -> bool:
    errors = (story.folder / "stderr.txt").read_text()
    story.expect(process.returncode == 0, f"exit code {process.returncode}: {errors[-1500:]}")
    story.expect("Traceback" not in errors, f"a traceback: {errors[-1500:]}")
    story.finished += 1
    check(out, process.returncode == 0)
    return not story.failures


# ---- recover


def write_questions(path: Path, number: int) -> None:
    """Write questions."""
    draw = Random(0)
    path.write_text("".join(json.dumps(examples.plain(draw, n)) + "\n" for n in range(number)))


def recover(story: Story, model: str = "lexical", questions: int = 4000) -> None:
    """Kill the command."""
    expected, usual, start = _undisturbed(story, model, questions)

    def check(out: Path, is_finished: bool) -> None:
        found = out.read_bytes() if out.exists() else b""
        story.expect(expected.startswith(found), f"{out.name} is not the beginning of what an undisturbed run writes")
        story.expect(found == expected or not is_finished, f"{out.name} is not all that an undisturbed run writes")
        story.failures += check_sidecar(out, is_finished)

    until_killed(story, start, (story.folder / f"chains{n}.jsonl" for n in count()), usual, check)


def _undisturbed(story: Story, model: str, questions: int) -> tuple[bytes, float, Callable[[Path], Process]]:
    """Return what a run writes that nobody disturbs, how long it takes, and how one is started."""
    write_questions(story.folder / "questions.jsonl", questions)

    def start(out: Path) -> Process:
        size = 32 if model == "lexical" else 4  # so that there are moments between two chunks
        options = ["--model", model, "--workers", "2", "--batch-size", size, "--out", out.name, "--resume"]
        return begin(story.folder, "recover", "questions.jsonl", *options)

    whole, began = story.folder / "whole.jsonl", time.monotonic()
    assert start(whole).wait(HANG) == 0, (story.folder / "stderr.txt").read_text()
    return whole.read_bytes(), time.monotonic() - began, start


def default_model(story: Story) -> None:
    """Kill the command while the default model works."""
    recover(story, "default", 60)


def workers(story: Story) -> None:
    """Kill workers of the command, which goes on by itself, or says that it gives up, and goes on with --resume."""
    expected, usual, start = _undisturbed(story, "lexical", 4000)
    for number in count():
        out = story.folder / f"chains{number}.jsonl"
        process = start(out)
        while process.poll() is None and story.done < story.kills:
            wait_for_moment(story.draw, process, out, usual / 4)
            parents = running(process.pid)
            victims = [one for one, parent in parents.items() if parents.get(parent) == process.pid]
            if victims:
                with suppress(ProcessLookupError):
                    os.kill(story.draw.choice(victims), signal.SIGKILL)
                story.done, story.middle = story.done + 1, story.middle + (size_of(out) > 0)
        code = process.wait(HANG)
        story.expect(are_gone(process.pid), "processes are left behind")
        if code == 0:
            story.finished += 1
            story.expect(out.read_bytes() == expected, f"{out.name} has other bytes than an undisturbed run")
            story.failures += check_sidecar(out, is_finished=True)
        else:
            story.expect(code == 2, f"exit code {code}: {(story.folder / 'stderr.txt').read_text()[-1500:]}")
        if story.done >= story.kills or story.failures:
            return


# ---- train


LONGER = {
    "game": ("hidden=3", "batch_size=2", "pretrain_epochs=8", "game_epochs=8", "sharpness=0"),
    "reader": ("max_tokens=64", "batch_size=2", "epochs=8", "patience=99", "held_out=0.25", "checkpoint_steps=2"),
}


def train(story: Story, kind: str) -> None:
    """Kill the training of a model."""
    write_questions(story.folder / "questions.jsonl", 12)
    settings = material.settings(LONGER[kind])
    if kind == "reader":
        material.make_encoder(story.folder / "encoder")
        settings += ["--model", "reader", "--encoder", "encoder"]

    def start(out: Path) -> Process:
        resume = ["--resume"] if (out / "run.json").exists() else []
        options = ["--out", out.name, "--device", "cpu", *settings, *resume]
        return begin(story.folder, "train", "questions.jsonl", *options)

    whole, began = story.folder / "whole", time.monotonic()
    assert start(whole).wait(HANG) == 0, (story.folder / "stderr.txt").read_text()
    usual, expected = time.monotonic() - began, (whole / "model.safetensors").read_bytes()

    def check(out: Path, is_finished: bool) -> None:
        weights = out / "model.safetensors"
        if weights.exists() or is_finished:
            story.expect(weights.read_bytes() == expected, "other weights than those of an undisturbed run")

    until_killed(story, start, (story.folder / f"run{n}" for n in count()), usual, check)


# ---- index

_CHANGES_OF_AN_INDEX = 80
"""changes of size that are seen while an index is built: the last come shortly before the new one counts"""


def write_documents(folder: Path, rows: int, documents: int, version: int) -> Path:
    """Write a collection and documents; in the second version some are new, changed and gone."""
    draw = Random(0)
    (folder / "docs").mkdir(parents=True)
    passages = [passage for n in range(rows // 2) for passage in examples.plain(draw, n)["passages"]][:rows]
    lines = [{**one, "id": f"row{n}", "text": f"{one['text']} {n}"} for n, one in enumerate(passages)]
    if version:
        lines = [{**one, "text": f"{one['text']} changed"} if n % 50 == 0 else one for n, one in enumerate(lines)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    for n in range(10 * version, documents + 10 * version):
        text = "changed" if version and n % 7 == 0 else "as it was"
        (folder / f"docs/{n}.md").write_text(f"# Document {n}\n\nIt is {text}. {passages[n]['text']}")
        os.utime(folder / f"docs/{n}.md", (version if text == "changed" else 0,) * 2)
    return folder


def content_of_index(folder: Path) -> str:
    """Return the stamp of what an index holds, after all its passages were read and found to be those of its stamp."""
    from rechain.index import Index
    from rechain.index.engine import read_passage, read_records
    from rechain.index.index import ENGINE
    from rechain.text.collection import passage_digest, stamp_of

    index = Index(folder)
    passages = [read_passage(record) for record in read_records(folder / index.info.generation / ENGINE)]
    assert len(passages) == len(index) == len(set(index)), "passages are missing"
    assert {passage.id for passage in passages} == set(index), "the manifest has other passages than the engine"
    assert stamp_of(map(passage_digest, passages)) == index.stamp, "the stamp is that of another content"
    return index.stamp


def index(story: Story, is_update: bool, rows: int = 8000, documents: int = 200) -> None:
    """Kill the command that builds an index, or brings it up to date: the index is the old one or the new one."""
    versions = [write_documents(story.folder / f"version{n}", rows, documents, n) for n in (0, 1)]
    target = [0]

    def start(out: Path) -> Process:
        if is_update and (out / "index.json").exists():
            target[0] = 1 - stamps.index(content_of_index(out)) if len(stamps) == 2 else 1
        options = ["--out", out.name, "--workers", 2]
        return begin(story.folder, "index", versions[target[0]], *options)

    stamps: list[str] = []
    whole, usual = story.folder / "whole", 0.0
    for version in (0, 1)[: 1 + is_update]:
        target[0], began = version, time.monotonic()
        assert start(whole).wait(HANG) == 0, (story.folder / "stderr.txt").read_text()
        usual = time.monotonic() - began
        stamps.append(content_of_index(whole))

    def check(out: Path, is_finished: bool) -> None:
        if not (out / "index.json").exists():
            story.expect(not is_finished and not is_update, "there is no index")
            return
        try:
            stamp = content_of_index(out)
        except Exception as error:
            story.expect(False, f"the index is not whole: {type(error).__name__}: {error}")
            return
        story.expect(stamp in stamps, f"the index has the stamp {stamp}, which is neither the old nor the new one")
        if is_finished:
            story.expect(stamp == stamps[target[0]], "the index is not the new one")
            story.expect(len(list(out.iterdir())) == 3, f"files are left in the folder: {sorted(out.iterdir())}")

    def is_begun(out: Path) -> bool:
        return len(list(out.glob("generation-*"))) > is_update

    names = (whole for _ in count()) if is_update else (story.folder / f"index{n}" for n in count())
    until_killed(story, start, names, usual, check, _CHANGES_OF_AN_INDEX, is_begun)


# ---- labels


def label_server(story: Story) -> None:
    """Kill the server while two annotators label: what it has acknowledged is there."""
    from rechain.formats.datasets import read_questions
    from rechain.labels.store import LabelStore

    write_questions(story.folder / "questions.jsonl", 1000)
    acknowledged = set[str]()
    questions = read_questions(story.folder / "questions.jsonl")
    picked = [{"question": one.id, "evidence": [{"passages": [one.passages[0].id]}]} for one in questions]
    waiting = list(enumerate(picked * 20))
    while story.done < story.kills:
        process = begin(
            story.folder, "serve", "questions.jsonl", "--model", "lexical", "--labels", "labels.sqlite", "--port", "0"
        )
        begun = Event()
        address = _address(process, story.folder)
        posting = [Thread(target=_post, args=(address, name, waiting, acknowledged, begun)) for name in ("Ada", "Ben")]
        for thread in posting:
            thread.start()
        story.expect(begun.wait(HANG), "the server takes no label")
        time.sleep(story.draw.uniform(0, 0.3))
        story.kill(process, is_middle=True)
        for thread in posting:
            thread.join(HANG)
        with LabelStore(story.folder / "labels.sqlite") as store:
            held = {event.label.note for event in store.history()}
        story.expect(acknowledged <= held, f"{len(acknowledged - held)} labels are lost")
        story.expect(len(held - acknowledged) <= 2 * story.done, "labels are there that nobody gave")
        if story.failures:
            return
    story.finished = len(acknowledged)


def _address(process: Process, folder: Path) -> str:
    """Wait until the server listens, and return where."""
    limit = time.monotonic() + HANG
    while time.monotonic() < limit and process.poll() is None:
        if found := re.findall(r"Serving at (http://[^/]+)/", (folder / "stderr.txt").read_text()):
            (folder / "stderr.txt").unlink()
            return str(found[-1])
        time.sleep(0.01)
    raise AssertionError(f"the server does not start: {(folder / 'stderr.txt').read_text()}")


def _post(address: str, annotator: str, waiting: list[Any], acknowledged: set[str], begun: Event) -> None:
    """Give one label after another until nobody answers."""
    while True:
        number, fields = waiting.pop()
        rows = [{"annotator": annotator, **fields, "value": "supported", "note": str(number)}]
        headers = {"Content-Type": "application/json"}
        try:
            with urlopen(Request(f"{address}/labels", json.dumps(rows).encode(), headers), timeout=HANG) as answer:
                answer.read()
        except OSError:
            return
        acknowledged.add(str(number))
        begun.set()


def label_import(story: Story) -> None:
    """Kill an import of labels: all of them are there, or none."""
    from rechain.labels.store import LabelStore

    write_questions(story.folder / "questions.jsonl", 500)
    rows = [examples.pair(Random(n), {"id": f"q{n}", "answer": "b"}) for n in range(500)]
    (story.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def start(out: Path) -> Process:
        return begin(
            story.folder, "labels", "import", out.name, "rows.jsonl", "questions.jsonl", "--annotator", out.stem
        )

    began = time.monotonic()
    assert start(story.folder / "whole.sqlite").wait(HANG) == 0, (story.folder / "stderr.txt").read_text()
    usual = time.monotonic() - began

    def check(out: Path, is_finished: bool) -> None:
        with LabelStore(out) as store:
            held = len(list(store.all()))
        story.expect(held in ((500,) if is_finished else (0, 500)), f"{held} labels of 500 are there")

    until_killed(story, start, (story.folder / f"labels{n}.sqlite" for n in count()), usual, check)


# ---- Ray


def ray_cluster(story: Story) -> None:
    """Kill a node, a worker or the driver of a Ray cluster: the parts hold what one machine writes."""
    from ray.cluster_utils import Cluster

    expected, _, _ = _undisturbed(story, "lexical", 1500)
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        nodes.add_node(num_cpus=1)
        for number in count():
            out = story.folder / f"parts{number}"
            while not _on_ray(story, nodes, out):
                pass
            found = b"".join(path.read_bytes() for path in sorted(out.glob("0*")))
            story.finished += 1
            story.expect(found == expected, f"{out.name} holds other bytes than an undisturbed run writes")
            if story.failures or story.done >= story.kills:
                return
    finally:
        nodes.shutdown()


def _on_ray(story: Story, nodes: Any, out: Path) -> bool:
    """Start, or go on with, a run, and kill a part of it; return whether it has come to its end."""
    victim = nodes.add_node(num_cpus=1)
    nodes.wait_for_nodes()
    options = ["--model", "lexical", "--engine", "ray", "--part-size", "32", "--out", out.name]
    options += ["--resume"] if out.exists() else []
    process = begin(story.folder, "recover", "questions.jsonl", *options, RAY_ADDRESS=nodes.address)
    wait_for_moment(story.draw, process, out, 15)
    if process.poll() is None and story.done < story.kills:
        way = story.draw.choice(("node", "worker", "driver"))
        is_middle = size_of(out) > 0
        if way == "driver":
            story.kill(process, is_middle)
            nodes.remove_node(victim)
            return False
        if way == "worker" and (actors := _actors()):
            with suppress(ProcessLookupError):
                os.kill(story.draw.choice(actors), signal.SIGKILL)
        else:
            nodes.remove_node(victim, allow_graceful=False)
        story.done, story.middle = story.done + 1, story.middle + is_middle
    code = process.wait(HANG)
    if victim in nodes.list_all_nodes():
        nodes.remove_node(victim)
    story.expect(code == 0, f"exit code {code}: {(story.folder / 'stderr.txt').read_text()[-1500:]}")
    return code == 0 or bool(story.failures)


def _actors() -> list[int]:
    """Return the processes of Ray's workers that work for the command."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if line.read_bytes().startswith(b"ray::") and b"IDLE" not in line.read_bytes():
                found.append(int(line.parent.name))
        except OSError:
            continue
    return found


# ---- the whole


WAYS: dict[str, tuple[int, Callable[[Story], None]]] = {
    "recover": (60, recover),
    "recover, its workers": (20, workers),
    "recover, default model": (10, default_model),
    "train, game": (25, lambda story: train(story, "game")),
    "train, reader": (20, lambda story: train(story, "reader")),
    "index, built": (25, lambda story: index(story, is_update=False)),
    "index, brought up to date": (25, lambda story: index(story, is_update=True)),
    "labels, server": (30, label_server),
    "labels, import": (15, label_import),
    "Ray": (20, ray_cluster),
}
"""what is killed, and how often of 250 times"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Kill everything, print a table, and exit with 1 if something failed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--kills", "--count", type=int, default=250, help="in all (250)")
    options.add_argument("--only", help="what is killed, by the beginning of its name")
    chosen = options.parse_args(arguments)
    ways = {name: way for name, way in WAYS.items() if name.startswith(chosen.only or "")}
    total = sum(share for share, _ in ways.values())
    is_failed, kills = False, 0
    print("| what | kills | in the middle | finished | failures | seconds |\n|---|---|---|---|---|---|", flush=True)
    for name, (share, way) in ways.items():
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            story = Story(random.Random(f"{chosen.seed}/{name}"), round(share * chosen.kills / total), Path(folder))
            way(story)
        seconds = time.monotonic() - start
        print(f"| {name} | {story.done} | {story.middle} | {story.finished} | {len(story.failures)} | {seconds:.0f} |")
        for failure in story.failures:
            print(f"seed {chosen.seed}, {name}, {failure}", flush=True)
        kills, is_failed = kills + story.done, is_failed or bool(story.failures)
    print(f"\nkills, seed {chosen.seed}: {kills} kills, {'some' if is_failed else 'no'} failures.")
    raise SystemExit(is_failed)


if __name__ == "__main__":
    main()
