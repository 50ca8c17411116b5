"""Retrievers and selectors of the proof: trained on the labels of one supervision, tried on questions they never saw.

A play needs torch, transformers, numpy and safetensors alone, and what `prepare` has written, which can be carried to a
GPU machine. All texts are there as tokens, so that nothing is computed beside the GPU.
"""

import copy
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, normalize

from rechain.errors import RechainError
from rechain.reader.cpu import dequantise
from rechain.system.processes import in_order
from rechain.system.tensors import Array, load_arrays, save_arrays

ARRAYS, TEXTS, ENCODER, SELECTOR = "arrays", "texts.safetensors", "encoder", "selector"
GOLD, CARRY, PLAN, PLAYED = "gold.safetensors", "carry", "plan.json", "plays"
encoder_files = SimpleNamespace(weights="weights.safetensors", config="config.json")
SETS = ("hotpotqa", "2wiki", "musique")
TOP = 20
"""passages that are kept of what a retriever finds"""
NEGATIVES = 8
"""hard negatives that are kept of a question"""
TOKENS, QUESTION_TOKENS, JOINED_TOKENS = 126, 46, 142
"""of a passage, of a question, and of the two together, without the marks of beginning and end"""
FOLDS, SEEDS = range(5), range(3)
SUPERVISED = ("default", "gold", "answer", "bm25", "lexical", "default90")
SHARES = {"gold10": 0.1, "gold25": 0.25, "gold50": 0.5}
"""rows in which a part of the questions has gold labels, and which part"""
MIXED, WEIGHTED = "default+gold10", "weighted"
COMPARED = ("default", "gold")
"""the rows whose difference is to be small: they are played with one seed more than the others"""


@dataclass(frozen=True)
class Settings:
    """How retrievers and selectors are trained, the same for every row."""

    rate: float = 1e-4
    """of a retriever"""
    selector_rate: float = 3e-5
    """of a selector, which has read pairs of texts before"""
    head_rate: float = 1e-3
    """of a selector's last layer, which begins anew"""
    batch: int = 128
    """rows that are learnt together"""
    batches: int = 80
    """that a retriever reads for each of its two steps, however many labels there are: fewer are learnt oftener"""
    selector_batches: int = 200
    warm_up: float = 0.1
    """the part of the steps in which the rate rises; then it falls to 0"""
    scale: float = 20.0
    """of cosines in the softmax, as sentence-transformers has it"""
    hardest: int = 4
    """the hardest negatives of a question, among which one is drawn for a retriever; a selector reads all of them"""
    beam: int = 10
    """passages that the first step hands to the second, and that this one finds for each"""
    pooling: str = "mean"
    """mean or cls"""


@dataclass(frozen=True)
class Play:
    """One training: what learns, from which labels, without which fold, with which seed. Without a fold none learns."""

    kind: str
    row: str
    fold: int | None = None
    seed: int = 0

    def path(self, folder: Path) -> Path:
        """Return where its results are kept."""
        return folder / ".".join(
            [self.kind, self.row, "all" if self.fold is None else str(self.fold), f"{self.seed}.safetensors"]
        )

    def __str__(self) -> str:
        """Return what a log calls it."""
        return f"{self.kind} {self.row}, fold {self.fold}, seed {self.seed}"


def all_plays() -> list[Play]:
    """Return all plays, the most needed first: whatever a borrowed machine leaves undone is the last of them."""
    plays = [Play("retriever", "untrained"), Play("retriever", "untrained_once"), Play("selector", "untrained")]
    for seed in SEEDS:
        order = [("retriever", SUPERVISED[:4]), ("selector", SUPERVISED[:2]), ("retriever", SUPERVISED[4:])]
        order += [("retriever", (*SHARES, MIXED)), ("selector", SUPERVISED[2:]), ("retriever", (WEIGHTED,))]
        due = [(kind, row) for kind, rows in order for row in rows if seed in seeds_of(row)]
        plays += [Play(kind, row, fold, seed) for kind, row in due for fold in FOLDS]
    return plays


