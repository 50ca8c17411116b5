"""Files that are wrong in every way, given to every command that reads some.

    python tests/hardness/fuzz.py --seed 1 --count 50000
    python tests/hardness/fuzz.py --seed 1 --case 1234

Each case makes valid files of one of the formats, changes them (most often; in their structure, their bytes, or both)
and runs a command on them. Whatever the files are, the command ends with a documented exit code and, where it could not
do its work, one sentence; its output has a line for every record that it read, and is never left half.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import campaign
import examples
import inputs
import material
import mutations
import visits
from campaign import Result
from commands import FAILED, GOOD, MISTAKE, Outcome, check_end, run, serve, short
from records import Held
from sidecars import check_sidecar

MODELS = ("lexical", "lexical", "lexical", "bm25", "random")
EXPORTS = ("hotpotqa", "triplets", "paths", "mdr", "parquet")
UNKNOWN = "holds no question in a format"
Arguments = Sequence[object]


def ended(label: str, outcome: Outcome, failures: list[str]) -> Result:
    """Return the result of a case by how its command ended."""
    names = {GOOD: "done", MISTAKE: "refused", FAILED: "done, all failed"}
    return Result(label, names.get(outcome.code, f"exit {outcome.code}"), failures)


# ---- recover


def recover(draw: Random, folder: Path) -> Result:
    """Recover chains of a file, of standard input, of a folder, or of a data set of the library datasets."""
    source = draw.choices(("file", "stdin", "folder", "dataset", "endless"), (120, 30, 20, 2, 0.2))[0]
    rows = inputs.questions(draw)
    if source == "dataset":
        rows = [examples.plain(draw, number) | {"type": "bridge"} for number in range(3)]
        given = inputs.write_dataset(draw, folder, rows)
    elif source == "folder":
        given = inputs.write_folder(draw, folder, inputs.changed(draw, rows))
    elif source == "endless":
        given = inputs.write_endless(draw, folder)
    else:
        given = inputs.write(draw, folder, "questions", inputs.changed(draw, rows))
    stdin = given.content if source == "stdin" else None
    path = "-" if stdin is not None else given.path.name
    command = ["recover", path, "--model", draw.choice(MODELS), *_recover_options(draw)]
    command += _passages(draw, folder, rows)
    held = None if b"PAR1" in given.content[:4] else given.held
    return recover_and_check(draw, folder, held, command, stdin, f"recover, {source}")


def _recover_options(draw: Random) -> list[object]:
    """Return options; those that leave questions out are rare, as the number of lines then says little."""
    options: list[object] = ["--workers", 1 if draw.random() < 0.0005 else 0]
    choices: list[tuple[float, Callable[[], list[object]]]] = [
        (0.3, lambda: ["--batch-size", draw.choice((1, 2, 3))]),
        (0.1, lambda: ["--only", draw.choice(("bridge", "2hop", ""))]),
        (0.1, lambda: ["--top", draw.choice((2, 1000, 2**63))]),
        (0.1, lambda: ["--explain"]),
        (0.03, lambda: ["--strict"]),
        (0.05, lambda: ["--hops", draw.choice((2, 3, 8))]),
        (0.05, lambda: ["--link-types", draw.choice(("gene", "", ",", "protein,protein", "\x1b[2J"))]),
        (0.05, lambda: ["--linkers", draw.choice(("titles", "names", "anchors,identifiers", "", "none"))]),
        (0.05, lambda: ["--min-weight", draw.choice((0, -1, "nan", "inf", 1e300))]),
        (0.05, lambda: ["--limit", draw.choice((1, 2, 2**63))]),
        (0.02, lambda: ["--min-confidence", draw.choice((0, 0.5, "nan"))]),
        (0.1, lambda: ["--max-error-rate", draw.choice((0, 0.5, 1))]),
        (0.02, lambda: ["--log", draw.choice(("text", "json"))]),
    ]
    for share, option in choices:
        options += option() if draw.random() < share else []
    return options


def _passages(draw: Random, folder: Path, rows: Sequence[examples.Record]) -> list[object]:
    """Write passages, where questions name theirs by id, and return the option that says so."""
    if draw.random() < (0.1 if any("passage_ids" in row for row in rows) else 0.95):
        return []
    made = inputs.changed(draw, examples.passages(draw), draw.choice((0, 0, 0.3)))
    return ["--passages", inputs.write(draw, folder, "passages", made, wrong=0.1).path.name]


def recover_and_check(
    draw: Random, folder: Path, held: Held | None, command: Arguments, stdin: bytes | None, label: str
) -> Result:
    """Recover chains into a file or to standard output; look at their lines, and go on with the file."""
    out = folder / "chains.out" if draw.random() < 0.6 else None
    command = [*command, *(["--out", out.name] if out else [])]
    outcome = run(folder, command, stdin, draw)
    lines = (out.read_bytes() if out.exists() else b"") if out else outcome.out
    failures = check_end(outcome)
    if not failures:
        failures = check_lines(lines, held, outcome, "--only" in command, "--strict" in command)
    if out and not failures:
        failures = check_sidecar(out, is_finished=outcome.code != MISTAKE)
    if out and not failures and draw.random() < 0.4:
        failures = _check_resume(draw, folder, out, [*command, "--resume"], stdin, outcome)
    return ended(label, outcome, failures)


def check_lines(lines: bytes, held: Held | None, outcome: Outcome, is_part: bool, is_strict: bool) -> list[str]:
    """Return what is wrong with chains that were written: lines that are missing, of others, or no chains."""
    from rechain.schema import Recovered

    if lines and not lines.endswith(b"\n"):
        return [f"the output ends in the middle of a line: {lines[-200:]!r}"]
    rows = lines.split(b"\n")[:-1]
    try:
        ids = [Recovered.model_validate_json(row).id for row in rows]
    except ValueError as error:
        return [f"a line is no record of chains: {short(str(error))}"]
    if held is None:
        return []
    fewest = 0 if is_part or is_strict or outcome.code == MISTAKE else held.fewest
    if outcome.code == MISTAKE and UNKNOWN in outcome.sentence and not is_part:
        fewest = min(held.fewest, 100)
    if not fewest <= len(rows) <= held.most + (not held.is_whole):
        return [f"{len(rows)} lines for {fewest} to {held.most} records; {short(outcome.err, 300)}"]
    pairs = enumerate(zip(held.ids or (), ids, strict=False), start=1)
    wrong = [] if is_part else [(number, one, two) for number, (one, two) in pairs if one and two and one != two]
    return [f"line {number} has the id {two!r}, but its question {one!r}" for number, one, two in wrong[:1]]


def _check_resume(
    draw: Random, folder: Path, out: Path, command: Arguments, stdin: bytes | None, before: Outcome
) -> list[str]:
    """Go on with a file, perhaps one that was cut somewhere as a kill leaves it: it holds the same in the end."""
    whole = out.read_bytes() if out.exists() else None
    if whole and draw.random() < 0.5:
        with out.open("r+b") as file:
            file.truncate(draw.randrange(len(whole) + 1))
    outcome = run(folder, command, stdin, draw)
    failures = check_end(outcome)
    after = out.read_bytes() if out.exists() else None
    if not failures and (outcome.code == MISTAKE) != (before.code == MISTAKE):
        failures = [f"ended with {before.code}, and with {outcome.code} when resumed: {outcome.sentence}"]
    if not failures and after != whole:
        failures = [f"other bytes after --resume (exit {outcome.code}): {short(outcome.err, 500)}"]
    return failures or check_sidecar(out, is_finished=outcome.code != MISTAKE)


def model(draw: Random, folder: Path) -> Result:
    """Recover chains with a model or a run whose description was changed."""
    kind = draw.choice(("reader", "reader", "game"))
    shutil.copytree(material.place() / kind, folder / "model", ignore=shutil.ignore_patterns("log", "checkpoint*"))
    names = {"reader": ("config.json", "config.json", "tokenizer.json", "run.json"), "game": ("run.json", "words.txt")}
    name = draw.choice(names[kind])
    path = folder / "model" / name
    if name.endswith(".json") and draw.random() < 0.85:
        value = mutations.mutate(draw, json.loads(path.read_bytes()), draw.choice((1, 1, 2)))
        value = _sealed_again(draw, value) if name == "config.json" else value
        path.write_bytes(mutations.written(draw, value))
    else:
        path.write_bytes(mutations.damage(draw, path.read_bytes()))
    given = inputs.write(draw, folder, "questions", [examples.plain(draw, n) for n in range(2)], wrong=0)
    command = ["recover", given.path.name, "--model", "model", "--workers", 0]
    return recover_and_check(draw, folder, given.held, command, None, f"recover, {kind}'s {name}")


def _sealed_again(draw: Random, config: Any) -> Any:
    """Return a configuration with a digest that fits, so that its change is not found by the digest."""
    from rechain.system.files import SHA256, sealed

    if draw.random() < 0.2 or not isinstance(config, dict) or not isinstance(config.get(SHA256), dict):
        return config
    if isinstance(config.get("encoder"), dict) and draw.random() < 0.1:
        config["encoder"]["auto_map"] = {"AutoModel": "evil--evil.Evil", "AutoConfig": "evil.Evil"}
    files = {name: digest for name, digest in config[SHA256].items() if name != "config.json"}
    try:
        return sealed({name: value for name, value in config.items() if name != SHA256}, "config.json", files)
    except (TypeError, ValueError, RecursionError):  # a change that JSON cannot hold
        return config


# ---- the commands that read chains


def candidates(draw: Random, folder: Path) -> Result:
    """Count candidate chains."""
    rows = inputs.questions(draw)
    given = inputs.write(draw, folder, "questions", inputs.changed(draw, rows))
    options = _passages(draw, folder, rows)
    options += ["--gold", _rows(draw, folder, "gold", examples.gold, rows)] if draw.random() < 0.3 else []
    is_json = draw.random() < 0.5
    stdin = given.content if draw.random() < 0.1 else None
    path = given.path.name if stdin is None else "-"
    outcome = run(folder, ["candidates", path, *options, *(["--json"] if is_json else [])], stdin, draw)
    failures = check_end(outcome) or _check_json(outcome, is_json)
    if outcome.code == GOOD and is_json and not failures and given.held:
        counted = json.loads(outcome.out)["figures"]["chains a question"]["questions"]
        if not given.held.fewest <= counted <= given.held.most:
            failures = [f"{counted} questions counted of {given.held.fewest} to {given.held.most} records"]
    return ended("candidates", outcome, failures)


def _rows(
    draw: Random,
    folder: Path,
    name: str,
    make: Callable[[Random, examples.Record], examples.Record],
    rows: Sequence[examples.Record],
    share: float = 0.3,
) -> str:
    """Write a row for every question: chains, gold or labelled pairs."""
    made = inputs.changed(draw, [make(draw, row) for row in rows], draw.choice((0, share)))
    return inputs.write(draw, folder, name, made, wrong=0.15).path.name


def _write_sidecar(draw: Random, chains: Path) -> None:
    """Write what should say what made some chains, and rarely says it of these."""
    if draw.random() < 0.2:
        content = (material.place() / "chains.jsonl.provenance").read_bytes()
        for _ in range(draw.choice((0, 1, 2))):
            content = mutations.damage(draw, content)
        chains.with_name(f"{chains.name}.provenance").write_bytes(content)


def _check_json(outcome: Outcome, is_json: bool) -> list[str]:
    if outcome.code != GOOD or not is_json:
        return []
    try:
        json.loads(outcome.out, parse_constant=_no_constant)
    except ValueError as error:
        return [f"the output is not JSON ({error}): {outcome.out[:300]!r}"]
    return []


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def evaluate(draw: Random, folder: Path) -> Result:
    """Compare chains with gold."""
    rows = inputs.questions(draw)
    given = inputs.write(draw, folder, "questions", inputs.changed(draw, rows, draw.choice((0, 0.3))), wrong=0.1)
    files = [_rows(draw, folder, "chains", examples.chains, rows)]
    if draw.random() < 0.3:
        files.append(_rows(draw, folder, "others", examples.chains, rows))
    for file in files:
        _write_sidecar(draw, folder / file)
    make = examples.pair if rows and "supports" in rows[0] else examples.gold
    options = _passages(draw, folder, rows)
    options += ["--gold", _rows(draw, folder, "gold", make, rows)] if draw.random() < 0.9 else []
    is_json = draw.random() < 0.5
    options += ["--differences", "differences.jsonl"] if draw.random() < len(files) / 5 - 0.18 else []
    options += [name for name in ("--unambiguous", "--strict") if draw.random() < 0.1]
    outcome = run(folder, ["evaluate", *files, given.path.name, *options, *(["--json"] if is_json else [])])
    return ended("evaluate", outcome, check_end(outcome, (GOOD, MISTAKE)) or _check_json(outcome, is_json))


def audit(draw: Random, folder: Path) -> Result:
    """Audit a log with its chains."""
    rows = [
        row | {"tag": draw.choice(("a", 7, ["b"], {})), "day": draw.choice(("2026-05-14", 1e300, "x"))}
        for row in inputs.questions(draw)
    ]
    given = inputs.write(draw, folder, "questions", inputs.changed(draw, rows, draw.choice((0, 0.3))), wrong=0.1)
    chains = _rows(draw, folder, "chains", examples.chains, rows, 0.1)
    _write_sidecar(draw, folder / chains)
    options = [*_passages(draw, folder, rows), "--chains", chains, "--out", "report.html", "--json", "report.json"]
    options += ["--fail-under", "0.5"] if draw.random() < 0.3 else []
    outcome = run(folder, ["audit", given.path.name, *options])
    failures = check_end(outcome)
    if outcome.code == GOOD and not failures:
        failures = _check_json(outcome._replace(out=(folder / "report.json").read_bytes()), True)
    return ended("audit", outcome, failures)


def export(draw: Random, folder: Path) -> Result:
    """Export chains."""
    rows = inputs.questions(draw)
    given = inputs.write(draw, folder, "questions", inputs.changed(draw, rows, draw.choice((0, 0.2))), wrong=0.05)
    kind = draw.choice(EXPORTS)
    chains = _rows(draw, folder, "chains", examples.chains, rows)
    _write_sidecar(draw, folder / chains)
    command = ["export", chains, "--to", kind]
    if kind != "parquet" or draw.random() < 0.1:
        command += ["--questions", given.path.name, *_passages(draw, folder, rows)]
    if draw.random() < 0.1:
        command += ["--min-confidence", "0.5"]
    out = folder / "export.out" if kind == "parquet" or draw.random() < 0.5 else None
    outcome = run(folder, [*command, *(["--out", out.name] if out else [])])
    failures = check_end(outcome, (GOOD, MISTAKE))
    if not failures and out and out.exists() != (outcome.code == GOOD):
        failures = [f"exit code {outcome.code}, but the file is {'' if out.exists() else 'not '}there"]
    if not failures and outcome.code == GOOD:
        failures = _check_export(kind, out.read_bytes() if out else outcome.out)
    return ended(f"export, {kind}", outcome, failures)


def _check_export(kind: str, content: bytes) -> list[str]:
    if kind == "parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.read_table(pyarrow.BufferReader(content))
        return []
    for line in content.decode().splitlines() if kind == "hotpotqa" else content.decode().split("\n")[:-1]:
        json.loads(line, parse_constant=_no_constant)
    return []


# ---- labels, serve, train


def labels(draw: Random, folder: Path) -> Result:
    """Import labels, then export them and see how far they agree."""
    rows = inputs.questions(draw)
    share = draw.choice((0, 0.2))
    given = inputs.write(draw, folder, "questions", inputs.changed(draw, rows, share), wrong=0.05).path.name
    make = draw.choice((examples.pair, examples.gold))
    file = _rows(draw, folder, "rows", make, rows)
    annotator = draw.choice(("Ada", "Ada", "Ada", *(text for text in mutations.TEXTS if "\0" not in text)))
    passages = _passages(draw, folder, rows)
    name = f"--annotator={_printable(annotator)}"
    outcome = run(folder, ["labels", "import", "labels.sqlite", file, given, name, *passages])
    failures = check_end(outcome, (GOOD, MISTAKE))
    if not failures and outcome.code == GOOD:
        to = ["--to", draw.choice(("gold", "pairs"))]
        for command in (["export", "labels.sqlite", given, *to, *passages], _AGREEMENT):
            later = run(folder, ["labels", *command])
            failures += check_end(later, (GOOD, MISTAKE))
    return ended("labels", outcome, failures)


_AGREEMENT = ["agreement", "labels.sqlite", "--json"]


def _printable(text: str) -> str:
    """Return a text as an argument of a command can be: surrogates are what bytes that are no UTF-8 become."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")


