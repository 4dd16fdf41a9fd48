"""scikit-learn selectors: IDFSMEC and the methods it is compared with."""

from typing import Any

import lazy_loader

# What a name needs is imported when the name is first used; __init__.pyi says where names live.
_attached, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__.append("IDFSMECCV")


def __getattr__(name: str) -> Any:
    if name == "IDFSMECCV":  # a selector by its use; it is made of the parts of a prediction
        from idfsmec.prediction.search import IDFSMECCV

        return IDFSMECCV
    return _attached(name)
