"""How good the default model is: what `default_model.py judge` prints and `bundle` writes on the card.

The figures are those of readers that did not learn the questions on which they are judged.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rechain.reader.settings import ReaderSettings
from rechain.system.tensors import Array, load_arrays

if TYPE_CHECKING:
    from rechain.evaluation.judging import JudgedChain
    from rechain.evaluation.statistics import Figure
    from rechain.schema import Gold, Question
    from rechain.text.collection import PassageCollection

FOLDS = 5
QUESTIONS, INDEX, PLAYS = "questions.safetensors", "index.json", "plays"
JUDGED, VERDICTS = "judged.safetensors", "verdicts.safetensors"
RIGHT = "right.json"
"""which kept candidates of each question are right by gold: it does not travel to where readers are trained"""
HOTPOT, TRAIN, DRUG = "HotpotQA open", "HotpotQA train_300", "DrugHop open"
LOGS = "our logs"
"""written by benchmarks/logs; their supported questions are the only ones whose gold evidence is learnt from"""
VIEWS = ("ranker", "reasoner", "evidence")
ONE = 1.5
"""what the bundled weights have more for a single passage than was learnt: the public sets need two or more, so readers
that are taught on them hardly ever prefer one. MuSiQue's partial questions need one (docs/measured/default_model.md)"""


class Source(NamedTuple):
    """A set of questions to learn from."""

    file: str
    sizes: tuple[int, ...]
    """how many passages its questions may need, as those who made it say"""
    passages: str | None = None
    gold: str | None = None
    """None: in the file itself"""
    is_judged: bool = True


SOURCES = {
    HOTPOT: Source("hotpotqa/open.json.gz", (2,)),
    "2Wiki open": Source("2wiki/open_582.jsonl.gz", (2, 4)),
    "MuSiQue open": Source("musique/open_519.jsonl.gz", (2, 3, 4)),
    DRUG: Source("drughop/open.jsonl.gz", (2, 3, 4), "drughop/passages.jsonl.gz", "drughop/open.gold.jsonl.gz"),
    TRAIN: Source("hotpotqa/train_300.json.gz", (2,), is_judged=False),
    "HotpotQA train_914": Source("hotpotqa/train_914.jsonl.gz", (2,), is_judged=False),
    "2Wiki train_500": Source("2wiki/train_500.json.gz", (2, 4), is_judged=False),
    "MuSiQue train_100": Source("musique/train_100.json.gz", (2, 3, 4), is_judged=False),
    LOGS: Source("questions.*.jsonl", (1, 2, 3, 4), gold="gold.*.jsonl"),
}


JUDGED_SETS = [name for name, source in SOURCES.items() if source.is_judged]


def questions_of(data: Path, name: str, logs: Path | None = None) -> "list[Question]":
    """Return the questions of a set; nobody tells how many passages each needs, but where the data names entities."""
    from rechain.formats.datasets import read_questions

    source = SOURCES[name]
    passages = None if source.passages is None else data / source.passages
    files = [data / source.file] if name != LOGS else sorted((logs or data).glob(source.file))
    questions = [question for file in files for question in read_questions(file, passages=passages)]
    if name == LOGS:
        gold = gold_of(data, name, logs)
        return [one for one in questions if gold[one.id].chains and gold[one.id].verdict in ("supported", "partly")]
    return questions if name == DRUG else [question.model_copy(update={"hops": None}) for question in questions]


def gold_of(data: Path, name: str, logs: Path | None = None) -> "Mapping[str, Gold]":
    """Return the gold evidence of a set by the identifiers of its questions."""
    from rechain.evaluation.gold import read_gold
    from rechain.formats.datasets.records import read_by_id
    from rechain.schema import Gold

    source = SOURCES[name]
    if name != LOGS:
        return read_gold(data / (source.gold or source.file), questions_of(data, name))
    parts = [read_by_id(file, Gold) for file in sorted((logs or data).glob(str(source.gold)))]
    return {id: gold for part in parts for id, gold in part.items()}


def kind_of(question: "Question", gold: "Gold | None") -> str:
    """Return the type of a question: of HotpotQA's bridge questions, those whose chain is not to be mistaken apart."""
    from rechain.evaluation.judging import is_unambiguous

    if question.type == "bridge" and gold is not None and is_unambiguous(question, gold):
        return "bridge, unambiguous"
    return question.type or question.id.partition("__")[0]


