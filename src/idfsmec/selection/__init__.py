"""scikit-learn selectors: IDFSMEC and the methods it is compared with."""

import lazy_loader

# What a name needs is imported when the name is first used; __init__.pyi says where names live.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
