"""The cooperative game (Section 3): what is selected when, rewards, gradients, and the loop that plays it.

Everything here imports torch and numpy alone, so that it runs on any GPU image from prepared tensors.
"""
