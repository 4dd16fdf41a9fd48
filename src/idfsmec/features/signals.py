"""From what users give to clean epochs: EEG by standard channel names, filtered and cut."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import signal

from idfsmec.errors import InputError, RecordingError, reason_of
from idfsmec.features.settings import FeatureSettings
from idfsmec.missing import observed_from_annotations, observed_from_bads, observed_from_reject_log
from idfsmec.missing.detection import unusable
from idfsmec.missing.masks import onsets_of, read_reject_log
from idfsmec.recordings import Recording, channel_plan, prepare_raw
from idfsmec.recordings.recording import (
    EYES_BESIDE,
    OTHER_CONDITION,
    epoch_conditions,
    eye_channels,
    find_boundaries,
)
from idfsmec.table.columns import CONDITION
from idfsmec.table.positions import channel_positions, on_scalp, plan_channels, standard_name

if TYPE_CHECKING:
    import mne
    import pandas as pd

Array = NDArray[np.float64]
Floats = NDArray[np.floating]
Mask = NDArray[np.bool_]

_UNNAMED = "recording"  # in messages about data that came without a name
_MICROVOLTS_PER_VOLT = 1e6
#: Share of an epoch, or samples of a short one, that may be padding at the end of a recording.
_PADDING, _PADDING_SAMPLES = 0.01, 2
# Seconds: times in files are rounded.
_INSTANT = 1e-4
# Channels that splines need at least, and the metres from the centre of a head to its electrodes.
_LEAST_GOOD, _HEAD_RADIUS = 4, 0.095
# Rows that are filtered at once: bounds the temporaries however many channels there are.
_BLOCK_SAMPLES = 4_000_000


# --- reading ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class EpochGrid:
    """Epochs of equal length at equal distances over a recording."""

    first: NDArray[np.intp]  # samples behind the resampling
    length: int  # so is this
    begins: NDArray[np.intp]  # first sample of each epoch in the recording as it came
    ends: NDArray[np.intp]  # sample behind the last
    starts: Floats  # seconds from the beginning of the recording
    duration: float  # of an epoch, in seconds


def epoch_grid(n_times: int, sfreq: float, settings: FeatureSettings) -> EpochGrid:
    """Lay epochs over a recording; the last stretch that does not fill one is left out."""
    epoch, overlap, rate = settings.epoch, settings.overlap, settings.rate(sfreq)
    length = round(epoch * rate)
    step = length - round(overlap * rate)
    if length < 2 or step < 1:
        raise InputError(
            f"Epochs of {epoch:g} s that overlap by {overlap:g} s are not possible at {rate:g} Hz."
        )
    ratio = _resampling_ratio(sfreq, rate)
    available = int(n_times * ratio)
    if available < length:
        raise InputError(
            f"The recording lasts {n_times / sfreq:.3g} s, less than one epoch of {epoch:g} s: "
            "choose shorter epochs or leave it out."
        )
    number = np.arange((available - length) // step + 1)
    begins = np.floor(number * step / float(ratio) + 1e-6).astype(np.intp)
    ends = np.ceil((number * step + length) / float(ratio) - 1e-6).astype(np.intp)
    return EpochGrid(number * step, length, begins, ends, number * (step / rate), length / rate)


def cut_epochs(data: Floats, first: NDArray[np.intp], length: int) -> Floats:
    """View a signal as (n_epochs, n_channels, length), copied only where distances differ."""
    windows = sliding_window_view(data, length, axis=1)
    steps = np.unique(np.diff(first))
    if len(steps) == 1:
        return windows[:, first[0] : first[-1] + 1 : steps[0]].transpose(1, 0, 2)
    return windows[:, first].transpose(1, 0, 2)


@dataclass(frozen=True)
class Channels:
    """EEG channels by the names they come with and by their standard names."""

    file_names: list[str]
    names: list[str]
    montage: str = ""
    positions: Array | None = None  # directions, (n_channels, 3); None where none has one
    in_file: dict[str, str] = field(default_factory=dict)  # standard names to those in the file
    dropped: dict[str, str] = field(default_factory=dict)  # other channels, with the reason

    def take(self, keep: Mask, reason: str) -> Channels:
        """Leave out channels for a reason."""
        left_out = compress(self.names, ~keep)
        return replace(
            self,
            file_names=list(compress(self.file_names, keep)),
            names=list(compress(self.names, keep)),
            positions=None if self.positions is None else self.positions[keep],
            dropped=self.dropped | {self.in_file.get(name, name): reason for name in left_out},
        )


@dataclass(frozen=True)
class Signals:
    """EEG channels of one recording and what is known about them."""

    data: Floats  # (n_channels, n_times) or (n_epochs, n_channels, n_times); a copy if from MNE
    sfreq: float
    channels: Channels
    grid: EpochGrid | None = None  # where epochs are to be cut; None if they are cut already
    marked: dict[str, Mask] = field(default_factory=dict)  # what marks say is missing, by reason
    unit: float | None = 1.0  # volts that one step is; None if unknown
    passed: tuple[float, float] = (0.0, np.inf)  # Hz that earlier filters have let pass
    line_freq: float | None = None
    n_recorded: int = 0  # all channels that came with these, EEG or not
    eyes: Floats | None = None  # channels of the eyes, in the shape of ``data``
    onsets: Floats | None = None  # seconds, of epochs that know where they were cut
    numbers: NDArray[np.intp] | None = None  # of epochs, with those that were dropped counted
    dropped: float | None = None  # share of epochs that were dropped before
    conditions: tuple[str, ...] = ()  # of epochs, from metadata or by the names of their events
    metadata: pd.DataFrame | None = None  # of epochs, without the conditions
    is_rereferenced: bool = False  # says MNE

    @property
    def names(self) -> list[str]:
        """Standard names of the channels."""
        return self.channels.names

    @property
    def positions(self) -> Array:
        """Directions of the channels, (n_channels, 3); NaN where unknown."""
        known = self.channels.positions
        return channel_positions(self.names) if known is None else known

    @property
    def scale(self) -> float:
        """Microvolts that one step is; 1 where the unit is unknown."""
        return 1.0 if self.unit is None else self.unit * _MICROVOLTS_PER_VOLT

    @property
    def starts(self) -> Floats:
        """Seconds from the beginning to each epoch; if unknown, as if each followed the other."""
        if self.grid is not None:
            return self.grid.starts
        if self.onsets is not None:
            return self.onsets
        starts: Floats = np.arange(len(self.data)) * (self.data.shape[-1] / self.sfreq)
        return starts

    def as_epochs(self) -> Floats:
        """Cut the signal at its own rate, (n_epochs, n_channels, n_times)."""
        if self.grid is None:
            return self.data
        begins, ends = self.grid.begins, self.grid.ends
        return cut_epochs(self.data, begins, int((ends - begins).min()))


def read_signals(data: Any, settings: FeatureSettings, **of_array: Any) -> Signals:
    """Read the EEG channels of what :func:`idfsmec.features.extract_features` takes."""
    import mne  # takes a while to load

    if isinstance(data, Recording):
        return _from_mne(data.load(), settings, data.source, data.reject_log)
    if isinstance(data, mne.io.BaseRaw | mne.BaseEpochs):
        return _from_mne(data, settings, _UNNAMED)
    return _from_array(data, settings, **of_array)


def _choose_channels(channels: Channels, wanted: str | Iterable[str], source: str) -> Channels:
    """Keep the channels that ``settings.channels`` asks for."""
    if wanted == "all":
        return channels
    names = channels.names
    if wanted == "scalp":
        if channels.positions is None:
            return channels
        return channels.take(on_scalp(names, channels.positions), "no position on the scalp")
    listed = {same for name in wanted for same in (name, standard_name(name) or name)}
    keep = np.array(
        [not listed.isdisjoint(both) for both in zip(names, channels.file_names, strict=True)]
    )
    if not keep.any():
        raise RecordingError(
            f"{source}: none of the channels {', '.join(wanted)} is in it. It has "
            f"{', '.join(names)}."
        )
    return channels.take(keep, "not asked for")


def _channels_of(measured: mne.io.BaseRaw | mne.BaseEpochs, source: str) -> Channels:
    """Describe the channels as loaders prepare them, without touching the caller's object."""
    import mne

    names, types = list(measured.ch_names), measured.get_channel_types()
    prepared, plan = measured, channel_plan(measured)
    if not (set(plan.renamed.values()).issuperset(names) and set(types) <= {"eeg", "misc"}):
        # No loader has prepared it. Names and types are enough to see what one would do.
        info = mne.create_info(names, 250.0, types)
        empty = mne.io.RawArray(np.zeros((len(names), 1)), info, verbose="ERROR")
        try:
            prepared = prepare_raw(empty, source=source)
        except InputError as error:
            raise RecordingError(str(error)) from None
        plan = channel_plan(prepared)
        names = list(plan.renamed)
    template = plan.montage or ""
    # Where no template knows the names, the positions that come with them count.
    placed, known_as = (prepared, prepared.ch_names) if template else (measured, names)
    montage = placed.get_montage()
    positions = None if montage is None else channel_positions(known_as, montage)
    in_file = {new: old for old, new in plan.renamed.items()}
    return Channels(names, list(prepared.ch_names), template, positions, in_file, plan.dropped)


