"""Chains as training data of retrievers: triplets of sentence-transformers, paths of Beam Retriever, and MDR."""

from itertools import chain, pairwise
from typing import Any

from rechain.errors import InputError, QuestionError
from rechain.formats.exports.joining import Joined
from rechain.schema import UNORDERED, Passage
from rechain.text.answers.matcher import AnswerMatcher
from rechain.text.passage_views import PassageView, bm25_scores, title_before
from rechain.text.words import phrase

_MDR_NEGATIVES = 2  # MDR takes the first two, and fails with fewer


def triplets(joined: Joined, negatives: int = 1, weights: bool = False) -> list[dict[str, Any]]:
    """Return triplets for sentence-transformers, whose losses take the columns in this order: query, positive, …

    Every passage of the chain is a positive, with each of the hardest negatives. A column `score` is what the trainers
    pass to a loss as labels: losses that know none leave it alone.
    """
    hardest = hard_negatives(joined)[:negatives]
    if not hardest:
        raise QuestionError("no_negative", "every passage is on a chain")
    if weights and joined.best.confidence is None:
        raise InputError(
            f"the model that recovered the chain of the question '{joined.question.id}' tells no confidence, "
            "so it cannot be a weight; leave --weights out."
        )
    weight = {"score": joined.best.confidence} if weights else {}
    return [
        {"query": joined.question.question, "positive": text_of(passage), "negative": text_of(negative), **weight}
        for passage, _ in joined.passages
        for negative in hardest
    ]


def path(joined: Joined) -> list[dict[str, Any]]:
    """Return a path to train a beam retriever on: a record of MuSiQue, which Beam Retriever reads as it is.

    Beam Retriever (Zhang et al. 2024; github.com/canghongjian/beam_retriever, retrieval/datasets.py) with
    `--dataset_type musique` takes `id`, `question`, `title` and `paragraph_text` of the `paragraphs`, and the
    `paragraph_support_idx` of the steps of `question_decomposition`, in their order, as positions in `paragraphs`. The
    other fields are MuSiQue's own, so that its readers, that of rechain among them, take the records too.
    `confidence` is ours.
    """
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
    """Return the passages of a chain as steps, each with the entity that links it to the next as its answer.

    MuSiQue's steps are subquestions, which a chain does not have: here the first step is the whole question, and a
    later one refers to those that lead to it ("#1"). Where several lines of evidence stand side by side, the first step
    of each is the whole question.
    """
    best, last = joined.best, len(joined.best.passages) - 1
    before: dict[int, list[str]] = {}
    for one, two in chain.from_iterable(map(pairwise, best.lines)):
        before.setdefault(two, []).append(f"#{one + 1}")
    answers = {one: link.entity for (one, _), link in zip(best.between, best.joining_links, strict=True)}
    answers[last] = joined.question.answer
    return [
        {
            "id": number,
            "question": " ".join(before.get(number, ())) or joined.question.question,
            "answer": answers.get(number, ""),
            "paragraph_support_idx": places[name],
        }
        for number, name in enumerate(best.passages)
    ]


def mdr(joined: Joined) -> list[dict[str, Any]]:
    """Return a chain of two passages, or two side by side, as training data of MDR (Xiong et al. 2021).

    github.com/facebookresearch/multihop_dense_retrieval, mdr/retrieval/data/mhop_dataset.py reads lines with
    `question`, `type`, `pos_paras`, `bridge` (the title of the second of them, by which alone it finds their order)
    and at least two `neg_paras`; for training it takes `tfidf_neg` in their place, so both fields are written. Two
    passages of the type "comparison" have no order there, and no bridge. `confidence` is ours.
    """
    question, positives = joined.question, [_paragraph(passage) for passage, _ in joined.passages]
    if len(positives) != 2:
        raise QuestionError("not_two_passages", f"the chain has {len(positives)} passages")
    is_parallel = joined.best.shape in UNORDERED
    if not is_parallel and positives[0]["title"] == positives[1]["title"]:
        raise QuestionError("same_title", "both passages of the chain have the same title, or none")
    negatives = [_paragraph(passage) for passage in hard_negatives(joined)]
    if len(negatives) < _MDR_NEGATIVES:
        raise QuestionError("no_negative", f"only {len(negatives)} passages are on no chain")
    record = {
        "_id": question.id,
        "question": question.question,
        "answers": [question.answer, *question.answer_aliases],
        "type": "comparison" if is_parallel else "bridge",
        "pos_paras": positives,
        **({} if is_parallel else {"bridge": positives[1]["title"]}),
        "neg_paras": negatives,
        "tfidf_neg": negatives,
        **joined.confidence,
    }
    return [record]


def _paragraph(passage: Passage) -> dict[str, str]:
    return {"title": passage.title, "text": passage.text}


def text_of(passage: Passage) -> str:
    """Return "title: text", or the text alone if it begins with the title or there is none."""
    title = title_before(passage)
    return f"{title}: {passage.text}" if title else passage.text


def hard_negatives(joined: Joined) -> list[Passage]:
    """Return the passages on none of a question's chains, the hardest first.

    Those that contain the answer or a link of the chain come before the others, as C could have led through them; among
    equals the one most like the question is first. Passages with the text of one on a chain are left out as well: a
    copy of a positive is no negative.
    """
    on_chains = {name for chain in joined.recovered.chains for name in chain.passages}
    positives = {text_of(passage) for passage in joined.question.passages if passage.id in on_chains}
    views = [PassageView(passage) for passage in joined.question.passages]
    alike, answer = bm25_scores(joined.question, views), AnswerMatcher(joined.question)
    entities = [link.entity for link in joined.best.links]
    names = [words for entity in entities if (words := phrase(entity))]

    def could_be_on_chain(view: PassageView) -> bool:
        # An entity is an id if the data names entities, else the words of a mention.
        is_linked = any(map(view.mentions, entities)) or any(words in view.joined for words in names)
        return answer.is_held_by(view) or is_linked

    ranked = sorted(range(len(views)), key=lambda number: (not could_be_on_chain(views[number]), -alike[number]))
    passages = (views[number].passage for number in ranked)
    return [passage for passage in passages if passage.id not in on_chains and text_of(passage) not in positives]
