"""Passages side by side: each is about one of the things that a question compares or an answer lists.

"Which is older, A or B?" names its things at both sides of a conjunction, and its evidence is a passage about each. No
link is needed between them; the answer may be one of the things, something that both passages hold, or a mere "yes".
An answer that makes several claims may need several passages, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from math import fsum

from rechain.schema import Question
from rechain.text.answers.matcher import Holdings
from rechain.text.linking.content import are_parts
from rechain.text.passage_views import PassageView
from rechain.text.rarity import idf
from rechain.text.words import Text

_CONJUNCTIONS = frozenset(
    ("or", "and", "vs", "versus", "oder", "und", "sowie", "bzw", "ou", "et", "o", "y", "или", "и", *"或和与及跟")
)
"""of the languages whose questions were at hand"""
_CHINESE_OR = ("还", "是")
_WINDOW = 8
"""words at either side of a conjunction in which the things are sought: few titles of HotpotQA have more than eight"""
_NEAREST = 0.85
"""what a word counts for every word between it and the conjunction: "the film A or B" is about A, not about films"""
_TEXT = 0.3
"""what a word counts that stands in a passage's text and not in its title"""
_MOST_A_SIDE = 4
"""passages that are tried for each thing"""
_LEAST, _LEAST_OF_PARTS = 4.0, 2.0
"""how much of a thing a passage must hold, in rarity: a word that is not quite common; of parts of documents less, as
no title names what they are about: with 4.0, six of 109 questions of benchmarks/logs that compare or list lose it"""
_MOST = 8
"""parallels that are kept, the best"""
_MOST_CLAIMS = 4
"""passages that are put side by side for the claims of an answer"""

Side = Mapping[str, float]
"""the words of one thing, and what each counts"""


def find_parallels(
    question: Question, views: Sequence[PassageView], holdings: Holdings
) -> list[tuple[tuple[int, ...], float]]:
    """Return passages that may stand side by side, the best first, and how much they hold of what is compared."""
    query = Text(question.question)
    best: dict[frozenset[int], tuple[tuple[int, ...], float]] = {}
    for passages, affinity in (*_compared(query, views), *_named(query, views), *_claimed(holdings)):
        key = frozenset(passages)
        if len(key) == len(passages) > 1 and affinity > best.get(key, ((), 0.0))[1]:
            best[key] = passages, affinity
    return sorted(best.values(), key=lambda found: -found[1])[:_MOST]


def _compared(query: Text, views: Sequence[PassageView]) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield a passage for each side of a conjunction."""
    least = _LEAST_OF_PARTS if are_parts(views) else _LEAST
    for sides in _sides(query.words):
        for choice in product(*(_rank(side, views, least) for side in sides)):
            yield tuple(passage for passage, _ in choice), fsum(affinity for _, affinity in choice)


def _sides(words: Sequence[str]) -> Iterator[tuple[Side, Side]]:
    """Yield the words at both sides of every conjunction."""
    for place, word in enumerate(words):
        is_chinese_or = tuple(words[place : place + 2]) == _CHINESE_OR
        if word in _CONJUNCTIONS or is_chinese_or:
            after = place + (2 if is_chinese_or else 1)
            yield _side(words[max(place - _WINDOW, 0) : place][::-1]), _side(words[after : after + _WINDOW])


def _side(words: Sequence[str]) -> Side:
    side: dict[str, float] = {}
    for distance, word in enumerate(words):
        side.setdefault(word, idf(word) * _NEAREST**distance)
    return side


def _rank(side: Side, views: Sequence[PassageView], least: float) -> list[tuple[int, float]]:
    """Return the passages that hold most of a thing, `least` of it at least, and how much."""
    affinities = [(number, _affinity(side, view)) for number, view in enumerate(views)]
    enough = [one for one in affinities if one[1] >= least]
    return sorted(enough, key=lambda one: -one[1])[:_MOST_A_SIDE]


def _affinity(side: Side, view: PassageView) -> float:
    """Return how much a passage is about a thing: by its title, whose words count the more the more are named."""
    title = {word: idf(word) for word in view.title.words}
    named = title.keys() & side.keys()
    share = fsum(map(title.__getitem__, named)) / fsum(title.values()) if named else 0.0
    in_text = fsum(side[word] for word in (side.keys() & view.vocabulary) - title.keys())
    return fsum(map(side.__getitem__, named)) * (1 + share) + _TEXT * in_text


def _named(query: Text, views: Sequence[PassageView]) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield two passages whose titles the question names, wherever: "Is A as old as B?"."""
    places = {
        number: place
        for number, view in enumerate(views)
        if view.title.words and (place := query.find(view.title.joined)) is not None
    }
    for pair in combinations(sorted(places, key=places.__getitem__), 2):
        yield pair, fsum(idf(word) for number in pair for word in views[number].title.words)


def _claimed(holdings: Holdings) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield the passages that hold the claims of an answer best, one each; and two that hold more than either does."""
    strengths = [{number: held.holdings[number].strength for number in held.holdings} for held in holdings.claims]
    best = [max(of_claim, key=of_claim.__getitem__) for of_claim in strengths if of_claim]
    passages = tuple(dict.fromkeys(best))[:_MOST_CLAIMS]
    yield passages, _LEAST * len(passages)
    tails = sorted(holdings.tails, key=lambda tail: -holdings.coverage([tail]))[:_MOST_A_SIDE]
    for one, two in combinations(tails, 2):
        gain = holdings.coverage([one, two]) - max(holdings.coverage([one]), holdings.coverage([two]))
        if gain > 0:
            yield (one, two), _LEAST * (1 + gain)
