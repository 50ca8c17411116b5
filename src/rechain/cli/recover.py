"""rechain recover: from a file of questions to their chains."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated, TextIO

import typer

from rechain.cli.options import (
    Device,
    Hops,
    Limit,
    Linkers,
    LinkTypes,
    MinWeight,
    Only,
    Passages,
    Questions,
    SpacyModel,
    Strict,
    candidate_settings,
    entries,
)
from rechain.errors import QuestionError, RechainError


def recover(
    questions: Questions,
    model: Annotated[
        str,
        typer.Option(
            help="The model: default, lexical, bm25, random, a model's folder or run, or its name on the Hub."
        ),
    ] = "default",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the chains go, a line each; else standard output.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the output file if there is one.")] = False,
    top: Annotated[int, typer.Option(min=1, help="How many chains a question, best first.")] = 1,
    explain: Annotated[bool, typer.Option("--explain", help="Say what contributed to each score.")] = False,
    min_confidence: Annotated[
        float | None,
        typer.Option(
            "--min-confidence", min=0, max=1, help="Drop chains of less confidence; for models that tell one."
        ),
    ] = None,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="How many questions are scored together, if the model can.")
    ] = 32,
    device: Device = None,
    passages: Passages = None,
    only: Only = None,
    hops: Hops = None,
    link_types: LinkTypes = None,
    linkers: Linkers = None,
    spacy_model: SpacyModel = None,
    min_weight: MinWeight = None,
    limit: Limit = None,
    strict: Strict = False,
) -> None:
    """Recover the chains of questions.

    Example: rechain recover hotpot_dev_distractor_v1.json --only bridge --out chains.jsonl
    """
    from rechain.recovery import Recoverer

    settings = candidate_settings(hops, link_types, linkers, spacy_model, min_weight, limit)
    recoverer = Recoverer(
        model, settings=settings, top=top, explain=explain, device=device, min_confidence=min_confidence
    )
    problems: Counter[str] = Counter()
    done = 0
    asked = entries(questions, passages, only, "Recovering")
    _check_output(out, overwrite, questions, passages)
    first = next(asked)  # what cannot be read leaves the output alone
    with _output(out) as file:
        for recovered in recoverer.recover_many(chain([first], asked), batch_size=batch_size):
            if recovered.error:
                if strict:
                    raise QuestionError(recovered.error.code, recovered.error.message)
                problems[recovered.error.code] += 1
            print(recovered.to_json(), file=file)
            done += 1
    _report(done, problems)


def _check_output(out: Path | None, overwrite: bool, *inputs: Path | None) -> None:
    if out is None or not out.exists():
        return
    if not overwrite:
        raise RechainError(f"{out} exists; name another file, or replace it with --overwrite.")
    if any(path is not None and path.exists() and out.samefile(path) for path in inputs):
        raise RechainError(f"{out} is what is read; name another file for the chains.")


@contextmanager
def _output(path: Path | None) -> Iterator[TextIO]:
    if path is None:
        yield sys.stdout
        return
    with path.open("w", encoding="utf-8", newline="\n") as file:
        yield file


def _report(done: int, problems: Counter[str]) -> None:
    asked = "1 question" if done == 1 else f"{done} questions"
    without = ", ".join(f"{count} {code}" for code, count in problems.most_common())
    end = f"; without: {without}." if without else "."
    print(f"{asked}, {done - problems.total()} with a chain{end}", file=sys.stderr)
