"""How pseudo questions are made."""

from dataclasses import dataclass, fields

from rechain.errors import RechainError


@dataclass(frozen=True, slots=True)
class PseudoSettings:
    """How pseudo questions are made, and how hard."""

    drop: float = 0.95
    """the chance that a word of the rarest kind is dropped; that of others is less, in proportion to their rarity"""
    drop_unique: float = 0.8
    """the least chance that a word is dropped which no other passage of the context holds"""
    paraphrase: float = 0.8
    """the chance that a word is replaced by one that means the same, or inflected otherwise, where one is known"""
    keep_title: float = 0.35
    """the chance that a question names its head by title, where the title is not the link"""
    clause_words: tuple[int, int] = (4, 8)
    """the least and the most words taken from one sentence"""
    link_distractors: int = 6
    """the most passages brought in because they too are linked with the tail"""
    answer_distractors: float = 0.6
    """the chance that a passage is brought in because it holds the answer"""
    word_distractors: int = 1
    """the most passages brought in because they hold rare words of the question"""
    kept_distractors: int = 2
    """how many passages of the context at least stay beside the chain, where it has so many"""
    patience: int = 60
    """a source is given up after so many failures in a row"""
    pattern: str = "interacts_with {}?"
    """the question where the data gives the entities; {} is the entity it starts from"""
    passages: tuple[int, int] = (15, 30)
    """the least and the most passages of a question, where the data gives the entities"""

    def __post_init__(self) -> None:
        """Say which setting is wrong."""
        for name in ("drop", "drop_unique", "paraphrase", "keep_title", "answer_distractors"):
            if not 0 <= getattr(self, name) <= 1:
                raise RechainError(f"{name} is a chance from 0 to 1, not {getattr(self, name)}.")
        for name in ("clause_words", "passages"):
            least, most = getattr(self, name)
            if not 1 <= least <= most:
                raise RechainError(f"{name} is a least and a most number, not {least} and {most}.")
        for field in fields(self):
            if isinstance(value := getattr(self, field.name), int) and value < 0:
                raise RechainError(f"{field.name} should not be negative, as {value} is.")
        if "{}" not in self.pattern:
            raise RechainError(f"the pattern '{self.pattern}' has no {{}} where the entity should stand.")
