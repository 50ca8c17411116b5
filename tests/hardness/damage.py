"""Files that rechain wrote or reads, damaged in every region of their bytes, then used by the command that reads them.

    python tests/hardness/damage.py --seed 1 --count 2000
    python tests/hardness/damage.py --seed 1 --case 123

What comes of it is one of these. Refused: exit code 2 and one sentence. Harmless: the result is that of the undamaged
file. Noticed: the result differs, and a line on standard error names the file. Accepted: the result differs and nobody
says so; like a traceback or a hang, that is a failure, except for files of users that carry no checksum (see UNSEALED).
"""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import campaign
import material
from campaign import Result
from commands import FAILED, GOOD, MISTAKE, Outcome, check_end, run, short

_BLOCK = 512
"""bytes that a disk loses together"""
_EDGE = 64
"""bytes at the start and at the end of a file that are regions of their own: there most formats describe themselves"""
_REGIONS = 12
"""start, end, and ten tenths"""


class Used(NamedTuple):
    """What came of using a file."""

    outcome: Outcome
    result: bytes


class Kind(NamedTuple):
    """Files of one kind: a folder of the material, the file in it that is damaged, and how it is used."""

    folder: str
    file: str
    use: Callable[[Path], Used]
    share: float = 1.0


# ---- how files are used


def _written(folder: Path, name: str) -> bytes:
    return (folder / name).read_bytes() if (folder / name).exists() else b""


def _recover(*options: str) -> Callable[[Path], Used]:
    def use(folder: Path) -> Used:
        command = ["recover", *options, "--workers", 0, "--out", "result.jsonl"]
        return Used(run(folder, command), _written(folder, "result.jsonl"))

    return use


def _resume(folder: Path) -> Used:
    command = ["recover", "questions.jsonl", "--model", "lexical", "--batch-size", 2, "--workers", 0]
    outcome = run(folder, [*command, "--out", "chains.jsonl", "--resume"])
    return Used(outcome, _written(folder, "chains.jsonl"))


def _export(chains: str) -> Callable[[Path], Used]:
    def use(folder: Path) -> Used:
        outcome = run(folder, ["export", chains, "--to", "triplets", "--questions", "questions.jsonl"])
        return Used(outcome, outcome.out)

    return use


def _train(folder: Path) -> Used:
    command = ["train", "questions.jsonl", "--out", ".", "--device", "cpu", "--resume"]
    command += material.resumed_options(json.loads((folder / "kind.json").read_text()))
    return Used(run(folder, command), _written(folder, "model.safetensors"))


def _labels(folder: Path) -> Used:
    outcomes = [
        run(folder, ["labels", *command])
        for command in (
            ["agreement", "labels.sqlite", "--json"],
            ["export", "labels.sqlite", "questions.jsonl", "--to", "pairs"],
            ["export", "labels.sqlite", "questions.jsonl", "--to", "gold"],
        )
    ]
    worst = max(outcomes, key=lambda outcome: (outcome.raised != "", outcome.code))
    return Used(worst, b"\n".join(outcome.out for outcome in outcomes))


def _resume_on_ray(folder: Path) -> Used:
    command = ["recover", "questions.jsonl", "--model", "lexical", "--engine", "ray", "--part-size", 2]
    outcome = run(folder, [*command, "--batch-size", 1, "--out", "parts", "--resume"])
    return Used(outcome, b"".join(path.read_bytes() for path in sorted((folder / "parts").glob("0*"))))


KINDS: dict[str, Kind] = {
    "gzipped questions": Kind("data", "questions.jsonl.gz", _recover("questions.jsonl.gz", "--model", "lexical")),
    "Parquet, questions of users": Kind(
        "data", "questions.parquet", _recover("questions.parquet", "--model", "lexical")
    ),
    "Parquet, exported chains": Kind("data", "chains.parquet", _export("chains.parquet")),
    "chains with a sidecar": Kind("data", "chains.jsonl", _export("chains.jsonl")),
    "sidecar, exported": Kind("data", "chains.jsonl.provenance", _export("chains.jsonl"), 0.5),
    "sidecar, resumed": Kind("data", "chains.jsonl.provenance", _resume),
    "chains, resumed": Kind("data", "chains.jsonl", _resume),
    "reader's weights": Kind("reader", "model.safetensors", _recover("questions.jsonl", "--model", ".")),
    "reader's config.json": Kind("reader", "config.json", _recover("questions.jsonl", "--model", ".")),
    "reader's tokenizer.json": Kind("reader", "tokenizer.json", _recover("questions.jsonl", "--model", ".")),
    "game's weights": Kind("game", "model.safetensors", _recover("questions.jsonl", "--model", ".")),
    "game's words.txt": Kind("game", "words.txt", _recover("questions.jsonl", "--model", ".")),
    "game's vectors": Kind("game", "vectors.safetensors", _recover("questions.jsonl", "--model", ".")),
    "game's run.json": Kind("game", "run.json", _recover("questions.jsonl", "--model", "."), 0.5),
    "reader's checkpoint": Kind("reader_half", "checkpoint.safetensors", _train),
    "game's checkpoint": Kind("game_half", "checkpoint.safetensors", _train),
    "run.json, resumed": Kind("game_half", "run.json", _train),
    "words.txt, resumed": Kind("game_half", "words.txt", _train, 0.5),
    "vectors, resumed": Kind("game_half", "vectors.safetensors", _train, 0.5),
    "labels": Kind("data", "labels.sqlite", _labels),
    "labels' journal after a kill": Kind("killed", "labels.sqlite-journal", _labels, 0.5),
    "labels after a kill": Kind("killed", "labels.sqlite", _labels, 0.5),
    "Ray's manifest": Kind("data", "parts/_rechain.json", _resume_on_ray, 0.2),
    "Ray's parts": Kind("data", "parts/00000-000000.jsonl", _export("parts")),
}
UNSEALED = ("Parquet, questions of users", "labels' journal after a kill")
"""files without a checksum of their own: nobody can tell a flipped bit in a text from that text. Others write the
former; of the latter SQLite checks every 200th byte, and it is there only between a kill and the next start"""


