"""What the Ranker knows of steps: the states of their passages and of their two entities, and numbers of both."""

import torch
from torch import Tensor, nn

from rechain.paper.data import Batch, Steps
from rechain.paper.settings import ANSWER, ASKED

JOINTS = 2
"""numbers: whether a step is entered, or left, by the entity of a step that was selected before"""
PACE = 10.0
"""how much faster than others the weights of single numbers learn: they are few, begin at 0 and have to come to about
1, for which an optimiser that moves all weights alike would take a thousand steps"""


class StepScores(nn.Module):
    """From the matching states of passages to states of steps, and what the numbers of steps add to their scores."""

    def __init__(self, width: int, features: int, joints: bool, roles: int) -> None:
        """Read the first `features` of a step's numbers and, with `joints`, how steps join."""
        super().__init__()
        self.features = features
        self.joints = joints
        self.of_passage = nn.Linear(width, width)
        self.of_entities = nn.Linear(width, 2 * width, bias=False)
        self.of_features = nn.Linear(features, width, bias=False) if features else None
        self.direct = nn.Parameter(torch.zeros(roles, features + JOINTS * joints))  # past the states, to the score

    def encode(self, batch: Batch, steps: Steps, passages: Tensor) -> Tensor:
        """Return what is known of every step before anything is selected, [B, O, d]; `passages` are the H_i."""
        entities = batch.contains.shape[1]
        enter, leave = self.of_entities(entity_states(batch, passages)).chunk(2, dim=-1)  # [B, K, X + 2, d]
        # an end is the question's entity, by which a head is entered, or the answer's, by which a tail is left
        states = _look_up(enter, steps, 0, entities) + _look_up(leave, steps, 1, entities + 1)
        return states if self.of_features is None else states + self.of_features(steps.features[..., : self.features])

    def forward(self, steps: Steps, known: Tensor, matched: Tensor) -> Tensor:
        """Return the states of steps, [B, S, O, d], from `encode` and the matching states m_i, [B, S, K, d]."""
        index = steps.passage[:, None, :, None].expand(-1, matched.shape[1], -1, matched.shape[-1])
        return torch.relu(self.of_passage(matched).gather(2, index) + known[:, None])

    def bias(self, steps: Steps, selected: Tensor, role: int) -> Tensor:
        """Return what its numbers add to the score of each step, after those `selected` [B, S, n]: [B, S, O]."""
        # not as a matrix product, for which numbers would be rounded to 16 bits on a GPU
        weight = PACE * self.direct[role]
        bias = (steps.features[..., : self.features] * weight[: self.features]).sum(-1)[:, None]  # [B, 1, O]
        return bias + (joints(steps, selected) * weight[self.features :]).sum(-1) if self.joints else bias


def _look_up(states: Tensor, steps: Steps, side: int, end: int) -> Tensor:
    """Return the states [B, K, X + 2, d] of the entities on one side of steps, [B, O, d]; ends have their own row."""
    entity = torch.where(steps.entities[..., side] < 0, end, steps.entities[..., side])
    place = steps.passage * states.shape[2] + entity  # gathered from flat rows, whose gradient is quicker
    return states.flatten(1, 2).gather(1, place[..., None].expand(-1, -1, states.shape[-1]))


def joints(steps: Steps, selected: Tensor) -> Tensor:
    """Return whether each step is entered as one of those `selected` [B, S, n] is left, or left as it is entered.

    [B, S, O, JOINTS], 1 or 0.
    """
    question = torch.arange(len(selected), device=selected.device)[:, None, None]
    before = steps.entities[question, selected]  # [B, S, n, 2]
    sides = []
    for side in range(JOINTS):
        one, other = steps.entities[:, None, None, :, side], before[..., 1 - side, None]  # [B, 1, 1, O], [B, S, n, 1]
        sides.append(((one == other) & (one >= 0)).any(2).float())
    return torch.stack(sides, dim=-1)


def entity_states(batch: Batch, passages: Tensor) -> Tensor:
    """Return the mean state of the mentions of every entity in every passage, [B, K, X + 2, d]; zeros without any.

    A mention is its first and its last word. The last two rows are the entities of question and answer.
    """
    entities, width = batch.contains.shape[1], passages.shape[-1]
    # mentions of no entity go to one more row, which is cut off
    row = torch.where(batch.mention_entity < 0, entities, batch.mention_entity)[..., None]  # [B, K, E, 1]
    ends = (batch.mention_token, (batch.mention_end - 1).clamp(min=0))
    first, last = (passages.gather(2, token[..., None].expand(-1, -1, -1, width)) for token in ends)
    states = (first + last) / 2  # [B, K, E, d]
    empty = passages.new_zeros(*passages.shape[:2], entities + 1, width)
    sums = empty.scatter_add(2, row.expand(-1, -1, -1, width), states)
    counts = empty[..., :1].scatter_add(2, row, torch.ones_like(states[..., :1]))
    means = (sums / counts.clamp(min=1))[:, :, :entities]
    marks = batch.marks[..., [ASKED, ANSWER]].to(passages.dtype).transpose(2, 3)  # [B, K, 2, M]
    of_ends = marks @ passages / marks.sum(-1, keepdim=True).clamp(min=1)
    return torch.cat([means, of_ends], dim=2)
