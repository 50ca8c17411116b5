"""rechain evaluate: how good recovered chains are, and which of two files has the better ones."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from typer import Argument, Option

from rechain.cli.options import (
    GoldFile,
    OutputOptions,
    Overwrite,
    QuestionsInput,
    Strict,
    grouped,
    show_provenance,
)
from rechain.cli.tables import Json, print_figures, print_json, print_table
from rechain.errors import InputError, RechainError
from rechain.system.files import path_of
from rechain.system.log import note, working

if TYPE_CHECKING:
    from rechain.evaluation.judging import Comparison, JudgedAnswer, JudgedChain
    from rechain.evaluation.statistics import Figure
    from rechain.schema import Recovered
    from rechain.system.provenance import Facts


@grouped
def evaluate(
    *,
    chains: Annotated[
        list[Path],
        Argument(
            metavar="CHAINS [CHAINS]",
            parser=path_of,
            help="Chains, as `rechain recover` writes them; two are compared.",
        ),
    ],
    questions: QuestionsInput,
    gold: GoldFile = None,
    unambiguous: Annotated[
        bool, Option("--unambiguous", help="Only questions with exactly one gold passage that contains the answer.")
    ] = False,
    json: Json = False,
    strict: Strict = False,
    differences: Annotated[
        Path | None, Option(metavar="FILE", help="Where to write questions for which only one of two files is right.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Compare recovered chains with gold chains and, of two files, with each other.

    Example: rechain evaluate chains.jsonl hotpot_dev_distractor_v1.json --only bridge --unambiguous

    Example: rechain evaluate before.jsonl after.jsonl questions.jsonl --gold gold.jsonl
    """
    from rechain.formats.datasets.records import read_by_id
    from rechain.schema import Recovered
    from rechain.system.provenance import compare, read_provenance

    if len(chains) > 2:
        files = f"not {len(chains)} of chains"
        raise RechainError(f"evaluate takes one or two files of chains and then one of questions, {files}.")
    if differences and len(chains) == 1:
        raise RechainError("--differences is for two files of chains; name the other, or leave it out.")
    lines = OutputOptions(differences, overwrite)
    lines.check(*chains, questions.path, gold)
    recovered: list[Mapping[str, Recovered]] = []
    for path in chains:
        with working("Reading chains"):
            recovered.append(read_by_id(path, Recovered))
        if not recovered[-1]:
            raise InputError(f"{path} holds no chains.")
    judged = list(_judged(recovered, questions, gold, unambiguous, strict))
    for number, path in enumerate(chains):
        if not any(each.is_held[number] for each in judged):
            raise RechainError(f"{path} holds the chains of none of these questions.")
    provenances = [read_provenance(path) for path in chains]
    for provenance in provenances:
        show_provenance(provenance, questions.path)
    histories = [provenance for provenance in provenances if provenance and provenance.made_by]
    for difference in compare(histories) if len(histories) == 2 else ():
        note(difference)
    facts = [{"made by": one.made_by, "end": one.end} if one else None for one in provenances]
    if len(chains) == 1:
        _evaluate_one(chains[0], judged, facts[0], json)
    else:
        _evaluate_two(chains, judged, facts, json, lines)


class _Judged(NamedTuple):
    """Whether the chains and the verdicts of a question are right, and which files contain it; file by file."""

    id: str
    verdicts: "Sequence[JudgedChain]"
    is_held: Sequence[bool]
    has_chain: bool
    """whether a right chain exists; there is none for an answer that nothing supports"""
    answers: "Sequence[JudgedAnswer]" = ()
    """the verdicts on its answer, if gold has one"""


def _judged(
    recovered: "Sequence[Mapping[str, Recovered]]",
    questions: QuestionsInput,
    gold: Path | None,
    unambiguous: bool,
    strict: bool,
) -> Iterator[_Judged]:
    """Judge the chains of every selected question with gold; raises if there is none."""
    from rechain.evaluation.judging import JudgedAnswer, is_unambiguous, judge

    golds = questions.gold(gold)
    is_empty = True
    for question in questions.readable("Evaluating", strict=strict):
        if (right := golds.get(question.id)) and (not unambiguous or is_unambiguous(question, right)):
            is_empty = False
            found = [of_file.get(question.id) for of_file in recovered]
            verdicts = [judge(each.chains[0] if each and each.chains else None, right) for each in found]
            answers = [JudgedAnswer.of(each, right.verdict) for each in found] if right.verdict else ()
            has_chain = bool(right.chains) or right.verdict not in ("unsupported", "no_answer")
            yield _Judged(question.id, verdicts, [each is not None for each in found], has_chain, answers)
    if is_empty:
        hint = f"in {gold}" if gold else "in it; name their file with --gold"
        raise RechainError(f"no question of {questions.path} that was asked for has gold chains {hint}.")


