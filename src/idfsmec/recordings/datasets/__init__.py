"""Public data sets as they were released: MODMA and PRED+CT d003."""
