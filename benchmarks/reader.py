"""The default model on data it was not trained on, what its bytes cost, and how fast it is on a CPU.

    python benchmarks/reader.py ../shared/data FLOAT_MODEL

FLOAT_MODEL is a folder with the same model unquantised (`benchmarks/default_model.py bundle … --floats`). Needs
sentence-transformers. Every speed is repeated; ratios are of one run. Bootstrap: seed 0. Nothing else should run
beside it: two threads that wait for each other are slow on busy cores.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from common import Pair, data_folder, percent, print_heading, print_rows, with_gold

from rechain.candidates import Candidates, CandidateSettings, find_candidates
from rechain.datasets import read_questions
from rechain.errors import QuestionError
from rechain.evaluation.judging import Verdict, is_unambiguous, judge, most_confident
from rechain.evaluation.statistics import expected_calibration_error, mean_with_interval
from rechain.game.model import TrainedModel
from rechain.game.players import Players
from rechain.game.settings import GameSettings
from rechain.models.text_encoders import in_transformers
from rechain.preparation.lexicon import vector_rows
from rechain.preparation.vectors import read_vectors
from rechain.reader.model import ChainReaderModel
from rechain.reader.pretrained import load
from rechain.recovery import Recoverer
from rechain.schema import Question
from rechain.scoring import Lexical
from rechain.scoring.model import BatchModel, Model

REPEATS = 3
TIMED, JUDGED = 60, 300


def judged(pairs: Sequence[Pair], model: Model | BatchModel, hops: int | None = None) -> list[Verdict]:
    """Recover the chain of every question and judge it."""
    recoverer = Recoverer(model, settings=CandidateSettings(hops=hops))
    found = recoverer.recover_many([question for question, _ in pairs])
    return [judge(result[0] if result else None, gold) for result, (_, gold) in zip(found, pairs, strict=True)]


def sets(data: Path) -> Iterator[tuple[str, list[list[Pair]], list[int]]]:
    """Yield sets of questions, in parts, with the number of hops of each part for those who are to be told it."""
    file = data / "2wiki/train_500.json.gz"
    yield "2Wiki train_500, chains", [with_gold(read_questions(file, only=["compositional", "inference"]), file)], [2]
    file = data / "musique/train_100.json.gz"
    kinds = {"2hop": 2, "3hop1": 3, "4hop1": 4}
    yield (
        "MuSiQue train_100, linear",
        [with_gold(read_questions(file, only=[kind]), file) for kind in kinds],
        list(kinds.values()),
    )


def compare(data: Path, model: ChainReaderModel) -> None:
    """Print the default model beside the lexical rule, told how many hops there are or not."""
    rows = []
    for name, parts, hops in sets(data):
        verdicts: dict[str, list[Verdict]] = {
            "lexical": [],
            "lexical, told the hops": [],
            "default": [],
            "default, told": [],
        }
        for part, told in zip(parts, hops, strict=True):
            verdicts["lexical"] += judged(part, Lexical())
            verdicts["lexical, told the hops"] += judged(part, Lexical(), told)
            verdicts["default"] += judged(part, model)
            verdicts["default, told"] += judged(part, model, told)
        for way, found in verdicts.items():
            rival = verdicts["lexical, told the hops" if "told" in way else "lexical"]
            gain = [
                float(bool(one.ordered)) - float(bool(other.ordered)) for one, other in zip(found, rival, strict=True)
            ]
            links = [verdict.links for verdict in found if verdict.links is not None]
            rows.append(
                (
                    name,
                    len(found),
                    way,
                    percent(mean_with_interval([bool(verdict.ordered) for verdict in found])),
                    percent(mean_with_interval(gain)) if way.startswith("default") else "",
                    percent(mean_with_interval(links)),
                )
            )
    print_rows(("questions", "number", "model", "ordered chains, %", "over lexical, points", "links, %"), rows)


def unambiguous(data: Path, file: str, limit: int | None = None) -> list[Pair]:
    """Return the unambiguous bridge questions of a HotpotQA file."""
    pairs = with_gold(read_questions(data / file, only=["bridge"]), data / file)
    return [pair for pair in pairs if is_unambiguous(*pair)][:limit]


def share_right(verdicts: Sequence[Verdict]) -> str:
    """Return how many of some chains are right, in per cent."""
    return f"{100 * sum(verdict.correct for verdict in verdicts) / len(verdicts):.2f}"


def cost_of_bytes(pairs: Sequence[Pair], models: dict[str, ChainReaderModel]) -> None:
    """Print accuracy with bytes and floats, with and without the cascade and the Reasoner."""
    rows = []
    for name, model in models.items():
        found = judged(pairs, model)
        rows.append(
            (
                name,
                percent(mean_with_interval([verdict.correct for verdict in found])),
                f"{expected_calibration_error((v.confidence, v.correct) for v in found):.4f}",
                share_right(most_confident(found, 0.75)),
            )
        )
    print(f"HotpotQA open, the first {len(pairs)} unambiguous bridge questions, learnt without gold:\n")
    print_rows(("model", "chain accuracy, %", "calibration error", "best three quarters, %"), rows)


def with_settings(model: ChainReaderModel, **changes: Any) -> ChainReaderModel:
    """Return the same network used in another way."""
    return ChainReaderModel(model.network, model.tokenizer, replace(model.settings, **changes))


def candidates_of(questions: Sequence[Question]) -> list[Candidates]:
    """Build C of the questions that have one."""
    found = []
    for question in questions:
        try:
            found.append(find_candidates(question))
        except QuestionError:
            continue
    return found


class CrossEncoderLoop:
    """What one would write without rechain: a CrossEncoder that reads every chain of C.

    It has the encoder's own weights; its head is new, which changes what it says but not how long it takes.
    """

    def __init__(self, model: ChainReaderModel) -> None:
        from sentence_transformers import CrossEncoder

        self._texts = model
        folder = tempfile.mkdtemp()
        encoder: Any = model.network.encoder
        in_transformers(encoder.model).save_pretrained(folder)
        _save_tokenizer(model, folder)
        self._model = CrossEncoder(folder, num_labels=1, max_length=model.settings.max_tokens, device="cpu")

    def read(self, batch: Sequence[Candidates]) -> None:
        """Score every chain."""
        self._model.predict([pair for candidates in batch for pair in self._pairs(candidates)], show_progress_bar=False)

    def _pairs(self, candidates: Candidates) -> Iterator[tuple[str, str]]:
        texts = [f"{view.passage.title}: {view.passage.text}" for view in candidates.views]
        for chain in candidates.chains:
            yield candidates.question.question, " ".join(texts[passage] for passage in chain.passages)


def _save_tokenizer(model: ChainReaderModel, folder: str) -> None:
    from transformers import PreTrainedTokenizerFast

    names = {
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "mask_token": "[MASK]",
    }
    make: Any = PreTrainedTokenizerFast
    make(tokenizer_object=model.tokenizer, **names).save_pretrained(folder)


def game_model(data: Path) -> TrainedModel:
    """Return the paper's networks at their default size; how long they take does not hang on what they have learnt."""
    vectors = read_vectors(data / "vectors/glove.6B.100d.subset.npz")
    settings = GameSettings.for_data("hotpotqa")
    return TrainedModel(Players(torch.from_numpy(vectors.table), 2, settings), settings, vector_rows(vectors.words))