def _evaluate_one(path: Path, judged: Sequence[_Judged], provenance: "Facts | None", json: bool) -> None:
    """Print the figures of a file; questions that are not in it count as wrong."""
    from rechain.evaluation.judging import accuracy_at_confidence, summarise, summarise_verdicts
    from rechain.evaluation.statistics import expected_calibration_error

    if missing := sum(not each.is_held[0] for each in judged):
        note(f"{missing} questions are not in {path}; they count as wrong.")
    verdicts = [each.verdicts[0] for each in judged if each.has_chain]
    answers = [each.answers[0] for each in judged if each.answers]
    figures, at_confidence = summarise(verdicts), accuracy_at_confidence(verdicts)
    error = expected_calibration_error((verdict.confidence, verdict.correct) for verdict in verdicts)
    of_answers = summarise_verdicts(answers)
    answers_error = expected_calibration_error((answer.probability, answer.is_right) for answer in answers)
    if json:
        report: Facts = {
            "figures": figures,
            "expected calibration error": error,
            "accuracy at confidence": at_confidence,
        }
        if of_answers:
            report["verdicts"] = {"figures": of_answers, "expected calibration error": answers_error}
        print_json({**report, "provenance": provenance})
        return
    print_figures(f"Chains of {path}", figures)
    if error is not None:
        rows = [
            (f"{row.min_confidence:.2f}", f"{100 * row.kept:.1f} %", f"{100 * row.accuracy.value:.1f} %")
            for row in at_confidence
            if row.accuracy
        ]
        print_table("Chains of at least some confidence", ("confidence", "kept", "right"), rows)
        print(f"Expected calibration error: {100 * error:.1f} %.")
    if of_answers:
        print_figures(f"Verdicts of {path}", of_answers)
    if answers_error is not None:
        print(f"Expected calibration error of verdicts: {100 * answers_error:.1f} %.")


def _evaluate_two(
    paths: Sequence[Path],
    judged: Sequence[_Judged],
    provenances: "Sequence[Facts | None]",
    json: bool,
    lines: OutputOptions,
) -> None:
    """Print the figures of two files over the questions in both, and by how much the second is better."""
    import orjson

    from rechain.evaluation.judging import compare, summarise
    from rechain.system.provenance import describe_input, heading

    in_both = [each for each in judged if all(each.is_held) and each.has_chain]
    if not in_both:
        raise RechainError(f"{paths[0]} and {paths[1]} hold the chains of no question in common.")
    if left_out := sum(not all(each.is_held) for each in judged):
        note(f"{left_out} questions are not in both files; they are left out.")
    first, second = zip(*(each.verdicts for each in in_both), strict=True)
    comparisons, figures = compare(first, second), [summarise(first), summarise(second)]
    differing = [
        {"id": each.id, "first": each.verdicts[0].correct, "second": each.verdicts[1].correct}
        for each in in_both
        if each.verdicts[0].correct != each.verdicts[1].correct
    ]
    if lines.out:
        made_by = heading("evaluate", chains=[describe_input(path) for path in paths])
        lines.write((orjson.dumps(each).decode() for each in differing), made_by)
    if json:
        files = [
            {"chains": str(path), "figures": each, "provenance": provenance}
            for path, each, provenance in zip(paths, figures, provenances, strict=True)
        ]
        compared = {name: {**each._asdict(), "difference": each.gain} for name, each in comparisons.items()}
        print_json({"first": files[0], "second": files[1], "compared": compared, "differences": differing})
    else:
        _print_comparison(paths, figures, comparisons)


def _print_comparison(
    paths: Sequence[Path], figures: "Sequence[Mapping[str, Figure]]", comparisons: "Mapping[str, Comparison]"
) -> None:
    rows = []
    for name, comparison in comparisons.items():
        if gain := comparison.gain:
            values = [f"{100 * each[name].value:.1f} %" for each in figures]
            interval = f"{100 * gain.low:+.1f} to {100 * gain.high:+.1f}"
            rows.append((name, *values, f"{100 * gain.value:+.1f}", interval, str(gain.questions)))
    title = f"Chains of {paths[0]} (first) and {paths[1]} (second)"
    print_table(title, ("", "first", "second", "difference", "95 % interval", "questions"), rows)
    counts = comparisons["chain accuracy"]._asdict().items()
    print_table("Right chains", ("", "questions"), [(kind.replace("_", " "), str(count)) for kind, count in counts])
