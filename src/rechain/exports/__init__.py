"""Chains in the formats that others read: predictions, training data for retrievers, tables."""
