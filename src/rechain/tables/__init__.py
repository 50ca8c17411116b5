"""The paper's tables, made anew: prepare a folder, play every row over folds and seeds, judge what was played."""
