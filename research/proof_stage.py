"""What the proof is played with: texts as tokens, labels of every supervision, and gold to judge by."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import Pair, with_gold
from proof_plays import (
    ARRAYS,
    ENCODER,
    GOLD,
    NEGATIVES,
    QUESTION_TOKENS,
    SELECTOR,
    SETS,
    TEXTS,
    TOKENS,
    TOP,
    Play,
    encoder_files,
)
from safetensors.torch import load_file

from rechain.errors import QuestionError
from rechain.formats.datasets import read_questions
from rechain.formats.datasets.records import read_by_id
from rechain.formats.exports.joining import Joined
from rechain.formats.exports.retriever_training import mdr, text_of
from rechain.paper.stage import folds_of
from rechain.reader.cpu import quantise_rows
from rechain.reader.pretrained import read_tokenizer
from rechain.schema import Chain, Gold, Passage, Question, Recovered
from rechain.system.tensors import Array, save_arrays
from rechain.text.answers.matcher import AnswerMatcher
from rechain.text.passage_views import PassageView, bm25_scores
from rechain.text.words import Text

FOLDS = 5
FILES = {
    "hotpotqa": "hotpotqa/open.json.gz",
    "2wiki": "2wiki/train_500.json.gz",
    "musique": "musique/train_100.json.gz",
}
Supervision = Callable[[Question], Recovered | None]
"""what names two passages of a question as its chain"""


def questions_with_gold(data: Path, name: str) -> list[Pair]:
    """Return the questions of a set whose gold is two passages, which is what a retriever of two steps can find."""
    file = data / FILES[name]
    pairs = with_gold(read_questions(file), file)
    return [(question, gold) for question, gold in pairs if len(gold.chains[0].passages) == 2]


# ---- what names the passages to learn from


def by_answer(question: Question) -> Recovered | None:
    """Return the passage that holds the answer and is most like the question, after the one most like it of the others.

    Without links this is all that matching the answer can say; yes and no, which stand anywhere, say nothing.
    """
    views = [PassageView(passage) for passage in question.passages]
    answer, alike = AnswerMatcher(question), bm25_scores(question, views)
    if question.answer.strip().lower() in ("yes", "no"):
        return None
    ranked = sorted(range(len(views)), key=lambda number: -alike[number])
    tail = next((number for number in ranked if answer.is_held_by(views[number])), None)
    head = next((number for number in ranked if number != tail), None)
    return None if tail is None or head is None else _recovered(question, [head, tail])


def by_bm25(question: Question) -> Recovered | None:
    """Return the two passages most like question and answer together, the one that holds the answer last."""
    views = [PassageView(passage) for passage in question.passages]
    alike = bm25_scores(question.model_copy(update={"question": f"{question.question} {question.answer}"}), views)
    answer = AnswerMatcher(question)
    best = sorted(range(len(views)), key=lambda number: -alike[number])[:2]
    return _recovered(question, sorted(best, key=lambda number: answer.is_held_by(views[number])))


def by_gold(golds: Mapping[str, Gold]) -> Supervision:
    """Return what names the gold passages; two whose order gold does not say stand side by side."""

    def name(question: Question) -> Recovered | None:
        chain = golds[question.id].chains[0]
        places = {passage.id: place for place, passage in enumerate(question.passages)}
        return _recovered(question, [places[id] for id in chain.passages], chain.ordered)

    return name


def by_chains(file: Path) -> Supervision:
    """Return what names the chains that `rechain recover` wrote into a file."""
    chains = read_by_id(file, Recovered)
    return lambda question: chains.get(question.id)


def _recovered(question: Question, places: Sequence[int], ordered: bool = True) -> Recovered:
    passages = [question.passages[place].id for place in places]
    chain = Chain(shape="chain" if ordered else "parallel", passages=passages, links=[], score=0.0)
    return Recovered(id=question.id, chains=[chain])


def label_arrays(
    name: str, pairs: Sequence[Pair], supervise: Supervision, number: Mapping[str, int]
) -> dict[str, Array]:
    """Return what a supervision teaches of every question, as `rechain export --to mdr` writes it.

    A row is first and second passage and the hardest negatives, -1 where there is none.
    """
    rows = np.full((len(pairs), 2 + NEGATIVES), -1, dtype=np.int32)
    ordered, weight = np.zeros(len(pairs), dtype=np.uint8), np.zeros(len(pairs), dtype=np.float32)
    for place, (question, _) in enumerate(pairs):
        recovered = supervise(question)
        if recovered is None or not recovered.chains:
            continue
        try:
            (record,) = mdr(Joined(question, recovered, {}))
        except QuestionError:  # what the export leaves out nobody learns
            continue
        texts = [text_of(Passage(id="0", **fields)) for fields in record["pos_paras"] + record["neg_paras"]]
        numbers = [number[text] for text in texts][: 2 + NEGATIVES]
        rows[place, : len(numbers)], ordered[place] = numbers, record["type"] == "bridge"
        weight[place] = record.get("confidence", 1.0)
    return {f"labels.{name}": rows, f"ordered.{name}": ordered, f"weight.{name}": weight}


# ---- texts as tokens


@dataclass
class Texts:
    """Tokens of texts, one after another, each without the marks of its beginning and end."""

    tokenizer: Any
    longest: int
    tokens: list[Array] = field(default_factory=list)

    def add(self, texts: Iterable[str]) -> None:
        """Add texts, cut to the longest."""
        for one in self.tokenizer.encode_batch(list(texts), add_special_tokens=False):
            self.tokens.append(np.array(one.ids[: self.longest], dtype=np.uint16))

    def arrays(self, name: str) -> dict[str, Array]:
        """Return the tokens of all texts and where each begins."""
        offsets = np.cumsum([0, *map(len, self.tokens)], dtype=np.int32)
        return {f"{name}.tokens": np.concatenate(self.tokens), f"{name}.offsets": offsets}


def collect_passages(sets: Mapping[str, Sequence[Pair]]) -> dict[str, dict[str, int]]:
    """Return the numbers of the distinct passages of every set by their texts, those of a set side by side."""
    numbers: dict[str, dict[str, int]] = {}
    count = 0
    for name, pairs in sets.items():
        texts = dict.fromkeys(text_of(passage) for question, _ in pairs for passage in question.passages)
        numbers[name] = {text: count + place for place, text in enumerate(texts)}
        count += len(texts)
    return numbers


Sets = dict[str, list[Pair]]
Numbers = dict[str, dict[str, int]]


def prepare(data: Path, stage: Path, encoders: Mapping[str, Path], chains: Mapping[str, Path]) -> tuple[Sets, Numbers]:
    """Write all that is carried to a GPU machine and what it is judged by; return the questions, and passages' numbers.

    `encoders` are what retriever and selector begin with, by the folders that they are written into.
    """
    sets = {name: questions_with_gold(data, name) for name in SETS}
    numbers = collect_passages(sets)
    tokenizer, other = (read_tokenizer(encoders[name] / "tokenizer.json") for name in (ENCODER, SELECTOR))
    if tokenizer.get_vocab() != other.get_vocab():
        raise SystemExit("retriever and selector have to begin with encoders of the same vocabulary.")
    passages, asked = Texts(tokenizer, TOKENS), Texts(tokenizer, QUESTION_TOKENS)
    for name, pairs in sets.items():
        passages.add(numbers[name])
        asked.add(question.question for question, _ in pairs)
    trained, number = sets["hotpotqa"], numbers["hotpotqa"]
    supervisions = {
        "answer": by_answer,
        "bm25": by_bm25,
        **{name: by_chains(file) for name, file in chains.items()},
        "gold": by_gold({gold.id: gold for _, gold in trained}),
    }
    labels: dict[str, Array] = {}
    for name, supervise in supervisions.items():
        labels |= label_arrays(name, trained, supervise, number)
    fold = np.full(sum(map(len, sets.values())), -1, dtype=np.int8)
    fold[: len(trained)] = folds_of([question for question, _ in trained], FOLDS)
    places: dict[str, Array] = {
        "fold": fold,
        "set_questions": np.cumsum([0, *map(len, sets.values())], dtype=np.int32),
        "set_passages": np.cumsum([0, *(len(numbers[name]) for name in sets)], dtype=np.int32),
        "own": _own_passages(trained, number),
        "marks": np.array([tokenizer.token_to_id(mark) for mark in ("[CLS]", "[SEP]")], dtype=np.int32),
    }
    for name, encoder in encoders.items():
        (stage / ARRAYS / name).mkdir(parents=True, exist_ok=True)
        save_encoder(encoder, stage / ARRAYS / name)
    arrays: dict[str, Array] = {**passages.arrays("passages"), **asked.arrays("questions"), **places, **labels}
    save_arrays(arrays, stage / ARRAYS / TEXTS)
    save_arrays(gold_arrays(sets, numbers), stage / GOLD)
    return sets, numbers


def save_encoder(encoder: Path, out: Path) -> None:
    """Write an encoder with the weights of its large matrices rounded to bytes, a scale a row: it has to be carried."""
    weights: dict[str, Array] = {}
    for full, value in load_file(encoder / "model.safetensors").items():
        name = full.removeprefix("bert.")
        if name.startswith("classifier."):  # of what a cross-encoder was trained for
            continue
        if value.dim() == 2 and value.is_floating_point():
            rows, scale = quantise_rows(value)
            weights |= {name: rows.numpy(), name.removesuffix("weight") + "scale": scale.numpy()}
        elif value.is_floating_point():
            weights[name] = value.float().numpy()
    save_arrays(weights, out / encoder_files.weights)
    (out / encoder_files.config).write_bytes((encoder / encoder_files.config).read_bytes())


def _own_passages(pairs: Sequence[Pair], number: Mapping[str, int]) -> Array:
    """Return the numbers of every question's own passages, -1 after the last: the distractor setting."""
    own = np.full((len(pairs), max(len(question.passages) for question, _ in pairs)), -1, dtype=np.int32)
    for place, (question, _) in enumerate(pairs):
        own[place, : len(question.passages)] = [number[text_of(passage)] for passage in question.passages]
    return own


