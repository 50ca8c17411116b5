"""The networks of Section 3 and Appendix A of the paper, bottom-up: encoders, matching, ranker, reasoner.

They import torch and numpy alone, and know no file: what they read is a `Batch`.
"""
