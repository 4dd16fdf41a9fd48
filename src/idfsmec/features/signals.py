"""Reading EEG by standard channel names from a Recording, Raw, Epochs or an array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.errors import InputError, RecordingError
from idfsmec.features.epochs import EpochGrid, epoch_grid
from idfsmec.features.settings import FeatureSettings
from idfsmec.missing import observed_from_annotations, observed_from_bads
from idfsmec.recordings import Recording, channel_plan, prepare_raw
from idfsmec.recordings.reading import find_boundaries
from idfsmec.table.positions import EXTRA_NAMES, channel_positions, plan_channels, standard_name

if TYPE_CHECKING:
    import mne

Mask = NDArray[np.bool_]

_UNNAMED = "recording"  # in messages about data that came without a name
_MICROVOLTS_PER_VOLT = 1e6
#: Share of an epoch that may be padding at the end of a recording.
_PADDING = 0.01
# Seconds: times in files are rounded.
_INSTANT = 1e-4


@dataclass(frozen=True)
class Channels:
    """EEG channels by the names they come with and by their standard names."""

    file_names: list[str]
    names: list[str]
    montage: str = ""
    positions: NDArray[np.float64] | None = None
    """Directions of the electrodes, (n_channels, 3); None where no electrode has one."""
    renamed: dict[str, str] = field(default_factory=dict)
    """From the name in the file to the standard name, where they differ."""
    dropped: dict[str, str] = field(default_factory=dict)
    """Channels of the file that are none of these, with the reason."""

    def take(self, keep: Mask, reason: str) -> Channels:
        """Leave out channels for a reason."""
        in_file = {new: old for old, new in self.renamed.items()}
        left_out = [name for name, kept in zip(self.names, keep, strict=True) if not kept]
        return Channels(
            [name for name, kept in zip(self.file_names, keep, strict=True) if kept],
            [name for name, kept in zip(self.names, keep, strict=True) if kept],
            self.montage,
            None if self.positions is None else self.positions[keep],
            {old: new for old, new in self.renamed.items() if new not in left_out},
            self.dropped | {in_file.get(name, name): reason for name in left_out},
        )


@dataclass(frozen=True)
class Signals:
    """EEG channels of one recording and what is known about them."""

    data: NDArray[np.floating]
    """Shape (n_channels, n_times) or (n_epochs, n_channels, n_times); a copy if from MNE."""
    sfreq: float
    channels: Channels
    grid: EpochGrid | None = None
    """Where epochs are to be cut; None if they are cut already."""
    marked: dict[str, Mask] = field(default_factory=dict)
    """Where the recording's own marks say that a channel is missing, by reason."""
    unit: float | None = 1.0
    """Volts that one step is; None if unknown."""
    passed: tuple[float, float] = (0.0, np.inf)
    """Band in Hz that earlier filters have let pass."""
    line_freq: float | None = None
    n_recorded: int = 0
    """All channels that came with these, EEG or not."""

    @property
    def names(self) -> list[str]:
        """Standard names of the channels."""
        return self.channels.names

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of epochs and channels."""
        return len(self.data) if self.grid is None else self.grid.n_epochs, len(self.names)

    @property
    def scale(self) -> float:
        """Microvolts that one step is; 1 where the unit is unknown."""
        return 1.0 if self.unit is None else self.unit * _MICROVOLTS_PER_VOLT

    def as_epochs(self) -> NDArray[np.floating]:
        """Cut the signal at its own rate, (n_epochs, n_channels, n_times)."""
        return self.data if self.grid is None else self.grid.cut_source(self.data)


def read_signals(
    data: Any,
    settings: FeatureSettings,
    *,
    sfreq: float | None = None,
    ch_names: Sequence[str] | None = None,
    unit: float | None = None,
) -> Signals:
    """Read the EEG channels of what :func:`idfsmec.features.extract_features` takes."""
    import mne  # takes a while to load

    if isinstance(data, Recording):
        return _from_mne(data.load(), settings, data.source)
    if isinstance(data, mne.io.BaseRaw | mne.BaseEpochs):
        return _from_mne(data, settings, _UNNAMED)
    return _from_array(data, settings, sfreq, ch_names, unit)


def _choose_channels(channels: Channels, wanted: str | Iterable[str], source: str) -> Channels:
    """Keep the channels that ``settings.channels`` asks for."""
    if wanted == "all":
        return channels
    names = channels.names
    if wanted == "scalp":
        if channels.positions is None:
            return channels
        placed = np.isfinite(channels.positions).all(axis=1) | np.isin(names, EXTRA_NAMES)
        # A cap whose names the montage hardly knows has positions that it does not know either.
        return channels if placed.mean() < 0.5 else channels.take(placed, "no place on the scalp")
    listed = {name for given in wanted for name in (given, standard_name(given) or given)}
    keep = np.array(
        [not listed.isdisjoint(both) for both in zip(names, channels.file_names, strict=True)]
    )
    if not keep.any():
        raise RecordingError(
            f"{source}: none of the channels {', '.join(wanted)} is in it. It has "
            f"{', '.join(names)}.",
            source=source,
        )
    return channels.take(keep, "not asked for")


def _channels_of(measured: mne.io.BaseRaw | mne.BaseEpochs, source: str) -> Channels:
    """Describe the channels as loaders prepare them, without touching the caller's object."""
    names, types = tuple(measured.ch_names), tuple(measured.get_channel_types())
    plan = channel_plan(measured)
    if set(plan.renamed.values()).issuperset(names) and set(types) == {"eeg"}:
        return _prepared_channels(measured, list(names))  # a loader has done it
    try:
        channels = _standard_channels(names, types)
    except InputError as error:
        reason = str(error).removeprefix(f"{_UNNAMED}: ")
        raise RecordingError(f"{source}: {reason}", source=source) from None
    if channels.montage:
        return channels
    # No template knows these names, so the positions that come with them count.
    return replace(channels, positions=_positions(measured, channels.file_names))