def collection_of(data: Path, name: str) -> "PassageCollection | None":
    """Return the collection of the passages of a set, or None."""
    from rechain.formats.datasets.questions import read_collection

    passages = SOURCES[name].passages
    return None if passages is None else read_collection(data / passages)


class Judged:
    """What is known of every question of a set after training over folds: three views of its chains, and the gold."""

    def __init__(self, stage: Path, name: str) -> None:
        self._names_entities = name == DRUG
        self.splits = name != DRUG
        """whether its questions are of several types"""
        arrays, index = load_arrays(stage / QUESTIONS), json.loads((stage / INDEX).read_text(encoding="utf-8"))
        self._starts = arrays["chain_start"]
        right = json.loads((stage / RIGHT).read_text(encoding="utf-8"))
        places = [place for place, one in enumerate(index["sets"]) if one == name]
        self.rows: list[tuple[int, list[bool]]] = [(place, right["of"][place]) for place in places]
        """for each question, its number (-1: no candidate) and which of its kept candidates are right"""
        self.rows += [(-1, [])] * right["without"].get(name, 0)
        self.kinds = [right["kinds"][place] if place >= 0 else "without a candidate" for place, _ in self.rows]
        self.folds = np.array([arrays["fold"][place] if place >= 0 else -1 for place, _ in self.rows])
        """of each question"""

    def verdicts(self, scores: Array, nothing: float = -1e9, as_shares: bool = False) -> "list[JudgedChain]":
        """Judge the best chain of each question that has scores; `nothing` is the score that none is right.

        Their confidences are as in recovery, or what these are made of: the shares of the chains.
        """
        told = [row for row in self.rows if self._is_told(scores, row[0])]
        return [self._verdict(scores, nothing, *row, as_shares) for row in told]

    def _is_told(self, scores: Array, place: int) -> bool:
        """Return whether the scores are of this question; one without any chain belongs to all folds together."""
        if place >= 0:
            return not np.isnan(scores[self._starts[place]])
        return not any(np.isnan(scores[self._starts[other]]) for other, _ in self.rows if other >= 0)

    def _verdict(
        self, scores: Array, nothing: float, place: int, is_right: Sequence[bool], as_share: bool
    ) -> "JudgedChain":
        from rechain.evaluation.judging import JudgedChain
        from rechain.scoring.interface import ALONE

        if place < 0:
            return JudgedChain(False, False)
        own = scores[self._starts[place] : self._starts[place + 1]]
        chances = np.exp((np.append(own, nothing) - own.max()) / ReaderSettings().temperature)
        best = int(own.argmax())
        share = float(chances[best] / chances.sum())
        is_fitted = self._names_entities and not as_share
        return JudgedChain(True, is_right[best], confidence=ALONE.confidence(share) if is_fitted else share)

    def read_within(self, evidence: Array, margin: float) -> float:
        """Return how many chains a question are read when only those within a margin of the best by evidence are."""
        places = [place for place, _ in self.rows if place >= 0]
        close = [int((own >= own.max() - margin).sum()) for own in map(partial(self._own, evidence), places)]
        return sum(number for number in close if number > 1) / len(places)

    def cascade(self, evidence: Array, rest: Array, margin: float) -> Array:
        """Return scores where only chains within a margin were read; the others have what the worst of these has."""
        scores = evidence.copy()
        for place in (place for place, _ in self.rows if place >= 0):
            own = slice(self._starts[place], self._starts[place + 1])
            close = evidence[own] >= evidence[own].max() - margin
            scores[own] += np.where(close, rest[own], rest[own][close].min()) - rest[own][close].max()
        return scores

    def as_recovered(self, views: Mapping[str, Array]) -> Array:
        """Return the scores of all views where those within the margin were read, as in recovery."""
        evidence = views["evidence"]
        return self.cascade(evidence, joint(views) - evidence, ReaderSettings().margin)

    def _own(self, scores: Array, place: int) -> Array:
        return scores[self._starts[place] : self._starts[place + 1]]


