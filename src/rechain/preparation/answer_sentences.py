"""Short answers as people and chatbots write them: in a sentence, some with words of the question."""

import re
from random import Random

# Other ways than those of `benchmarks/answers.py`, which stay unseen so that they can be measured on.
_FRAMES = (
    "The answer is {answer}.",
    "It is {answer}.",
    "That would be {answer}.",
    "{answer}, as far as I can see.",
    "According to the documents, it is {answer}.",
    "Sure! The answer is **{answer}**.",
    "I found the following: {answer}.",
    "From the passages it follows that the answer is {answer}.",
    "Thanks for asking! It should be {answer}.",
)
_FRAMES_WITH_QUESTION = (
    "{rest}: {answer}.",
    "The {rest} is {answer}.",
    "As to the {rest}, the text says {answer}.",
    "You asked about the {rest}. That is {answer}.",
    "{answer} is the {rest}.",
)
_ASKING = re.compile(
    r"(?:(?:in|at|on|by|to|for|from|of|with|under|during) )?(?:what|which|who|whose|whom|where|when|why|how)"
    r"(?: (?:many|much|long|old))?(?: (?:is|was|are|were|does|did|do|has|had))?(?: the)? ",
    re.IGNORECASE,
)
"""how questions begin; what follows says what is asked for"""


def write_sentence(question: str, answer: str, random: Random) -> str:
    """Return a sentence that gives an answer; which one is drawn at random."""
    asked = question.strip().rstrip("?. ")
    beginning = _ASKING.match(asked)
    frame = random.choice(_FRAMES + _FRAMES_WITH_QUESTION if beginning else _FRAMES)
    written = frame.format(rest=asked[beginning.end() :] if beginning else "", answer=answer)
    return written[:1].upper() + written[1:]
