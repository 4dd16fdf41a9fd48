"""Settings that decide the numbers: features, signal pipeline, detection; as a TOML file too."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from idfsmec._files import check_writable, replacing
from idfsmec.errors import ExistingFileError, InputError
from idfsmec.features.families import (
    DEFAULT_FEATURES,
    FEATURE_SETS,
    Feature,
    check_name,
    features_giving,
    find_features,
)
from idfsmec.missing.detection import TYPICAL_AMPLITUDE, DetectionLimits
from idfsmec.missing.line_noise import check_line_freq

# Part of every cache key: raise it when the same settings give other numbers than before.
ALGORITHM_VERSION = 4

# Settings of tables that were made before a table named them.
_BEFORE: dict[str, Any] = {
    "line_freq": "off",
    "channels": "all",
    "reference": "keep",
    "limits": {"pop": np.inf},
}

DEFAULT_BANDS: Mapping[str, tuple[float, float]] = {
    "delta": (1.0, 4.0),
    "theta": (4.0, 8.0),
    "alpha": (8.0, 13.0),
    "beta": (13.0, 30.0),
    "gamma": (30.0, 45.0),
}
"""Name to (lower, upper) edge in Hz; the lower edge is in, the upper edge is out."""


@dataclass(frozen=True, kw_only=True)
class FeatureSettings:
    """Settings of the way from signals to numbers, the same for every entry into the pipeline.

    Parameters
    ----------
    features : iterable of str or Feature
        What to compute, by name or as it is, or the name of a set: ``"paper"``
        (:data:`DEFAULT_FEATURES`), ``"log"``, ``"extended"``; see :data:`FEATURE_SETS`.
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
    resample : float or None
        Sampling rate in Hz to convert to, by a polyphase filter; None keeps the rate.
    band_pass : (float, float) or None
        Edges in Hz of a Butterworth band-pass of order 4, run forwards and backwards so that
        nothing is shifted in time; None for signals that are filtered already.
    line_freq : {"auto", "off"}, float or None
        Line noise to remove before the band-pass: 50 or 60 Hz and harmonics where the spectrum
        shows them, a frequency in Hz, or none; see :func:`idfsmec.missing.remove_line_noise`.
    channels : {"scalp", "all"} or sequence of str
        Which EEG channels to use: those for which the montage has a position (if it has one for
        at least half of them), all, or those named, in any spelling.
    reference : {"keep", "average"}
        Signals as they were recorded, or against the mean of the channels that are not missing in
        the epoch.
    epoch, overlap : float
        Length of an epoch, and what consecutive ones have in common, in seconds. Without
        meaning for what is cut already.
    detect : bool
        Whether to look for channels without EEG, see :func:`idfsmec.missing.detect_missing`.
    typical_amplitude : float
        Amplitude of ordinary EEG in volts, to which the limits of the detection are relative.
    limits : DetectionLimits or mapping of str to float
        Thresholds of the detection, or those of them that differ from the default.
    keep_empty : bool
        Whether epochs in which no channel is left become rows of NaN. By default they are left
        out. Without meaning for what is cut already: there every epoch has its row.

    Examples
    --------
    >>> from idfsmec.features import FeatureSettings
    >>> settings = FeatureSettings(bands={"mu": (8, 12)}, hoc_orders=10, epoch=4, overlap=2)
    >>> settings.bands
    {'mu': (8.0, 12.0)}
    """

    features: str | Iterable[str | Feature] = DEFAULT_FEATURES
    bands: Mapping[str, tuple[float, float]] = field(default_factory=lambda: dict(DEFAULT_BANDS))
    hoc_orders: int = 1
    c0_ratio: float = 5.0
    welch_window: float = 2.0
    nsi_window: float = 1.0
    resample: float | None = 250.0
    band_pass: tuple[float, float] | None = (1.0, 45.0)
    line_freq: float | str | None = "auto"
    channels: str | Iterable[str] = "scalp"
    reference: str = "keep"
    epoch: float = 10.0
    overlap: float = 0.0
    detect: bool = True
    typical_amplitude: float = TYPICAL_AMPLITUDE
    limits: Any = field(default_factory=DetectionLimits)
    keep_empty: bool = False

    def __post_init__(self) -> None:
        given = {key.name: getattr(self, key.name) for key in fields(self)}
        for key in ("features", "channels", "band_pass"):
            if isinstance(given[key], Iterable) and not isinstance(given[key], str):
                given[key] = tuple(given[key])
        for key, (is_allowed, allowed) in _ALLOWED.items():
            if not is_allowed(given[key]):
                raise InputError(f"{key} = {_to_toml(given[key])} is not {allowed}.")
        # Workers do not know what was registered in this process, so features travel themselves.
        given["features"] = find_features(given["features"])
        given["bands"] = {name: tuple(map(float, edges)) for name, edges in self.bands.items()}
        given["line_freq"] = check_line_freq(self.line_freq) or "off"
        given["limits"] = _checked_limits(self.limits)
        if not isinstance(given["channels"], str):
            given["channels"] = tuple(name.strip() for name in given["channels"])
        for key, value in given.items():
            object.__setattr__(self, key, value)
        self._check_edges()

    def _check_edges(self) -> None:
        for name, (lower, upper) in self.bands.items():
            check_name(name, "band")
            if not lower < upper:
                raise InputError(
                    f"Band {name!r} must have 0 <= lower < upper edge (Hz), got {lower:g} and "
                    f"{upper:g}."
                )
        if not self.overlap < self.epoch:
            raise InputError(
                f"The overlap must be at least 0 and less than the epoch of {self.epoch:g} s, "
                f"got {self.overlap!r} s."
            )
        if self.band_pass is not None:
            lower, upper = self.band_pass
            nyquist = np.inf if self.resample is None else self.resample / 2
            if not 0 < lower < upper < nyquist:
                raise InputError(
                    f"The band-pass needs 0 < lower < upper < {nyquist:g} Hz (half the sampling "
                    f"rate), got {lower!r} and {upper!r}."
                )

    @property
    def chosen(self) -> tuple[Feature, ...]:
        """The features themselves, whatever names were given."""
        return find_features(self.features)

    @property
    def columns(self) -> list[str]:
        """Names of what is computed per channel, in order."""
        names = [column for feature in self.chosen for column in feature.columns(self)]
        for name in names:
            check_name(name, "feature's output")
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise InputError(f"Several features would write the column {', '.join(doubled)}.")
        return names

    def rate(self, sfreq: float) -> float:
        """Return the sampling rate behind the filters of a signal that comes with ``sfreq``."""
        return sfreq if self.resample is None else float(self.resample)

    def check_rate(self, sfreq: float) -> None:
        """Refuse a recording that cannot hold the bands: resampling does not bring them back."""
        if not sfreq > 0:
            raise InputError(f"The sampling rate must be positive, got {sfreq!r} Hz.")
        highest = max((upper for _, upper in self.bands.values()), default=0.0)
        if sfreq / 2 < highest:
            raise InputError(
                f"A signal sampled at {sfreq:g} Hz ends at {sfreq / 2:g} Hz, but the bands reach "
                f"up to {highest:g} Hz: leave out the bands above, or this recording."
            )

    def as_dict(self) -> dict[str, Any]:
        """Plain containers, for a table's ``info``; the features are the table's columns."""
        default = asdict(DetectionLimits())
        limits = {name: x for name, x in asdict(self.limits).items() if x != default[name]}
        plain = {key: getattr(self, key) for key in _INFO_KEYS} | {
            "band_pass": None if self.band_pass is None else list(self.band_pass),
            "channels": self.channels if isinstance(self.channels, str) else list(self.channels),
            "bands": {name: list(band) for name, band in self.bands.items()},
            "limits": limits,
        }
        return {"sfreq": plain.pop("resample"), "unit": "uV", **plain}

    @classmethod
    def from_dict(cls, info: Mapping[str, Any], columns: Iterable[str]) -> FeatureSettings:
        """Return settings from a table's ``info`` and its features without channels."""
        info = {**_BEFORE, **({"line_freq": info["mains"]} if "mains" in info else {}), **info}
        try:
            given = {key: info["sfreq" if key == "resample" else key] for key in _INFO_KEYS}
        except KeyError as error:
            raise InputError(
                f"The table does not say how its features were computed ({error} is missing), so "
                "those of a recording cannot be computed alike."
            ) from None
        settings, wanted = cls(**given), list(dict.fromkeys(columns))
        settings = replace(settings, features=features_giving(wanted, settings))
        unknown = sorted(set(wanted).difference(settings.columns))
        if unknown:
            raise InputError(f"No registered feature gives {', '.join(unknown)}.")
        return settings

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> FeatureSettings:
        """Read settings from a TOML file; what the file does not name keeps its default.

        Parameters
        ----------
        path : path-like
            Keys are the parameters of this class, with ``"off"`` for None; ``bands`` and
            ``limits`` are tables.

        Returns
        -------
        FeatureSettings

        Raises
        ------
        InputError
            The file cannot be read, or a key or value is not allowed; the message names the file,
            the key and what is allowed.
        """
        try:
            content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error}).") from error
        except ValueError as error:
            raise InputError(f"{path}: is not a TOML file ({error}).") from error
        for key in content:
            if key not in _ALLOWED:
                raise InputError(
                    f"{path}: there is no setting {key!r}; there are: {', '.join(_ALLOWED)}."
                )
        given: dict[str, Any] = {k: None if v == "off" else v for k, v in content.items()}
        try:
            return cls(**given)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    def to_toml(self, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
        """Write all settings to a TOML file that :meth:`from_toml` reads.

        Parameters
        ----------
        path : path-like
        overwrite : bool
            Whether an existing file may be replaced.

        Returns
        -------
        Path
            The file. Each key has a comment with the values that are allowed.

        Raises
        ------
        InputError
            One of the features is not registered, so that a file cannot name it.
        """
        path = Path(path)
        check_writable(path)
        if path.exists() and not overwrite:
            raise ExistingFileError(path)
        names = [feature.name for feature in self.chosen]
        find_features(names)
        tables = {"bands": self.bands, "limits": asdict(self.limits)}
        values = {key: getattr(self, key) for key in _ALLOWED} | {"features": names}
        lines = ["# Settings of idfsmec features. A key that is left out keeps its default."]
        for key, (_, allowed) in _ALLOWED.items():
            lines += ["", f"# {allowed}", *([f"[{key}]"] if key in tables else [])]
            for name, entry in tables.get(key, {key: values[key]}).items():
                bare = re.fullmatch("[A-Za-z0-9_-]+", name)
                lines.append(f"{name if bare else _to_toml(name)} = {_to_toml(entry)}")
        with replacing(path) as (beside,):
            beside.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def digest(self) -> str:
        """Hash everything that decides the numbers, the code of a user's features included."""
        content = {
            "version": ALGORITHM_VERSION,
            "settings": self.as_dict(),
            "features": [_describe(feature) for feature in self.chosen],
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


# What a table's info says; its features are its columns.
_INFO_KEYS = [key.name for key in fields(FeatureSettings) if key.name != "features"]


def _checked_limits(given: DetectionLimits | Mapping[str, float]) -> DetectionLimits:
    """Return the limits of the detection from those that differ from the default, by name."""
    if isinstance(given, DetectionLimits):
        return given
    default = asdict(DetectionLimits())
    if unknown := sorted(set(given) - set(default)):
        raise InputError(
            f"There is no limit {', '.join(unknown)}; there are: {', '.join(default)}."
        )
    return DetectionLimits(**{name: type(default[name])(x) for name, x in given.items()})


def _describe(feature: Feature) -> list[str]:
    """A feature's name and, of those that are not the package's own, its code."""
    function = feature.function
    description = [feature.name, getattr(function, "__module__", "") or ""]
    code = getattr(function, "__code__", None)
    if code is not None and not description[1].startswith("idfsmec."):
        text = f"{code.co_code.hex()} {code.co_names} {code.co_consts!r}"
        description.append(hashlib.sha256(text.encode()).hexdigest())
    return description


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and float(value) >= 0


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_count(value: Any) -> bool:
    return _is_positive(value) and isinstance(value, Integral)


def _is_pair(value: Any) -> bool:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return False
    return all(_is_number(edge) and edge < np.inf for edge in value)


def _are_names(value: Any) -> bool:
    names = value if isinstance(value, tuple) else ()
    return bool(names) and all(isinstance(name, str) and name.strip() for name in names)


def _are_features(value: Any) -> bool:
    names = value if isinstance(value, tuple) else (value,)
    return all(isinstance(name, str | Feature) for name in names)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _any_of(check: Callable[[Any], bool], *words: str | None) -> Callable[[Any], bool]:
    return lambda value: value in words if isinstance(value, str | None) else check(value)


def _table_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, Mapping) and all(map(check, value.values()))


# Of each setting, in the order of a file: whether a value is allowed, and what is.
_ALLOWED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "features": (
        _are_features,
        f"a set of features ({', '.join(FEATURE_SETS)}) or a list of names",
    ),
    "hoc_orders": (
        _is_count,
        "the number of higher-order crossings: a whole number of at least 1",
    ),
    "c0_ratio": (_is_positive, "a multiple of the mean power: a number above 0"),
    "welch_window": (_is_positive, "the length of Welch's windows: seconds above 0"),
    "nsi_window": (_is_positive, "the length of the index's segments: seconds above 0"),
    "resample": (_any_of(_is_positive, None), 'a sampling rate in Hz above 0, or "off"'),
    "band_pass": (
        _any_of(_is_pair, None),
        'a band-pass of two edges in Hz, [1.0, 45.0], or "off"',
    ),
    "line_freq": (
        _any_of(_is_positive, "auto", "off", None),
        'a frequency of line noise: "auto", a number in Hz, or "off"',
    ),
    "channels": (
        _any_of(_are_names, "scalp", "all"),
        'a choice of channels: "scalp", "all", or a list of names',
    ),
    "reference": (("keep", "average").__contains__, 'a reference: "keep" or "average"'),
    "epoch": (_is_positive, "the length of an epoch: seconds above 0"),
    "overlap": (_is_number, "the overlap of epochs: seconds, at least 0, less than an epoch"),
    "detect": (_is_flag, "whether to detect missing channels: true or false"),
    "typical_amplitude": (_is_positive, "the amplitude of ordinary EEG: volts above 0"),
    "keep_empty": (_is_flag, "whether to keep epochs without channels: true or false"),
    "bands": (
        _table_of(_is_pair),
        "a table of bands: a name and two edges in Hz, alpha = [8.0, 13.0]",
    ),
    "limits": (
        lambda value: isinstance(value, DetectionLimits) or _table_of(_is_number)(value),
        f"a table of limits of the detection ({', '.join(asdict(DetectionLimits()))}): "
        "numbers of at least 0",
    ),
}


def _to_toml(value: Any) -> str:
    """Write text, a number, a flag or a list as TOML does; None is ``"off"``."""
    if value == np.inf:
        return "inf"
    text = json.dumps("off" if value is None else value, ensure_ascii=False, default=str)
    return text.replace("\x7f", "\\u007f")