def views_of(stage: Path) -> dict[str, Array]:
    """Return the views of all chains, each by the reader of the fold that was not trained on it."""
    from rechain.text.evidence.features import FEATURES

    features = load_arrays(stage / QUESTIONS)["features"]
    views = {name: np.full(len(features), np.nan) for name in VIEWS}
    for fold in range(FOLDS):
        of_fold = load_arrays(stage / PLAYS / f"fold{fold}.safetensors")
        for name in VIEWS:
            views[name][of_fold["chains"]] = of_fold[name]
    views["evidence"] += ONE * features[:, FEATURES.index("one")]
    return views


def judge(stage: Path, data: Path) -> None:
    """Print how good the judge is, what each view adds, how confidence is calibrated, and what the cascade saves."""
    from common import percent, print_heading, print_rows

    from rechain.evaluation.statistics import mean_with_interval

    print_heading()
    print_rows(("answers", "AUC, %"), [(name, percent(figure)) for name, figure in judge_figures(stage).items()])
    print(f"MuSiQue's partial questions, which need one passage, bundled model: {percent(alone_figure(data))} %\n")
    arrays = load_arrays(stage / QUESTIONS)
    prior = np.array(json.loads((stage / INDEX).read_text(encoding="utf-8"))["prior"], dtype=np.float32)
    views = views_of(stage)
    for name in JUDGED_SETS:
        judged = Judged(stage, name)
        print(f"## {name}, {len(judged.rows)} questions, {FOLDS}-fold cross-fitted\n")
        judge_views(judged, views, arrays["features"] @ prior)
        if judged.splits and name != LOGS:
            print(f"`lexical`, every type: {percent(lexical_figure(data, name))} %\n")
        kept = mean_with_interval([any(is_right) for _, is_right in judged.rows])
        print(f"A right chain is among those kept: {percent(kept)} %\n")
        if name == DRUG:
            judge_new_passages(judged, views, data)
        judge_confidence(judged, views, name)
        judge_cascade(judged, views)


def alone_figure(data: Path) -> "Figure | None":
    """Return how often the bundled model finds exactly the passage of a question that needs one."""
    from evidence import partial_questions

    from rechain.evaluation.statistics import mean_with_interval
    from rechain.recoverer import Recoverer

    recoverer, asked = Recoverer(), list(partial_questions(data / "musique/train_100.json.gz"))
    found = [recoverer.recover(question.model_copy(update={"hops": None})).chains for question, _ in asked]
    return mean_with_interval([chains[0].passages == [id] for chains, (_, id) in zip(found, asked, strict=True)])


def lexical_figure(data: Path, name: str) -> "Figure | None":
    """Return how often the best chain of the lexical rule has exactly the right passages."""
    from rechain.evaluation.judging import is_correct
    from rechain.evaluation.statistics import mean_with_interval
    from rechain.recoverer import Recoverer

    questions, gold = questions_of(data, name), gold_of(data, name)
    right = []
    for question, recovered in zip(questions, Recoverer("lexical").recover_many(questions), strict=True):
        (best, told) = (recovered.chains[0] if recovered.chains else None), gold.get(question.id)
        right.append(bool(best and told and is_correct(best.passages, [], told, best.shape)))
    return mean_with_interval(right)


def sections(stage: Path, data: Path) -> dict[str, str]:
    """Return the sections of the model card, with cross-fitted figures."""
    from common import percent

    from rechain.evaluation.judging import most_confident
    from rechain.evaluation.statistics import expected_calibration_error, mean_with_interval

    views = views_of(stage)
    figures = {}
    for name in JUDGED_SETS:
        judged = Judged(stage, name)
        verdicts = judged.verdicts(judged.as_recovered(views), NOTHING[name])
        told = f"{name}, {len(verdicts)} questions, {FOLDS}-fold cross-fitted"
        figures[f"{told}: exact passages, %"] = percent(mean_with_interval([v.correct for v in verdicts]))
        figures[f"{told}: expected calibration error"] = _round(
            expected_calibration_error((v.confidence, v.correct) for v in verdicts)
        )
        figures[f"{told}: accuracy of the most confident three quarters, %"] = _percent(most_confident(verdicts, 0.75))
    figures |= {f"AUC of the judge, {name}, %": percent(figure) for name, figure in judge_figures(stage).items()}
    training = f"Trained by `benchmarks/default_model.sh`, whose head lists the commands; bundled on {date.today()}."
    return {
        "Trained on": "\n".join([*(f"- {line}" for line in DATA_LINES), "", training]),
        "Figures": "\n".join(
            ["| what | measured |", "|---|---|", *(f"| {what} | {f} |" for what, f in figures.items())]
        ),
        "Limits": "\n".join(f"- {line}" for line in LIMITS),
    }


