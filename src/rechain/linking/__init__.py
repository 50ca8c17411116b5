"""Entities in passages, and the links they make."""

from rechain.linking.edges import Edge
from rechain.linking.graph import LINKERS, LinkGraph

__all__ = ["LINKERS", "Edge", "LinkGraph"]
