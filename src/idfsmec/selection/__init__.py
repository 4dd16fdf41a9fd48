"""scikit-learn selectors: IDFSMEC and the methods it is compared with."""

from idfsmec.selection._idfsmec import IDFSMEC

__all__ = [
    "IDFSMEC",
]
