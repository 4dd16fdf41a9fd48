"""Any univariate function of mne-features as a feature: ``mne_features:hurst_exp``."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.features._libraries import library
from idfsmec.features.epoch_signal import EpochSignal
from idfsmec.features.registry import FEATURES, Feature

if TYPE_CHECKING:
    from idfsmec.features.settings import FeatureSettings

FAMILY = "mne_features"
_PROBE_RATE = 250.0  # Hz, to count outputs where settings keep each recording's rate


def mne_function(name: str) -> Feature:
    """Make a feature of a function of mne-features, with the defaults it has there.

    Parameters
    ----------
    name : str
        Of a univariate function, without ``compute_``: ``"hurst_exp"``.

    Returns
    -------
    Feature
        Called ``mne_features:<name>``, as its column is. Where the function gives several values
        per channel, the columns are numbered from 1.

    Raises
    ------
    InputError
        There is no such function, it is one of pairs of channels, or mne-features is not there.
    """
    known = _functions(_PROBE_RATE)
    if name not in known:
        pairs = library("mne_features.bivariate", "spectra").get_bivariate_funcs(_PROBE_RATE)
        what = "is a function of pairs of channels" if name in pairs else "does not exist"
        raise InputError(
            f"{FAMILY}:{name} {what}; of single channels there are: {', '.join(known)}."
        )
    return Feature(f"{FAMILY}:{name}", partial(_compute, name), partial(_outputs, name))


def _functions(sfreq: float) -> dict[str, Any]:
    return library("mne_features.univariate", "spectra").get_univariate_funcs(sfreq)


def _compute(name: str, signal: EpochSignal) -> NDArray[np.float64]:
    function = _functions(signal.sfreq)[name]
    rows = signal.data.reshape(-1, 1, signal.n_times)
    values = np.array([np.ravel(function(row)) for row in rows], dtype=float)
    return values.reshape(*signal.data.shape[:-1], -1)


def _outputs(name: str, settings: FeatureSettings) -> list[str]:
    """Names of the values, which are counted on an epoch of noise."""
    rate = settings.rate(_PROBE_RATE)
    noise = np.random.default_rng(0).standard_normal((1, round(settings.epoch * rate)))
    try:
        count = np.size(_functions(rate)[name](noise))
    except Exception as error:
        raise InputError(
            f"{FAMILY}:{name} fails on {settings.epoch:g} s of noise at {rate:g} Hz: {error}"
        ) from error
    column = f"{FAMILY}:{name}"
    return [column] if count == 1 else [f"{column}_{i}" for i in range(1, count + 1)]


def _function_of_column(column: str) -> str:
    """Which function gave a column."""
    return column if column in _functions(_PROBE_RATE) else re.sub(r"_\d+$", "", column)


FEATURES.register_family(FAMILY, mne_function, _function_of_column)
