"""Signals become numbers: one pipeline, one registry of features over shared spectra."""

import lazy_loader

# Importing the two families registers the package's own features.
from idfsmec.features import spectral as spectral
from idfsmec.features import time_domain as time_domain

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
