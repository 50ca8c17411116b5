"""Numbers, money, quantities, dates and times of a text, read as values whatever their wording."""
