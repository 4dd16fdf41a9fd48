"""What people have (a Recording, Raw, Epochs, an array) as one thing: EEG by standard names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.errors import InputError, RecordingError
from idfsmec.features.channels import SOME, Channels, channels_of, choose_channels
from idfsmec.features.epochs import EpochGrid, epoch_grid
from idfsmec.features.settings import FeatureSettings
from idfsmec.missing import observed_from_annotations, observed_from_bads
from idfsmec.montage import plan_channels
from idfsmec.recordings import Recording, channel_plan, find_boundaries

if TYPE_CHECKING:
    import mne
    import pandas as pd

Mask = NDArray[np.bool_]
#: Share of an epoch that may be filling at the end of a recording.
_FILLING = 0.01
# Seconds: times in files are rounded.
_INSTANT = 1e-4


@dataclass(frozen=True)
class Signals:
    """EEG channels of one recording and what is known about them.

    Parameters
    ----------
    data : ndarray of shape (n_channels, n_times) or (n_epochs, n_channels, n_times)
        A copy, which may be changed, where it comes from MNE.
    sfreq : float
        Sampling rate in Hz.
    names : list of str
        Standard names of the channels.
    grid : EpochGrid or None
        Where epochs are to be cut; None if they are cut already.
    marked : dict of str to ndarray of shape (n_epochs, n_channels), bool
        Where somebody said that a channel is missing, by reason.
    unit : float or None
        Volts that one step is; None if nobody knows.
    passed : (float, float)
        Band in Hz that earlier filters have let pass.
    positions : ndarray of shape (n_channels, 3) or None
        Directions of the electrodes; None: by their names.
    line_freq : float or None
        Mains frequency in Hz.
    montage : str
        The montage's name; empty if there is none.
    renamed : dict
        Channels that have another name where they come from, from that name to the one here.
    dropped : dict
        Channels that are not among these, with the reason.
    n_recorded : int
        All channels that came with these, EEG or not; 0 if nobody counted.
    """

    data: NDArray[np.floating]
    sfreq: float
    names: list[str]
    grid: EpochGrid | None = None
    marked: dict[str, Mask] = field(default_factory=dict)
    unit: float | None = 1.0
    passed: tuple[float, float] = (0.0, np.inf)
    positions: NDArray[np.float64] | None = None
    line_freq: float | None = None
    montage: str = ""
    renamed: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    n_recorded: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of epochs and channels."""
        return len(self.data) if self.grid is None else self.grid.n_epochs, len(self.names)

    def as_epochs(self) -> NDArray[np.floating]:
        """The epochs at the rate of the recording, (n_epochs, n_channels, n_times)."""
        return self.data if self.grid is None else self.grid.cut_source(self.data)


def read_signals(
    data: Any,
    settings: FeatureSettings,
    *,
    sfreq: float | None = None,
    ch_names: Sequence[str] | None = None,
    unit: float | None = None,
) -> Signals:
    """Take EEG channels by their standard names out of whatever holds them.

    Parameters
    ----------
    data, sfreq, ch_names, unit
        As in :func:`idfsmec.features.extract_features`.
    settings : FeatureSettings
        Says where a continuous recording is cut.
    """
    import mne  # takes a while to load

    if isinstance(data, Recording):
        return _from_mne(data.load(), settings, data.source)
    if isinstance(data, mne.io.BaseRaw | mne.BaseEpochs):
        return _from_mne(data, settings, SOME)
    return _from_array(data, settings, sfreq, ch_names, unit)


def _from_mne(
    measured: mne.io.BaseRaw | mne.BaseEpochs, settings: FeatureSettings, source: str
) -> Signals:
    import mne

    info = measured.info
    settings.check_rate(float(info["sfreq"]))
    channels = choose_channels(channels_of(measured, source), settings.channels, source)
    own = channels.own
    about: dict[str, Any] = {
        "sfreq": float(info["sfreq"]),
        "names": list(channels.names),
        "positions": channels.positions,
        "line_freq": info["line_freq"],
        "montage": channels.montage,
        "renamed": dict(channels.renamed),
        "dropped": dict(channels.dropped),
        "n_recorded": _count_recorded(measured),
    }
    if isinstance(measured, mne.io.BaseRaw):
        data = _read(measured, own, source)
        grid = epoch_grid(data.shape[1], about["sfreq"], settings)
        bads = observed_from_bads(measured, own, grid.n_epochs)
        kept = _without_filling(measured, grid.duration)
        annotated = observed_from_annotations(kept, own, grid.starts, grid.duration)
        marked = _marks(bads, annotated)
        marked["across an interruption"] = _across(find_boundaries(measured), grid, len(own))
        return Signals(data, grid=grid, marked=marked, **about)
    if not measured.preload:  # else its events would still hold the epochs that reading drops
        measured = measured.copy().load_data()
    data = _read(measured, own, source)
    passed = float(info["highpass"] or 0.0), float(info["lowpass"] or np.inf)
    bads = observed_from_bads(measured, own, len(data))
    marked = _marks(bads, observed_from_annotations(measured, own))
    return Signals(data, marked=marked, passed=passed, **about)