def _from_mne(
    measured: mne.io.BaseRaw | mne.BaseEpochs,
    settings: FeatureSettings,
    source: str,
    reject_log: Path | None = None,
) -> Signals:
    import mne

    sfreq = float(measured.info["sfreq"])
    settings.check_rate(sfreq)
    channels = _choose_channels(_channels_of(measured, source), settings.channels, source)
    names = channels.file_names
    plan = channel_plan(measured)  # counts also the channels that a loader has left out
    grid, marked, of_epochs = None, {}, {}
    if isinstance(measured, mne.io.BaseRaw):
        data = _read(measured, names, source)
        grid = epoch_grid(data.shape[1], sfreq, settings)
        annotations = _without_padding(measured, grid.duration)
        annotated = observed_from_annotations(annotations, names, grid.starts, grid.duration)
        marked["across an interruption"] = _across_boundary(measured, grid, len(names))
    else:
        if not measured.preload:  # else its events would still hold the epochs that reading drops
            measured = measured.copy().load_data()
        data = _read(measured, names, source)
        annotated = observed_from_annotations(measured, names)
        of_epochs = _describe_epochs(measured)
        if reject_log is not None:
            log = read_reject_log(reject_log, measured)
            log.ch_names = [plan.renamed.get(name, name) for name in log.ch_names]
            keeps_interpolated = settings.autoreject_interpolated == "keep"
            observed = observed_from_reject_log(log, names, interpolated=keeps_interpolated)
            marked["rejected by autoreject"] = ~observed.to_numpy(bool)
    bads = observed_from_bads(measured, names, len(annotated))
    return Signals(
        data,
        sfreq,
        channels,
        grid,
        {"marked bad": ~bads.to_numpy(bool), "annotated BAD": ~annotated.to_numpy(bool), **marked},
        line_freq=measured.info["line_freq"],
        is_rereferenced=bool(measured.info["custom_ref_applied"]),
        n_recorded=len(plan.renamed) + len(plan.dropped) or len(measured.ch_names),
        eyes=_read_eyes(measured, source),
        **of_epochs,
    )


