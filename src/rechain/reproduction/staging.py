"""Prepares the folder that `rechain.game.plays` plays in: questions, pseudo questions fold by fold, and word vectors."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rechain.candidates import CandidateSettings
from rechain.errors import RechainError
from rechain.game.data import save_arrays
from rechain.game.plays import PSEUDO, QUESTIONS, VECTORS
from rechain.lexicon import Lexicon, vector_rows
from rechain.preparation import Array, Preparation
from rechain.pseudo import PseudoMaker
from rechain.schema import Question
from rechain.vectors import Vectors

INDEX = "index.json"


def folds_of(questions: Sequence[Question], folds: int) -> list[int]:
    """Return the fold of each question; questions that begin with the same entity share one."""
    groups = [question.question_entities[0] if question.question_entities else question.id for question in questions]
    distinct = sorted(set(groups))
    order = np.random.default_rng(0).permutation(len(distinct))
    fold = {group: int(place % folds) for group, place in zip(distinct, order, strict=True)}
    return [fold[group] for group in groups]


def stage(
    folder: Path,
    questions: Sequence[Question],
    vectors: Vectors,
    settings: CandidateSettings,
    *,
    folds: int = 5,
    pseudo: int = 0,
    extra: Sequence[Question] = (),
    processes: int = 2,
) -> None:
    """Write everything that is to be played with.

    `pseudo` questions are made from the passages of all questions and of `extra` ones (comparisons, say), for each fold from
    those of its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = vector_rows(vectors.words)
    preparation = Preparation(Lexicon(rows), settings)
    kept = [question for question in questions if preparation.take(question)]
    if not kept:
        raise RechainError("no question has a candidate chain; `rechain candidates` says why.")
    number = folds_of(kept, folds)
    arrays = {QUESTIONS: preparation.arrays() | {"fold": np.array(number)}}
    if pseudo:
        sources = _by_fold([*kept, *extra], [*number, *folds_of(extra, folds)], folds)
        make = partial(_make, sources=sources, rows=rows, settings=settings, count=-(-pseudo // max(folds - 1, 1)))
        with ProcessPoolExecutor(processes) as pool:
            arrays |= {PSEUDO.format(fold): made for fold, made in enumerate(pool.map(make, range(folds)))}
    arrays[VECTORS] = {"vectors": _keep_used(vectors, arrays)}
    for name, content in arrays.items():
        save_arrays(content, folder / name)
    index = {"ids": preparation.ids, "left_out": preparation.left_out, "folds": folds}
    (folder / INDEX).write_text(json.dumps(index), encoding="utf-8")


def _by_fold(questions: Sequence[Question], number: Sequence[int], folds: int) -> list[list[Question]]:
    sources: list[list[Question]] = [[] for _ in range(folds)]
    for question, fold in zip(questions, number, strict=True):
        sources[fold].append(question)
    return sources


def _make(
    fold: int,
    sources: Sequence[Sequence[Question]],
    rows: Mapping[str, int],
    settings: CandidateSettings,
    count: int,
) -> dict[str, Array]:
    """Make the pseudo questions of a fold, and tell for which other folds they may be used."""
    preparation = Preparation(Lexicon(rows), settings)
    texts = [{passage.text for question in part for passage in question.passages} for part in sources]
    starts = [{question.question_entities[0] for question in part if question.question_entities} for part in sources]
    allowed = []
    for pseudo in PseudoMaker(sources[fold]).make(count):
        question = pseudo.question
        if preparation.take(question, pseudo.chain):
            allowed.append([
                _is_apart(question, pseudo.chain, texts[other], starts[other]) and other != fold
                for other in range(len(sources))
            ])
    return preparation.arrays() | {"allowed": np.array(allowed, dtype=np.uint8)}


def _is_apart(question: Question, chain: Sequence[int], texts: set[str], starts: set[str]) -> bool:
    """Tell whether a pseudo question has nothing of a fold: not its start, or none of its passages in its chain."""
    if question.question_entities:
        return question.question_entities[0] not in starts
    return not any(question.passages[place].text in texts for place in chain)


def _keep_used(vectors: Vectors, arrays: Mapping[str, dict[str, Array]]) -> Array:
    """Number the rows of the table of vectors anew, with only those that are used."""
    used = np.unique(np.concatenate([content["vector_row"] for content in arrays.values()] + [np.zeros(1, np.int32)]))
    for content in arrays.values():
        content["vector_row"] = np.searchsorted(used, content["vector_row"]).astype(np.int32)
    table: Array = np.concatenate([np.zeros_like(vectors.matrix[:1]), vectors.matrix])[used]
    return table


def read_index(folder: Path) -> dict[str, Any]:
    """Read which questions a prepared folder holds."""
    index: dict[str, Any] = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    return index
