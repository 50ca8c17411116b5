"""The proof: retrievers and passage selectors taught by recovered chains, beside those taught by gold and by less.

    python research/proof.py prepare DATA STAGE --encoder ENCODER --selector SELECTOR
                                                                        on any machine; recovers the chains first
    python research/proof.py play STAGE/carry RESULTS                 on a GPU machine, with src/ on PYTHONPATH
    python research/proof.py collect STAGE RESULTS                    on any machine: takes in what was played
    python research/proof.py judge STAGE --plots docs/plots

DATA is a folder as ../shared/data; retrievers begin with ENCODER, a folder with the weights of all-MiniLM-L6-v2 or of
another BERT, selectors with SELECTOR, a cross-encoder without its head that has the same vocabulary. `play` needs
torch, transformers, numpy and safetensors alone, and of STAGE only what is in STAGE/carry. It begins no play that would
end after --limit seconds if it took as long as the longest before, and packs what it has into RESULTS, in parts of
15 MB; `collect` then leaves in STAGE/carry only what is still to be played, so that `play` goes on from there, on
whatever machine. The most needed plays come first. What is played is kept by a digest of texts, encoders and settings,
so that `prepare` with others begins anew; chains are recovered once, unless their files in STAGE are deleted. `judge`
shows all that was collected, and says what is missing.
"""

import argparse
import io
import json
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import torch
from proof_plays import ARRAYS, CARRY, ENCODER, SELECTOR, Plan, Settings, all_plays, play_all

CHAINS, PACKED = "{}.chains.jsonl", "arrays.tar.xz"
PART = 15_000_000
"""bytes: files that come back from a borrowed machine may have a largest size"""
MODELS = ("default", "lexical")


def recover(questions: Path, stage: Path) -> dict[str, Path]:
    """Recover the chains of all questions with every model, unless they are there, and return their files."""
    files = {model: stage / CHAINS.format(model) for model in MODELS}
    for model, file in files.items():
        command = [sys.executable, "-m", "rechain.cli.main", "recover", str(questions), "--model", model]
        if not file.exists():
            subprocess.run([*command, "--out", str(file)], check=True)
    return files


def prepare(data: Path, stage: Path, encoder: Path, selector: Path, pooling: str) -> None:
    """Write everything that is played and judged, and pack what is carried."""
    from proof_stage import FILES, prepare, search_by_bm25

    carry = stage / CARRY
    carry.mkdir(parents=True, exist_ok=True)
    found = prepare(data, stage, {ENCODER: encoder, SELECTOR: selector}, recover(data / FILES["hotpotqa"], stage))
    settings, digest = Settings(pooling=pooling), sha256()
    for file in sorted(file for file in (stage / ARRAYS).rglob("*") if file.is_file()):
        digest.update(file.read_bytes())
    digest.update(repr(settings).encode())
    plan = Plan(digest.hexdigest()[:12], settings, all_plays())
    search_by_bm25(*found, plan.played(stage))
    with tarfile.open(carry / PACKED, "w:xz") as archive:
        archive.add(stage / ARRAYS, ARRAYS)
    replace(plan, plays=plan.waiting(stage)).write(carry)
    size = sum(file.stat().st_size for file in carry.glob("*") if file.is_file())
    print(f"{carry} is to be carried: {size / 2**20:.1f} MiB.")


def play(carry: Path, results: Path, device: str | None, processes: int, limit: float) -> None:
    """Play until the time is up, and pack what there is."""
    start = time.monotonic()
    plan = Plan.read(carry)
    work = carry.with_name(f"{carry.name}.work")  # not in what is carried
    with tarfile.open(carry / PACKED) as archive:
        archive.extractall(work, filter="data")
    if shutil.which("nvidia-cuda-mps-control"):  # lets the processes share the GPU
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    play_all(work, plan, device, processes, limit - (time.monotonic() - start))
    done = [file for play in plan.plays if (file := play.path(plan.played(work))).exists()]
    results.mkdir(parents=True, exist_ok=True)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for file in done:
            archive.add(file, file.relative_to(work))
    for number, begin in enumerate(range(0, len(packed.getvalue()), PART)):
        (results / f"plays.tar.gz.{number:02}").write_bytes(packed.getvalue()[begin : begin + PART])
    machine = torch.cuda.get_device_name() if device.startswith("cuda") else "CPU"
    seconds = time.monotonic() - start
    call = {"of": plan.of, "machine": machine, "processes": processes, "plays": len(done), "seconds": seconds}
    (results / "call.json").write_text(json.dumps(call))
    print(f"{len(done)} of {len(plan.plays)} plays are done, in {seconds:.0f} s on {machine}.")


def collect(stage: Path, results: Path) -> None:
    """Take in what was played, and leave in what is carried only what is not."""
    plan, call = Plan.read(stage / CARRY), json.loads((results / "call.json").read_text())
    if call["of"] != plan.of:
        raise SystemExit(f"{results} was played with other texts, encoders or settings than {stage} has now.")
    packed = b"".join(part.read_bytes() for part in sorted(results.glob("plays.tar.gz.*")))
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(stage, filter="data")
    with (plan.played(stage) / "calls.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(call) + "\n")
    left = replace(plan, plays=plan.waiting(stage))
    left.write(stage / CARRY)
    print(f"{len(plan.plays) - len(left.plays)} plays taken in, {len(left.plays)} are still to be played.")


def main() -> None:
    """Run one of the steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    step = steps.add_parser("prepare")
    step.add_argument("data", type=Path)
    step.add_argument("stage", type=Path)
    step.add_argument("--encoder", type=Path, required=True)
    step.add_argument("--selector", type=Path, required=True)
    step.add_argument("--pooling", choices=("mean", "cls"), default="mean")
    step = steps.add_parser("play")
    step.add_argument("carry", type=Path)
    step.add_argument("results", type=Path)
    step.add_argument("--device")
    step.add_argument("--processes", type=int, default=8)
    step.add_argument("--limit", type=float, default=500, help="seconds in which plays that are begun should end")
    step = steps.add_parser("collect")
    step.add_argument("stage", type=Path)
    step.add_argument("results", type=Path)
    step = steps.add_parser("judge")
    step.add_argument("stage", type=Path)
    step.add_argument("--plots", type=Path, help="a folder for the plot")
    options = vars(parser.parse_args())
    if (name := options.pop("step")) == "judge":
        from proof_figures import judge

        judge(**options)
    else:
        steps_by_name: dict[str, Callable[..., None]] = {"prepare": prepare, "play": play, "collect": collect}
        steps_by_name[name](**options)


if __name__ == "__main__":
    main()
