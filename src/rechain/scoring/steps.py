"""The steps of candidate chains: what questions over one collection have in common.

A step is a passage and the two entities by which a chain enters and leaves it: the claim that this passage relates
these two. Other questions may offer the same step, with other ends and other passages around it.
"""

from hashlib import blake2b

from rechain.candidates import Candidates
from rechain.schema import Passage
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
    passages = [view.passage for view in candidates.views]
    known: dict[tuple[int, tuple[str, str]], str] = {}
    for step in (step for chain in candidates.chains for step in pairs.entities(chain)):
        if step not in known:
            known[step] = step_name(passages[step[0]], step[1])
    return [[known[step] for step in pairs.entities(chain)] for chain in candidates.chains]


def step_name(passage: Passage, entities: tuple[str, str]) -> str:
    """Return what names a step: the passage by what it says, as ids may be positions in a question, and two entities.

    These are in no order: a chain may go through a passage either way.
    """
    parts = (text.encode("utf-8", "replace") for text in (passage.title, passage.text, *sorted(entities)))
    framed = b"".join(b"%d:%s" % (len(part), part) for part in parts)
    return blake2b(framed, digest_size=_BYTES).hexdigest()
