"""What decides the numbers that come out of a recording, and a digest of it for caches."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from idfsmec.errors import InputError
from idfsmec.features._compute import DEFAULT_FEATURES, compute_features
from idfsmec.features._prepare import SignalPath
from idfsmec.features._registry import Feature, registry
from idfsmec.features._settings import FeatureSettings

# Part of every cache key: raise it when the same options give other numbers than before.
ALGORITHM_VERSION = 2


@dataclass(frozen=True)
class ExtractionOptions:
    """How recordings become rows of a table.

    Parameters
    ----------
    path : SignalPath
        Resampling, band-pass, length and overlap of the epochs.
    settings : FeatureSettings
        Bands and constants of the features.
    features : sequence of str or Feature
        What to compute.
    detect : bool
        Whether to look for channels without EEG, see :func:`idfsmec.missing.detect_missing`.
    typical_amplitude : float
        Amplitude of ordinary EEG in volts, to which the limits of the detection are relative.
    keep_empty : bool
        Whether epochs in which no channel is left become rows of NaN. By default they are
        left out.

    Examples
    --------
    >>> from idfsmec.features import ExtractionOptions
    >>> from idfsmec.features import SignalPath
    >>> ExtractionOptions(path=SignalPath(epoch=4, overlap=2)).as_dict()["epoch"]
    4
    """

    path: SignalPath = field(default_factory=SignalPath)
    settings: FeatureSettings = field(default_factory=FeatureSettings)
    features: tuple[str | Feature, ...] = DEFAULT_FEATURES
    detect: bool = True
    typical_amplitude: float = 10e-6
    keep_empty: bool = False

    def __post_init__(self) -> None:
        # Workers do not know what was registered in this process, so features travel themselves.
        object.__setattr__(self, "features", registry.resolve(self.features))
        if not self.typical_amplitude > 0:
            raise InputError(
                f"typical_amplitude must be above 0 volts, got {self.typical_amplitude!r}."
            )

    @property
    def resolved_features(self) -> tuple[Feature, ...]:
        """The features themselves, whatever names were given."""
        return registry.resolve(self.features)

    def check(self) -> None:
        """Refuse options that do not go together, before any recording is blamed for them.

        Tries all features on one epoch of noise: bands that the epochs cannot resolve, epochs
        too short for a feature, two features of one name.
        """
        rate = self.path.resample
        if rate is None:  # known only when recordings are
            return
        noise = np.random.default_rng(0).standard_normal((1, 1, round(self.path.epoch * rate)))
        try:
            compute_features(noise, rate, features=self.resolved_features, settings=self.settings)
        except InputError:
            raise
        except Exception:
            return  # a user's feature that fails is reported with the recording it fails on

    def as_dict(self) -> dict[str, Any]:
        """Plain containers, for a table's ``info``."""
        band_pass = self.path.band_pass
        return {
            "sfreq": self.path.resample,
            "band_pass": None if band_pass is None else list(band_pass),
            "epoch": self.path.epoch,
            "overlap": self.path.overlap,
            "unit": "uV",
            **self.settings.as_dict(),
            "detect": self.detect,
            "typical_amplitude": self.typical_amplitude,
            "keep_empty": self.keep_empty,
        }

    def digest(self) -> str:
        """Hash everything that decides the numbers, the code of a user's features included."""
        what = {
            "version": ALGORITHM_VERSION,
            "options": self.as_dict(),
            "features": [_describe(feature) for feature in self.resolved_features],
        }
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def _describe(feature: Feature) -> list[str]:
    function = feature.function
    description = [feature.name, getattr(function, "__module__", "") or ""]
    if not description[1].startswith("idfsmec."):
        code = getattr(function, "__code__", None)
        if code is not None:
            text = f"{code.co_code.hex()} {code.co_names} {code.co_consts!r}"
            description.append(hashlib.sha256(text.encode()).hexdigest())
    return description
