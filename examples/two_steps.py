"""A dense retriever of two steps, in the manner of MDR (Xiong et al. 2021), on sentence-transformers.

    rechain export chains.jsonl --to mdr --questions questions.jsonl --out mdr.jsonl
    python examples/two_steps.py mdr.jsonl ENCODER OUT

One encoder takes both steps: the question finds the first passage, question and first passage together find the second.
Needs `pip install 'rechain[retriever]'`. ENCODER is a folder or a name on the Hub, OUT where the trained one goes.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.util import cos_sim
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


def passage_text(title: str, text: str) -> str:
    """Return a passage as one text, as `rechain export --to triplets` writes it."""
    return text if not title or text.startswith(title) else f"{title}: {text}"


def second_query(question: str, passage: str) -> str:
    """Return the query of the second step."""
    return f"{question} {passage}"


# ---- training


class WeightedRankingLoss(nn.Module):
    """MultipleNegativesRankingLoss in which every row counts by its label: the confidence of its chain."""

    def __init__(self, model: SentenceTransformer, scale: float = 20.0) -> None:
        super().__init__()
        self.model, self.scale = model, scale

    def forward(self, features: Iterable[Mapping[str, Tensor]], labels: Tensor) -> Tensor:
        """Return the mean cross-entropy of every query's own passage among all of the batch, weighted by labels."""
        queries, *passages = (self.model(dict(column))["sentence_embedding"] for column in features)
        scores = self.scale * cos_sim(queries, torch.cat(passages))  # [B, B times columns]
        losses = cross_entropy(scores, torch.arange(len(queries), device=scores.device), reduction="none")
        return (losses * labels).sum() / labels.sum()


def rows_of(record: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a line of the export, each with its step: query, positive, hard negative, weight."""
    first, second = (passage_text(**passage) for passage in record["pos_paras"])
    hard = [passage_text(**passage) for passage in record["neg_paras"][:2]]
    orders = [(first, second)] if record["type"] == "bridge" else [(first, second), (second, first)]
    weight = record.get("confidence", 1.0)
    for head, tail in orders:  # two passages side by side are found in any order
        question = record["question"]
        yield "first", {"query": question, "positive": head, "negative": hard[0], "score": weight}
        query = second_query(question, head)
        yield "second", {"query": query, "positive": tail, "negative": hard[1], "score": weight}


def read_steps(file: Path) -> dict[str, Dataset]:
    """Read the export as a dataset for each step, so that long and short queries do not share a batch."""
    steps: dict[str, list[dict[str, Any]]] = {"first": [], "second": []}
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            for step, row in rows_of(json.loads(line)):
                steps[step].append(row)
    return {step: Dataset.from_list(rows) for step, rows in steps.items()}


def train(model: SentenceTransformer, file: Path, out: Path, **settings: Any) -> SentenceTransformer:
    """Train an encoder on the export, and save it."""
    options: dict[str, Any] = {
        "batch_sampler": "no_duplicates",  # a copy of the right passage is no negative
        "per_device_train_batch_size": 64,  # the passages of a batch are the negatives of one another
        "learning_rate": 1e-4,
        "num_train_epochs": 2,
        "save_strategy": "no",
        "report_to": "none",
    }
    arguments = SentenceTransformerTrainingArguments(str(out / "checkpoints"), **options | settings)
    SentenceTransformerTrainer(
        model, arguments, train_dataset=read_steps(file), loss=WeightedRankingLoss(model)
    ).train()
    model.save_pretrained(str(out))
    return model


# ---- search


class Path2(NamedTuple):
    """Two passages by their numbers, and how well they fit the question."""

    first: int
    second: int
    score: float


class TwoStepRetriever:
    """Finds paths of two passages in a collection."""

    def __init__(self, model: SentenceTransformer, passages: Sequence[str]) -> None:
        self.model, self.passages = model, passages
        self._vectors = self._encode(passages)

    def _encode(self, texts: Sequence[str]) -> Tensor:
        return self.model.encode(
            list(texts), convert_to_tensor=True, normalize_embeddings=True, show_progress_bar=False
        )

    def search(self, question: str, count: int = 10, beam: int = 10) -> list[Path2]:
        """Return the best paths, whose score is the sum of both steps; each step keeps `beam` passages."""
        beam = min(beam, len(self.passages) - 1)
        scores, heads = (self._encode([question]) @ self._vectors.T).topk(beam)  # [1, K]
        queries = self._encode([second_query(question, self.passages[head]) for head in heads[0].tolist()])
        table = queries @ self._vectors.T
        table.scatter_(1, heads.T, -torch.inf)  # no passage follows itself
        more, tails = table.topk(beam)  # [K, K]
        paths = [
            Path2(head, tail, float(scores[0, row] + more[row, column]))
            for row, head in enumerate(heads[0].tolist())
            for column, tail in enumerate(tails[row].tolist())
        ]
        return sorted(paths, key=lambda path: -path.score)[:count]

    def find(self, question: str, count: int = 10) -> list[int]:
        """Return the first distinct passages on the best paths."""
        paths = self.search(question, count * count)
        return list(dict.fromkeys(number for path in paths for number in path[:2]))[:count]


def read_options(documentation: str | None) -> argparse.Namespace:
    """Read what is learnt from, what learns, and where it goes from the command line."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("encoder")
    parser.add_argument("out", type=Path)
    return parser.parse_args()


def main() -> None:
    """Train on a file."""
    options = read_options(__doc__)
    train(SentenceTransformer(options.encoder), options.file, options.out)


if __name__ == "__main__":
    main()
