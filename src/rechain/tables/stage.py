"""Prepares the folder that `rechain.game.plays` plays in: questions, pseudo questions by fold, and word vectors."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from rechain.candidates import CandidateSettings
from rechain.errors import InputError, RechainError
from rechain.game.plays import PSEUDO, QUESTIONS, VECTORS
from rechain.preparation.lexicon import Lexicon, vector_rows
from rechain.preparation.pseudo import PseudoMaker
from rechain.preparation.questions import Preparation
from rechain.preparation.vectors import Vectors
from rechain.schema import Question
from rechain.system.tensors import Array, save_arrays

INDEX = "index.json"
_SPARE = 1.1
FIRST = 100


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
    test: Sequence[Question] | None = None,
    processes: int = 2,
) -> None:
    """Write everything that is to be played with.

    `pseudo` questions are made from the passages of all questions and of `extra` ones (comparisons, say), for each fold
    from those of its own. Where there are `test` questions, they are fold 0, all others are fold 1, and none is made
    from them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = vector_rows(vectors.words)
    preparation = Preparation(Lexicon(rows), settings)
    kept = [question for question in (*(test or ()), *questions) if preparation.take(question)]
    folds = folds if test is None else 2
    number = folds_of(kept, folds) if test is None else _apart(kept, test)
    _check_folds(number, folds)
    arrays = {QUESTIONS: preparation.arrays() | {"fold": np.array(number)}}
    if pseudo:
        of_extra = folds_of(extra, folds) if test is None else [1] * len(extra)
        sources = _by_fold([*kept, *extra], [*number, *of_extra], folds)
        make = partial(_make, sources=sources, rows=rows, settings=settings, count=_per_fold(pseudo, folds))
        needed = range(folds) if test is None else [1]
        with ProcessPoolExecutor(processes) as pool:
            arrays |= {PSEUDO.format(fold): made for fold, made in zip(needed, pool.map(make, needed), strict=True)}
    arrays[VECTORS] = {"vectors": _keep_used(vectors, arrays)}
    for name, content in arrays.items():
        save_arrays(content, folder / name)
    index = {
        "ids": preparation.ids,
        "left_out": preparation.left_out,
        "folds": folds,
        "has_test": test is not None,
        "hops": int(arrays[QUESTIONS]["chain_passages"].shape[1]),
        "vectors": start_of(vectors),
    }
    (folder / INDEX).write_text(json.dumps(index), encoding="utf-8")


def _apart(kept: Sequence[Question], test: Sequence[Question]) -> list[int]:
    """Return fold 0 for the test questions and fold 1 for the others."""
    tested = {question.id for question in test}
    return [int(question.id not in tested) for question in kept]


def _check_folds(number: Sequence[int], folds: int) -> None:
    if not number:
        raise RechainError("no question has a candidate chain; `rechain candidates` says why.")
    if empty := sorted(set(range(folds)) - set(number)):
        raise RechainError(f"fold {empty[0]} of {folds} has no question with a candidate chain; there are too few.")


def _per_fold(pseudo: int, folds: int) -> int:
    """Return how many pseudo questions to make of a fold: more than needed, as those near a tested one are not used."""
    return ceil(pseudo * _SPARE / max(folds - 1, 1))


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
    for pseudo in PseudoMaker(sources[fold], candidates=settings).make(count):
        question = pseudo.question
        if preparation.take(question, pseudo.chain):
            allowed.append(
                [
                    _is_apart(question, pseudo.chain, texts[other], starts[other]) and other != fold
                    for other in range(len(sources))
                ]
            )
    return preparation.arrays() | {"allowed": np.array(allowed, dtype=np.uint8)}


def _is_apart(question: Question, chain: Sequence[int], texts: set[str], starts: set[str]) -> bool:
    """Return whether a pseudo chain has nothing of a fold: no passage of it or, by entities, not its start."""
    if question.question_entities:
        return question.question_entities[0] not in starts
    return not any(question.passages[place].text in texts for place in chain)


def _keep_used(vectors: Vectors, arrays: Mapping[str, dict[str, Array]]) -> Array:
    """Number the rows of the table of vectors anew, with only those that are used."""
    used = np.unique(np.concatenate([content["vector_row"] for content in arrays.values()] + [np.zeros(1, np.int32)]))
    for content in arrays.values():
        content["vector_row"] = np.searchsorted(used, content["vector_row"]).astype(np.int32)
    table: Array = vectors.table[used]
    return table


def start_of(vectors: Vectors) -> str:
    """Return what tells vectors from others: a digest of the first words and their numbers."""
    words, numbers = vectors.words[:FIRST], vectors.matrix[:FIRST]
    return sha256("\n".join(words).encode() + np.ascontiguousarray(numbers).tobytes()).hexdigest()


def read_index(folder: Path) -> dict[str, Any]:
    """Read which questions a prepared folder holds."""
    try:
        index: dict[str, Any] = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / INDEX} cannot be read: {error}; prepare another folder.") from error
    return index
