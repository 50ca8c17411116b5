"""Model cards: what a model is, what it was trained on, how good it is, and its limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rechain.reader.model import ChainReaderModel

_HEAD = """---
library_name: rechain
license: {licence}
tags: [multi-hop question answering, reasoning chains, weak supervision]
---
# {title}

A chain reader of [rechain](https://arxiv.org/abs/2004.02393): given a question, its answer and candidate passages, it
recovers the ordered passages that lead to the answer and the entities that link them. It was trained on questions and
answers alone, without any evidence labels.

```python
from rechain import Recoverer

Recoverer.from_pretrained("{name}").recover(question, answer, passages)
```
"""


@dataclass(frozen=True)
class Facts:
    """What a card says beside the shape of a model."""

    title: str
    name: str
    licence: str
    data: Sequence[str]
    figures: Mapping[str, str]
    training: str
    limits: Sequence[str]


def write_card(facts: Facts, model: "ChainReaderModel") -> str:
    """Return the card of a model that was just trained."""
    return "\n".join(
        [
            _HEAD.format(title=facts.title, name=facts.name, licence=facts.licence),
            "## Trained on\n",
            *(f"- {line}" for line in facts.data),
            f"\n{facts.training}\n",
            "## Figures\n",
            "| what | measured |",
            "|---|---|",
            *(f"| {what} | {figure} |" for what, figure in facts.figures.items()),
            "\n## Limits\n",
            *(f"- {line}" for line in facts.limits),
            "",
            _shape(model),
        ]
    )


def plain_card(model: "ChainReaderModel") -> str:
    """Return the card of a model without such facts."""
    return _HEAD.format(title="A chain reader", name="PATH", licence="other") + "\n" + _shape(model)


def _shape(model: "ChainReaderModel") -> str:
    parameters = sum(value.numel() for value in model.network.state_dict().values())
    settings = ", ".join(f"{name} {value}" for name, value in vars(model.settings).items())
    return f"## Shape\n\n{parameters / 1e6:.1f} million numbers. Settings: {settings}.\n"
