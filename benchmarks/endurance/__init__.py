"""Commands that are killed, and what they take of memory and disk."""
