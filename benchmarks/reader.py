"""The default model on data it was not trained on, what its bytes cost, and how fast it is on a CPU.

    python benchmarks/reader.py ../shared/data [FLOAT_MODEL]

FLOAT_MODEL is a folder with such a model unquantised, as `rechain train --model reader` writes it; without it
neither cost nor speed is measured. Speed needs sentence-transformers, is repeated, and its ratios are of one run.
Bootstrap: seed 0. Nothing else should run at the same time.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from common import (
    MUSIQUE_HOPS,
    Pair,
    alternated,
    bridge_pairs,
    candidates_of,
    data_folder,
    musique_pairs,
    percent,
    print_heading,
    print_rows,
    ratios,
    spread,
    two_wiki_pairs,
    verdicts,
)

from rechain.evaluation.judging import JudgedChain, most_confident
from rechain.evaluation.statistics import expected_calibration_error, mean_with_interval
from rechain.paper.game import Players
from rechain.paper.lexicon import vector_rows
from rechain.paper.model import GameModel
from rechain.paper.settings import GameSettings
from rechain.paper.vectors import read_vectors
from rechain.reader.encoders import PretrainedEncoder
from rechain.reader.model import ChainReaderModel
from rechain.reader.pretrained import load
from rechain.reader.settings import TEXT_MARKS
from rechain.scoring import Lexical
from rechain.scoring.interface import BatchModel, Model
from rechain.text.candidates import Candidates

REPEATS = 3
TIMED, JUDGED = 60, 300


def sets(data: Path) -> Iterator[tuple[str, list[list[Pair]], list[int]]]:
    """Yield sets of questions, in parts, with the number of hops of each part for those models that need it."""
    yield "2Wiki train_500, chains", [two_wiki_pairs(data)], [2]
    parts = [musique_pairs(data, kind) for kind in MUSIQUE_HOPS]
    yield "MuSiQue train_100, linear", parts, list(MUSIQUE_HOPS.values())


def compare(data: Path, model: ChainReaderModel) -> None:
    """Print the default model, parts of it and the lexical rule, with and without the number of hops."""
    ways: dict[str, tuple[Model | BatchModel, bool, Sequence[str]]] = {  # whether hops are given, what is subtracted
        "lexical": (Lexical(), False, ()),
        "lexical, hops given": (Lexical(), True, ()),
        "evidence": (with_settings(model, ranker_weight=0.0, reasoner_weight=0.0), False, ["lexical"]),
        "evidence and Ranker": (with_settings(model, reasoner_weight=0.0), False, ["lexical", "evidence"]),
        "default: both and Reasoner": (model, False, ["lexical", "evidence", "evidence and Ranker"]),
        "default, hops given": (model, True, ["lexical, hops given"]),
    }
    rows = []
    for name, parts, hops in sets(data):
        right: dict[str, list[bool]] = {}
        for way, (scorer, is_told, others) in ways.items():
            judged = [
                verdict
                for part, number in zip(parts, hops, strict=True)
                for verdict in verdicts(part, scorer, number if is_told else None)
            ]
            right[way] = [bool(verdict.ordered) for verdict in judged]
            gains = {
                other: mean_with_interval([one - two for one, two in zip(right[way], right[other], strict=True)])
                for other in others
            }
            rows.append(
                (
                    name,
                    len(judged),
                    way,
                    percent(mean_with_interval(right[way])),
                    "; ".join(f"{percent(gain)} over {other}" for other, gain in gains.items()),
                    percent(mean_with_interval([verdict.links for verdict in judged if verdict.links is not None])),
                )
            )
    print_rows(("questions", "number", "model", "ordered chains, %", "points", "links, %"), rows)


def share_right(chosen: Sequence[JudgedChain]) -> str:
    """Return how many of some chains are right, in per cent."""
    return f"{100 * sum(verdict.correct for verdict in chosen) / len(chosen):.2f}"


def cost_of_bytes(pairs: Sequence[Pair], models: dict[str, ChainReaderModel]) -> None:
    """Print accuracy with bytes and floats, with and without the cascade and the Reasoner."""
    rows = []
    for name, model in models.items():
        judged = verdicts(pairs, model)
        rows.append(
            (
                name,
                percent(mean_with_interval([verdict.correct for verdict in judged])),
                f"{expected_calibration_error((v.confidence, v.correct) for v in judged):.4f}",
                share_right(most_confident(judged, 0.75)),
            )
        )
    print(f"HotpotQA open, the first {len(pairs)} unambiguous bridge questions, learnt without gold:\n")
    print_rows(("model", "chain accuracy, %", "calibration error", "best three quarters, %"), rows)


def with_settings(model: ChainReaderModel, **changes: Any) -> ChainReaderModel:
    """Return the same network used in another way."""
    return ChainReaderModel(model.network, model.tokenizer, replace(model.settings, **changes))


class CrossEncoderLoop:
    """What one would write without rechain: a CrossEncoder that reads every chain of C.

    It has the encoder's own weights; its head is new, which changes what it says but not how long it takes.
    """

    def __init__(self, model: ChainReaderModel) -> None:
        from sentence_transformers import CrossEncoder

        self._texts = model
        folder = tempfile.mkdtemp()
        encoder: Any = PretrainedEncoder(model.network.encoder.shape, TEXT_MARKS)
        encoder.load_state_dict(model.network.encoder.state_dict())
        encoder.model.save_pretrained(folder)
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


def game_model(data: Path) -> GameModel:
    """Return the paper's networks at their default size, untrained: their speed is the same."""
    vectors = read_vectors(data / "vectors/glove.6B.100d.subset.npz")
    settings = GameSettings.for_data("hotpotqa")
    return GameModel(Players(torch.from_numpy(vectors.table), 2, settings), vector_rows(vectors.words))


def speeds(data: Path, default: ChainReaderModel, floats: ChainReaderModel) -> None:
    """Print questions a second, from C on, and the ratio to the CrossEncoder in the same run."""
    batch = list(candidates_of(question for question, _ in bridge_pairs(data)[:TIMED]))
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
    times = alternated(list(ways.values()), REPEATS)
    rows = [
        (name, f"{len(batch) / median(own):.1f}", spread(ratios(times[0], own), "{:.1f}"))
        for name, own in zip(ways, times, strict=True)
    ]
    chains = sum(len(candidates.chains) for candidates in batch)
    print(f"{len(batch)} questions with {chains} chains, {torch.get_num_threads()} threads, {REPEATS} repeats:\n")
    print_rows(("what", "questions/s", "times the CrossEncoder"), rows)


def main() -> None:
    """Print the tables."""
    data = data_folder()
    default = load()
    print_heading()
    compare(data, default)
    if len(sys.argv) < 3:
        return
    floats = load(Path(sys.argv[2]))
    speeds(data, default, floats)
    cost_of_bytes(
        bridge_pairs(data)[:JUDGED],
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
