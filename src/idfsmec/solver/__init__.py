"""Mathematics of IDFS-MEC on NumPy arrays; imports nothing else of the package.

In the order of reading: :mod:`scaling` (units of features and sites), :mod:`sums` (the only place
that sees samples), :mod:`problem` (the objective of a channel and the paper's three updates),
:mod:`newton` (the last digits), :mod:`solve` (all channels of a table, and their held-out loss),
:mod:`gpu` (the same loop for many problems on a GPU).
"""
