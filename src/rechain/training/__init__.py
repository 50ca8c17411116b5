"""Training runs: a folder, checkpoints, progress."""