def serve_and_visit(draw: Random, folder: Path) -> Result:
    """Start the server on files, and send it requests."""
    rows = inputs.questions(draw) or [examples.plain(draw, 0)]
    share = draw.choice((0, 0.3))
    given = inputs.write(draw, folder, "questions", inputs.changed(draw, rows, share), wrong=0.1)
    command: list[object] = [given.path.name, "--model", "lexical", *_passages(draw, folder, rows)]
    if draw.random() < 0.4:
        command += ["--chains", _rows(draw, folder, "chains", examples.chains, rows)]
    if draw.random() < 0.3:
        command += ["--gold", _rows(draw, folder, "gold", examples.gold, rows)]
    outcome, failures = serve(folder, command, lambda client: visits.visit(draw, client))
    return ended("serve", outcome, check_end(outcome, (GOOD, MISTAKE)) + failures)


def train(draw: Random, folder: Path) -> Result:
    """Train for a few steps on files that are wrong, with settings or vectors that are."""
    wrong = draw.choice(("questions", "questions", "vectors", "settings", "settings"))
    rows = [examples.plain(draw, number) for number in range(4)]
    rows = inputs.changed(draw, rows) if wrong == "questions" else rows
    given = inputs.write(draw, folder, "questions", rows, wrong=0.1 if wrong == "questions" else 0)
    command: list[object] = ["train", given.path.name, "--out", "run", "--device", "cpu"]
    command += material.settings(material.SMALL_GAME)
    if wrong == "vectors":
        content = (material.place() / "vectors.txt").read_bytes()
        (folder / "vectors.txt").write_bytes(mutations.damage(draw, mutations.damage(draw, content)))
        command += ["--vectors", "vectors.txt"]
    if wrong == "settings":
        settings = (material.place() / "settings.toml").read_bytes()
        (folder / "settings.toml").write_bytes(mutations.damage(draw, settings))
        command = [*command[:6], "--config", "settings.toml"]
    outcome = run(folder, command)
    return ended(f"train, {wrong}", outcome, check_end(outcome, (GOOD, MISTAKE)))


CASES: dict[Callable[[Random, Path], Result], float] = dict(
    zip(
        (recover, model, candidates, evaluate, audit, export, labels, serve_and_visit, train),
        (45, 3, 14, 14, 6, 10, 6, 7, 1),
        strict=True,
    )
)


def run_case(seed: int, number: int, folder: Path) -> Result:
    """Run the case of a number."""
    draw = Random(f"{seed}/{number}")
    (case,) = draw.choices(list(CASES), list(CASES.values()))
    return case(draw, folder)


if __name__ == "__main__":
    campaign.main("fuzz", __doc__, run_case, 50_000, material.prepare)
