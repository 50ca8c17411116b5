"""What an answer says, claim by claim, and which passages hold it."""
