"""Words, sentences and passages: how a text is seen."""
