"""Entities in passages, and the links they make."""

from rechain.linking.edges import Edge
from rechain.linking.graph import EXTRA_LINKERS, LINKERS, LinkGraph

__all__ = ["EXTRA_LINKERS", "LINKERS", "Edge", "LinkGraph"]