def _describe_epochs(epochs: mne.BaseEpochs) -> dict[str, Any]:
    """Collect what epochs know beside their signals, as fields of :class:`Signals`."""
    info, samples = epochs.info, epochs.events[:, 0]
    # Events of epochs that were made of an array only number them: then one follows the other.
    counted = np.array_equal(samples, epochs.selection)
    lasts = len(epochs.times) / float(info["sfreq"])
    metadata = epochs.metadata
    if metadata is not None:
        metadata = metadata[[name for name in metadata if str(name).casefold() != CONDITION]]
    not_counted = ("IGNORED", "NO_DATA", "TOO_SHORT", OTHER_CONDITION)
    return {
        "passed": (float(info["highpass"] or 0.0), float(info["lowpass"] or np.inf)),
        "onsets": epochs.selection * lasts if counted else np.round(onsets_of(epochs), 6),
        "numbers": np.asarray(epochs.selection, dtype=np.intp),
        "dropped": epochs.drop_log_stats(not_counted) / 100,
        "conditions": tuple(epoch_conditions(epochs)),
        "metadata": metadata,
    }


def _read(measured: mne.io.BaseRaw | mne.BaseEpochs, names: list[str], source: str) -> Array:
    """Read signals in volts; a copy that may be changed."""
    # By number, because MNE gives a copy then, of a Raw too.
    picks = [measured.ch_names.index(name) for name in names]
    try:
        signals: Array = measured.get_data(picks=picks)
        return signals
    except MemoryError:
        raise
    except Exception as error:
        # MNE opens files by their header; what is wrong with the rest shows only here.
        raise RecordingError(
            f"{source}: its signals cannot be read ({reason_of(error)}). Check that the file and "
            "those that belong to it are whole."
        ) from error


