"""Electrode names and places: dirty names become 10-20/10-05, names become directions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.errors import InputError

if TYPE_CHECKING:
    import mne

# The 10-20 names of 1958 and what the 10-10 system calls these places since 1991.
OLD_NAMES = {"T3": "T7", "T4": "T8", "T5": "P7", "T6": "P8"}
# Cerebellar sites of 64-channel caps: real EEG, but in no standard montage.
EXTRA_NAMES = ("CB1", "CB2")
EARS_AND_MASTOIDS = ("A1", "A2", "M1", "M2")
#: Direction of the eyes: right, front, up.
EYES = np.array([[0.0, 0.95, -0.31]])

_PREFIX = re.compile(r"^EEG[\s:_.-]*(?=\D)", re.IGNORECASE)
# One electrode against a common or far-away reference; "Fp1-F7" is a difference of two sites.
_REFERENCE = re.compile(
    r"[\s]*[-_:/][\s]*(LE|RE|LER|LINK(ED)?|REF|COM|AVG?|AVE|AVERAGE|CAR|AR|[AM][12]|A1A2|M1M2|"
    r"A1\+A2|M1\+M2)$",
    re.IGNORECASE,
)
_NOT_EEG = re.compile(
    r"EOG|ECG|EKG|EMG|^[HV]EO[GLRUD]?|^[LR]OC$|^CHIN|"  # eyes, heart, muscles
    r"^(REF|GND|GROUND|COM|CMS|DRL|VREF|LE|RE)$|"  # references
    r"STATUS|TRIG|^STI[M ]?\s*\d*$|EVENT|MARKER|ANNOTATION|^DIN\s?_?\d+$|PHOTIC|COUNTER|"
    r"RESP|NASAL|AIRFLOW|THOR|ABDO|SPO2|SAO2|^PR$|PULSE|PLETH|PPG|GSR|^EDA|SNORE|"
    r"TEMP(ERATURE)?$|^ACC|GYRO|^(EXG|EXT|AUX|DC|BIP|ERG|MISC)\s?_?\d*$|^(IBI|BURSTS|SUPPR)$|"
    r"BATTERY|TIMESTAMP|IMPEDANCE|^PACKET",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ChannelPlan:
    """New names of the channels that are kept, and reasons for those that are dropped."""

    renamed: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    montage: str | None = None


@cache
def _standard_names() -> dict[str, str]:
    """Map folded 10-05 names to the way they are written."""
    names = standard_montage(_TEMPLATE).ch_names
    usable = [name for name in (*names, *EXTRA_NAMES) if name not in OLD_NAMES]
    return {name.casefold(): name for name in usable}


def standard_name(name: str) -> str | None:
    """Give the 10-20/10-05 name that a channel name stands for, or None if there is doubt.

    ``EEG Fp1-LE`` and ``FP1.`` are Fp1; ``Fp1-F7`` is bipolar and has no single place.
    """
    site = _site(name)
    return _standard_names().get(OLD_NAMES.get(site.upper(), site).casefold())


def _site(name: str) -> str:
    """Strip a name of what amplifiers put around it: prefix, reference, dots, blanks."""
    text = unicodedata.normalize("NFKC", name).strip(" \t._")
    return _REFERENCE.sub("", _PREFIX.sub("", text)).strip(" \t._")


def plan_channels(names: Iterable[str], types: Iterable[str] | None = None) -> ChannelPlan:
    """Decide which channels are EEG and what they are called.

    Ears and mastoids (``A1``, ``M2``, ``A2-A1``) are dropped, which serve as reference and hold no
    signal of their own; beside ``A3``, ``A1`` is a site of a BioSemi cap. Where two channels claim
    one standard name, the one that is already written so gets it, the others keep their names.
    """
    names = list(names)
    types = ["eeg"] * len(names) if types is None else list(types)
    biosemi = {"A1", "A2", "A3", "A4"} <= set(names)
    plan = ChannelPlan()
    claims: dict[str, list[str]] = {}
    for name, kind in zip(names, types, strict=True):
        wanted = None if biosemi and re.fullmatch(r"[A-H]\d+", name) else standard_name(name)
        reason = _reason_to_drop(name, wanted, kind)
        if reason:
            plan.dropped[name] = reason
            continue
        plan.renamed[name] = wanted or name
        claims.setdefault(wanted or name, []).append(name)
    for wanted, claimants in claims.items():
        if len(claimants) > 1:
            for name in claimants:
                plan.renamed[name] = name
            # "FP1" and "Fp1" stay apart; "FP1" alone beside "EEG Fp1-LE" may be called Fp1.
            spelt = [name for name in claimants if name.casefold() == wanted.casefold()]
            if len(spelt) == 1:
                plan.renamed[spelt[0]] = wanted
    return plan


def _reason_to_drop(name: str, wanted: str | None, kind: str) -> str | None:
    if kind != "eeg" and not (kind == "misc" and wanted):
        return f"of type {kind}"
    if wanted in EARS_AND_MASTOIDS:
        return "ear or mastoid"
    if wanted is None and (_NOT_EEG.search(_site(name)) or not _site(name)):
        return "no EEG by its name"
    return None


#: MNE 1.13 renamed its ``standard_*`` montages; either name is understood with either version.
_RENAMED = {"standard_1005": "colin27_1005", "standard_1020": "colin27_1020"}
_TEMPLATE = "standard_1005"


@cache
def standard_montage(name: str) -> mne.channels.DigMontage:
    """Make one of MNE's built-in montages, by its old or its new name."""
    import mne  # takes a while to load

    current = _current_name(name)
    if current not in mne.channels.get_builtin_montages():
        raise InputError(
            f"there is no montage named {name!r}; use one of mne.channels.get_builtin_montages(), "
            "such as 'standard_1005', 'biosemi64' or 'GSN-HydroCel-128'"
        )
    return mne.channels.make_standard_montage(current)