@lru_cache(maxsize=16)  # recordings of a study are alike, and MNE takes its time
def _standard_channels(names: tuple[str, ...], types: tuple[str, ...]) -> Channels:
    import mne

    info = mne.create_info(list(names), 250.0, list(types))
    empty = mne.io.RawArray(np.zeros((len(names), 1)), info, verbose="ERROR")
    prepared = prepare_raw(empty, source=_UNNAMED)
    return _prepared_channels(prepared, list(channel_plan(prepared).renamed))


def _prepared_channels(
    prepared: mne.io.BaseRaw | mne.BaseEpochs, file_names: list[str]
) -> Channels:
    plan = channel_plan(prepared)
    return Channels(
        file_names,
        list(prepared.ch_names),
        plan.montage or "",
        _positions(prepared, prepared.ch_names),
        plan.changed,
        plan.dropped,
    )


def _positions(
    measured: mne.io.BaseRaw | mne.BaseEpochs, names: list[str]
) -> NDArray[np.float64] | None:
    montage = measured.get_montage()
    return None if montage is None else channel_positions(names, montage)


def _from_mne(
    measured: mne.io.BaseRaw | mne.BaseEpochs, settings: FeatureSettings, source: str
) -> Signals:
    import mne

    info = measured.info
    sfreq = float(info["sfreq"])
    settings.check_rate(sfreq)
    channels = _choose_channels(_channels_of(measured, source), settings.channels, source)
    names = channels.file_names
    plan = channel_plan(measured)  # counts also the channels that a loader has left out
    n_recorded = len(plan.renamed) + len(plan.dropped) or len(measured.ch_names)
    known: dict[str, Any] = {"line_freq": info["line_freq"], "n_recorded": n_recorded}
    if isinstance(measured, mne.io.BaseRaw):
        data = _read(measured, names, source)
        grid = epoch_grid(data.shape[1], sfreq, settings)
        annotations = _without_padding(measured, grid.duration)
        bads = observed_from_bads(measured, names, grid.n_epochs)
        annotated = observed_from_annotations(annotations, names, grid.starts, grid.duration)
        boundaries = _across_boundary(find_boundaries(measured), grid, len(names))
        known |= {"grid": grid, "marked": {"across an interruption": boundaries}}
    else:
        if not measured.preload:  # else its events would still hold the epochs that reading drops
            measured = measured.copy().load_data()
        data = _read(measured, names, source)
        bads = observed_from_bads(measured, names, len(data))
        annotated = observed_from_annotations(measured, names)
        passed = float(info["highpass"] or 0.0), float(info["lowpass"] or np.inf)
        known |= {"passed": passed, "marked": {}}
    known["marked"] = {
        "marked bad": ~bads.to_numpy(bool),
        "annotated BAD": ~annotated.to_numpy(bool),
        **known["marked"],
    }
    return Signals(data, sfreq, channels, **known)


def _read(
    measured: mne.io.BaseRaw | mne.BaseEpochs, names: list[str], source: str
) -> NDArray[np.float64]:
    """Read signals in volts; a copy that may be changed."""
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


def _without_padding(raw: mne.io.BaseRaw, epoch: float) -> mne.Annotations:
    """Give the annotations from the first sample on, but for a little padding at the very end.

    MNE, writing EDF, fills the last data record with the last value and annotates that as bad: two
    samples would cost the whole epoch that they end.
    """
    marks = raw.annotations.copy()
    marks.onset = marks.onset - raw.first_time
    behind = raw.n_times / raw.info["sfreq"] - _PADDING * epoch - _INSTANT
    skipped = [mark["description"].upper() == "BAD_ACQ_SKIP" for mark in marks]
    marks.delete(np.flatnonzero(np.array(skipped, dtype=bool) & (marks.onset >= behind)))
    return marks


def _across_boundary(boundaries: NDArray[np.float64], grid: EpochGrid, n_channels: int) -> Mask:
    """Mark epochs that hold signal from both sides of a boundary."""
    begins = grid.starts[:, np.newaxis]
    # Half a sample: a boundary on the border of two epochs is in neither.
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
    n_channels = array.shape[1]
    if ch_names is None:
        standard = {f"ch{i:03d}": f"ch{i:03d}" for i in range(n_channels)}
    else:
        standard = _standard_names(list(ch_names), n_channels)
    renamed = {old: new for old, new in standard.items() if old != new}
    given = Channels(list(standard), list(standard.values()), renamed=renamed)
    channels = _choose_channels(given, settings.channels, _UNNAMED)
    if channels is not given:
        array = array[:, [given.file_names.index(name) for name in channels.file_names]]
    return Signals(array, float(sfreq), channels, unit=unit, n_recorded=n_channels)


def _standard_names(names: list[str], n_channels: int) -> dict[str, str]:
    """Map the names given to those used; whatever is in an array is meant as EEG."""
    if len(names) != n_channels:
        raise InputError(f"{len(names)} channel names for {n_channels} channels.")
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{name!r} cannot name a channel: use a text that is not empty.")
    if len(set(names)) < len(names):
        raise InputError("Channel names must differ from each other.")
    plan = plan_channels(names)
    return {name: plan.renamed.get(name, name) for name in names}