def _read_eyes(measured: mne.io.BaseRaw | mne.BaseEpochs, source: str) -> Array | None:
    """Read the channels of the eyes, of a prepared recording from where the loader keeps them."""
    recorded = getattr(measured, EYES_BESIDE, measured)
    names = eye_channels(recorded)
    vertical = [name for name in names if "V" in name.upper()]
    return _read(recorded, vertical or names, source) if names else None


def _without_padding(raw: mne.io.BaseRaw, epoch: float) -> mne.Annotations:
    """Give the annotations from the first sample on, but for a little padding at the very end."""
    # MNE, writing EDF, fills the last data record and annotates that as bad.
    marks = raw.annotations.copy()
    marks.onset = marks.onset - raw.first_time
    padding = max(_PADDING * epoch, _PADDING_SAMPLES / raw.info["sfreq"])
    behind = raw.n_times / raw.info["sfreq"] - padding - _INSTANT
    skipped = [mark["description"].upper() == "BAD_ACQ_SKIP" for mark in marks]
    marks.delete(np.flatnonzero(np.array(skipped, dtype=bool) & (marks.onset >= behind)))
    return marks


def _across_boundary(raw: mne.io.BaseRaw, grid: EpochGrid, n_channels: int) -> Mask:
    """Mark epochs that hold signal from both sides of a boundary."""
    boundaries, begins = find_boundaries(raw), grid.starts[:, np.newaxis]
    # Half a sample: a boundary on the border of two epochs is in neither.
    slack = 0.5 * grid.duration / grid.length
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
    names = [f"ch{i:03d}" for i in range(n_channels)] if ch_names is None else list(ch_names)
    if len(names) != n_channels:
        raise InputError(f"{len(names)} channel names for {n_channels} channels.")
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{name!r} cannot name a channel: use a text that is not empty.")
    if len(set(names)) < len(names):
        raise InputError("Channel names must differ from each other.")
    renamed = plan_channels(names).renamed
    standard = [renamed.get(name, name) for name in names]  # all of an array is meant as EEG
    of_file = Channels(names, standard, in_file=dict(zip(standard, names, strict=True)))
    channels = _choose_channels(of_file, settings.channels, _UNNAMED)
    if channels is not of_file:
        array = array[:, [names.index(name) for name in channels.file_names]]
    return Signals(array, float(sfreq), channels, unit=unit, n_recorded=n_channels)


# --- filters ---------------------------------------------------------------------------------


def prepare_epochs(
    signals: Signals, missing: Mask, settings: FeatureSettings
) -> tuple[Floats, Mask]:
    """Resample, band-pass and cut: (n_epochs, n_channels, n_times), and what is unusable in them.

    A recording is changed in place: where a channel is missing, its samples do not reach the
    filters. Of epochs that are cut already each is filtered for itself.
    """
    data, sfreq, grid = signals.data, signals.sfreq, signals.grid
    rate = settings.rate(sfreq)
    lower, upper = _edges(signals, settings)
    if grid is None:
        data = data if signals.scale == 1.0 else data * signals.scale
        broken = unusable(data.min(axis=-1), data.max(axis=-1))
        if lower is upper is None and rate == sfreq:
            return data, broken
        rows = _run_filters(data.reshape(-1, data.shape[-1]), sfreq, rate, (lower, upper))
        return rows.reshape(*data.shape[:2], rows.shape[1]), broken
    _blank(data, grid, missing)
    data *= signals.scale
    spans = [data[:, a:b] for a, b in zip(grid.begins, grid.ends, strict=True)]
    lowest, highest = ([extreme(x, axis=1) for x in spans] for extreme in (np.min, np.max))
    broken = unusable(np.array(lowest), np.array(highest))
    clean = _run_filters(data, sfreq, rate, (lower, upper))
    return cut_epochs(clean, grid.first, grid.length), broken


