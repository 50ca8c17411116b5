"""What a pseudo question is, and how it is made."""

from dataclasses import dataclass
from typing import NamedTuple

from rechain.schema import Question
from rechain.system.settings import Count, Positive, Settings, Share, wrong_setting


@dataclass(frozen=True)
class PseudoSettings(Settings):
    """How pseudo questions are made, and how hard."""

    drop: Share = 0.95
    """the chance that a word of the rarest kind is dropped; that of others is less, in proportion to their rarity"""
    drop_unique: Share = 0.8
    """the least chance that a word is dropped which no other passage of the context holds"""
    paraphrase: Share = 0.8
    """the chance that a word is replaced by one that means the same, or inflected otherwise, where one is known"""
    keep_title: Share = 0.35
    """the chance that a question names its head by title, where the title is not the link"""
    clause_words: tuple[Positive, Positive] = (4, 8)
    """the least and the most words taken from one sentence"""
    link_distractors: Count = 6
    """the most passages brought in because they too are linked with the tail"""
    answer_distractors: Share = 0.6
    """the chance that a passage is brought in because it holds the answer"""
    word_distractors: Count = 1
    """the most passages brought in because they hold rare words of the question"""
    kept_distractors: Count = 2
    """how many passages of the context at least stay beside the chain, if it has as many"""
    patience: Count = 60
    """the failures in a row after which a source is given up"""
    pattern: str = "interacts_with {}?"
    """the question where the data gives the entities; {} is the entity it starts from"""
    passages: tuple[Positive, Positive] = (15, 30)
    """the least and the most passages of a question, where the data gives the entities"""

    def __post_init__(self) -> None:
        """Say which setting is wrong."""
        super().__post_init__()
        for name in ("clause_words", "passages"):
            least, most = getattr(self, name)
            if least > most:
                raise wrong_setting(name, (least, most), "the least and the most number")
        if "{}" not in self.pattern:
            raise wrong_setting("pattern", self.pattern, "a text with {} where the entity stands")


class PseudoQuestion(NamedTuple):
    """A question made from passages, and the chain that it was made from."""

    question: Question
    chain: tuple[int, ...]
    """positions in `question.passages`, head first"""
    source: str
    """the id of the question whose passages it was made from"""
    links: tuple[str, ...] = ()
    """the linking entities: ids where the data gives them, else folded words"""
