"""Chains as paths to train a beam retriever on: records of MuSiQue, which Beam Retriever reads as they are.

Beam Retriever (Zhang et al. 2024; github.com/canghongjian/beam_retriever, retrieval/datasets.py) with `--dataset_type
musique` takes `id`, `question`, `title` and `paragraph_text` of the `paragraphs`, and the `paragraph_support_idx` of
the steps of `question_decomposition`, in their order, as positions in `paragraphs`. The other fields are MuSiQue's own,
so that its readers, that of rechain among them, take the records too. MuSiQue's steps are subquestions, which a chain
does not have: here the first step is the whole question, and a later one refers to the one before ("#1"). Passages side
by side are steps that are each the whole question. `confidence` is ours.
"""

from typing import Any

from rechain.exports.joining import Joined, LineExport


def row(joined: Joined) -> list[dict[str, Any]]:
    """Return the one row of a question: its passages and the positions of its chain among them."""
    question = joined.question
    places = {passage.id: place for place, passage in enumerate(question.passages)}
    on_chain = set(joined.best.passages)
    paragraphs = [
        {"idx": place, "title": p.title, "paragraph_text": p.text, "is_supporting": p.id in on_chain}
        for place, p in enumerate(question.passages)
    ]
    record = {
        "id": question.id,
        "paragraphs": paragraphs,
        "question": question.question,
        "question_decomposition": _steps(joined, places),
        "answer": question.answer,
        "answer_aliases": question.answer_aliases,
        "answerable": True,
        **joined.confidence,
    }
    return [record]


def _steps(joined: Joined, places: dict[str, int]) -> list[dict[str, Any]]:
    """Return the passages of a chain as steps, each with the entity that links it to the next as its answer."""
    count, is_parallel = len(joined.best.passages), joined.best.shape == "parallel"
    entities = [link.entity for link in joined.best.links_in_order]
    answers = [*entities, *[""] * (count - 1 - len(entities)), joined.question.answer]
    return [
        {
            "id": number,
            "question": f"#{number}" if number and not is_parallel else joined.question.question,
            "answer": answer,
            "paragraph_support_idx": places[name],
        }
        for number, (name, answer) in enumerate(zip(joined.best.passages, answers, strict=True))
    ]


EXPORT = LineExport(row)
