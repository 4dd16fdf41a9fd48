"""scikit-learn selectors: IDFSMEC and the methods it is compared with."""

from idfsmec.selection._cmim import CMIM
from idfsmec.selection._mrmr import MRMR
from idfsmec.selection._mrmsr import MRMSR

__all__ = [
    "CMIM",
    "MRMR",
    "MRMSR",
]
