"""Chains in formats that other programs read: predictions, training data for retrievers, tables."""
