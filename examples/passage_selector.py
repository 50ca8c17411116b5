"""A passage selector: a cross-encoder that predicts which of a question's passages lead to its answer.

    rechain export chains.jsonl --to paths --questions questions.jsonl --out paths.jsonl
    python examples/passage_selector.py paths.jsonl ENCODER OUT

Needs `pip install 'rechain[retriever]'`. ENCODER is a folder or a name on the Hub, OUT where the trained one goes. Take
a cross-encoder, such as those trained on MS MARCO: a sentence encoder has never read two texts together.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset
from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
from two_steps import passage_text, read_options


def rows_of(file: Path) -> Iterator[dict[str, Any]]:
    """Yield every passage of every question, and whether it is on the chain."""
    with file.open(encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            for paragraph in record["paragraphs"]:
                text = passage_text(paragraph["title"], paragraph["paragraph_text"])
                yield {"query": record["question"], "passage": text, "label": float(paragraph["is_supporting"])}


def train(model: CrossEncoder, file: Path, out: Path, **settings: Any) -> CrossEncoder:
    """Train a selector on the export, and save it."""
    options: dict[str, Any] = {
        "per_device_train_batch_size": 64,
        "learning_rate": 3e-5,
        "num_train_epochs": 1,
        "save_strategy": "no",
        "report_to": "none",
    }
    arguments = CrossEncoderTrainingArguments(str(out / "checkpoints"), **options | settings)
    rows = Dataset.from_list(list(rows_of(file)))
    CrossEncoderTrainer(model, arguments, train_dataset=rows, loss=BinaryCrossEntropyLoss(model)).train()
    model.save_pretrained(str(out))
    return model


def select(model: CrossEncoder, question: str, passages: Sequence[str], count: int = 2) -> list[int]:
    """Return the numbers of the passages that fit best."""
    scores = model.predict([(question, passage) for passage in passages], show_progress_bar=False)
    return sorted(range(len(passages)), key=lambda number: -scores[number])[:count]


def main() -> None:
    """Train on a file."""
    options = read_options(__doc__)
    train(CrossEncoder(options.encoder, num_labels=1), options.file, options.out)


if __name__ == "__main__":
    main()
