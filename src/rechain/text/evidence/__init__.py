"""Evidence: sets of passages that may lead to an answer, how they are found, and what tells for each of them."""
