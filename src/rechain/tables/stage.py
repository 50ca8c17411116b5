"""Prepares the folder that `rechain.game.plays` plays in: questions, pseudo questions by fold, and word vectors."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
from rechain.preparation.pseudo import PseudoMaker, PseudoQuestion
from rechain.preparation.questions import Preparation
from rechain.preparation.vectors import Vectors, read_vectors
from rechain.schema import Question
from rechain.system.digests import read_sealed, write_sealed
from rechain.system.processes import in_order
from rechain.system.tensors import Array, load_arrays, save_arrays
from rechain.text.collection import Statistics

INDEX = "index.json"
_TYPES = {"hotpotqa": "bridge"}
"""the type of questions in a table; the paper leaves HotpotQA's comparisons out, which have no chain"""
_SPARE = 1.1
"""more pseudo questions are made than are needed, as those near a tested question are not used"""
_FIRST = 100
"""words of a file of vectors that tell it from others: to read all of them takes minutes"""


@dataclass(frozen=True)
class TableQuestions:
    """The questions of a table."""

    training: Sequence[Question]
    test: Sequence[Question] | None
    """questions to test on; without them, folds of the training questions are tested in turn"""
    extra: Sequence[Question]
    """questions of other types, whose passages are only used for pseudo questions"""

    @classmethod
    def read(
        cls, data_set: str, path: Path, test: Path | None, read: Callable[[Path], Iterable[Question]]
    ) -> "TableQuestions":
        """Read the files of a table and choose the questions of its type."""
        kind = _TYPES.get(data_set)
        questions = list(read(path))
        training = [question for question in questions if kind in (None, question.type)]
        tested = None if test is None else [question for question in read(test) if kind in (None, question.type)]
        for file, chosen in ((path, training), (test, tested)):
            if chosen == []:
                raise RechainError(f"{file} holds no question of type {kind}.")
        if tested and (shared := {q.id for q in training} & {q.id for q in tested}):
            raise RechainError(f"{path} and {test} share the question '{min(shared)}'; test on other questions.")
        return cls(training, tested, [question for question in questions if kind not in (None, question.type)])

    @property
    def tested(self) -> Sequence[Question]:
        """Those that are judged."""
        return self.training if self.test is None else self.test

    @property
    def all(self) -> list[Question]:
        """Test and training questions, in the order in which a folder holds them."""
        return [*(self.test or ()), *self.training]


def stage(
    folder: Path,
    questions: TableQuestions,
    vectors: Vectors,
    settings: CandidateSettings,
    *,
    folds: int = 5,
    pseudo: int = 0,
    processes: int = 2,
    collection: Statistics | None = None,
) -> None:
    """Write everything that is to be played with; `collection` is where the passages come from, if that is known.

    `pseudo` questions are made from the passages of all questions and of extra ones (comparisons, say), for each fold
    from its own alone. Test questions are fold 0, all others are then fold 1, and none is made from fold 0.
    """
    folder.mkdir(parents=True, exist_ok=True)
    has_test = questions.test is not None
    folds = 2 if has_test else folds
    rows = vector_rows(vectors.words)
    preparation = Preparation(Lexicon(rows), settings, collection)
    kept = [question for question in questions.all if preparation.take(question)]
    tested = {question.id for question in questions.test or ()}
    numbers = [int(q.id not in tested) for q in kept] if has_test else folds_of(kept, folds)
    if not numbers:
        raise RechainError("no question has a candidate chain; `rechain candidates` says why.")
    if empty := sorted(set(range(folds)) - set(numbers)):
        raise RechainError(f"fold {empty[0]} of {folds} has no question with a candidate chain; there are too few.")
    # what questions tell each other of their steps comes from those that a fold's players learn from
    told = preparation.tell([[n for n, other in enumerate(numbers) if other != fold] for fold in range(folds)])
    arrays = {QUESTIONS: preparation.arrays() | told | {"fold": np.array(numbers)}}
    if pseudo:
        numbers += [1] * len(questions.extra) if has_test else folds_of(questions.extra, folds)
        sources: list[list[Question]] = [[] for _ in range(folds)]
        for question, fold in zip((*kept, *questions.extra), numbers, strict=True):
            sources[fold].append(question)
        make = partial(_make_pseudo, sources, rows, settings, collection, ceil(pseudo * _SPARE / (folds - 1)))
        pseudo_folds = range(1 if has_test else 0, folds)
        contents = in_order(partial(partial, make), pseudo_folds, min(processes, len(pseudo_folds)), "fold {}".format)
        arrays |= {PSEUDO.format(fold): content for fold, content in zip(pseudo_folds, contents, strict=True)}
    arrays[VECTORS] = {"vectors": _keep_used(vectors, arrays)}
    for name, content in arrays.items():
        save_arrays(content, folder / name)
    index = {
        "ids": preparation.ids,
        "left_out": preparation.left_out,
        "folds": folds,
        "has_test": has_test,
        "hops": int(arrays[QUESTIONS]["chain_passages"].shape[1]),
        "vectors": _digest(vectors),
    }
    write_sealed(folder / INDEX, index)


