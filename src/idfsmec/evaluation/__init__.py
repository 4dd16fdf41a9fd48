"""Methods compared on incomplete tables: registry, protocol, experiments, store, statistics."""

import lazy_loader

# The Tab key asks for names of methods only; __init__.pyi says where names live.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