def judge_figures(stage: Path) -> "dict[str, Figure]":
    """Return how often the judge scores a right answer above a wrong one, set by set.

    Wrong are other questions' answers of the same kind that occur in the same passages (`verdicts.py`). Of HotpotQA
    each question is judged by the reader that did not learn it, of the other sets by the one that is bundled.
    """
    from verdicts import SETS

    from rechain.evaluation.statistics import auc_with_interval

    arrays, figures = load_arrays(stage / VERDICTS), {}
    answers = np.diff(arrays["case_start"])
    for place, name in enumerate(SETS):
        told = []
        for play in ["all"] if place else [f"fold{fold}" for fold in range(FOLDS)]:
            outputs = load_arrays(stage / PLAYS / f"{play}.safetensors")
            fold = np.repeat(arrays["fold"][outputs["verdicts.questions"]], answers[outputs["verdicts.questions"]])
            is_of_set = fold == -place if place else fold >= 0
            told.append((outputs["verdicts"][is_of_set], outputs["verdicts.right"][is_of_set].astype(bool)))
        logits, is_right = map(np.concatenate, zip(*told, strict=True))
        fitted = "not learnt from" if place else f"{FOLDS}-fold cross-fitted"
        label = f"{name}, {is_right.sum()} right and {(~is_right).sum()} wrong answers, {fitted}"
        figures[label] = auc_with_interval(logits, is_right)
    return figures


DATA_LINES = (
    "questions and answers of 4,697 bridge questions of HotpotQA's dev set (`open`) and 229 of its training set "
    "(CC BY-SA 4.0)",
    "questions and answers of 2,757 DrugHop questions (`open`), made from DrugProt's abstracts (CC BY 4.0)",
    "the judge: right and wrong answers of 6,074 questions of every type of the same files of HotpotQA, half of them "
    "written as sentences; wrong are other questions' answers and other names, values and words of the passages",
    "the encoder starts from bge-small-en-v1.5 (MIT)",
    "of these, the 7,671 that have a candidate chain",
    "no evidence label was trained on; settings, also of confidence, were chosen by looking at the labels of `open`",
)
LIMITS = (
    "English; other scripts are linked by what they share, but the network has not learnt to read them.",
    "Cheap evidence decides most questions; the network adds one point on HotpotQA and two and a half on DrugHop.",
    "On biomedical chains about one in five is wrong.",
    "Where several chains lead to the answer, it may find another than the annotators'.",
    'The judge compares and counts badly: of "yes" and "no", and of which is older, it knows little.',
    "Chains of four passages are searched for, but it has hardly been tested on them.",
)


def joint(views: Mapping[str, Array], reasoner: bool = True) -> Array:
    """Return what the views say together, as in recovery."""
    settings = ReaderSettings()
    reasoner_scores = settings.reasoner_weight * views["reasoner"] if reasoner else 0.0
    return views["evidence"] + settings.ranker_weight * views["ranker"] + reasoner_scores


def judge_views(judged: Judged, views: dict[str, Array], prior: Array) -> None:
    """Print accuracy view by view."""
    from common import percent, print_rows

    from rechain.evaluation.statistics import mean_with_interval

    rows = {
        "evidence, as the prior weighs it": prior,
        "evidence, as learnt": views["evidence"],
        "Ranker alone": views["ranker"],
        "Ranker and evidence (without the Reasoner)": joint(views, reasoner=False),
        "all three": joint(views),
    }
    print_rows(
        ("view", "exact passages, %"),
        (
            (name, percent(mean_with_interval([verdict.correct for verdict in judged.verdicts(scores)])))
            for name, scores in rows.items()
        ),
    )
    whole, alone = (
        np.array([verdict.correct for verdict in judged.verdicts(scores)], dtype=float)
        for scores in (joint(views), prior)
    )
    right = whole > 0
    kinds = np.array(judged.kinds)
    if judged.splits:
        of_kind = [(kind, right[kinds == kind].tolist()) for kind in sorted(set(judged.kinds))]
        print_rows(
            ("questions", "number", "all three, exact passages, %"),
            [(kind, len(one), percent(mean_with_interval(one))) for kind, one in of_kind],
        )
    print(f"All three less the prior, paired: {percent(mean_with_interval((whole - alone).tolist()))} points\n")