def seeds_of(row: str) -> range:
    """Return the seeds with which a row is played."""
    return SEEDS if row in COMPARED else SEEDS[:-1]


# ---- texts on the device


class Texts:
    """Tokens of texts on a device, of which padded batches are made there."""

    def __init__(self, arrays: dict[str, Array], name: str, device: str) -> None:
        self.tokens = torch.from_numpy(arrays[f"{name}.tokens"].astype(np.int64)).to(device)
        offsets = torch.from_numpy(arrays[f"{name}.offsets"].astype(np.int64)).to(device)
        self.starts, self.lengths = offsets[:-1], offsets.diff()


class Batch(Protocol):
    """Makes the tokens [B, L] and segments [B, L] of numbered texts; a segment is -1 where there is no token."""

    def __call__(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Return the batch of some texts."""
        ...


class Part:
    """One part of a text: which texts it is taken from, and how many tokens of it at most."""

    def __init__(self, texts: Texts, numbers: Tensor, room: Tensor | None = None) -> None:
        self.texts, self.starts = texts, texts.starts[numbers]
        lengths = texts.lengths[numbers]
        self.lengths = lengths if room is None else torch.minimum(lengths, room)

    def write(self, out: Tensor, at: Tensor) -> None:
        """Write the tokens of every text into its line of `out` [B, L], from a place of its own."""
        steps = torch.arange(int(self.lengths.max()), device=out.device)
        lines, columns = torch.nonzero(steps < self.lengths[:, None], as_tuple=True)
        out[lines, at[lines] + columns] = self.texts.tokens[self.starts[lines] + columns]


def assemble(parts: Sequence[Part], marks: Tensor, is_pair: bool = False) -> tuple[Tensor, Tensor]:
    """Return tokens and segments of texts made of parts: [CLS] a b [SEP], or as a pair [CLS] a [SEP] b [SEP]."""
    cls, sep = marks
    at = torch.ones_like(parts[0].lengths)
    ends = torch.stack([part.lengths for part in parts]).sum(0) + 1 + is_pair
    out = torch.zeros(len(at), int(ends.max()) + 1, dtype=torch.int64, device=at.device)
    places = torch.arange(out.shape[1], device=at.device)
    segments = torch.where(places <= ends[:, None], 0, -1)
    out[:, 0] = cls
    for number, part in enumerate(parts):
        part.write(out, at)
        at = at + part.lengths
        if is_pair and not number:
            out.scatter_(1, at[:, None], sep.expand(len(at), 1))
            at = at + 1
            segments = torch.where((places >= at[:, None]) & (segments == 0), 1, segments)
    out.scatter_(1, ends[:, None], sep.expand(len(at), 1))
    return out, segments


# ---- networks


def read_encoder(folder: Path, head: bool) -> Any:
    """Return a pretrained encoder, with an untaught head that scores pairs if that is asked for."""
    from transformers import BertConfig, BertForSequenceClassification, BertModel

    arrays = {name: torch.from_numpy(value) for name, value in load_arrays(folder / encoder_files.weights).items()}
    weights = {name: value.float() for name, value in dequantise(arrays).items()}
    config = BertConfig(**json.loads((folder / encoder_files.config).read_text()) | {"num_labels": 1})
    if head:
        selector: Any = BertForSequenceClassification(config)  # type: ignore[no-untyped-call]
        missing, unknown = selector.bert.load_state_dict(weights, strict=False)
        if lacking := [*unknown, *(name for name in missing if not name.startswith("pooler."))]:  # which some have not
            raise RechainError(f"{folder} is no BERT: {lacking[0]} does not fit.")
        return selector
    bert = BertModel(config, add_pooling_layer=False)  # type: ignore[no-untyped-call]
    bert.load_state_dict({name: value for name, value in weights.items() if not name.startswith("pooler.")})
    return bert


class Encoder(nn.Module):
    """A sentence encoder: mean of the states of a text's tokens, or that of the first, with length 1."""

    def __init__(self, bert: nn.Module, pooling: str) -> None:
        super().__init__()
        self.bert, self.pooling = bert, pooling

    def forward(self, tokens: Tensor, segments: Tensor) -> Tensor:
        """Return the vectors of texts, [B, D]."""
        mask = segments >= 0
        states = self.bert(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
        if self.pooling == "cls":
            return normalize(states[:, 0].float(), dim=1)
        return normalize((states.float() * mask[..., None]).sum(1), dim=1)


def ranking_loss(queries: Tensor, passages: Tensor, wrong: Tensor, weights: Tensor, scale: float) -> Tensor:
    """Return the weighted cross-entropy of every query's own passage, the one of its number, among all passages.

    queries [B, D], passages [N, D], weights [B]; `wrong` [B, N] says which of the others are negatives: a passage of
    the same chain, or a copy of the right one, is none.
    """
    own = torch.arange(len(queries), device=queries.device)
    allowed = wrong.clone()
    allowed[own, own] = True
    with torch.autocast(queries.device.type, enabled=False):  # scores of bfloat16 would hardly differ
        scores = (scale * queries @ passages.T).masked_fill(~allowed, -torch.inf)
    return (cross_entropy(scores, own, reduction="none") * weights).sum() / weights.sum()


# ---- training


@dataclass
class Labels:
    """What one supervision says of some questions."""

    questions: Array
    rows: Array
    """[N, 2 + negatives] passages, -1 where there is none"""
    ordered: Array
    weights: Array

    def __getitem__(self, chosen: Array) -> "Labels":
        return Labels(self.questions[chosen], self.rows[chosen], self.ordered[chosen], self.weights[chosen])

    def __add__(self, other: "Labels") -> "Labels":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Labels(*(np.concatenate(pair) for pair in pairs))


class Stage:
    """A prepared folder on a device."""

    def __init__(self, folder: Path, device: str, settings: Settings) -> None:
        self.folder, self.device, self.settings = folder, device, settings
        self.arrays = load_arrays(folder / TEXTS)
        self.passages, self.asked = (Texts(self.arrays, name, device) for name in ("passages", "questions"))
        self.marks = torch.from_numpy(self.arrays["marks"].astype(np.int64)).to(device)

    def tensor(self, values: Array) -> Tensor:
        """Return an array on the device, whole numbers as int64."""
        tensor = torch.from_numpy(np.ascontiguousarray(values)).to(self.device)
        return tensor if tensor.is_floating_point() else tensor.long()

    def arithmetic(self) -> AbstractContextManager[Any]:
        """Compute in bfloat16 where a GPU does."""
        is_cpu = torch.device(self.device).type == "cpu"
        return nullcontext() if is_cpu else torch.autocast("cuda", dtype=torch.bfloat16)

    def labels(self, row: str, fold: int, seed: int) -> Labels:
        """Return what a row of the table learns from: labels of the questions of the other folds."""
        trained = np.random.default_rng(seed).permutation(
            np.flatnonzero((self.arrays["fold"] >= 0) & (self.arrays["fold"] != fold))
        )
        if row == MIXED:
            part = round(SHARES["gold10"] * len(trained))
            return self._of("gold", trained[:part]) + self._of("default", trained[part:])
        if row in SHARES:
            return self._of("gold", trained[: max(round(SHARES[row] * len(trained)), 1)])
        labels = self._of({"default90": "default", WEIGHTED: "default"}.get(row, row), trained)
        if row == "default90":
            return labels[labels.weights >= 0.9]
        return labels if row == WEIGHTED else replace(labels, weights=np.ones_like(labels.weights))

    def _of(self, supervision: str, questions: Array) -> Labels:
        rows, ordered, weights = (
            self.arrays[f"{part}.{supervision}"][questions] for part in ("labels", "ordered", "weight")
        )
        there = rows[:, 0] >= 0
        weights = np.ones_like(weights) if supervision == "gold" else weights
        return Labels(questions, rows, ordered, weights)[there]

    # -- batches of texts

    def question_batch(self, questions: Tensor) -> tuple[Tensor, Tensor]:
        """Return questions as queries of the first step."""
        return assemble([Part(self.asked, questions)], self.marks)

    def passage_batch(self, passages: Tensor) -> tuple[Tensor, Tensor]:
        """Return passages."""
        return assemble([Part(self.passages, passages)], self.marks)

    def second_batch(self, questions: Tensor, passages: Tensor, is_pair: bool = False) -> tuple[Tensor, Tensor]:
        """Return questions with a passage each: queries of the second step, or pairs for a selector."""
        question = Part(self.asked, questions)
        passage = Part(self.passages, passages, JOINED_TOKENS - question.lengths)
        return assemble([question, passage], self.marks, is_pair)

    # -- training

    def learn(self, network: nn.Module, rates: dict[nn.Module, float], losses: Sequence[Callable[[], Tensor]]) -> None:
        """Take one step by each loss; `rates` has the learning rates of the network's parts."""
        is_fused = torch.device(self.device).type == "cuda"
        groups = [{"params": list(part.parameters()), "lr": rate} for part, rate in rates.items()]
        optimizer = torch.optim.AdamW(groups, fused=is_fused)
        rises = max(round(self.settings.warm_up * len(losses)), 1)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / rises, (len(losses) - step) / max(len(losses) - rises, 1))
        )
        network.train()
        for loss in losses:
            with self.arithmetic():
                value = loss()
            optimizer.zero_grad()
            value.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        network.eval()

    def batches(self, count: int, wanted: int, draw: np.random.Generator) -> Iterator[Array]:
        """Yield the numbers of the rows of each batch, in a new order whenever all are through."""
        size = min(self.settings.batch, count)
        whole = count // size  # batches of one round
        for start in range(0, wanted, whole):
            order = draw.permutation(count)
            yield from (order[place * size : (place + 1) * size] for place in range(min(whole, wanted - start)))

    def train_retriever(self, labels: Labels, seed: int) -> Encoder:
        """Train an encoder for both steps: from the question to the first passage, from both to the second."""
        torch.manual_seed(seed)
        draw = np.random.default_rng(seed)
        encoder = Encoder(read_encoder(self.folder / ENCODER, head=False), self.settings.pooling).to(self.device)
        # Two passages without an order are taught in both.
        turned = replace(labels, rows=labels.rows[:, [1, 0, *range(2, labels.rows.shape[1])]])
        rows = labels + turned[turned.ordered == 0]
        steps = [
            partial(self._retriever_loss, encoder, rows[chosen], number, draw)
            for number in (1, 2)
            for chosen in self.batches(len(rows.questions), self.settings.batches, draw)
        ]
        self.learn(encoder, {encoder: self.settings.rate}, [steps[place] for place in draw.permutation(len(steps))])
        return encoder

    def _retriever_loss(self, encoder: Encoder, rows: Labels, step: int, draw: np.random.Generator) -> Tensor:
        """Return the loss of a batch of one step."""
        other, right = (rows.rows[:, 1], rows.rows[:, 0]) if step == 1 else (rows.rows[:, 0], rows.rows[:, 1])
        hardest = np.maximum((rows.rows[:, 2 : 2 + self.settings.hardest] >= 0).sum(1), 1)
        negative = rows.rows[np.arange(len(right)), 2 + draw.integers(hardest)]
        numbers, questions = self.tensor(np.concatenate([right, negative])), self.tensor(rows.questions)
        if step == 1:
            queries = encoder(*self.question_batch(questions))
        else:
            queries = encoder(*self.second_batch(questions, self.tensor(other)))
        is_right, is_other = (numbers == self.tensor(side)[:, None] for side in (right, other))
        passages = encoder(*self.passage_batch(numbers))
        return ranking_loss(queries, passages, ~is_right & ~is_other, self.tensor(rows.weights), self.settings.scale)

    def train_selector(self, labels: Labels, seed: int) -> Any:
        """Train a cross-encoder that says whether a passage is one of a question's chain."""
        torch.manual_seed(seed)
        draw, settings = np.random.default_rng(seed), self.settings
        network = read_encoder(self.folder / SELECTOR, head=True).to(self.device)
        passages = labels.rows[:, : 2 + settings.hardest]
        rows, places = np.nonzero(passages >= 0)
        asked, read = labels.questions[rows], passages[rows, places]
        steps = [
            partial(self._selector_loss, network, asked[chosen], read[chosen], places[chosen] < 2)
            for chosen in self.batches(len(rows), settings.selector_batches, draw)
        ]
        self.learn(network, {network.bert: settings.selector_rate, network.classifier: settings.head_rate}, steps)
        return network

    def _selector_loss(self, network: Any, questions: Array, passages: Array, is_right: Array) -> Tensor:
        logits = self.support(network, self.tensor(questions), self.tensor(passages))
        return binary_cross_entropy_with_logits(logits, self.tensor(is_right.astype(np.float32)))

    def support(self, network: Any, questions: Tensor, passages: Tensor) -> Tensor:
        """Return the logits that passages are of the chains of questions."""
        tokens, segments = self.second_batch(questions, passages, is_pair=True)
        mask = (segments >= 0).long()
        logits: Tensor = network(input_ids=tokens, attention_mask=mask, token_type_ids=segments.clamp(min=0)).logits
        return logits[:, 0].float()

    # -- trial

    def ready(self, network: Any) -> Any:
        """Return a network as it reads, in bfloat16 where a GPU does."""
        network = copy.deepcopy(network).eval()
        return network if torch.device(self.device).type == "cpu" else network.bfloat16()

    def over(self, lengths: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        """Compute something of many texts, those of about the same length together."""
        order = lengths.argsort(descending=True)
        most = 2**17 if torch.device(self.device).type == "cuda" else 2**12  # tokens that are read together
        results, start = [], 0
        with torch.inference_mode():
            while start < len(order):
                size = max(most // (int(lengths[order[start]]) + 3), 1)
                results.append(compute(order[start : start + size]))
                start += size
            whole = torch.cat(results)
            placed = torch.empty_like(whole)
            placed[order] = whole
        return placed

    def encode_passages(self, encoder: Encoder) -> Tensor:
        """Return the vectors of all passages."""
        return self.over(self.passages.lengths, lambda numbers: encoder(*self.passage_batch(numbers)))

    def encode_queries(self, encoder: Encoder, questions: Tensor, passages: Tensor | None = None) -> Tensor:
        """Return the vectors of questions, or of questions with a passage each."""
        lengths = self.asked.lengths[questions]
        if passages is None:
            return self.over(lengths, lambda places: encoder(*self.question_batch(questions[places])))
        lengths = (lengths + self.passages.lengths[passages]).clamp(max=JOINED_TOKENS)
        return self.over(lengths, lambda places: encoder(*self.second_batch(questions[places], passages[places])))

    def search(self, encoder: Encoder, vectors: Tensor, name: str, questions: Array, once: bool) -> dict[str, Array]:
        """Return what is found for questions in the collection of their set."""
        place = SETS.index(name)
        first, last = self.arrays["set_passages"][place : place + 2]
        begin = int(self.arrays["set_questions"][place])
        asked, collection = self.tensor(questions), vectors[first:last]
        queries = self.encode_queries(encoder, asked)
        if once:
            numbers = nearest(queries, collection, TOP)[1].cpu().numpy()
        else:
            numbers = self._paths(encoder, asked, queries, collection, int(first)).reshape(len(asked), -1)
        top, paths = distinct(numbers), numbers[:, :2]
        found = {"questions": questions - begin, "top": top.astype(np.uint16), "path": paths.astype(np.uint16)}
        return {f"{name}.{part}": values for part, values in found.items()}

    def _paths(self, encoder: Encoder, asked: Tensor, queries: Tensor, collection: Tensor, first: int) -> Array:
        """Return paths of two passages for every question, [Q, paths, 2], the best by the sum of both steps first."""
        beam = min(self.settings.beam, len(collection) - 1)
        scores, heads = nearest(queries, collection, beam)  # [Q, K]
        heads = heads.reshape(-1)
        second = self.encode_queries(encoder, asked.repeat_interleave(beam), heads + first)
        more, tails = nearest(second, collection, beam, without=heads)  # [Q K, K]
        sums = (scores.reshape(-1, 1) + more).reshape(len(asked), -1)
        pairs = torch.stack([heads[:, None].expand_as(tails), tails], dim=-1).reshape(len(asked), -1, 2)
        order = sums.argsort(dim=1, descending=True)
        return pairs.gather(1, order[..., None].expand(-1, -1, 2)).cpu().numpy()

    def questions_of(self, name: str, fold: int | None) -> Array:
        """Return the numbers of the questions that a play is tried on: of HotpotQA those of its fold."""
        place = SETS.index(name)
        numbers = np.arange(*self.arrays["set_questions"][place : place + 2], dtype=np.int32)
        return numbers if fold is None or name != "hotpotqa" else numbers[self.arrays["fold"][numbers] == fold]

    def try_retriever(self, encoder: Encoder, fold: int | None, once: bool = False) -> dict[str, Array]:
        """Return what a retriever finds."""
        encoder = self.ready(encoder)
        vectors = self.encode_passages(encoder)
        results: dict[str, Array] = {}
        for name in SETS:
            results |= self.search(encoder, vectors, name, self.questions_of(name, fold), once)
        return results

    def try_selector(self, network: Any, fold: int | None) -> dict[str, Array]:
        """Return the two passages that a selector chooses of every question's own."""
        network = self.ready(network)

        def score(asked: Tensor, read: Tensor) -> Tensor:
            lengths = (self.asked.lengths[asked] + self.passages.lengths[read]).clamp(max=JOINED_TOKENS)
            return self.over(lengths, lambda chosen: self.support(network, asked[chosen], read[chosen]))

        return self.select(score, fold)

    def select_untrained(self, encoder: Encoder) -> dict[str, Array]:
        """Return the two of every question's own passages that are most like it by the untrained encoder."""
        encoder = self.ready(encoder)
        passages = self.encode_passages(encoder)
        questions = self.encode_queries(encoder, torch.arange(len(self.asked.lengths), device=self.device))
        return self.select(lambda asked, read: (questions[asked] * passages[read]).sum(1), None)

    def select(self, score: Callable[[Tensor, Tensor], Tensor], fold: int | None) -> dict[str, Array]:
        """Return the two of every question's own passages with the highest scores."""
        questions = self.questions_of("hotpotqa", fold)
        own = self.arrays["own"][questions]
        rows, places = np.nonzero(own >= 0)
        scores = np.full(own.shape, -np.inf)
        scores[rows, places] = score(self.tensor(questions[rows]), self.tensor(own[rows, places])).cpu().numpy()
        best = np.argsort(-scores, axis=1, kind="stable")[:, :2]
        return {"questions": questions, "pair": np.take_along_axis(own, best, axis=1).astype(np.uint16)}

    def play(self, play: Play) -> dict[str, Array]:
        """Train, try, and return what was found and how many seconds each took."""
        start = time.perf_counter()
        if play.fold is None:
            encoder = Encoder(read_encoder(self.folder / ENCODER, head=False), self.settings.pooling).to(self.device)
            trained = time.perf_counter()
            is_once = play.row == "untrained_once"
            is_retriever = play.kind == "retriever"
            results = self.try_retriever(encoder, None, is_once) if is_retriever else self.select_untrained(encoder)
        else:
            labels, seed = self.labels(play.row, play.fold, play.seed), 1000 * play.seed + play.fold
            network = (self.train_retriever if play.kind == "retriever" else self.train_selector)(labels, seed)
            trained = time.perf_counter()
            trial = self.try_retriever if play.kind == "retriever" else self.try_selector
            results = trial(network, play.fold)
            results["labels"] = np.array([len(labels.questions)], dtype=np.int32)
        ended = time.perf_counter()
        return results | {"seconds": np.array([trained - start, ended - trained], dtype=np.float32)}


def nearest(queries: Tensor, collection: Tensor, count: int, without: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return scores and numbers of the passages most like each query, [Q, count], but for the one in `without`."""
    count = min(count, len(collection))
    scores, numbers = [], []
    for start in range(0, len(queries), 2048):  # at 60,000 passages half a gigabyte
        table = queries[start : start + 2048] @ collection.T
        if without is not None:
            table.scatter_(1, without[start : start + 2048, None], -torch.inf)
        best = table.topk(count, dim=1)
        scores.append(best.values)
        numbers.append(best.indices)
    return torch.cat(scores), torch.cat(numbers)


def distinct(numbers: Array) -> Array:
    """Return the first distinct numbers of every row, in their order; the last is repeated where there are too few."""
    rows = [list(dict.fromkeys(row))[:TOP] for row in numbers.tolist()]
    return np.array([row + row[-1:] * (TOP - len(row)) for row in rows])


# ---- all plays


class _Player:
    """Plays in a process of its own, as long as there is time."""

    def __init__(self, folder: Path, out: Path, device: str, settings: Settings, deadline: float) -> None:
        torch.set_num_threads(1)
        self._out, self._deadline, self._longest = out, deadline, 0.0
        self._stage = Stage(folder, device, settings)

    def __call__(self, play: Play) -> str | None:
        """Play unless the time is up, and return what went wrong, if anything did."""
        start = time.time()
        if start + self._longest > self._deadline:
            return None
        try:
            save_arrays(self._stage.play(play), play.path(self._out))
        except (RechainError, RuntimeError, OSError) as error:
            return f"{play}: {error!s:.300}"
        self._longest = max(self._longest, time.time() - start)
        print(f"{play}: {time.time() - start:.1f} s", file=sys.stderr, flush=True)
        return None


@dataclass(frozen=True)
class Plan:
    """What is to be played, how, and of what."""

    of: str
    """a digest of texts, encoders and settings: it names the folder of the results, so that none are mixed"""
    settings: Settings
    plays: Sequence[Play]

    def played(self, folder: Path) -> Path:
        """Return where the results are kept in a folder."""
        return folder / PLAYED / self.of

    def waiting(self, folder: Path) -> list[Play]:
        """Return the plays that have no results in a folder."""
        return [play for play in self.plays if not play.path(self.played(folder)).exists()]

    def write(self, folder: Path) -> None:
        """Write it into a folder."""
        (folder / PLAN).write_text(json.dumps(asdict(self), indent=0) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Plan":
        """Read it from a folder."""
        content = json.loads((folder / PLAN).read_text(encoding="utf-8"))
        plays = [Play(**play) for play in content["plays"]]
        return cls(content["of"], Settings(**content["settings"]), plays)


def play_all(folder: Path, plan: Plan, device: str, processes: int, limit: float) -> None:
    """Play what is not played yet until the time is up; where a play fails, the others go on."""
    out, waiting = plan.played(folder), plan.waiting(folder)
    out.mkdir(parents=True, exist_ok=True)
    make = partial(_Player, folder / ARRAYS, out, device, plan.settings, time.time() + limit)
    if processes > 1 and len(waiting) > 1:
        outcomes: Iterator[str | None] = in_order(make, waiting, processes, ahead=len(waiting))
    else:
        outcomes = map(make(), waiting)
    failures = [failure for failure in outcomes if failure]
    if failures:
        print(f"{len(failures)} plays failed, the first: {failures[0]}", file=sys.stderr)
