"""rechain candidates: what C looks like."""

from rechain.cli.options import (
    GoldFile,
    Hops,
    Limit,
    Linkers,
    LinkTypes,
    MinWeight,
    Only,
    Passages,
    Questions,
    Strict,
    candidate_settings,
    entries,
    gold_of,
    readable,
)
from rechain.cli.tables import Json, print_figures, print_json, print_table


def candidates(
    questions: Questions,
    gold: GoldFile = None,
    json: Json = False,
    passages: Passages = None,
    only: Only = None,
    hops: Hops = None,
    link_types: LinkTypes = None,
    linkers: Linkers = None,
    min_weight: MinWeight = None,
    limit: Limit = None,
    strict: Strict = False,
) -> None:
    """Build the candidate chains of questions and print statistics: how many, gold among them, why there are none.

    Example: rechain candidates hotpot_dev_distractor_v1.json --only bridge
    """
    from rechain.evaluation import CandidateCount, count_candidates, errors_of, summarise_candidates

    settings = candidate_settings(hops, link_types, linkers, min_weight, limit)
    golds = gold_of(questions, passages, gold)
    counts: list[CandidateCount] = []
    for entry in entries(questions, passages, only, "Building candidates"):
        if question := readable(entry, strict):
            counts.append(count_candidates(question, settings, golds.get(question.id)))
        else:
            counts.append(CandidateCount(0, 0, None, error="unreadable"))
    figures, errors = summarise_candidates(counts), errors_of(counts)
    cut = sum(count.is_cut for count in counts)
    if json:
        print_json({"figures": figures, "questions without a chain": errors, "questions cut at the limit": cut})
        return
    print_figures(f"Candidate chains of {questions}", figures)
    if errors:
        print_table("Why there is no chain", ("", "questions"), [(code, str(n)) for code, n in errors.items()])
    if cut:
        print(f"{cut} questions have more candidate chains than the limit of {settings.limit}.")