def interpolate(epochs: Floats, missing: Mask, positions: Array) -> tuple[Floats, Mask]:
    """Replace missing channels by MNE's spherical splines; return also what is still missing."""
    import mne

    epochs, missing = np.array(epochs, dtype=np.float64), missing.copy()
    placed = np.flatnonzero(np.isfinite(positions).all(axis=1))
    names = [str(channel) for channel in placed]
    on_head = dict(zip(names, _HEAD_RADIUS * positions[placed], strict=True))
    info = mne.create_info(names, 1.0, "eeg")
    info.set_montage(mne.channels.make_dig_montage(on_head, coord_frame="head"))
    patterns, pattern_of = np.unique(missing[:, placed], axis=0, return_inverse=True)
    for number, bad in enumerate(patterns):
        if not bad.any() or (~bad).sum() < _LEAST_GOOD:
            continue
        cells = np.ix_(np.flatnonzero(pattern_of.ravel() == number), placed)
        info["bads"] = [names[channel] for channel in np.flatnonzero(bad)]
        alike = mne.EpochsArray(epochs[cells], info, verbose="ERROR")
        alike.interpolate_bads(origin=(0.0, 0.0, 0.0), verbose="ERROR")
        epochs[cells], missing[cells] = alike.get_data(copy=False), False
    return epochs, missing


def _edges(signals: Signals, settings: FeatureSettings) -> tuple[float | None, float | None]:
    """Give the edges of the band-pass that have something to do; None leaves a side open."""
    lower, upper = settings.band_pass or (None, None)
    if signals.grid is None:  # a filter distorts the ends of epochs
        lower = lower if lower is not None and lower > signals.passed[0] else None
        upper = upper if upper is not None and upper < signals.passed[1] else None
    return lower, upper


def describe_processing(signals: Signals, settings: FeatureSettings) -> str:
    """Describe in a few words the kind of a recording, and how it was filtered here."""
    lower, upper = _edges(signals, settings)
    edges = "-".join("" if edge is None else f"{edge:g}" for edge in (lower, upper))
    kind = "continuous" if signals.grid is not None else "epochs"
    return f"{kind}, {'not filtered' if lower is upper is None else f'filtered {edges} Hz'}"


def _blank(data: Floats, grid: EpochGrid, missing: Mask) -> None:
    """Set to NaN, in place, the samples that no epoch with the channel needs."""
    begins, ends = grid.begins, grid.ends
    for channel in np.flatnonzero(missing.any(axis=0)):
        needed = np.zeros(data.shape[1], dtype=bool)
        for epoch in np.flatnonzero(~missing[:, channel]):
            needed[begins[epoch] : ends[epoch]] = True
        # What does not fill an epoch is as good or bad as the last one.
        needed[ends[-1] :] = not missing[-1, channel]
        data[channel, ~needed] = np.nan


def _resampling_ratio(sfreq: float, rate: float) -> Fraction:
    """Give the ratio of the rates as a fraction that a polyphase filter can use."""
    # Rates may be rounded (499.9998 Hz). An error of less than one sample in a quarter of an hour.
    return Fraction(rate / sfreq).limit_denominator(4096)


def _run_filters(
    rows: Floats, sfreq: float, rate: float, edges: tuple[float | None, float | None]
) -> Array:
    """Bridge, resample to ``rate`` and filter as ``raw.filter(*edges)``, in blocks of rows."""
    from mne.filter import filter_data  # takes a while to load

    lower, upper = edges
    if upper is not None and upper >= rate / 2:
        raise InputError(
            f"The band-pass reaches up to {upper:g} Hz, but at {rate:g} Hz a signal holds only "
            f"frequencies below {rate / 2:g} Hz: lower the edge or resample to a higher rate."
        )
    step = max(1, _BLOCK_SAMPLES // max(1, rows.shape[1]))
    ratio = _resampling_ratio(sfreq, rate)
    out = np.empty((len(rows), math.ceil(rows.shape[1] * ratio)))
    for start in range(0, len(rows), step):
        block = _bridge(np.asarray(rows[start : start + step], dtype=np.float64))
        if ratio != 1:
            # "line" takes offset and drift out first: padding with zeros would ring at the ends.
            block = signal.resample_poly(
                block, ratio.numerator, ratio.denominator, axis=1, padtype="line"
            )
        if block.size and edges != (None, None):
            block = filter_data(block, rate, lower, upper, verbose="ERROR")
        out[start : start + step] = block
    return out


def _bridge(rows: Array) -> Array:
    """Draw straight lines over values that are not finite; a row without any becomes zero."""
    samples = np.arange(rows.shape[1])
    finite = np.isfinite(rows)
    broken = np.flatnonzero(~finite.all(axis=1))
    bridged = rows.copy() if broken.size else rows
    for row in broken:
        sound = finite[row]
        bridged[row] = np.interp(samples, samples[sound], rows[row, sound]) if sound.any() else 0.0
    return bridged