def _count_recorded(measured: mne.io.BaseRaw | mne.BaseEpochs) -> int:
    """Count the channels of the file, also those that a loader has left out."""
    plan = channel_plan(measured)
    return len(plan.renamed) + len(plan.dropped) or len(measured.ch_names)


def _read(
    measured: mne.io.BaseRaw | mne.BaseEpochs, names: list[str], source: str
) -> NDArray[np.float64]:
    """Signals in volts; a copy that may be changed."""
    # By number, because MNE gives a copy then, of a Raw too.
    picks = [measured.ch_names.index(name) for name in names]
    try:
        return measured.get_data(picks=picks)
    except MemoryError:
        raise
    except Exception as error:
        # MNE opens files by their header; what is wrong with the rest shows only here.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise RecordingError(
            f"{source}: its signals cannot be read ({reason}). Check that the file and those "
            "that belong to it are whole.",
            source=source,
        ) from error


def _marks(bads: pd.DataFrame, annotated: pd.DataFrame) -> dict[str, Mask]:
    return {"marked bad": ~bads.to_numpy(bool), "annotated BAD": ~annotated.to_numpy(bool)}


def _without_filling(raw: mne.io.BaseRaw, epoch: float) -> mne.Annotations:
    """Give the annotations from the first sample on, but for a little filling at the very end.

    MNE, writing EDF, fills the last data record with the last value and annotates that as bad: two
    samples would cost the whole epoch that they end.
    """
    marks = raw.annotations.copy()
    marks.onset = marks.onset - raw.first_time
    behind = raw.n_times / raw.info["sfreq"] - _FILLING * epoch - _INSTANT
    skipped = [mark["description"].upper() == "BAD_ACQ_SKIP" for mark in marks]
    marks.delete(np.flatnonzero(np.array(skipped, dtype=bool) & (marks.onset >= behind)))
    return marks


def _across(boundaries: NDArray[np.float64], grid: EpochGrid, n_channels: int) -> Mask:
    """Epochs that hold signal from both sides of a joint."""
    begins = grid.starts[:, np.newaxis]
    # Half a sample: a joint on the border of two epochs is in neither.
    slack = 0.5 / grid.rate
    inside = (boundaries > begins + slack) & (boundaries < begins + grid.duration - slack)
    return np.repeat(inside.any(axis=1, keepdims=True), n_channels, axis=1)


def _from_array(
    data: Any,
    settings: FeatureSettings,
    sfreq: float | None,
    ch_names: Sequence[str] | None,
    unit: float | None,
) -> Signals:
    array = np.asarray(data)
    if not np.issubdtype(array.dtype, np.floating):
        array = array.astype(np.float64)
    if array.ndim != 3 or 0 in array.shape[1:]:
        raise InputError(
            "Epochs must be an array of shape (n_epochs, n_channels, n_times), an mne.Epochs or "
            f"an mne.io.Raw; got shape {array.shape}."
        )
    if sfreq is None:
        raise InputError("The sampling rate of an array must be given: sfreq=250, for example.")
    settings.check_rate(sfreq)
    if unit is not None and not unit > 0:
        raise InputError(f"unit={unit!r}: give the volts that one step is, 1e-6 for microvolts.")
    if ch_names is None:
        names = {f"ch{i:03d}": f"ch{i:03d}" for i in range(array.shape[1])}
    else:
        names = _standard_names(list(ch_names), array.shape[1])
    renamed = {old: new for old, new in names.items() if old != new}
    given = Channels(list(names), list(names.values()), "", None, renamed, {})
    chosen = choose_channels(given, settings.channels, SOME)
    if chosen is not given:
        array = array[:, [given.own.index(name) for name in chosen.own]]
    return Signals(
        array,
        float(sfreq),
        chosen.names,
        unit=unit,
        renamed=chosen.renamed,
        dropped=chosen.dropped,
        n_recorded=len(names),
    )


def _standard_names(names: list[str], n_channels: int) -> dict[str, str]:
    """From the names given to those used; whatever is in an array is meant as EEG."""
    if len(names) != n_channels:
        raise InputError(f"{len(names)} channel names for {n_channels} channels.")
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{name!r} cannot name a channel: use a text that is not empty.")
    if len(set(names)) < len(names):
        raise InputError("Channel names must differ from each other.")
    plan = plan_channels(names)
    return {name: plan.renamed.get(name, name) for name in names}
