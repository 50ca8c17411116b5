"""What is exported feeds the trainers of sentence-transformers as it is, and the examples learn from it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from datasets import Dataset

from rechain.formats.exports.joining import Joined
from rechain.formats.exports.retriever_training import mdr, text_of, triplets
from rechain.formats.exports.retriever_training import path as beam_path

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
QUICK = {"num_train_epochs": 1, "per_device_train_batch_size": 4, "use_cpu": True}


@pytest.fixture(scope="module")
def examples() -> Iterator[tuple[ModuleType, ModuleType]]:
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    try:
        import passage_selector
        import two_steps

        yield two_steps, passage_selector
    finally:
        sys.path.pop(0)


@pytest.fixture
def joined(towns: Any) -> list[Joined]:
    from rechain import Chain, Recovered

    chain = Chain(passages=["work", "maker"], links=[], score=1.0, confidence=0.75)
    return [Joined(question, Recovered(id=question.id, chains=[chain]), {}) for question in towns(6)]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("weights", [False, True])
def test_triplets_feed_the_trainers_with_their_own_losses(
    joined: list[Joined], tiny_encoder: Path, tmp_path: Path, weights: bool
) -> None:
    from sentence_transformers import CrossEncoder, SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
    from sentence_transformers.cross_encoder.losses import MultipleNegativesRankingLoss as CrossLoss
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    rows = Dataset.from_list([row for one in joined for row in triplets(one, weights=weights)])
    options = QUICK | {"save_strategy": "no", "report_to": "none"}
    model = SentenceTransformer(str(tiny_encoder), device="cpu")
    trainer = SentenceTransformerTrainer(
        model, Arguments(str(tmp_path), **options), train_dataset=rows, loss=MultipleNegativesRankingLoss(model)
    )
    assert trainer.train().training_loss > 0
    selector = CrossEncoder(str(tiny_encoder), num_labels=1, device="cpu")
    arguments = CrossEncoderTrainingArguments(str(tmp_path), **options)
    cross = CrossEncoderTrainer(selector, arguments, train_dataset=rows, loss=CrossLoss(selector))
    assert cross.train().training_loss > 0


def test_confidence_weighs_what_is_learnt(examples: tuple[ModuleType, ModuleType]) -> None:
    from sentence_transformers.util import cos_sim

    class Vectors(torch.nn.Module):
        def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            return {"sentence_embedding": features["vectors"]}

    generator = torch.Generator().manual_seed(0)
    columns = [{"vectors": torch.randn(3, 4, generator=generator)} for _ in range(3)]
    scores = 20 * cos_sim(columns[0]["vectors"], torch.cat([columns[1]["vectors"], columns[2]["vectors"]]))
    each = torch.logsumexp(scores, 1) - scores.diagonal()
    weights = torch.tensor([1.0, 0.0, 0.5])
    loss = examples[0].WeightedRankingLoss(Vectors())
    assert float(loss(columns, weights)) == pytest.approx(float((each[0] + each[2] / 2) / 1.5), rel=1e-5)
    assert float(loss(columns, torch.full((3,), 0.7))) == pytest.approx(float(each.mean()), rel=1e-5)


def test_both_orders_of_passages_side_by_side_are_taught(
    examples: tuple[ModuleType, ModuleType], joined: list[Joined]
) -> None:
    (record,) = mdr(joined[0])
    rows = list(examples[0].rows_of(record))
    assert [step for step, _ in rows] == ["first", "second"]
    first, second = (row for _, row in rows)
    assert second["query"] == f"{first['query']} {first['positive']}"
    assert first["score"] == second["score"] == 0.75
    turned = list(examples[0].rows_of(record | {"type": "comparison"}))
    assert [row["positive"] for step, row in turned if step == "first"] == [first["positive"], second["positive"]]


def test_a_retriever_of_two_steps_is_trained_and_finds_paths(
    examples: tuple[ModuleType, ModuleType], joined: list[Joined], tiny_encoder: Path, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    two_steps = examples[0]
    file = write(tmp_path / "mdr.jsonl", [row for one in joined for row in mdr(one)])
    before = SentenceTransformer(str(tiny_encoder), device="cpu")
    model = two_steps.train(SentenceTransformer(str(tiny_encoder), device="cpu"), file, tmp_path / "out", **QUICK)
    assert not torch.equal(*(m.encode(["town"], convert_to_tensor=True) for m in (before, model)))
    passages = [text_of(passage) for one in joined for passage in one.question.passages]
    retriever = two_steps.TwoStepRetriever(SentenceTransformer(str(tmp_path / "out"), device="cpu"), passages)
    found = retriever.search(joined[0].question.question, count=20, beam=4)
    assert len(found) == 16
    assert all(path.first != path.second for path in found)
    assert [path.score for path in found] == sorted((path.score for path in found), reverse=True)
    numbers = retriever.find(joined[0].question.question, 3)
    assert len(set(numbers)) == 3
    assert tuple(numbers[:2]) == found[0][:2]


def test_a_selector_is_trained_on_paths(
    examples: tuple[ModuleType, ModuleType], joined: list[Joined], tiny_encoder: Path, tmp_path: Path
) -> None:
    from sentence_transformers import CrossEncoder

    selector = examples[1]
    file = write(tmp_path / "paths.jsonl", [row for one in joined for row in beam_path(one)])
    rows = list(selector.rows_of(file))
    assert sum(row["label"] for row in rows) == 2 * len(joined)
    model = selector.train(CrossEncoder(str(tiny_encoder), num_labels=1, device="cpu"), file, tmp_path / "out", **QUICK)
    chosen = selector.select(model, joined[0].question.question, [row["passage"] for row in rows[:4]])
    assert len(set(chosen)) == 2
    assert (tmp_path / "out" / "model.safetensors").exists()
