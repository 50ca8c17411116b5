"""rechain evaluate: how good recovered chains are."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rechain.cli.options import GoldFile, Only, Passages, Questions, Strict, entries, gold_of
from rechain.cli.tables import Json, print_figures, print_json, print_table
from rechain.errors import InputError, QuestionError, RechainError

if TYPE_CHECKING:
    from rechain.evaluation import AtConfidence
    from rechain.schema import Recovered

_SHOWN = 5


def evaluate(
    chains: Annotated[Path, typer.Argument(metavar="CHAINS", help="Chains, as `rechain recover` writes them.")],
    questions: Questions,
    gold: GoldFile = None,
    unambiguous: Annotated[
        bool, typer.Option("--unambiguous", help="Only questions of which exactly one gold passage holds the answer.")
    ] = False,
    json: Json = False,
    passages: Passages = None,
    only: Only = None,
    strict: Strict = False,
) -> None:
    """Compare recovered chains with gold chains.

    Example: rechain evaluate chains.jsonl hotpot_dev_distractor_v1.json --only bridge --unambiguous
    """
    from rechain.evaluation import accuracy_at_confidence, is_unambiguous, judge, summarise

    recovered = _read_chains(chains)
    golds = gold_of(questions, passages, gold)
    verdicts, left_out = [], []
    for entry in entries(questions, passages, only, "Evaluating"):
        question = entry.content
        if isinstance(question, QuestionError):
            if strict:
                raise question
            left_out.append(question)
        elif (known := golds.get(question.id)) and (not unambiguous or is_unambiguous(question, known)):
            found = recovered.get(question.id)
            verdicts.append(judge(found.chains[0] if found and found.chains else None, known))
    _report(left_out)
    if not verdicts:
        hint = f"in {gold}" if gold else "in it; name their file with --gold"
        raise RechainError(f"no question of {questions} that was asked for has gold chains {hint}.")
    figures, at_confidence = summarise(verdicts), accuracy_at_confidence(verdicts)
    if json:
        print_json({"figures": figures, "accuracy at confidence": at_confidence})
        return
    print_figures(f"Chains of {chains}", figures)
    if at_confidence:
        _print_confidence(at_confidence)


def _report(left_out: list[QuestionError]) -> None:
    for error in left_out[:_SHOWN]:
        print(f"left out: {error}", file=sys.stderr)
    if len(left_out) > _SHOWN:
        print(f"left out: {len(left_out) - _SHOWN} more questions that cannot be read.", file=sys.stderr)


def _read_chains(path: Path) -> Mapping[str, "Recovered"]:
    from pydantic import ValidationError

    from rechain.datasets.files import read_records
    from rechain.datasets.formats import bad_record
    from rechain.schema import Recovered

    chains: dict[str, Recovered] = {}
    for where, value, _ in read_records(path):
        if isinstance(value, QuestionError):
            raise InputError(str(value))
        try:
            recovered = Recovered.model_validate(value)
        except ValidationError as error:
            raise InputError(str(bad_record(where, error))) from error
        if recovered.id in chains:
            raise InputError(f"{where}: the question '{recovered.id}' stands there twice.")
        if recovered.id is not None:
            chains[recovered.id] = recovered
    if not chains:
        raise InputError(f"{path} holds no chains.")
    return chains


def _print_confidence(rows: list["AtConfidence"]) -> None:
    shown = [
        (f"{row.min_confidence:.2f}", f"{100 * row.kept:.1f} %", f"{100 * row.accuracy.value:.1f} %")
        for row in rows
        if row.accuracy
    ]
    print_table("Chains of at least some confidence", ("confidence", "kept", "right"), shown)
