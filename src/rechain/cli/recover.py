"""rechain recover: from a file of questions to their chains."""

import sys
from collections import Counter
from itertools import chain
from typing import Annotated

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
from rechain.cli.output import Out, Overwrite, check_output, output_to
from rechain.errors import QuestionError


def recover(
    questions: Questions,
    model: Annotated[
        str,
        typer.Option(
            help="The model: default, lexical, bm25, random, a model's folder or run, or its name on the Hub."
        ),
    ] = "default",
    out: Out = None,
    overwrite: Overwrite = False,
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
    check_output(out, overwrite, questions, passages)
    first = next(asked)  # what cannot be read leaves the output alone
    with output_to(out) as file:
        for recovered in recoverer.recover_many(chain([first], asked), batch_size=batch_size):
            if recovered.error:
                if strict:
                    raise QuestionError(recovered.error.code, recovered.error.message)
                problems[recovered.error.code] += 1
            print(recovered.to_json(), file=file)
            done += 1
    _report(done, problems)


def _report(done: int, problems: Counter[str]) -> None:
    asked = "1 question" if done == 1 else f"{done} questions"
    without = ", ".join(f"{count} {code}" for code, count in problems.most_common())
    end = f"; without: {without}." if without else "."
    print(f"{asked}, {done - problems.total()} with a chain{end}", file=sys.stderr)
