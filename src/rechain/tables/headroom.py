"""How much a Reasoner could change at best: what the reward prefers by itself, and with the bonus of an oracle.

An oracle knows gold, so it belongs to evaluation and plays no game: it names the strongest entity that the right
chain's passages share, and what then earns most is compared with what earns most without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rechain.game.plan import Plan
from rechain.game.settings import GameSettings
from rechain.system.tensors import Array

REWARD, ORACLE = "best reward", "best reward with an oracle"
"""the names of the two rows"""


@dataclass(frozen=True)
class ChainsOfQuestion:
    """The candidate chains of a question as a prepared folder has them."""

    passages: Array
    """[C, L] places"""
    lexical: Array
    link_weight: Array
    holders: Array
    """[X, K] which passage holds which merged entity, the strongest entity first"""
    links: Array
    """[C, L - 1] the linking entities, where the data names them"""
    rarity: Array | float = 0.0
    told: Array | float = 0.0
    """what rarity of entities and other questions tell, [C], where the data names entities"""


def chain_rewards(chains: ChainsOfQuestion, settings: GameSettings) -> Array:
    """Return how much each chain of C earns without a bonus, as `rechain.game.rewards.chain_weights` has it."""
    evidence = {
        "none": np.zeros(len(chains.passages)),
        "links": chains.link_weight.astype(float),
        "lexical": chains.lexical.astype(float),
        "rarity": chains.lexical + chains.rarity,
        "beliefs": chains.lexical + chains.rarity + chains.told,
    }[settings.evidence]
    rewards: Array = np.exp(settings.sharpness * (evidence - evidence.max()))
    return rewards


def with_oracle(chains: ChainsOfQuestion, right: int, plan: Plan, settings: GameSettings) -> Array:
    """Return the same with the bonus that is paid if the strongest links of the chain of number `right` are named."""
    shares, gold = np.zeros(len(chains.passages)), chains.passages[right]
    for reading in plan.readings:
        reads_gold = chains.passages[:, reading.role] == gold[reading.role]
        if settings.selects == "steps":
            shares += reads_gold & (chains.links[:, reading.link] == chains.links[right, reading.link])
            continue
        shared = np.flatnonzero(chains.holders[:, gold[reading.role]] & chains.holders[:, gold[reading.next]])
        if len(shared):
            shares += reads_gold & chains.holders[shared[0], chains.passages[:, reading.next]]
    rewards = chain_rewards(chains, settings)
    is_sum = settings.bonus_is == "sum"
    added: Array = rewards + settings.bonus * shares if is_sum else rewards * (1 + settings.bonus * shares)
    return added


def expected_accuracy(rewards: Array, is_right: Sequence[float]) -> float:
    """Return how likely a chain is right that is drawn from those of the greatest reward."""
    best = rewards >= rewards.max() - 1e-9
    return float(np.mean(np.asarray(is_right, dtype=float)[best]))


def chains_of(arrays: dict[str, Any], number: int, fold: int = 0) -> ChainsOfQuestion:
    """Return the chains of the question of this number in a prepared folder; other folds than its own tell of them."""
    chains = slice(*arrays["chain_start"][number : number + 2])
    bits = arrays["merged_holders"][slice(*arrays["merged_start"][number : number + 2])]
    return ChainsOfQuestion(
        arrays["chain_passages"][chains],
        arrays["chain_lexical"][chains],
        arrays["chain_link_weight"][chains],
        np.unpackbits(bits, axis=1, bitorder="little").astype(bool),
        arrays["chain_merged"][chains],
        arrays["chain_rarity"][chains] if "chain_rarity" in arrays else 0.0,
        arrays["chain_told"][chains, fold] if "chain_told" in arrays else 0.0,
    )
