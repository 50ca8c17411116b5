"""How good recovered chains are. Plain values in, plain values out; nothing here knows a model."""