# ---- damage


def damaged(draw: Random, content: bytes, region: int) -> bytes:
    """Damage a content in one of its regions."""
    start, end = _bounds(len(content), region)
    at = draw.randrange(start, end)
    way = draw.choice(("flip", "flip", "byte", "cut", "zeros", "swap", "insert", "remove", "repeat"))
    changed = bytearray(content)
    if way == "flip":
        changed[at] ^= 1 << draw.randrange(8)
    elif way == "byte":
        changed[at] = draw.randrange(256)
    elif way == "cut":
        del changed[at:]
    elif way == "zeros":
        block = slice(at - at % _BLOCK, min(at - at % _BLOCK + _BLOCK, len(content)))
        changed[block] = bytes(block.stop - block.start)
    elif way == "swap":
        one, other = at - at % _BLOCK, draw.randrange(len(content)) // _BLOCK * _BLOCK
        first, second = changed[one : one + _BLOCK], changed[other : other + _BLOCK]
        changed[one : one + _BLOCK], changed[other : other + _BLOCK] = second, first
    elif way == "insert":
        changed[at:at] = draw.randbytes(draw.choice((1, 4, _BLOCK)))
    elif way == "remove":
        del changed[at : at + draw.choice((1, 4, _BLOCK))]
    else:
        changed[at:at] = changed[at : at + draw.choice((1, 4, _BLOCK))]
    return bytes(changed)


def _bounds(size: int, region: int) -> tuple[int, int]:
    """Return where a region begins and ends; a region of a small file has one byte at least."""
    if region == 0:
        return 0, min(_EDGE, size)
    if region == 1:
        return max(0, size - _EDGE), size
    start = size * (region - 2) // 10
    return min(start, size - 1), max(min(start, size - 1) + 1, size * (region - 1) // 10)


# ---- cases


@cache
def undamaged(name: str) -> Used:
    """Return what comes of using a kind of file as it is."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "case"
        shutil.copytree(material.place() / KINDS[name].folder, place)
        used = KINDS[name].use(place)
    assert used.outcome.code == GOOD, used.outcome
    return used


def run_case(seed: int, number: int, folder: Path) -> Result:
    """Damage a file, use it, and say what came of it."""
    draw = Random(f"{seed}/{number}")
    known = [name for name, kind in KINDS.items() if (material.place() / kind.folder / kind.file).exists()]
    (name,) = draw.choices(known, [KINDS[name].share for name in known])
    kind, before = KINDS[name], undamaged(name)
    place = folder / "case"
    shutil.copytree(material.place() / kind.folder, place)
    content = (place / kind.file).read_bytes()
    (place / kind.file).write_bytes(damaged(draw, content, number % _REGIONS))
    after = kind.use(place)
    failures = check_end(after.outcome)
    outcome = "traceback" if failures else classify(kind, before, after)
    if outcome == "accepted" and name in UNSEALED:
        outcome = "accepted, without a checksum"
    elif outcome == "accepted":
        failures.append(f"a damaged {name} was accepted: {short(after.outcome.err, 300)}")
    return Result(name, outcome, failures)


def classify(kind: Kind, before: Used, after: Used) -> str:
    """Return what came of using a damaged file."""
    if after.outcome.code == MISTAKE:
        return "refused"
    if after.result == before.result:
        return "harmless"
    names = Path(kind.file).name, Path(kind.file).name.removesuffix(".provenance"), Path(kind.file).parts[0]
    known = set(before.outcome.err.splitlines())
    new = [line for line in after.outcome.err.splitlines() if line not in known]
    is_noticed = any(name in line for line in new for name in names)
    return "noticed" if is_noticed or after.outcome.code == FAILED else "accepted"


if __name__ == "__main__":
    # The time that Ray takes to start is no matter of damage.
    campaign.main("damage", __doc__, run_case, 2000, material.prepare_all, seconds=600)
