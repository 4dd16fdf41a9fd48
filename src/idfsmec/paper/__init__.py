"""What belongs to the paper alone: its values, grids, ablations, protocol, and a reproduction."""

import lazy_loader

# What a name needs is imported when the name is first used; __init__.pyi says where names live.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
