"""What each kind of link weighs, beside the rarity of its words."""

from rechain.schema import LinkKind

BONUS: dict[LinkKind, float] = {
    "mention": 10.0,
    "identifier": 10.0,
    "title": 6.0,
    "title part": 4.0,
    "name": 0.0,
    "word": -1.0,
}
DEFAULT_MIN_WEIGHT = 7.0
