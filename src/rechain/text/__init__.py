"""Words, passages and answers: how a text is seen."""
