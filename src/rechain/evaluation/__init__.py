"""How good recovered chains are. Plain values in, plain values out; nothing here knows a model."""

from rechain._moved import names_from

__getattr__ = names_from(__name__, "judging", "statistics", "candidates")