def folds_of(questions: Sequence[Question], folds: int) -> list[int]:
    """Return the fold of each question; questions that begin with the same entity share one."""
    groups = [question.question_entities[0] if question.question_entities else question.id for question in questions]
    distinct = sorted(set(groups))
    order = np.random.default_rng(0).permutation(len(distinct))
    fold = {group: int(place % folds) for group, place in zip(distinct, order, strict=True)}
    return [fold[group] for group in groups]


def _make_pseudo(
    sources: Sequence[Sequence[Question]],
    rows: Mapping[str, int],
    settings: CandidateSettings,
    collection: Statistics | None,
    count: int,
    fold: int,
) -> dict[str, Array]:
    """Make the pseudo questions of a fold, each with the other folds in whose training it may be used."""
    preparation = Preparation(Lexicon(rows), settings, collection)
    texts = [{passage.text for question in part for passage in question.passages} for part in sources]
    starts = [{question.question_entities[0] for question in part if question.question_entities} for part in sources]
    allowed = []
    for pseudo in PseudoMaker(sources[fold], candidates=settings).make(count):
        if preparation.take(pseudo.question, pseudo.chain):
            apart = [_is_apart(pseudo, *of_fold) for of_fold in zip(texts, starts, strict=True)]
            allowed.append([is_apart and other != fold for other, is_apart in enumerate(apart)])
    return preparation.arrays() | {"allowed": np.array(allowed, dtype=np.uint8)}


def _is_apart(pseudo: PseudoQuestion, texts: set[str], starts: set[str]) -> bool:
    """Return whether a pseudo chain has nothing of a fold: no passage of it or, by entities, not its start."""
    question = pseudo.question
    if question.question_entities:
        return question.question_entities[0] not in starts
    return not any(question.passages[place].text in texts for place in pseudo.chain)


def _keep_used(vectors: Vectors, arrays: Mapping[str, dict[str, Array]]) -> Array:
    """Number the rows of the table of vectors anew, with only those that are used."""
    used = np.unique(np.concatenate([content["vector_row"] for content in arrays.values()] + [np.zeros(1, np.int32)]))
    for content in arrays.values():
        content["vector_row"] = np.searchsorted(used, content["vector_row"]).astype(np.int32)
    table: Array = vectors.table[used]
    return table


def _digest(vectors: Vectors) -> str:
    """Return a digest of the first words and their numbers."""
    words, numbers = vectors.words[:_FIRST], vectors.matrix[:_FIRST]
    return sha256("\n".join(words).encode() + np.ascontiguousarray(numbers).tobytes()).hexdigest()


def read_index(folder: Path) -> dict[str, Any]:
    """Read which questions a prepared folder holds."""
    try:
        index = read_sealed(folder / INDEX)
        if not index.keys() >= {"ids", "left_out", "folds"}:
            raise ValueError("it does not say what was prepared")
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / INDEX} cannot be read: {error}; prepare another folder.") from error
    return index


def is_prepared(folder: Path, questions: TableQuestions, folds: int) -> bool:
    """Return whether a folder is prepared already; one that is prepared for other questions is a mistake."""
    if not (folder / INDEX).exists():
        return False
    index = read_index(folder)
    ids, prepared = [question.id for question in questions.all], set(index["ids"])
    is_same = [name for name in ids if name in prepared] == index["ids"]
    if not is_same or len(ids) != len(index["ids"]) + sum(index["left_out"].values()):
        raise RechainError(f"{folder} was prepared for other questions; name another folder with --out.")
    has_test = questions.test is not None
    if index["folds"] != (2 if has_test else folds) or bool(index.get("has_test")) != has_test:
        raise RechainError(f"{folder} was prepared for {index['folds']} folds, or with another --test.")
    return True


def check_material(folder: Path, hops: int, vectors: Path | None, pseudo: int) -> None:
    """Raise what is wrong where a folder was prepared with chains, vectors or pseudo questions that do not fit."""
    index = read_index(folder)
    if vectors is not None:
        width = load_arrays(folder / VECTORS)["vectors"].shape[1]
        digest = _digest(read_vectors(vectors, limit=_FIRST, width=width))
        if index.get("vectors", digest) != digest:
            raise RechainError(f"{folder} was prepared with other vectors; name another folder with --out.")
    if pseudo and not (folder / PSEUDO.format(1)).exists():
        raise RechainError(f"{folder} was prepared without pseudo questions; add --pseudo 0 or change --out.")
    if (found := index.get("hops", hops)) != hops:
        raise RechainError(f"the chains of these questions have {found} passages, not {hops} as those of this table.")
