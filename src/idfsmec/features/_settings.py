"""What can be set about the features: frequency bands, and the constants of their definitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from idfsmec.errors import InputError

DEFAULT_BANDS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "delta": (1.0, 4.0),
        "theta": (4.0, 8.0),
        "alpha": (8.0, 13.0),
        "beta": (13.0, 30.0),
        "gamma": (30.0, 45.0),
    }
)
"""Name to (lower, upper) edge in Hz; the lower edge is in, the upper edge is out."""


@dataclass(frozen=True)
class FeatureSettings:
    """The constants in the definitions of the features.

    Parameters
    ----------
    bands : mapping of str to (float, float)
        Frequency bands in Hz: lower edge in, upper edge out, so that adjacent bands add up.
    hoc_orders : int
        How many higher-order crossings are counted. 1 gives the column ``hoc``, K > 1 the
        columns ``hoc_1`` ... ``hoc_K``.
    c0_ratio : float
        C0 complexity keeps the bins whose power exceeds this many times the mean power.
    welch_window : float
        Length in seconds of Welch's Hann windows, which overlap by half.
    nsi_window : float
        Length in seconds of the segments of the non-stationary index.

    Examples
    --------
    >>> from idfsmec.features import FeatureSettings
    >>> FeatureSettings(bands={"mu": (8, 12)}, hoc_orders=10).bands
    {'mu': (8.0, 12.0)}
    """

    bands: Mapping[str, tuple[float, float]] = field(default_factory=lambda: dict(DEFAULT_BANDS))
    hoc_orders: int = 1
    c0_ratio: float = 5.0
    welch_window: float = 2.0
    nsi_window: float = 1.0

    def __post_init__(self) -> None:
        bands = {name: _checked_band(name, edges) for name, edges in self.bands.items()}
        object.__setattr__(self, "bands", bands)
        if int(self.hoc_orders) != self.hoc_orders or self.hoc_orders < 1:
            raise InputError(
                f"hoc_orders must be a whole number of at least 1, got {self.hoc_orders!r}."
            )
        for name in ("c0_ratio", "welch_window", "nsi_window"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive, got {getattr(self, name)!r}.")

    @property
    def highest_frequency(self) -> float:
        """Upper edge of the highest band, 0 if there is no band."""
        return max((upper for _, upper in self.bands.values()), default=0.0)

    def check_rate(self, sfreq: float) -> None:
        """Refuse a recording that cannot hold the bands: resampling does not bring them back.

        Parameters
        ----------
        sfreq : float
            Sampling rate in Hz at which the signal was recorded.
        """
        if not sfreq > 0:
            raise InputError(f"The sampling rate must be positive, got {sfreq!r} Hz.")
        if sfreq / 2 < self.highest_frequency:
            raise InputError(
                f"A signal sampled at {sfreq:g} Hz ends at {sfreq / 2:g} Hz, but the bands reach "
                f"up to {self.highest_frequency:g} Hz: leave out the bands above, or this "
                "recording."
            )

    def as_dict(self) -> dict[str, Any]:
        """Plain containers, for a table's ``info`` and for cache keys."""
        return asdict(self) | {"bands": {name: list(band) for name, band in self.bands.items()}}


def _checked_band(name: str, edges: tuple[float, float]) -> tuple[float, float]:
    check_name(name, "band")
    try:
        lower, upper = (float(edge) for edge in edges)
    except (TypeError, ValueError):
        raise InputError(f"Band {name!r} needs two edges in Hz, got {edges!r}.") from None
    if not 0 <= lower < upper:
        raise InputError(
            f"Band {name!r} must have 0 <= lower < upper edge (Hz), got {lower:g} and {upper:g}."
        )
    return lower, upper


def check_name(name: str, kind: str) -> None:
    """Refuse names that would make ``<channel>__<feature>`` ambiguous or unreadable."""
    if not isinstance(name, str) or not name or "__" in name or name != name.strip():
        raise InputError(
            f"{name!r} cannot name a {kind}: use a non-empty text without a double underscore, "
            "which separates channel and feature in a table's columns."
        )
    if name.startswith("_") or name.endswith("_"):
        raise InputError(f"{name!r} cannot name a {kind}: it must not start or end with '_'.")
