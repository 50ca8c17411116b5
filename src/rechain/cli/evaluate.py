"""rechain evaluate: how good recovered chains are."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from rechain.cli.options import GoldFile, QuestionsInput, Strict, grouped, show_provenance
from rechain.cli.progress import working
from rechain.cli.tables import Json, print_figures, print_json, print_table
from rechain.errors import InputError, QuestionError, RechainError
from rechain.system.provenance import read_provenance
from rechain.system.stores import path_of
from rechain.system.terminal import note

if TYPE_CHECKING:
    from rechain.evaluation.judging import AtConfidence, Verdict
    from rechain.schema import Recovered

# Enough to see what is wrong with a file; the rest is counted.
_MOST_ERRORS = 5


@grouped
def evaluate(
    *,
    chains: Annotated[
        Path, Argument(metavar="CHAINS", parser=path_of, help="Chains, as `rechain recover` writes them.")
    ],
    questions: QuestionsInput,
    gold: GoldFile = None,
    unambiguous: Annotated[
        bool, Option("--unambiguous", help="Only questions of which exactly one gold passage holds the answer.")
    ] = False,
    json: Json = False,
    strict: Strict = False,
) -> None:
    """Compare recovered chains with gold chains.

    Example: rechain evaluate chains.jsonl hotpot_dev_distractor_v1.json --only bridge --unambiguous
    """
    from rechain.evaluation.judging import accuracy_at_confidence, is_unambiguous, judge, summarise
    from rechain.evaluation.statistics import expected_calibration_error

    recovered = _read_chains(chains)
    golds = questions.gold(gold)
    verdicts: list[Verdict] = []
    errors: list[QuestionError] = []
    missing = 0
    for entry in questions.entries("Evaluating"):
        question = entry.content
        if isinstance(question, QuestionError):
            if strict:
                raise question
            errors.append(question)
        elif (right := golds.get(question.id)) and (not unambiguous or is_unambiguous(question, right)):
            result = recovered.get(question.id)
            missing += result is None
            verdicts.append(judge(result.chains[0] if result and result.chains else None, right))
    _report_left_out(errors)
    if not verdicts:
        hint = f"in {gold}" if gold else "in it; name their file with --gold"
        raise RechainError(f"no question of {questions.path} that was asked for has gold chains {hint}.")
    if missing == len(verdicts):
        raise RechainError(f"{chains} holds the chains of none of these questions.")
    if missing:
        note(f"{missing} questions are not in {chains}; they count as wrong.")
    provenance = read_provenance(chains)
    show_provenance(provenance, questions.path)
    figures, at_confidence = summarise(verdicts), accuracy_at_confidence(verdicts)
    error = expected_calibration_error((verdict.confidence, verdict.correct) for verdict in verdicts)
    if json:
        made = {"made by": provenance.made_by, "end": provenance.end} if provenance else None
        shown = {"figures": figures, "expected calibration error": error, "accuracy at confidence": at_confidence}
        print_json({**shown, "provenance": made})
        return
    print_figures(f"Chains of {chains}", figures)
    if error is not None:
        _print_confidence(at_confidence, error)


def _report_left_out(errors: list[QuestionError]) -> None:
    for error in errors[:_MOST_ERRORS]:
        note(f"left out: {error}")
    if len(errors) > _MOST_ERRORS:
        note(f"left out: {len(errors) - _MOST_ERRORS} more questions that cannot be read.")


def _read_chains(path: Path) -> Mapping[str, "Recovered"]:
    """Read the chains of every question; it is a mistake if there are none."""
    from rechain.datasets.records import read_by_id
    from rechain.schema import Recovered

    with working("Reading chains"):
        chains = read_by_id(path, Recovered)
    if not chains:
        raise InputError(f"{path} holds no chains.")
    return chains


def _print_confidence(rows: list["AtConfidence"], error: float) -> None:
    lines = [
        (f"{row.min_confidence:.2f}", f"{100 * row.kept:.1f} %", f"{100 * row.accuracy.value:.1f} %")
        for row in rows
        if row.accuracy
    ]
    print_table("Chains of at least some confidence", ("confidence", "kept", "right"), lines)
    print(f"Expected calibration error: {100 * error:.1f} %.")
