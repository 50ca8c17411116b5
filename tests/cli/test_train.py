"""rechain train: what it shows and writes, and what it says about bad input and faults."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.cli.common import RECHAIN, Command

from rechain.schema import Question
from rechain.system.provenance import describe_input, read_provenance
from rechain.system.tensors import load_tensors
from rechain.text.linking import DEFAULT_MIN_WEIGHT

pytestmark = pytest.mark.usefixtures("one_thread")
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
QUICK = {"hidden": 3, "batch_size": 4, "pretrain_epochs": 1, "game_epochs": 1}


def changes(**settings: Any) -> list[str]:
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


@pytest.fixture
def train(rechain: Command, town_file: Path, tmp_path: Path) -> Command:
    """Run `rechain train` on twelve questions."""

    def run(*arguments: object, questions: Path = town_file, out: Path = tmp_path / "run") -> Any:
        return rechain("train", questions, "--out", out, "--device", "cpu", *changes(**QUICK), *arguments)

    return run


def refused(outcome: Any) -> str:
    """Return the one sentence of a command that ended with a mistake."""
    assert outcome.code == 2
    assert "Traceback" not in outcome.err
    last = outcome.err.strip().splitlines()[-1]
    assert last.startswith("rechain: ")
    assert last.endswith(".")
    return last


def test_a_model_is_trained_shown_and_used(train: Command, rechain: Command, town_file: Path, tmp_path: Path) -> None:
    outcome = train()
    assert outcome.code == 0, outcome.err
    lines = outcome.err.splitlines()
    for phase in ("pretraining", "game"):
        (line,) = [line for line in lines if line.startswith(f"{phase}, epoch 1: ")]
        assert ("reasoner" in line) == (phase != "pretraining")
        assert all(name in line for name in ("reward 0.", "ranker "))
    assert lines[-1].startswith(f"{tmp_path / 'run'} contains the model; its best reward on held-out questions was 0.")
    assert "Without --vectors, words are represented by their spelling alone." in lines
    provenance = read_provenance(tmp_path / "run" / "model.safetensors")
    assert provenance and provenance.end and not provenance.misfits()
    assert provenance.made_by["input"] == describe_input(town_file)
    assert provenance.made_by["kind"] == "game"
    assert provenance.made_by["vectors"] is None
    assert {"only": None, "hops": None, "min_weight": DEFAULT_MIN_WEIGHT}.items() <= provenance.made_by[
        "settings"
    ].items()
    recovered = rechain("recover", town_file, "--model", tmp_path / "run", "--explain")
    rows = [json.loads(line) for line in recovered.out.splitlines()]
    assert len(rows) == 12
    assert all(row["chains"][0]["why"].keys() == {"ranker", "reasoner", "steps"} for row in rows)


def test_tensorboard_can_show_the_run(train: Command, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert train().code == 0
    log = EventAccumulator(str(tmp_path / "run" / "log"))
    log.Reload()
    assert {"pretraining/reward", "pretraining/ranker", "game/reasoner"} <= set(log.Tags()["scalars"])


def test_settings_come_from_a_file_then_from_flags(train: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('bonus = 0.25\nseed = 3\nrow = "tail to head"\n')
    outcome = train("--config", tmp_path / "mine.toml", "--seed", 4, "--setting", "independent", "--set", "bonus=2")
    assert outcome.code == 0
    settings = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert {name: settings[name] for name in ("bonus", "seed", "row", "hidden")} == {
        "bonus": 2,
        "seed": 4,
        "row": "independent",
        "hidden": 3,
    }


def test_too_few_questions_to_hold_any_out_are_said_to_be_so(train: Command, town_file: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text("".join(town_file.read_text().splitlines(keepends=True)[:5]))
    last = train(questions=few).err.splitlines()[-1]
    assert last.endswith("contains the model; no question was held out.")


def test_questions_without_a_chain_are_counted(train: Command, town_file: Path) -> None:
    bad = {"id": "x", "question": "Where?", "answer": "Nowhere", "passages": [{"id": "a", "text": "b"}] * 1}
    with town_file.open("a") as file:
        file.write(json.dumps(bad) + '\n{"id": "y"}\n')
    err = train().err
    assert f"Left out: 1 of the questions cannot be read; the first: {town_file}, line " in err
    assert "Left out, without a chain to learn from: 1 no_tail." in err


# ---- mistakes


def test_a_run_is_not_overwritten_but_resumed(train: Command, tmp_path: Path) -> None:
    assert train().code == 0
    before = (tmp_path / "run" / "model.safetensors").read_bytes()
    assert "already contains a run; continue it with --resume, or name another --out." in refused(train())
    assert train("--resume").code == 0
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before
    assert "was written with bonus = 0.5, not 0.7" in refused(train("--resume", "--set", "bonus=0.7"))
    assert "was started with other questions" in refused(train("--resume", "--hops", 3))


def test_there_must_be_a_run_to_resume(train: Command, tmp_path: Path) -> None:
    assert "contains no run to resume; leave --resume out" in refused(train("--resume"))
    assert not (tmp_path / "run").exists()


def test_the_run_needs_a_folder(train: Command, town_file: Path) -> None:
    assert "is a file; --out should be a folder" in refused(train(out=town_file))


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--device", "nonsense"], "there is no device 'nonsense' here; --device cpu always works"),
        (["--device", "cuda:99"], "there is no device 'cuda:99' here"),
        (["--device", "meta"], "there is no device 'meta' here"),
        (["--set", "hidden"], "--set hidden should be NAME=VALUE"),
        (["--set", "hiden=3"], "there is no setting 'hiden'; the settings are"),
        (["--set", "hidden=many"], "the setting hidden should be a whole number"),
        (["--set", "hidden="], "the setting hidden should be a whole number"),
        (["--set", "seed=-1"], "the setting seed should be at least 0, not -1"),
        (["--setting", "nonsense"], "the setting row should be one of independent, head to tail"),
        (["--config", "absent.toml"], "absent.toml cannot be read: No such file"),
        (["--vectors", "absent.txt"], "absent.txt"),
        (["--encoder", "folder"], "--encoder is for --model reader; leave it out for --model game"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_leaves_no_folder(
    train: Command, tmp_path: Path, arguments: list[str], what: str
) -> None:
    assert what in refused(train(*arguments))
    assert not (tmp_path / "run").exists()


def test_a_config_that_is_no_toml_is_named(train: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("hidden: 3")
    assert f"{tmp_path / 'mine.toml'} is not a TOML file" in refused(train("--config", tmp_path / "mine.toml"))


@pytest.mark.parametrize(
    "content", [b"", b"maker 1 2 3\nborn 1 2\n", b"maker 1 x\n", b"\x89PNG\r\n\x1a\n", b"maker 1 nan\nborn 1 2\n"]
)
def test_broken_vectors_are_named(train: Command, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "vectors.txt").write_bytes(content)
    assert str(tmp_path / "vectors.txt") in refused(train("--vectors", tmp_path / "vectors.txt"))
    assert not (tmp_path / "run").exists()


def test_a_file_without_any_candidate_chain_tells_the_reasons(train: Command, tmp_path: Path) -> None:
    passages = [{"id": "a", "text": "It rains."}, {"id": "b", "text": "Prague lies on a river."}]
    question = {"id": "1", "question": "Where?", "answer": "Prague", "passages": passages}
    (tmp_path / "lonely.jsonl").write_text(json.dumps(question) + "\n")
    told = refused(train(questions=tmp_path / "lonely.jsonl"))
    assert "no question has a candidate chain to learn from (1 no_link); see `rechain candidates`." in told
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_no_number_is_one_sentence(train: Command, tmp_path: Path) -> None:
    told = refused(train("--set", "learning_rate=1e30"))
    assert "is no longer a number in epoch 1 of the pretraining; lower learning_rate" in told
    assert load_tensors(tmp_path / "run" / "checkpoint.safetensors")[1]["progress"]["epoch"] == 0


# ---- the chain reader

READER = {"max_tokens": 64, "batch_size": 4, "epochs": 2, "held_out": 0.25}


@pytest.fixture
def train_reader(rechain: Command, town_file: Path, tmp_path: Path, tiny_encoder: Path) -> Command:
    """Run `rechain train --model reader` on twelve questions, from a tiny encoder."""

    def run(*arguments: object, encoder: Path | None = tiny_encoder, model: str | None = "reader") -> Any:
        options = [*(["--model", model] if model else []), *(["--encoder", encoder] if encoder else [])]
        common = ["--out", tmp_path / "run", "--device", "cpu", *changes(**READER)]
        return rechain("train", town_file, *common, *options, *arguments)

    return run


def test_a_reader_is_trained_shown_resumed_and_used(
    train_reader: Command, rechain: Command, town_file: Path, tmp_path: Path, tiny_encoder: Path
) -> None:
    outcome = train_reader()
    assert outcome.code == 0, outcome.err
    lines = outcome.err.splitlines()
    for moment in ("EM, epoch 1: ", "EM, epoch 2: "):
        (line,) = [line for line in lines if line.startswith(moment)]
        assert all(f"{name} " in line for name in ("agreement", "ranker", "evidence", "reasoner"))
    assert lines[-1].startswith(
        f"{tmp_path / 'run'} contains the model; its best agreement on held-out questions was 0."
    )
    assert not any("--vectors" in line for line in lines)
    recovered = rechain("recover", town_file, "--model", tmp_path / "run", "--workers", 0)
    rows = [json.loads(line) for line in recovered.out.splitlines()]
    assert len(rows) == 12 and all(0 < row["chains"][0]["confidence"] <= 1 for row in rows)
    provenance = read_provenance(tmp_path / "run" / "model.safetensors")
    assert provenance and provenance.made_by["encoder"] == describe_input(tiny_encoder)
    before = (tmp_path / "run" / "model.safetensors").read_bytes()
    # neither the kind nor the encoder must be named again
    assert train_reader("--resume", encoder=None, model=None).code == 0
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before
    assert "was written with epochs = 2, not 1" in refused(train_reader("--resume", "--set", "epochs=1"))
    assert "was started with --model reader, not game" in refused(
        rechain("train", town_file, "--out", tmp_path / "run", "--resume", "--model", "game", "--device", "cpu")
    )


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--model", "nonsense"], "there is no model 'nonsense' to train; --model is game or reader"),
        (["--encoder", "absent"], "--encoder absent is not a folder"),
        (["--vectors", "glove.txt"], "--vectors is for --model game; leave it out for --model reader"),
        (["--setting", "cooperative"], "--setting is for --model game"),
        (["--set", "hidden=3"], "there is no setting 'hidden'; the settings are"),
        (["--set", "epochs=0"], "the setting epochs should be at least 1, not 0"),
        (["--set", "max_tokens=999"], "the setting max_tokens should be at most the 320 tokens"),
        (["--config", "absent.toml"], "absent.toml cannot be read: No such file"),
        (["--config", "hotpotqa"], "hotpotqa is a configuration of --model game"),
        (["--seed", "1", "--set", "seed=1"], "--seed and --set seed=… are the same setting; leave one of them out"),
    ],
)
def test_a_wrong_option_of_the_reader_is_one_sentence_and_leaves_no_folder(
    train_reader: Command, tmp_path: Path, arguments: list[str], what: str
) -> None:
    assert what in refused(train_reader(*arguments))
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_no_encoder_is_named(train_reader: Command, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    config = tmp_path / "folder" / "config.json"
    assert f"{config} cannot be read" in refused(train_reader(encoder=tmp_path / "folder"))
    config.write_text("{}")
    assert "folder has no model.safetensors" in refused(train_reader(encoder=tmp_path / "folder"))


def test_a_reader_whose_loss_is_no_number_is_one_sentence(train_reader: Command) -> None:
    told = refused(train_reader("--set", "head_learning_rate=1e30", "--set", "learning_rate=1e30"))
    assert "is no longer a number in epoch 1 of the EM; lower learning_rate, head_learning_rate or clip" in told


def test_an_encoder_that_was_moved_is_named_on_resume(
    train_reader: Command, tiny_encoder: Path, tmp_path: Path
) -> None:
    shutil.copytree(tiny_encoder, tmp_path / "here")
    assert train_reader(encoder=tmp_path / "here").code == 0
    (tmp_path / "here").rename(tmp_path / "there")
    told = refused(train_reader("--resume", encoder=None, model=None))
    assert f"was started from the encoder {tmp_path / 'here'}, which is no longer there; name its folder with" in told
    assert train_reader("--resume", encoder=tmp_path / "there").code == 0


# ---- faults


def start(questions: Path, out: Path, *arguments: str, **options: Any) -> "subprocess.Popen[str]":
    command = [*RECHAIN, "train", str(questions), "--out", str(out), "--device", "cpu", *arguments]
    return subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_a_run_with_one_sentence_and_it_can_be_resumed(town_file: Path, tmp_path: Path, how: str) -> None:
    long = changes(**QUICK | {"pretrain_epochs": 25, "reasoner_epochs": 25, "game_epochs": 0})
    checkpoint = tmp_path / "run" / "checkpoint.safetensors"
    process = start(town_file, tmp_path / "run", *long)
    while not checkpoint.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.Signals[how])
    _, err = process.communicate(timeout=300)
    assert process.returncode == (130 if how == "SIGINT" else 143)
    assert "Traceback" not in err
    resumable = f"The run in {tmp_path / 'run'} continues from its last checkpoint with --resume."
    assert err.strip().splitlines()[-2:] == [
        resumable,
        "rechain: interrupted." if how == "SIGINT" else "rechain: stopped by SIGTERM.",
    ]
    assert load_tensors(checkpoint)[1]["progress"]["phase"] < 4
    assert sorted(path.name for path in checkpoint.parent.iterdir() if path.suffix == ".new") == []
    resumed = start(town_file, tmp_path / "run", *long, "--resume")
    _, err = resumed.communicate(timeout=300)
    assert resumed.returncode == 0, err
    assert "reasoner, epoch 25: " in err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_run_that_is_stopped_before_it_has_begun_says_that_nothing_was_kept(tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    os.mkfifo(questions)
    process = start(questions, tmp_path / "run", "--log", "json")
    writing = None
    while writing is None:  # until it waits for questions
        assert process.poll() is None
        with suppress(OSError):
            writing = os.open(questions, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    *_, end, told, last = process.communicate(timeout=300)[1].splitlines()
    os.close(writing)
    assert process.returncode == 143
    assert json.loads(end)["summary"] == "stopped by SIGTERM"
    assert told == f"The run had not started, and nothing was written to {tmp_path / 'run'}: start again."
    assert last == "rechain: stopped by SIGTERM."
    assert not (tmp_path / "run").exists()


def test_a_full_disk_ends_a_run_with_one_sentence_and_the_checkpoint_before_it(town_file: Path, tmp_path: Path) -> None:
    most = 3_000_000  # enough for the weights, not for the optimisers' state beside them

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    process = start(town_file, tmp_path / "run", *changes(**QUICK), preexec_fn=limit)
    _, err = process.communicate(timeout=300)
    checkpoint = tmp_path / "run" / "checkpoint.safetensors"
    assert process.returncode == 2
    assert "Traceback" not in err
    assert err.strip().splitlines()[-1] == f"rechain: {checkpoint} cannot be written: File too large."
    assert load_tensors(checkpoint)[1]["progress"]["phase"] == 0
    assert not list(checkpoint.parent.glob("*.new"))


# ---- gold


def test_training_never_loads_the_reading_of_gold(tmp_path: Path, bridge_question: Question) -> None:
    context = [[passage.title, [passage.text]] for passage in bridge_question.passages]
    record = {"_id": "1", "question": bridge_question.question, "answer": "Prague", "type": "bridge"}
    record |= {"level": "hard", "context": context, "supporting_facts": [["Zorilla", 0], ["Anton Quillfeather", 0]]}
    (tmp_path / "questions.json").write_text(json.dumps([record, record | {"_id": "2"}]))
    code = (
        "import sys; from rechain.cli.main import app\n"
        "app(sys.argv[1:], standalone_mode=False)\n"
        "print(sorted(name for name in sys.modules if 'gold' in name.lower() and name.startswith('rechain')))"
    )
    arguments = ["train", str(tmp_path / "questions.json"), "--out", str(tmp_path / "run"), "--device", "cpu"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, *changes(**QUICK)], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert (tmp_path / "run" / "model.safetensors").exists(), done.stderr
    assert done.stdout.strip() == "[]"


def test_gold_in_the_file_changes_nothing(train: Command, tmp_path: Path, bridge_question: Question) -> None:
    context = [[passage.title, [passage.text]] for passage in bridge_question.passages]
    record = {"_id": "1", "question": bridge_question.question, "answer": "Prague", "type": "bridge", "level": "hard"}
    weights = []
    for number, facts in enumerate(([["Zorilla", 0], ["Anton Quillfeather", 0]], [["Weather", 0], ["Prague", 0]])):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps([record | {"context": context, "supporting_facts": facts}]))
        assert train(questions=path, out=tmp_path / f"run{number}").code == 0
        weights.append((tmp_path / f"run{number}" / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]


def test_a_run_does_not_replace_a_model(train_reader: Command, tiny_encoder: Path) -> None:
    weights = (tiny_encoder / "model.safetensors").read_bytes()
    outcome = train_reader("--out", tiny_encoder)
    assert outcome.code == 2
    assert "already contains a model; name another --out" in outcome.err
    assert (tiny_encoder / "model.safetensors").read_bytes() == weights
