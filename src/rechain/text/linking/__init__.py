"""Entities in passages, and the links they make."""

from rechain.text.linking.graph import DEFAULT_MIN_WEIGHT, Edge, LinkGraph
from rechain.text.linking.linkers import DEFAULT_LINKERS, DEFAULT_SPACY_MODEL, KINDS, LINKERS, Entity

__all__ = [
    "DEFAULT_LINKERS",
    "DEFAULT_MIN_WEIGHT",
    "DEFAULT_SPACY_MODEL",
    "KINDS",
    "LINKERS",
    "Edge",
    "Entity",
    "LinkGraph",
]