def _current_name(name: str) -> str:
    """Translate the name of a montage to that of the MNE at hand."""
    import mne

    for old, new in _RENAMED.items():
        if name in (old, new):
            # The new name first: MNE 1.13 takes both, but warns about the old one.
            return new if new in mne.channels.get_builtin_montages() else old
    return name


# Nets and caps that number their sensors.
_OTHER_MONTAGES = (
    *(f"GSN-HydroCel-{size}" for size in ("32", "64_1.0", "65_1.0", "128", "129", "256", "257")),
    *(f"biosemi{size}" for size in (128, 160, 256)),
)


def choose_montage(names: Iterable[str]) -> str | None:
    """Name the built-in montage that places these channels, or None if none does."""
    wanted = set(names)
    fitting = []
    for montage in _OTHER_MONTAGES:
        sensors = standard_montage(montage).ch_names
        common = len(wanted.intersection(sensors))
        if common >= 0.9 * len(wanted) and common >= 2 / 3 * len(sensors):
            fitting.append((common, -len(sensors), montage))
    if fitting:
        return max(fitting)[-1]  # most of the names, and of these the smallest
    # 10-05 is taken as soon as it knows one of the names.
    standard = set(_standard_names().values()) - {*EARS_AND_MASTOIDS, *EXTRA_NAMES}
    return _current_name(_TEMPLATE) if wanted & standard else None


@cache
def _sensors() -> frozenset[str]:
    """Names of the sensors of nets and caps that number them."""
    return frozenset(
        name.casefold() for cap in _OTHER_MONTAGES for name in standard_montage(cap).ch_names
    )


def is_electrode(name: str) -> bool:
    """Return whether a name stands for an electrode of 10-05, or of a net or cap that MNE knows.

    >>> [is_electrode(name) for name in ("F3", "E17", "F4-F3", "frontal")]
    [True, True, False, False]
    """
    return standard_name(name) is not None or name.casefold() in _sensors()


def channel_positions(
    names: Sequence[str], montage: str | mne.channels.DigMontage | None = None
) -> NDArray[np.float64]:
    """Return the direction of each electrode from the middle of the head, by default of 10-05.

    Unit vectors (right, front, up) of shape (n_channels, 3); NaN where the montage has none.
    """
    by_name = montage is None or isinstance(montage, str)
    cap: Any = standard_montage(montage or _TEMPLATE) if by_name else montage
    places = cap.get_positions()["ch_pos"]
    points = np.array(list(places.values()), dtype=float)
    from_centre = points - _sphere_centre(points)
    with np.errstate(invalid="ignore", divide="ignore"):
        units = from_centre / np.linalg.norm(from_centre, axis=1, keepdims=True)
    directions = {name.upper(): unit for name, unit in zip(places, units, strict=True)}
    nowhere = np.full(3, np.nan)
    rows = [directions.get(str(name).upper(), nowhere) for name in names]
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def on_scalp(names: Sequence[str], positions: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which channels have a place on the scalp; all, if fewer than half have a position.

    A cap whose names the montage hardly knows has positions that it does not know either.
    """
    placed = np.isfinite(positions).all(axis=1) | np.isin(names, EXTRA_NAMES)
    return placed if placed.mean() >= 0.5 else np.ones_like(placed)


def angles_between(
    positions: NDArray[np.float64], targets: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the angles between electrodes (unit vectors, by default among them) in degrees."""
    cosines = positions @ (positions if targets is None else targets).T
    return np.asarray(np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0))))


def _sphere_centre(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fit ``|x - c|^2 = r^2`` by linear least squares; too few electrodes: the origin."""
    finite = points[np.isfinite(points).all(axis=1)]
    if len(finite) < 16:  # a handful of frontal electrodes does not tell where the centre is
        return np.zeros(3)
    design = np.column_stack([2 * finite, np.ones(len(finite))])
    solution, *_ = np.linalg.lstsq(design, (finite**2).sum(axis=1), rcond=None)
    return np.asarray(solution[:3])
