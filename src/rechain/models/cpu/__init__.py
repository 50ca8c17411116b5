"""The encoder on a CPU: 8-bit weights, and texts without padding."""
