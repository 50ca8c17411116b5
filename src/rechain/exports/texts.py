"""A passage as one text, and hard negatives: passages that resemble those of a chain."""

from rechain.answers.matching import AnswerMatcher
from rechain.exports.joining import Joined
from rechain.schema import Passage
from rechain.text.bm25 import likeness
from rechain.text.passages import PassageView, title_before


def text_of(passage: Passage) -> str:
    """Return "title: text", or the text alone if it begins with the title or there is none."""
    title = title_before(passage)
    return f"{title}: {passage.text}" if title else passage.text


def hard_negatives(joined: Joined) -> list[Passage]:
    """Return the passages on none of a question's chains that do not hold the answer, most like the question first.

    Passages with the text of one on a chain are left out as well: a copy of a positive is no negative.
    """
    answer = AnswerMatcher(joined.question)
    on_chains = {name for chain in joined.recovered.chains for name in chain.passages}
    positives = {text_of(passage) for passage in joined.question.passages if passage.id in on_chains}
    views = [PassageView(passage) for passage in joined.question.passages]
    alike = likeness(joined.question, views)
    ranked = sorted(range(len(views)), key=lambda number: -alike[number])
    passages = (views[number].passage for number in ranked if not answer.is_held_by(views[number]))
    return [passage for passage in passages if passage.id not in on_chains and text_of(passage) not in positives]
