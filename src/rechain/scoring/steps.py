"""The steps of candidate chains: what questions over one collection have in common.

A step is a passage and the two entities by which a chain enters and leaves it: the claim that this passage relates
these two. Other questions may offer the same step, with other ends and other passages around it.
"""

from functools import cache
from hashlib import blake2b

from rechain.candidates import Candidates
from rechain.scoring.pairs import EntityPairs

_BYTES = 8
"""of a step's name: among a hundred million steps, two share one of 64 bits with a probability of 1 in 4,000"""


def find_steps(candidates: Candidates) -> list[list[str]]:
    """Return the names of the steps of every chain; none where the data does not name the entities.

    Elsewhere a step says nothing that another question could use: which passage is right depends on what is asked, and
    links are found by the words that passages share.
    """
    if not candidates.names_entities:
        return [[] for _ in candidates.chains]
    pairs = EntityPairs(candidates)

    @cache
    def passage_name(number: int) -> str:
        # By what it says: ids may be positions, which differ between questions.
        passage = candidates.views[number].passage
        return _name(passage.title, passage.text)

    return [
        [_name(passage_name(number), *sorted(entities)) for number, entities in pairs.entities(chain)]
        for chain in candidates.chains
    ]


def _name(*parts: str) -> str:
    framed = b"".join(b"%d:%s" % (len(part), part) for part in (text.encode("utf-8", "replace") for text in parts))
    return blake2b(framed, digest_size=_BYTES).hexdigest()
