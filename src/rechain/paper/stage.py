"""Prepares the folder that `rechain.paper.plays` plays in: questions and word vectors as arrays."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from rechain.errors import InputError, RechainError
from rechain.paper.lexicon import Lexicon, vector_rows
from rechain.paper.plays import ONLY_TRAINED, QUESTIONS, VECTORS
from rechain.paper.prepare import Preparation
from rechain.paper.vectors import Vectors, read_vectors
from rechain.schema import Question
from rechain.system.files import read_sealed, write_sealed
from rechain.system.tensors import load_arrays, save_arrays
from rechain.text.candidates import CandidateSettings
from rechain.text.collection import Statistics

INDEX = "index.json"
_TYPES = {"hotpotqa": "bridge"}
"""the type of questions in a table; the paper leaves out HotpotQA's comparisons, which have no chain"""
_FIRST = 100
"""words of a file of vectors that identify it: reading all of them takes minutes"""


@dataclass(frozen=True)
class TableQuestions:
    """The questions of a table."""

    training: Sequence[Question]
    test: Sequence[Question] | None
    """questions to test on; without them, folds of the training questions are tested in turn"""
    more: Sequence[Question] = ()
    """questions that are only trained on, for a row of their own"""

    @classmethod
    def read(
        cls,
        data_set: str,
        path: Path,
        test: Path | None,
        more: Path | None,
        read: Callable[[Path], Iterable[Question]],
    ) -> "TableQuestions":
        """Read the files of a table and choose the questions of its type; of `more` those without a type as well."""
        kind = _TYPES.get(data_set)

        def chosen(file: Path, *kinds: str | None) -> list[Question]:
            questions = [question for question in read(file) if kind is None or question.type in kinds]
            if not questions:
                raise RechainError(f"{file} has no question" + (f" of type {kind}." if kind else "."))
            return questions

        def check_apart(one: Sequence[Question], other: Sequence[Question], files: str, advice: str) -> None:
            if shared := {q.id for q in one} & {q.id for q in other}:
                raise RechainError(f"{files} share the question '{min(shared)}'; {advice}.")

        training, tested = chosen(path, kind), chosen(test, kind) if test else None
        added = chosen(more, kind, None) if more else []
        check_apart(training, tested or (), f"{path} and {test}", "test on other questions")
        check_apart([*training, *(tested or ())], added, f"{more} and the table", "--more needs other questions")
        return cls(training, tested, added)

    @property
    def tested(self) -> Sequence[Question]:
        """Those that are judged."""
        return self.training if self.test is None else self.test

    @property
    def in_table(self) -> list[Question]:
        """Test and training questions, in the order in which a folder has them."""
        return [*(self.test or ()), *self.training]

    @property
    def all(self) -> list[Question]:
        """Those of the table, and after them those that are only trained on."""
        return [*self.in_table, *self.more]


def stage(
    folder: Path,
    questions: TableQuestions,
    vectors: Vectors,
    settings: CandidateSettings,
    *,
    folds: int = 5,
    collection: Statistics | None = None,
) -> None:
    """Write all that plays need; `collection` is where the passages come from, if that is known.

    Test questions are fold 0, all others are then fold 1.
    """
    folder.mkdir(parents=True, exist_ok=True)
    has_test = questions.test is not None
    folds = 2 if has_test else folds
    preparation = Preparation(Lexicon(vector_rows(vectors.words)), settings, collection)
    kept = [question for question in questions.all if preparation.take(question)]
    tested, more = ({question.id for question in part or ()} for part in (questions.test, questions.more))
    in_table = [question for question in kept if question.id not in more]
    numbers = [int(q.id not in tested) for q in in_table] if has_test else folds_of(in_table, folds)
    if not numbers:
        raise RechainError("no question has a candidate chain; `rechain candidates` explains why.")
    if more and len(in_table) == len(kept):
        raise RechainError("no question of --more has a candidate chain; leave --more out.")
    if empty := sorted(set(range(folds)) - set(numbers)):
        raise RechainError(f"fold {empty[0]} of {folds} has no question with a candidate chain; there are too few.")
    # beliefs about steps come from the questions that the players of a fold learn from
    beliefs = preparation.beliefs([[n for n, other in enumerate(numbers) if other != fold] for fold in range(folds)])
    numbers += [ONLY_TRAINED] * (len(kept) - len(in_table))
    arrays = preparation.arrays() | beliefs | {"fold": np.array(numbers)}
    used = np.unique(np.append(arrays["vector_row"], 0))  # rows of other words are not kept
    arrays["vector_row"] = np.searchsorted(used, arrays["vector_row"]).astype(np.int32)
    save_arrays(arrays, folder / QUESTIONS)
    save_arrays({"vectors": vectors.table[used]}, folder / VECTORS)
    index = {
        "ids": preparation.ids,
        "left_out": preparation.left_out,
        "folds": folds,
        "has_test": has_test,
        "only_trained": len(kept) - len(in_table),
        "hops": int(arrays["chain_passages"].shape[1]),
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


def _digest(vectors: Vectors) -> str:
    """Return a digest of the first words and their numbers."""
    words, numbers = vectors.words[:_FIRST], vectors.matrix[:_FIRST]
    return sha256("\n".join(words).encode() + np.ascontiguousarray(numbers).tobytes()).hexdigest()


def read_index(folder: Path) -> dict[str, Any]:
    """Read which questions a prepared folder has."""
    try:
        index = read_sealed(folder / INDEX)
        if not index.keys() >= {"ids", "left_out", "folds", "has_test", "only_trained", "hops", "vectors"}:
            raise ValueError("it is not the index of a prepared folder")
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / INDEX} cannot be read: {error}; prepare another folder.") from error
    return index


def is_prepared(folder: Path, questions: TableQuestions, folds: int) -> bool:
    """Return whether a folder is prepared already; raise RechainError if it is for other questions."""
    if not (folder / INDEX).exists():
        return False
    index = read_index(folder)
    ids, prepared = [question.id for question in questions.all], set(index["ids"])
    is_same = [name for name in ids if name in prepared] == index["ids"]
    is_same = is_same and sum(question.id in prepared for question in questions.more) == index["only_trained"]
    if not is_same or len(ids) != len(index["ids"]) + sum(index["left_out"].values()):
        raise RechainError(f"{folder} was prepared for other questions; name another folder with --out.")
    has_test = questions.test is not None
    if index["folds"] != (2 if has_test else folds) or index["has_test"] != has_test:
        raise RechainError(f"{folder} was prepared for {index['folds']} folds, or with another --test.")
    return True


def check_material(folder: Path, hops: int, vectors: Path | None) -> None:
    """Raise RechainError if a folder was prepared with other vectors, or with chains of another length."""
    index = read_index(folder)
    if vectors is not None:
        width = load_arrays(folder / VECTORS)["vectors"].shape[1]
        if index["vectors"] != _digest(read_vectors(vectors, limit=_FIRST, width=width)):
            raise RechainError(f"{folder} was prepared with other vectors; name another folder with --out.")
    if index["hops"] != hops:
        raise RechainError(f"the chains of these questions have {index['hops']} passages, not {hops} as in this table.")
