"""A passage as one text, and hard negatives: passages that could be mistaken for those of a chain."""

from rechain.answers.matching import AnswerMatcher
from rechain.errors import InputError
from rechain.exports.joining import Joined
from rechain.schema import Passage
from rechain.text.bm25 import likeness
from rechain.text.passages import PassageView, title_before
from rechain.text.words import phrase


def text_of(passage: Passage) -> str:
    """Return "title: text", or the text alone if it begins with the title or there is none."""
    title = title_before(passage)
    return f"{title}: {passage.text}" if title else passage.text


def weight_of(joined: Joined) -> float:
    """Return the confidence of a question's chain, as the weight of what is learnt from it."""
    if joined.best.confidence is None:
        raise InputError(
            f"the model that recovered the chain of the question '{joined.question.id}' tells no confidence, "
            "so it cannot be a weight; leave --weights out."
        )
    return joined.best.confidence


def hard_negatives(joined: Joined) -> list[Passage]:
    """Return the passages on none of a question's chains, the hardest first.

    Those that hold the answer or a link of the chain come before the others, as C could have led through them; among
    equals the one most like the question is first. Passages with the text of one on a chain are left out as well: a
    copy of a positive is no negative.
    """
    on_chains = {name for chain in joined.recovered.chains for name in chain.passages}
    positives = {text_of(passage) for passage in joined.question.passages if passage.id in on_chains}
    views = [PassageView(passage) for passage in joined.question.passages]
    alike, holds = likeness(joined.question, views), _Holder(joined)
    ranked = sorted(range(len(views)), key=lambda number: (not holds(views[number]), -alike[number]))
    passages = (views[number].passage for number in ranked)
    return [passage for passage in passages if passage.id not in on_chains and text_of(passage) not in positives]


class _Holder:
    """Finds the answer and the links of a question's chain in passages."""

    def __init__(self, joined: Joined) -> None:
        self._answer = AnswerMatcher(joined.question)
        self._entities = [link.entity for link in joined.best.links]
        self._phrases = [words for entity in self._entities if (words := phrase(entity))]

    def __call__(self, view: PassageView) -> bool:
        """Return whether a passage holds the answer or a link."""
        # An entity is an id where the data names entities, else the words of a mention.
        return (
            self._answer.is_held_by(view)
            or any(view.mentions(entity) for entity in self._entities)
            or any(words in view.joined for words in self._phrases)
        )
