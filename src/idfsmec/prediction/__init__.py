"""Predict from incomplete samples: a classifier and a regressor that need no imputation first."""

import lazy_loader

# What a name needs is imported when the name is first used; __init__.pyi says where names live.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