def judge_new_passages(judged: Judged, views: dict[str, Array], data: Path) -> None:
    """Print accuracy where the passages of a gold chain are all met in training, and where at least one is new.

    Folds are by start drug: a passage may be offered by questions of several. No cut parts the questions into folds
    that share no passage, as passages that questions share join every one to every other.
    """
    from common import percent, print_rows, with_gold

    from rechain.evaluation.statistics import mean_with_interval

    pairs = list(with_gold(questions_of(data, DRUG), data / "drughop/open.gold.jsonl.gz"))
    offered: dict[str, set[int]] = {}
    for (question, _), fold in zip(pairs, judged.folds, strict=True):
        for passage in question.passages if fold >= 0 else ():  # one without candidates teaches nothing
            offered.setdefault(passage.id, set()).add(int(fold))
    has_new = np.array(
        [
            all(any(offered[id] == {int(fold)} for id in chain.passages) for chain in gold.chains)
            for (_, gold), fold in zip(pairs, judged.folds, strict=True)
        ]
    )
    right = [
        np.array([verdict.correct for verdict in judged.verdicts(scores)])
        for scores in (views["evidence"], joint(views))
    ]
    rows = [
        (told, int(chosen.sum()), *(percent(mean_with_interval(one[chosen].tolist())) for one in right))
        for told, chosen in (("all met in training", ~has_new), ("at least one new", has_new))
    ]
    print_rows(("passages of the gold chain", "questions", "evidence, as learnt, %", "all three, %"), rows)


NOTHING = {name: -13.8 if name == DRUG else 5.0 for name in JUDGED_SETS}
"""the score of `rechain.text.evidence.features.nothing` with the prior's weights"""


def judge_confidence(judged: Judged, views: dict[str, Array], name: str) -> None:
    """Print calibration, and accuracy among the most confident."""
    from common import print_rows

    from rechain.evaluation.judging import most_confident
    from rechain.evaluation.statistics import expected_calibration_error

    scores = judged.as_recovered(views)
    verdicts = judged.verdicts(scores, NOTHING[name])
    error = expected_calibration_error((v.confidence, v.correct) for v in verdicts)
    shares = {"half": 0.5, "three quarters": 0.75}
    rows = [(f"accuracy, best {share}, %", _percent(most_confident(verdicts, shares[share]))) for share in shares]
    print_rows(
        ("confidence", "measured"),
        [("expected calibration error", _round(error)), *rows],
    )
    if name == DRUG:
        refit_confidence(judged, scores, verdicts)


def refit_confidence(judged: Judged, scores: Array, verdicts: "Sequence[JudgedChain]") -> None:
    """Print how shares become confidences: fitted to all folds, and the error where each is fitted to the others."""
    from joint import fit, fitted_across

    shares = np.array([verdict.confidence or 0.0 for verdict in judged.verdicts(scores, NOTHING[DRUG], as_shares=True)])
    correct, folds = np.array([verdict.correct for verdict in verdicts]), judged.folds
    slope, offset = fit(shares, correct)
    error, _ = fitted_across(shares, correct, folds)
    print(f"Fitted to all folds: slope {slope:.2f}, offset {offset:.2f}; fitted to other folds: error {error:.4f}\n")


def _round(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _percent(verdicts: "Sequence[JudgedChain]") -> str:
    return f"{100 * sum(verdict.correct for verdict in verdicts) / len(verdicts):.2f}"


def judge_cascade(judged: Judged, views: dict[str, Array]) -> None:
    """Print what is read, and what is right, when only chains within a margin of the best by evidence are read."""
    from common import print_rows

    rows = []
    for margin in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 1e9):
        scores = judged.cascade(views["evidence"], joint(views) - views["evidence"], margin)
        accuracy = np.mean([verdict.correct for verdict in judged.verdicts(scores)])
        told = "none" if margin > 1e8 else f"{margin:g}"
        rows.append((told, f"{judged.read_within(views['evidence'], margin):.2f}", f"{100 * accuracy:.1f}"))
    print_rows(("margin", "chains read a question", "exact passages, %"), rows)
