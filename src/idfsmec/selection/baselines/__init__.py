"""Feature selectors that IDFS-MEC is compared with; all need complete data.

Filters rank by statistics of the data (:mod:`filters`), a wrapper evaluates subsets with a
classifier (:mod:`psnsga`), embedded methods rank by the weights of a model (:mod:`embedded`).
"""
