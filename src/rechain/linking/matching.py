"""Which passages hold which phrases."""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from ahocorasick_rs import AhoCorasick, Implementation

from rechain.text.passages import PassageView


def find_holders(phrases: Iterable[str], views: Sequence[PassageView]) -> dict[str, list[int]]:
    """Return the passages that hold each phrase, in order, by one Aho-Corasick scan over all of them."""
    wanted = list(dict.fromkeys(phrases))
    ends = list(accumulate(len(view.joined) for view in views))
    automaton = AhoCorasick(wanted, implementation=Implementation.ContiguousNFA)
    holders: dict[str, list[int]] = {}
    holder = 0
    # Matches come by where they end, and none goes across two passages.
    for number, start, _ in automaton.find_matches_as_indexes("".join(v.joined for v in views), overlapping=True):
        while start >= ends[holder]:
            holder += 1
        known = holders.setdefault(wanted[number], [])
        if not known or known[-1] != holder:
            known.append(holder)
    return holders
