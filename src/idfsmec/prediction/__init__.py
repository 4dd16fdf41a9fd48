"""Predict from incomplete samples: a classifier and a regressor that need no filling."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