def gold_arrays(sets: Mapping[str, Sequence[Pair]], numbers: Mapping[str, Mapping[str, int]]) -> dict[str, Array]:
    """Return the gold passages of every question, first to last where gold has an order."""
    rows, ordered = [], []
    for name, pairs in sets.items():
        for question, gold in pairs:
            texts = {passage.id: text_of(passage) for passage in question.passages}
            rows.append([numbers[name][texts[id]] for id in gold.chains[0].passages])
            ordered.append(gold.chains[0].ordered)
    return {"gold": np.array(rows, dtype=np.int32), "ordered": np.array(ordered, dtype=np.uint8)}


# ---- what BM25 finds


def search_by_bm25(sets: Mapping[str, Sequence[Pair]], numbers: Mapping[str, Mapping[str, int]], out: Path) -> None:
    """Write what BM25 finds in the collections and, of HotpotQA, among every question's own passages."""
    out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Array] = {}
    for name, pairs in sets.items():
        top = np.array(list(_ranked(list(numbers[name]), [question.question for question, _ in pairs])))
        results[f"{name}.questions"] = np.arange(len(pairs), dtype=np.int32)
        results |= {f"{name}.top": top.astype(np.uint16), f"{name}.path": top[:, :2].astype(np.uint16)}
    save_arrays(results, Play("retriever", "bm25_search").path(out))
    pairs = sets["hotpotqa"]
    best = []
    for question, _ in pairs:
        alike = bm25_scores(question, [PassageView(passage) for passage in question.passages])
        two = sorted(range(len(alike)), key=lambda place: -alike[place])[:2]
        best.append([numbers["hotpotqa"][text_of(question.passages[place])] for place in two])
    chosen: dict[str, Array] = {
        "questions": np.arange(len(pairs), dtype=np.int32),
        "pair": np.array(best, dtype=np.uint16),
    }
    save_arrays(chosen, Play("selector", "bm25_search").path(out))


def _ranked(texts: Sequence[str], queries: Sequence[str]) -> Iterator[Array]:
    """Yield the numbers of the texts that are most like each query."""
    import bm25s

    collection = [Text(text).words for text in texts]
    vocabulary = set().union(*collection)
    retriever = bm25s.BM25()
    retriever.index(collection, show_progress=False)
    for query in queries:
        words = [word for word in Text(query).words if word in vocabulary]
        scores = torch.from_numpy(np.asarray(retriever.get_scores(words))) if words else torch.zeros(len(texts))
        yield scores.topk(min(TOP, len(texts))).indices.numpy()
