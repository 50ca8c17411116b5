"""rechain reproduce: the paper's tables, from the questions to a report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from rechain.cli.options import Device, GoldFile, Log, Passages, Questions, QuestionsInput
from rechain.cli.tables import print_table
from rechain.cli.train import VectorsFile, read_vectors_of
from rechain.errors import RechainError
from rechain.system.log import RunLog, note

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rechain.evaluation.gold import PairLabel
    from rechain.evaluation.statistics import Figure
    from rechain.schema import Gold, Question


def reproduce(
    data_set: Annotated[str, Argument(metavar="DATASET", help="hotpotqa, drughop or medhop.")],
    questions: Questions,
    out: Annotated[Path, Option(metavar="FOLDER", help="Where everything is kept; nothing is done twice.")],
    test: Annotated[
        Path | None, Option(metavar="FILE", help="Test questions; without them, folds are tested in turn.")
    ] = None,
    more: Annotated[
        Path | None, Option(metavar="FILE", help="Questions that are only trained on, in one more row of `paper`.")
    ] = None,
    passages: Passages = None,
    vectors: VectorsFile = None,
    gold: GoldFile = None,
    table: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="paper, features or ours (default); may be given several times."),
    ] = None,
    folds: Annotated[int, Option(min=2, help="Into how many parts the questions are cut.")] = 5,
    seeds: Annotated[int, Option(min=1, help="How often every row is trained.")] = 3,
    no_ablations: Annotated[bool, Option("--no-ablations", help="The rows of the table alone.")] = False,
    config: Annotated[Path | None, Option(metavar="FILE", help="Settings to change, as TOML.")] = None,
    model: Annotated[Path | None, Option(metavar="RUN", help="A trained model that judges labelled pairs.")] = None,
    device: Device = None,
    processes: Annotated[int, Option(min=1, help="How many plays run side by side.")] = 1,
    prepare_only: Annotated[bool, Option("--prepare-only", help="Only write what is to be played with.")] = False,
    judge_only: Annotated[bool, Option("--judge-only", help="Only judge what is played already.")] = False,
    log: Log = None,
) -> None:
    """Reproduce the paper's tables: train every row over folds and seeds, judge it, and write FOLDER/report.md.

    Example: rechain reproduce hotpotqa hotpot_dev_distractor_v1.json --vectors glove.6B.100d.txt --out hotpotqa
    """
    from rechain.paper.judge import judge_plays
    from rechain.paper.plays import play_all, write_plays
    from rechain.paper.report import NAMES, brief_table, conditions_of, pairs_table, write_report
    from rechain.paper.stage import TableQuestions, check_material, is_prepared, stage
    from rechain.paper.tables import CONDITIONS, HOPS, contest, table_settings
    from rechain.system.log import working
    from rechain.system.tensors import device_named
    from rechain.text.candidates import CandidateSettings

    facts = {"data_set": data_set, "input": str(questions), "out": str(out), "workers": processes}
    with RunLog(log, "reproduce", facts) as run:
        settings = table_settings(data_set, config)
        if unknown := set(table or ()) - settings.keys():
            raise RechainError(f"there is no table '{min(unknown)}'; the tables are {', '.join(CONDITIONS)}.")
        tables = {name: settings[name] for name in table or ["ours"]}
        if more and "paper" not in tables and not judge_only:
            raise RechainError("--more adds a row to the table paper; add --table paper.")
        source = QuestionsInput(path=questions, passages=passages)
        collection = source.collection
        table_questions = TableQuestions.read(
            data_set,
            questions,
            test,
            more,
            lambda path: source.at(path).readable("Reading questions", run),
        )
        # What is wrong with gold, or with a folder of an earlier run, is said before hours of training.
        golds, labels = (
            ({}, []) if prepare_only else _read_gold(table_questions.tested, test or questions, passages, gold)
        )
        was_prepared = is_prepared(out, table_questions, folds)
        if judge_only and not (was_prepared and any((out / "plays").glob("*.safetensors"))):
            raise RechainError(f"nothing was played in {out} yet; leave --judge-only out.")
        if not judge_only:
            if not was_prepared:
                words = read_vectors_of(vectors, run.note)
                with working("Preparing"):
                    stage(out, table_questions, words, CandidateSettings(), folds=folds, collection=collection)
            check_material(out, HOPS[data_set], vectors if was_prepared else None)
            tested_folds = 1 if test else folds
            plays = contest(tables, HOPS[data_set], tested_folds, seeds, not no_ablations, has_more=more is not None)
            write_plays(plays, out)
            if prepare_only:
                run.end(f"{out} is prepared; `python -m rechain.paper.plays {out}` plays it.")
                return
            run.doing = f"playing {len(plays)} plays"
            try:
                play_all(out, plays, device_named(device), processes, is_quiet=not run.is_text)
            except KeyboardInterrupt:
                note(f"What was played is kept in {out}: the same command goes on with the rest.")
                raise
        pairs = _judge_pairs(table_questions.in_table, labels, out, model, vectors, device) if labels else {}
        run.doing = "judging"
        with working("Judging"):
            results = judge_plays(out, table_questions.tested, golds, settings, collection=collection)
        if results.with_gold:
            for condition in conditions_of(results):
                title = f"{NAMES[data_set]}, {condition}: chain accuracy in %"
                print_table(title, *brief_table(results, data_set, condition))
        if pairs:
            print_table("Interacting pairs", *pairs_table(pairs))
        run.end(f"{write_report(out, results, data_set, pairs)} says more.")


def _read_gold(
    tested: "Sequence[Question]", file: Path, passages: Path | None, gold: Path | None
) -> "tuple[Mapping[str, Gold], list[PairLabel]]":
    """Read gold chains and labelled pairs; one of the two is needed."""
    from rechain.paper.judge import choose
    from rechain.paper.pairs import read_pair_labels

    golds, labels = QuestionsInput(path=file, passages=passages).gold(gold), read_pair_labels(gold) if gold else []
    if not labels and not choose(tested, golds):
        hint = f"in {gold}" if gold else f"in {file}; name their file with --gold"
        raise RechainError(f"no question that is to be judged has gold chains {hint}.")
    return golds, labels


def _judge_pairs(
    questions: "Sequence[Question]",
    labels: "list[PairLabel]",
    folder: Path,
    model: Path | None,
    vectors: Path | None,
    device: str | None,
) -> "dict[str, Figure]":
    """Return how well the lexical rule, a guess and a trained Reasoner, if any, recognize interacting pairs."""
    from rechain.paper.model import load_game
    from rechain.paper.pairs import judge_pairs, pairs_of
    from rechain.system.tensors import device_named

    pairs = pairs_of(questions, labels)
    kept = folder / "plays" / "cooperative.0.0.model"  # the weights of the first cooperative play
    if model is None and not kept.exists():
        return judge_pairs(pairs)
    model = model or kept
    reader = load_game(model, read_vectors_of(vectors), device_named(device))
    return judge_pairs(pairs, reader, model.name)
