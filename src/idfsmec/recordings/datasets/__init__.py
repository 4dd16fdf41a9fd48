"""Public data sets as they were released: a module each."""