def speeds(data: Path, default: ChainReaderModel, floats: ChainReaderModel) -> None:
    """Print questions a second, from C on, and the ratio to the CrossEncoder in the same run."""
    batch = candidates_of([question for question, _ in unambiguous(data, "hotpotqa/open.json.gz", TIMED)])
    everything = {"margin": 1e9, "most_chains": 10**6}
    rival, game, lexical = CrossEncoderLoop(floats), game_model(data), Lexical()
    whole = with_settings(default, **everything)
    ways: dict[str, Callable[[], object]] = {
        "sentence-transformers CrossEncoder, fp32, all of C": lambda: rival.read(batch),
        "fp32, all of C, packed": lambda: with_settings(floats, **everything).score_many(batch),
        "fp32, cascade": lambda: floats.score_many(batch),
        "int8, all of C": lambda: whole.score_many(batch),
        "int8, cascade (the default model)": lambda: default.score_many(batch),
        "the paper's GRU (`rechain train`)": lambda: [game.score(candidates) for candidates in batch],
        "lexical": lambda: [lexical.score(candidates) for candidates in batch],
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS):
        for name, work in ways.items():
            start = time.perf_counter()
            work()
            taken[name].append(time.perf_counter() - start)
    base = taken["sentence-transformers CrossEncoder, fp32, all of C"]
    rows = []
    for name, seconds in taken.items():
        ratios = [slow / own for slow, own in zip(base, seconds, strict=True)]
        rows.append(
            (
                name,
                f"{len(batch) / median(seconds):.1f}",
                f"{median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})",
            )
        )
    chains = sum(len(candidates.chains) for candidates in batch)
    print(f"{len(batch)} questions with {chains} chains, {torch.get_num_threads()} threads, {REPEATS} repeats:\n")
    print_rows(("what", "questions/s", "times the CrossEncoder"), rows)


def main() -> None:
    """Print the tables."""
    data = data_folder()
    default, floats = load(), load(Path(sys.argv[2]))
    print_heading()
    compare(data, default)
    speeds(data, default, floats)
    cost_of_bytes(
        unambiguous(data, "hotpotqa/open.json.gz", JUDGED),
        {
            "int8, cascade (the default)": default,
            "int8, every chain read": with_settings(default, margin=1e9, most_chains=10**6),
            "fp32, every chain read": with_settings(floats, margin=1e9, most_chains=10**6),
            "int8, cascade, without the Reasoner": with_settings(default, reasoner_weight=0.0),
            "evidence alone": with_settings(default, ranker_weight=0.0, reasoner_weight=0.0),
        },
    )


if __name__ == "__main__":
    main()
