"""What the answers of a log rest on: which are supported, which are doubtful and why, as one page and as JSON."""
