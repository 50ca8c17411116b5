"""Entities in passages, and the links they make."""

from rechain.linking.graph import DEFAULT_MIN_WEIGHT, Edge, LinkGraph
from rechain.linking.linkers import Entity
from rechain.linking.registry import DEFAULT_LINKERS, KINDS, LINKERS
from rechain.linking.spacy_names import DEFAULT_SPACY_MODEL

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
