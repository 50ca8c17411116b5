"""Which passages hold which phrases."""

from bisect import bisect
from collections.abc import Iterable, Sequence
from itertools import accumulate

from ahocorasick_rs import AhoCorasick, Implementation

from rechain.passages import PassageView


def find_holders(phrases: Iterable[str], views: Sequence[PassageView]) -> dict[str, list[int]]:
    """Return the passages that hold each phrase, in order, by one Aho-Corasick scan over all of them."""
    wanted = list(dict.fromkeys(phrases))
    starts = list(accumulate((len(view.joined) for view in views), initial=0))
    automaton = AhoCorasick(wanted, implementation=Implementation.ContiguousNFA)
    found = {
        (number, bisect(starts, start) - 1)
        for number, start, _ in automaton.find_matches_as_indexes("".join(v.joined for v in views), overlapping=True)
    }
    holders: dict[str, list[int]] = {}
    for number, holder in sorted(found):
        holders.setdefault(wanted[number], []).append(holder)
    return holders
