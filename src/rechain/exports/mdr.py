"""Chains of two passages, and two side by side, as training data of MDR, the retriever of Xiong et al. 2021.

github.com/facebookresearch/multihop_dense_retrieval, mdr/retrieval/data/mhop_dataset.py reads lines with `question`,
`type`, `pos_paras`, `bridge` (the title of the second of them, by which alone it finds their order) and at least two
`neg_paras`; for training it takes `tfidf_neg` in their place, so both fields are written. Two passages of the type
"comparison" have no order there, and no bridge. `confidence` is ours.
"""

from typing import Any

from rechain.errors import QuestionError
from rechain.exports.joining import Joined, LineExport
from rechain.exports.texts import hard_negatives
from rechain.schema import Passage

_NEGATIVES = 2  # MDR takes the first two, and fails with fewer


def row(joined: Joined) -> list[dict[str, Any]]:
    """Return the one row of a question: its chain and all hard negatives, hardest first."""
    question, positives = joined.question, [_paragraph(passage) for passage, _ in joined.passages]
    if len(positives) != 2:
        raise QuestionError("not_two_passages", f"the chain has {len(positives)} passages")
    is_parallel = joined.best.shape == "parallel"
    if not is_parallel and positives[0]["title"] == positives[1]["title"]:
        raise QuestionError("same_title", "both passages of the chain have the same title, or none")
    negatives = [_paragraph(passage) for passage in hard_negatives(joined)]
    if len(negatives) < _NEGATIVES:
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


EXPORT = LineExport(row)
