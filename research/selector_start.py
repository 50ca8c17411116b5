"""What a passage selector may begin with: how much frozen encoders tell of chains, by a linear probe, without gold.

    python research/selector_start.py STAGE

STAGE is what `research/proof.py prepare` has written. Each of its two encoders reads questions with their own
passages, as a selector does. From the states of some questions a logistic regression learns which passages the default
chain names; of the others it chooses two. Seed 0 draws the questions.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from common import percent, print_heading, print_rows
from proof_plays import ARRAYS, ENCODER, SELECTOR, Settings, Stage, read_encoder
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from rechain.evaluation.statistics import mean_with_interval
from rechain.system.tensors import Array

LEARNT, TRIED = 180, 120
DECAY = 1e-3


def choose_questions(stage: Stage) -> Array:
    """Return questions of ten passages with a default chain."""
    own, labels = stage.arrays["own"], stage.arrays["labels.default"]
    usable = np.flatnonzero((own >= 0).all(axis=1) & (labels[:, 0] >= 0))
    return np.random.default_rng(0).permutation(usable)[: LEARNT + TRIED]


def states(stage: Stage, name: str, questions: Array) -> dict[str, Tensor]:
    """Return states of questions with each of their own passages, [Q, P, D + 1], a 1 beside each.

    They are what a selector's head is given, made of the first token's state, and the mean of all tokens' states.
    """
    network = read_encoder(stage.folder / name, head=True).eval()
    read: dict[str, list[Tensor]] = {"first token": [], "mean": []}
    with torch.inference_mode():
        for number in questions:
            passages = stage.tensor(stage.arrays["own"][number])
            asked = torch.full_like(passages, int(number))
            tokens, segments = stage.second_batch(asked, passages, is_pair=True)
            mask, kinds = (segments >= 0).long(), segments.clamp(min=0)
            out = network.bert(input_ids=tokens, attention_mask=mask, token_type_ids=kinds)
            weights = mask[..., None] / mask.sum(1)[:, None, None]
            read["first token"].append(out.pooler_output)
            read["mean"].append((out.last_hidden_state * weights).sum(1))
    stacked = {pooling: torch.stack(values) for pooling, values in read.items()}
    return {pooling: torch.cat([one, torch.ones(*one.shape[:2], 1)], dim=2) for pooling, one in stacked.items()}


def probe(features: Tensor, named: Tensor) -> Tensor:
    """Return the weights of a logistic regression from features [Q, P, D] to whether a passage is named [Q, P]."""
    weights = torch.zeros(features.shape[2], requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=200)

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = binary_cross_entropy_with_logits(features @ weights, named.float()) + DECAY * weights.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return weights.detach()


def main() -> None:
    """Print how often the probe of each encoder chooses what the default chain names."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("stage", type=Path)
    stage = Stage(options.parse_args().stage / ARRAYS, "cpu", Settings())
    print_heading()
    questions = choose_questions(stage)
    own, labels = (torch.from_numpy(stage.arrays[name][questions]) for name in ("own", "labels.default"))
    named = (own[:, :, None] == labels[:, None, :2]).any(dim=2)
    rows = []
    for name in (ENCODER, SELECTOR):
        for pooling, features in states(stage, name, questions).items():
            weights = probe(features[:LEARNT], named[:LEARNT])
            chosen = (features[LEARNT:] @ weights).topk(2, dim=1).indices
            agrees = named[LEARNT:].gather(1, chosen).all(dim=1).tolist()
            rows.append((name, pooling, len(agrees), percent(mean_with_interval(agrees))))
    print_rows(("encoder", "states", "questions", "as the default chain, %"), rows)


if __name__ == "__main__":
    main()
