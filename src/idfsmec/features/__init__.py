"""Signals become numbers: one pipeline, one registry of features over shared spectra."""

import lazy_loader

# Importing the families registers the package's own features.
from idfsmec.features import asymmetry as asymmetry
from idfsmec.features import connectivity as connectivity
from idfsmec.features import mne_functions as mne_functions
from idfsmec.features import optional as optional
from idfsmec.features import spectral as spectral
from idfsmec.features import time_domain as time_domain

# What a name needs is imported when the name is first used; __init__.pyi says where names live.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
