"""From questions to the arrays that networks read. No torch here."""
