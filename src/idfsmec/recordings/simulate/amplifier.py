"""Another amplifier for one group: what makes recordings differ where brains do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.signal import butter, sosfiltfilt

from idfsmec.errors import InputError


@dataclass(frozen=True)
class Amplifier:
    """How a recording was made.

    Parameters
    ----------
    mains : float
        Factor on the hum of the mains.
    noise : float
        Factor on the noise of the sensors.
    gain : float
        Factor on everything, as of an amplifier that was not calibrated.
    lowpass : float
        Hz above which little is recorded; 0 for none.
    channels : float
        How many of the last channels were not recorded.
    step : float
        Microvolts that the converter resolves; 0 for a perfect one.
    """

    mains: float = 1.0
    noise: float = 1.0
    gain: float = 1.0
    lowpass: float = 0.0
    channels: float = 0.0
    step: float = 0.0

    def record(self, signal: np.ndarray, sfreq: float) -> np.ndarray:
        """Give what such an amplifier writes down of a signal in microvolt."""
        if self.lowpass:
            sections = butter(4, self.lowpass, fs=sfreq, output="sos")
            signal = sosfiltfilt(sections, signal, axis=1)
        signal = self.gain * signal
        return np.round(signal / self.step) * self.step if self.step else signal


#: The amplifier that everybody is recorded with unless another one is asked for.
USUAL = Amplifier()


def other_amplifier(confound: Mapping[str, float], sfreq: float, n_channels: int) -> Amplifier:
    """Check what is asked for, and give the second amplifier."""
    known = [field.name for field in fields(Amplifier)]
    for name, value in confound.items():
        if name not in known:
            raise InputError(
                f"confound has {name!r}; choose from {', '.join(known)}",
                argument="confound",
            )
        if not value >= 0:
            raise InputError(f"confound[{name!r}] is {value}; give at least 0")
    made = replace(USUAL, **confound)
    if made.lowpass >= sfreq / 2:
        raise InputError(f"confound['lowpass'] is {made.lowpass} Hz; give less than {sfreq / 2}")
    if made.channels >= n_channels:
        raise InputError(f"confound['channels'] leaves no channel of {n_channels}")
    return made
