"""Passages whose data names the entities in them."""

from collections.abc import Mapping, Sequence

from rechain.schema import Mention, Passage


def named_passages(texts: Sequence[str], named: Mapping[str, str]) -> list[Passage]:
    """Return passages numbered from 0, in which each name stands for its entity wherever it occurs."""
    return [
        Passage(
            id=str(number), text=text, mentions=[one for name in named for one in _mentions(text, name, named[name])]
        )
        for number, text in enumerate(texts)
    ]


def _mentions(text: str, name: str, entity: str) -> list[Mention]:
    starts = [at for at in range(len(text)) if text.startswith(name, at)]
    return [Mention(entity=entity, start=at, end=at + len(name)) for at in starts]
