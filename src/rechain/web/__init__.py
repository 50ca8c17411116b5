"""Chains in the browser: explore, compare, label, and the same by REST."""
