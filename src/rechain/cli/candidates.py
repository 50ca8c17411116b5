"""rechain candidates: what C looks like."""

from rechain.cli.options import CandidateOptions, GoldFile, QuestionsInput, Strict, grouped
from rechain.cli.tables import Json, print_figures, print_json, print_table
from rechain.errors import QuestionError


@grouped
def candidates(
    *,
    questions: QuestionsInput,
    gold: GoldFile = None,
    json: Json = False,
    options: CandidateOptions,
    strict: Strict = False,
) -> None:
    """Build the candidate chains of questions and print statistics: how many, gold among them, why there are none.

    Example: rechain candidates hotpot_dev_distractor_v1.json --only bridge
    """
    from rechain.evaluation.candidates import CandidateCount, count_candidates, errors_of, summarise_candidates

    settings = options.settings()
    golds = questions.gold(gold)
    counts: list[CandidateCount] = []
    for entry in questions.entries("Building candidates"):
        if isinstance(entry.content, QuestionError):
            count = CandidateCount(0, 0, None, entry.content)
        else:
            count = count_candidates(entry.content, settings, golds.get(entry.content.id))
        if strict and count.error:
            raise entry.located(count.error)
        counts.append(count)
    figures, errors = summarise_candidates(counts), errors_of(counts)
    cut = sum(count.is_cut for count in counts)
    if json:
        print_json({"figures": figures, "questions without a chain": errors, "questions cut at the limit": cut})
        return
    print_figures(f"Candidate chains of {questions.path}", figures)
    if errors:
        print_table("Why there is no chain", ("", "questions"), [(code, str(n)) for code, n in errors.items()])
    if cut:
        print(f"{cut} questions have more candidate chains than the limit of {settings.limit}.")
