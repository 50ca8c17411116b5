"""rechain candidates: statistics of C."""

from collections import Counter

from typer import Exit

from rechain.cli.options import (
    CandidateOptions,
    ExitCode,
    GoldFile,
    Log,
    MaxErrorRate,
    QuestionsInput,
    Strict,
    grouped,
    too_many_errors,
)
from rechain.cli.tables import Json, print_figures, print_json, print_table
from rechain.errors import QuestionError
from rechain.system.log import RunLog


@grouped
def candidates(
    *,
    questions: QuestionsInput,
    gold: GoldFile = None,
    json: Json = False,
    options: CandidateOptions,
    strict: Strict = False,
    max_error_rate: MaxErrorRate = None,
    log: Log = None,
) -> None:
    """Build the candidate chains of questions and print statistics: how many, gold among them, why there are none.

    Example: rechain candidates hotpot_dev_distractor_v1.json --only bridge
    """
    from rechain.evaluation.judging import CandidateCount, count_candidates, summarise_candidates

    settings = options.settings()
    golds = questions.gold(gold)
    counts: list[CandidateCount] = []
    with RunLog(log, "candidates", {"input": str(questions.path)}) as run:
        for entry in questions.entries("Building candidates", run):
            question = entry.content
            if isinstance(question, QuestionError):
                count = CandidateCount(0, 0, None, question)
            else:
                count = count_candidates(question, golds.get(question.id), settings, questions.collection)
            if count.error:
                if strict:
                    raise entry.located(count.error)
                run.errors = run.errors + Counter([count.error.code])  # another one, as the log reads it meanwhile
            counts.append(count)
        figures, errors = summarise_candidates(counts), run.errors
        if failure := too_many_errors(errors.total(), len(counts), max_error_rate):
            run.end("", failure)
    cut = sum(count.is_cut for count in counts)
    if json:
        print_json({"figures": figures, "questions without a chain": errors, "questions cut at the limit": cut})
    else:
        print_figures(f"Candidate chains of {questions.path}", figures)
        if errors:
            print_table("Why there is no chain", ("", "questions"), [(code, str(n)) for code, n in errors.items()])
        if cut:
            print(f"{cut} questions have more candidate chains than the limit of {settings.limit}.")
    if failure:
        raise Exit(ExitCode.TOO_MANY_ERRORS)
