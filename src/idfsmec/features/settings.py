"""Settings that decide the numbers: features, signal pipeline, detection; as a TOML file too."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from idfsmec._files import check_writable, replacing
from idfsmec._fingerprint import fingerprint, fingerprint_or_warn
from idfsmec._validation import SequenceOf, integer, number
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
ALGORITHM_VERSION = 5

# Settings of tables that were made before a table named them.
_BEFORE: dict[str, Any] = {
    "line_freq": "off",
    "channels": "all",
    "reference": "keep",
    "autoreject_interpolated": "keep",
    "bad_channels": "missing",
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

#: A choice to its options, and an option to the settings that it changes.
Choices = Mapping[str, Mapping[str, Mapping[str, Any]]]

DEFAULT_CHOICES: Choices = {
    "reference": {"as recorded": {"reference": "keep"}, "average": {"reference": "average"}},
    "band-pass": {
        "1-45 Hz": {"band_pass": [1.0, 45.0]},
        "0.5-45 Hz": {"band_pass": [0.5, 45.0]},
    },
    "epochs": {"10 s": {"epoch": 10.0}, "4 s": {"epoch": 4.0}},
    "detection": {
        "usual": {"limits": {}},
        "strict": {"limits": {"amplitude": 20.0, "drift": 10.0, "pop": 40.0, "correlation": 0.45}},
        "lenient": {"limits": {"amplitude": 45.0, "drift": 22.5, "pop": 90.0, "correlation": 0.2}},
    },
    "bad channels": {
        "missing": {"bad_channels": "missing"},
        "interpolated": {"bad_channels": "interpolate"},
    },
    "line noise": {"removed": {"line_freq": "auto"}, "left": {"line_freq": "off"}},
    "powers": {"as they are": {"features": "paper"}, "logarithms": {"features": "log"}},
    "alpha": {
        "8-13 Hz": {"bands": DEFAULT_BANDS},
        "8-12 Hz": {"bands": {**DEFAULT_BANDS, "alpha": (8.0, 12.0), "beta": (12.0, 30.0)}},
    },
}
"""What laboratories could as well have chosen otherwise; see :func:`idfsmec.multiverse`."""


@dataclass(frozen=True, kw_only=True)
class FeatureSettings:
    """Settings of signal processing, features and detection of missing channels.

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
        Edges in Hz of the pass-band, as in MNE's ``raw.filter``: flat between them, with the
        transitions outside, and nothing is shifted in time. None for signals that are filtered
        already.
    line_freq : {"auto", "off"}, float or None
        Line noise to remove before the band-pass: 50 or 60 Hz and harmonics where the spectrum
        shows them, a frequency in Hz, or none.
    channels : {"scalp", "all"} or sequence of str
        Which EEG channels to use: those for which the montage has a position (if it has one for
        at least half of them), all, or those named, in any spelling.
    reference : {"keep", "average"}
        Signals as they were recorded, or against the mean of the channels that are not missing in
        the epoch.
    epoch, overlap : float
        Length of an epoch, and what consecutive ones have in common, in seconds. Without
        meaning for what is cut already.
    bad_channels : {"missing", "interpolate", "interpolate-fields"}
        What becomes of bad channels, marked or detected: they are missing, or replaced, epoch by
        epoch, by MNE's spherical splines through the good ones, or by the field of sources that
        MNE fits to them (minimum norm; Mellot et al., arXiv 2403.15415, 2024). Channels without a
        position, and all where fewer than four good ones are left, are missing in any case.
    autoreject_interpolated : {"keep", "missing"}
        Channel epochs that autoreject has interpolated, by its reject log: taken as they are, or
        for bad. Those that it rejected without interpolation are bad in any case.
    detect : bool
        Whether to look for channels without EEG, see :func:`idfsmec.missing.detect_missing`.
    typical_amplitude : float
        Amplitude of ordinary EEG in volts, to which the limits of the detection are relative.
    limits : DetectionLimits or mapping of str to float
        Thresholds of the detection, or those of them that differ from the default.

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
    bad_channels: str = "missing"
    autoreject_interpolated: str = "keep"
    detect: bool = True
    typical_amplitude: float = TYPICAL_AMPLITUDE
    limits: Any = field(default_factory=DetectionLimits)

    def __post_init__(self) -> None:
        values = {key.name: getattr(self, key.name) for key in fields(self)}
        for key in ("features", "channels", "band_pass"):
            if isinstance(values[key], Iterable) and not isinstance(values[key], str):
                values[key] = tuple(values[key])
        for key, (kinds, allowed) in _ALLOWED.items():
            if not any(_is_allowed(values[key], kind) for kind in kinds):
                raise InputError(f"{key} = {_to_toml(values[key])} is not {allowed}.")
        # Workers do not know what was registered in this process, so features travel themselves.
        values["features"] = find_features(values["features"])
        values["bands"] = {name: tuple(map(float, edges)) for name, edges in self.bands.items()}
        values["line_freq"] = check_line_freq(self.line_freq) or "off"
        values["limits"] = _checked_limits(self.limits)
        if not isinstance(values["channels"], str):
            values["channels"] = tuple(name.strip() for name in values["channels"])
            if "" in values["channels"]:
                raise InputError(f"channels = {_to_toml(self.channels)} has a name that is empty.")
        for key, value in values.items():
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
        values = {key: getattr(self, key) for key in _INFO_KEYS} | {"limits": limits}
        plain = json.loads(json.dumps(values))  # tuples become lists
        return {"sfreq": plain.pop("resample"), "unit": "uV", **plain}

    @classmethod
    def from_dict(cls, info: Mapping[str, Any], columns: Iterable[str]) -> FeatureSettings:
        """Return settings from a table's ``info`` and its features without channels."""
        info = {**_BEFORE, **({"line_freq": info["mains"]} if "mains" in info else {}), **info}
        try:
            values = {key: info["sfreq" if key == "resample" else key] for key in _INFO_KEYS}
        except KeyError as error:
            raise InputError(
                f"The table does not state how its features were computed ({error} is missing), "
                "so those of a recording cannot be computed in the same way."
            ) from None
        settings, wanted = cls(**values), list(dict.fromkeys(columns))
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
            ``limits`` are tables. ``choices`` is for :func:`read_choices`.

        Returns
        -------
        FeatureSettings

        Raises
        ------
        InputError
            The file cannot be read, or a key or value is not allowed; the message names the file,
            the key and what is allowed.
        """
        content = _read_toml(path)
        content.pop(_CHOICES, None)
        try:
            return cls().changed(content)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    def changed(self, changes: Mapping[str, Any]) -> FeatureSettings:
        """Return settings with changes by name, as a file has them: ``"off"`` for None."""
        for key in changes:
            if key not in _ALLOWED:
                raise InputError(f"there is no setting {key!r}; there are: {', '.join(_ALLOWED)}.")
        values: dict[str, Any] = {k: None if v == "off" else v for k, v in changes.items()}
        return replace(self, **values)

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
            The file. Each key has a comment with the values that are allowed; at the end stand
            the default choices of ``idfsmec multiverse``.

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
            lines += _assignments(tables.get(key, {key: values[key]}))
        lines += ["", "# For idfsmec multiverse: options of each choice, and what they change."]
        for name, options in DEFAULT_CHOICES.items():
            lines += [f"[{_CHOICES}.{_to_toml(name)}]", *_assignments(options)]
        with replacing(path) as (beside,):
            beside.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def digest(self) -> str | None:
        """Hash everything that decides the numbers, what a user's features compute included.

        None, with one warning, if a feature cannot be described.
        """
        features = [fingerprint_or_warn(f, f"The feature {f.name!r}") for f in self.chosen]
        if None in features:
            return None
        return fingerprint([ALGORITHM_VERSION, self.as_dict(), features])


_CHOICES = "choices"
# What a table's info says; its features are its columns.
_INFO_KEYS = [key.name for key in fields(FeatureSettings) if key.name != "features"]


def read_choices(path: str | PathLike[str]) -> Choices:
    """Read ``[choices]`` of a settings file; where it has none, the default ones."""
    choices = _read_toml(path).get(_CHOICES, DEFAULT_CHOICES)
    tables = [choices]
    for _ in range(3):
        if not all(isinstance(table, Mapping) and table for table in tables):
            raise InputError(
                f"{path}: choices are tables of options, and an option a table of settings: "
                '[choices.reference], then average = {reference = "average"}'
            )
        tables = [inner for table in tables for inner in table.values()]
    return dict(choices)


def _read_toml(path: str | PathLike[str]) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}).") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not a TOML file ({error}).") from error


def _checked_limits(limits: DetectionLimits | Mapping[str, float]) -> DetectionLimits:
    """Return the limits of the detection from those that differ from the default, by name."""
    if isinstance(limits, DetectionLimits):
        return limits
    default = asdict(DetectionLimits())
    for name, value in limits.items():
        if name not in default:
            raise InputError(f"There is no limit {name}; there are: {', '.join(default)}.")
        if not number(0, closed="both").is_satisfied_by(value):
            raise InputError(f"The limit {name} = {_to_toml(value)} is no number of at least 0.")
    return DetectionLimits(**{name: type(default[name])(x) for name, x in limits.items()})


def _is_pair(value: Any) -> bool:
    return SequenceOf(number(0, closed="left")).is_satisfied_by(value) and len(value) == 2


# Of each setting, in the order of a file: any of what it may be, and how to say that.
_ALLOWED: dict[str, tuple[list[Any], str]] = {
    "features": (
        [str, (), SequenceOf(str, Feature)],
        f"a set of features ({', '.join(FEATURE_SETS)}) or a list of names",
    ),
    "hoc_orders": (
        [integer(1)],
        "the number of higher-order crossings: a whole number, 1 or more",
    ),
    "c0_ratio": ([number(0)], "a multiple of the mean power: a number above 0"),
    "welch_window": ([number(0)], "the length of Welch's windows: seconds above 0"),
    "nsi_window": ([number(0)], "the length of the index's segments: seconds above 0"),
    "resample": (
        [number(0, 1e5, closed="right"), None],
        'a sampling rate in Hz above 0, at most 100000, or "off"',
    ),
    "band_pass": ([_is_pair, None], 'a band-pass of two edges in Hz, [1.0, 45.0], or "off"'),
    "line_freq": (
        [number(0), "auto", "off", None],
        'a frequency of line noise: "auto", a number in Hz, or "off"',
    ),
    "channels": (
        ["scalp", "all", SequenceOf(str)],
        'a choice of channels: "scalp", "all", or a list of names',
    ),
    "reference": (["keep", "average"], 'a reference: "keep" or "average"'),
    "epoch": (
        [number(0, 3600, closed="right")],
        "the length of an epoch: seconds above 0, at most 3600",
    ),
    "overlap": (
        [number(0, closed="left")],
        "the overlap of epochs: seconds, at least 0, less than an epoch",
    ),
    "bad_channels": (
        ["missing", "interpolate", "interpolate-fields"],
        'what becomes of bad channels: "missing", "interpolate" or "interpolate-fields"',
    ),
    "autoreject_interpolated": (
        ["keep", "missing"],
        'what becomes of channels that autoreject interpolated: "keep" or "missing"',
    ),
    "detect": ([bool], "whether to detect missing channels: true or false"),
    "typical_amplitude": ([number(0)], "the amplitude of ordinary EEG: volts above 0"),
    "bands": (
        [lambda bands: isinstance(bands, Mapping) and all(map(_is_pair, bands.values()))],
        "a table of bands: a name and two edges in Hz, alpha = [8.0, 13.0]",
    ),
    "limits": (
        [DetectionLimits, Mapping],
        f"a table of limits of the detection ({', '.join(asdict(DetectionLimits()))}): "
        "numbers of at least 0",
    ),
}


def _is_allowed(value: Any, kind: Any) -> bool:
    """Return whether a value is of a type, in an interval, passes a check, or is equal."""
    if isinstance(kind, type):
        return isinstance(value, kind)
    if hasattr(kind, "is_satisfied_by"):
        return bool(kind.is_satisfied_by(value))
    return kind(value) if callable(kind) else type(value) is type(kind) and value == kind


def _to_toml(value: Any) -> str:
    """Write text, a number, a flag, a list or a table as TOML does; None is ``"off"``."""
    if value == np.inf:
        return "inf"
    if isinstance(value, Mapping):
        return f"{{{', '.join(_assignments(value))}}}"
    text = json.dumps("off" if value is None else value, ensure_ascii=False, default=str)
    return text.replace("\x7f", "\\u007f")


def _assignments(values: Mapping[str, Any]) -> list[str]:
    bare = re.compile("[A-Za-z0-9_-]+").fullmatch
    return [f"{k if bare(k) else _to_toml(k)} = {_to_toml(v)}" for k, v in values.items()]
