"""A corpus of bad input: files that people have, written by real writers and damaged by seeds."""
