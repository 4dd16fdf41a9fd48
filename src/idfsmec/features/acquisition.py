"""Acquisition facts: how a recording was made, from the recording alone and never its label.

Groups of a study may differ in how they were recorded; these numbers let an audit ask how much of
a result that alone would give. They are of the signal as it was recorded, before any filter:
amplitudes in microvolts (or in the signal's own unit), medians over channels.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import signal, stats

from idfsmec.errors import listing
from idfsmec.features.families import window_powers
from idfsmec.features.settings import FeatureSettings
from idfsmec.features.signals import Signals, describe_processing
from idfsmec.missing.line_noise import LINE_FREQUENCIES
from idfsmec.recordings import Recording
from idfsmec.recordings.file_checks import BYTES_PER_SAMPLE
from idfsmec.table.positions import EYES, angles_between

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Seconds of a window of the spectrum, and how many windows are taken, evenly over the recording.
_WINDOW, _MOST_WINDOWS = 2.0, 60
#: Hz: brain and body, the level that the upper edge is measured from, and muscle above the brain.
_EEG, _LEVEL, _MUSCLE = (1.0, 45.0), (20.0, 30.0), (52.0, 98.0)
#: Hz, and times a channel's median window: bursts of muscle, also behind a low-pass of 40 Hz.
_BURST, _BURST_RELATIVE = (20.0, 40.0), 2.0
_EYES_REACH = 40.0  # degrees from the eyes within which blinks are large
_BLINK_BAND, _BLINK_VOLTS = (1.0, 10.0), (40e-6, 1e-3)
_BLINK_WIDTH, _BLINK_APART = (0.05, 0.4), 0.3  # seconds
#: Times the standard deviation of the signal, and share of the median blink.
_BLINK_RELATIVE, _BLINK_SHARE = 4.0, 0.4
#: The spectrum ends where it is so much weaker than at ``_LEVEL``; 1/f alone does not reach that.
_EDGE = 0.01
#: Samples of a channel among which the step of the converter is looked for.
_MOST_SAMPLES = 20_000
_DAYS_OF_A_MONTH = 365.25 / 12
#: The mean over channels is zero if it is this small against a channel.
_ZERO_MEAN = 0.02
_UNNAMED = "unnamed, not the average"
#: Endings of channel names such as ``EEG Fp1-LE``, and the reference that they name.
_REFERENCES = {
    **dict.fromkeys(("le", "a1a2", "a1+a2", "a12", "aa"), "linked ears"),
    **dict.fromkeys(("av", "avg", "ave", "car"), "average"),
    **dict.fromkeys(("m1m2", "m1+m2", "lm"), "linked mastoids"),
    **dict.fromkeys(("a1", "a2"), "ears"),
    **dict.fromkeys(("m1", "m2"), "mastoids"),
    **{name: name.capitalize() for name in ("cz", "fz", "pz", "fcz", "cpz", "nose")},
}
#: A value at the end of a channel's range is a limit of the amplifier if it occurs so often, and
#: so many times more often than the value next to it.
_AT_LIMIT, _PILED = 20, 5.0
#: From this share of channel epochs on a recording is named.
_CLIPPED = 0.05
#: Channels of the head are correlated by volume conduction; those of a random generator are not.
_CORRELATED, _FEWEST_CORRELATED = 0.05, 4
#: Share of windows that occur again, bit by bit, in a recording that was put together.
_REPEATED = 0.1
_PREFIX = 16  # samples by which most windows differ
_GENERATED = {"simulated", "simulation", "synthetic", "phantom"}
# Words of a patient's field that stand for no name, and words for the state of the eyes.
_NOBODY = {"x", "anonymous", "anonymized", "anonymised", "anon", "unknown", "patient", "subject"}
_EYE_STATES = {"close": "ec", "closed": "ec", "open": "eo"}


def acquisition_facts(
    signals: Signals,
    causes: Mapping[str, Mask],
    file_format: str,
    settings: FeatureSettings,
    of_signal: Mapping[str, Any],
) -> dict[str, Any]:
    """Describe how a recording was made, from the signal as it was recorded; None where unknown.

    ``of_signal`` are the :func:`signal_facts`. ``clipped`` is the share of channel epochs with
    samples at the amplifier's limits, ``gaps`` are shares of missing channel epochs by reason.
    """
    return {
        **of_signal,
        "blinks": _number(_blinks_per_minute(signals, causes)),
        "clipped": _number(_share_at_limits(signals)),
        "gaps": {reason: float(hits.mean()) for reason, hits in causes.items()},
        "format": file_format,
        "processing": describe_processing(signals, settings),
        **({} if signals.dropped is None else {"dropped": signals.dropped}),
    }


def signal_facts(signals: Signals) -> dict[str, Any]:
    """Describe what depends neither on where epochs begin nor on which channels are missing.

    ``reference`` is named where the mean over channels is zero, by the names of channels, or by
    MNE; ``generated`` is 1 where channels are not correlated or windows occur twice, bit by bit.
    ``drift`` is the standard deviation of the means of windows, ``amplitude`` and ``muscle`` are
    root mean squares without line noise.
    """
    windows = _windows(signals)
    means = windows.mean(axis=-1)
    centred = windows - means[..., np.newaxis]
    centred[~np.isfinite(centred)] = 0.0
    joined = centred.reshape(len(centred), -1)
    products = joined @ joined.T / max(joined.shape[1], 1)  # of channels, means over samples
    frequencies, power, bursts = _spectra(centred, signals.sfreq)
    line_freq, line_amplitude = _line_noise(frequencies, power)
    n_times = signals.data.shape[-1] * (len(signals.data) if signals.grid is None else 1)
    drift = _median(means.std(axis=1)) if means.shape[1] > 1 else np.nan
    return {
        "n_channels": len(signals.names),
        "n_recorded": max(signals.n_recorded, len(signals.names)),
        "sfreq": float(signals.sfreq),
        "duration": float(n_times / signals.sfreq),
        "line_freq": line_freq,
        "line_amplitude": _number(line_amplitude, signals.scale),
        "upper_edge": _number(_upper_edge(frequencies, power)),
        "quantisation": _number(_converter_step(signals.data), signals.scale),
        "amplitude": _number(_rms(frequencies, power, *_EEG), signals.scale),
        "drift": _number(drift, signals.scale),
        "muscle": _number(_rms(frequencies, power, *_MUSCLE), signals.scale),
        "muscle_share": _number(_muscle_share(bursts)),
        "reference": _reference(signals, products),
        "generated": int(_looks_generated(windows, products)),
    }


def _windows(signals: Signals) -> Floats:
    """Cut two seconds each, evenly over the recording: (n_channels, n_windows, n_times)."""
    data, size = signals.data, max(round(_WINDOW * signals.sfreq), 8)
    if signals.grid is not None:
        size = min(size, data.shape[1])
    n_windows = len(data) if signals.grid is None else max(data.shape[1] // size, 1)
    spread = np.linspace(0, n_windows - 1, min(n_windows, _MOST_WINDOWS))
    index = np.unique(spread.round().astype(np.intp))
    if signals.grid is None:
        return data[index, :, :size].swapaxes(0, 1).astype(np.float64, order="C")
    windows = [data[:, i * size : (i + 1) * size] for i in index]
    return np.stack(windows, axis=1, dtype=np.float64)


def _spectra(centred: Floats, sfreq: float) -> tuple[Floats, Floats, Floats]:
    """Return frequencies, median power of channels, and power of bursts of channels by window."""
    frequencies = np.arange(centred.shape[-1] // 2 + 1) * (sfreq / centred.shape[-1])
    burst = slice(*np.searchsorted(frequencies, _BURST))
    power: Floats = np.empty((len(centred), frequencies.size))
    bursts: Floats = np.empty(centred.shape[:2])
    for channel, of_channel in enumerate(centred):  # the processor's cache holds one
        powers = window_powers(of_channel, sfreq)
        power[channel], bursts[channel] = np.median(powers, axis=0), powers[:, burst].sum(axis=1)
    return frequencies, power, bursts


def _line_noise(frequencies: Floats, power: Floats) -> tuple[float | None, float]:
    """Find the stronger of 50 and 60 Hz, and its amplitude above what lies beside it."""
    candidates: list[tuple[float, float]] = []
    for line in LINE_FREQUENCIES:
        away = np.abs(frequencies - line)
        inside, beside = away <= 1.25, (away > 1.5) & (away <= 4.0)
        if line + 1.25 <= frequencies[-1] and beside.any():
            above = power[:, inside] - np.median(power[:, beside], axis=1, keepdims=True)
            variance = np.maximum(above.sum(axis=1), 0.0) * frequencies[1]
            candidates.append((_median(np.sqrt(2.0 * variance)), line))
    amplitude, strongest = max(candidates, default=(np.nan, None))
    return strongest, amplitude


def _near_line(frequencies: Floats) -> Mask:
    """Mark bins that line noise or its harmonics may touch."""
    away = [np.abs((frequencies + line / 2) % line - line / 2) for line in LINE_FREQUENCIES]
    near: Mask = np.min(away, axis=0) <= 2.0
    return near


def _rms(frequencies: Floats, power: Floats, low: float, high: float) -> float:
    inside = (frequencies >= low) & (frequencies < high) & ~_near_line(frequencies)
    # A band of which the sampling rate leaves a sliver says nothing.
    if inside.sum() * frequencies[1] < 5.0:
        return np.nan
    return _median(np.sqrt(power[:, inside].sum(axis=1) * frequencies[1]))


def _muscle_share(bursts: Floats) -> float:
    """Return the share of windows and channels with far more fast activity than usual."""
    usual = np.median(bursts, axis=1, keepdims=True)
    alive = bursts[usual[:, 0] > 0]
    if not alive.size:  # a flat recording
        return np.nan
    return float(np.mean(alive > _BURST_RELATIVE**2 * usual[usual > 0][:, np.newaxis]))


def _blinks_per_minute(signals: Signals, causes: Mapping[str, Mask]) -> float:
    """Count blinks in the most skewed channel of the eyes, else in the EEG nearest to the eyes."""
    sfreq, eyes, in_volts = signals.sfreq, signals.eyes, signals.unit is not None
    if eyes is None:
        near = angles_between(signals.positions, EYES)[:, 0] < _EYES_REACH
        for hits in causes.values():
            near &= hits.mean(axis=0) <= 0.5
        eyes = signals.data[..., near, :] * (signals.unit or 1.0)
    if not eyes.shape[-2] or eyes.shape[-1] < sfreq or sfreq < 3 * _BLINK_BAND[1]:
        return np.nan
    pieces = np.nan_to_num(eyes.reshape(-1, *eyes.shape[-2:]))  # (n_pieces, n_channels, n_times)
    band = signal.butter(2, _BLINK_BAND, "bandpass", fs=sfreq, output="sos")
    for channel in range(pieces.shape[1]):
        pieces[:, channel] = signal.sosfiltfilt(band, pieces[:, channel])
    if signals.eyes is None:
        waves = np.median(pieces, axis=1)
    else:
        skews = stats.skew(pieces.swapaxes(0, 1).reshape(pieces.shape[1], -1), axis=1)
        channel = int(np.argmax(np.abs(skews)))
        waves = pieces[:, channel] * np.sign(skews[channel])
    lowest, highest = _BLINK_VOLTS if in_volts else (0.0, np.inf)
    lowest = max(lowest, _BLINK_RELATIVE * stats.median_abs_deviation(waves, None, scale="normal"))
    options = {
        "height": (lowest, highest),
        "prominence": lowest,
        "distance": max(1.0, _BLINK_APART * sfreq),
        "width": tuple(seconds * sfreq for seconds in _BLINK_WIDTH),
    }
    heights = [signal.find_peaks(wave, **options)[1]["peak_heights"] for wave in waves]
    peaks = np.concatenate(heights)
    # The swing back behind a blink is smaller than blinks are.
    n_blinks = (peaks >= _BLINK_SHARE * np.median(peaks)).sum() if peaks.size else 0
    return float(n_blinks / (waves.size / sfreq / 60))


def _upper_edge(frequencies: Floats, power: Floats) -> float:
    """Find the highest frequency that is not far below the level at 20-30 Hz."""
    used = ~_near_line(frequencies) | (frequencies < _LEVEL[1])
    level = (frequencies >= _LEVEL[0]) & (frequencies < _LEVEL[1])
    alive = power[power.sum(axis=1) > 0]
    if not level.any() or not len(alive):
        return np.nan
    relative = alive / alive[:, level].mean(axis=1, keepdims=True).clip(1e-300)
    above = np.flatnonzero((np.median(relative, axis=0) >= _EDGE) & used)
    return float(frequencies[above[-1]]) if above.size else np.nan


def _converter_step(data: NDArray[np.floating]) -> float:
    """Find the smallest step between values of a channel, where many steps are that small."""
    flat = data if data.ndim == 2 else data.transpose(1, 0, 2).reshape(data.shape[1], -1)
    smallest_steps = []
    for values in flat[:, :_MOST_SAMPLES]:
        distinct = np.unique(values[np.isfinite(values)])
        steps = np.diff(distinct)
        # The last digits of a float are no steps.
        steps = steps[steps > 1e-9 * np.abs(distinct).max(initial=0.0)]
        if distinct.size < 3 or steps.size == 0:
            continue
        # Of numbers that no converter gave, hardly two lie as near as the nearest do. A file that
        # was scaled and written anew has steps of two sizes, hence the median.
        smallest = steps[steps <= 1.5 * steps.min()]
        if smallest.size >= 0.1 * steps.size:
            smallest_steps.append(float(np.median(smallest)))
    return float(np.median(smallest_steps)) if 2 * len(smallest_steps) > len(flat) else np.nan


def _reference(signals: Signals, products: Floats) -> str | None:
    """Name the reference of the recording; None where nothing tells."""
    of_mean = np.sqrt(max(products.mean(), 0.0))
    if len(products) > 1 and of_mean <= _ZERO_MEAN * _median(np.sqrt(np.diag(products))):
        return "average"
    in_file = signals.channels.in_file
    names = [in_file.get(name, name).casefold() for name in signals.names]
    endings = [name.rpartition("-")[2].strip() for name in names if "-" in name]
    named = Counter(_REFERENCES[ending] for ending in endings if ending in _REFERENCES)
    for reference, count in named.most_common(1):
        if 2 * count > len(names):
            return reference
    return "changed before" if signals.is_rereferenced else None


def _share_at_limits(signals: Signals) -> float:
    """Return the share of channel epochs with samples at a limit of the channel's range."""
    data = signals.data if signals.grid is None else signals.data[np.newaxis]
    touched = np.zeros(data.shape, dtype=bool)
    for channel in range(data.shape[1]):
        values = data[:, channel]
        finite = values[np.isfinite(values)]
        limits = (finite.min(), finite.max()) if finite.size else ()
        if all(np.count_nonzero(finite == limit) < _AT_LIMIT for limit in limits):
            continue  # the usual case, without sorting
        distinct, counts = np.unique(finite, return_counts=True)
        if distinct.size < _AT_LIMIT:  # flat, or of few steps
            continue
        for end, beside in ((0, 1), (-1, -2)):
            if counts[end] >= max(_AT_LIMIT, _PILED * counts[beside]):
                touched[:, channel] |= values == distinct[end]
    if signals.grid is None:
        return float(touched.any(axis=-1).mean())
    ends = zip(signals.grid.begins, signals.grid.ends, strict=True)
    return float(np.mean([touched[0, :, first:last].any(axis=-1) for first, last in ends]))


def _looks_generated(windows: Floats, products: Floats) -> bool:
    """Return whether channels are not correlated, or windows occur twice, bit by bit."""
    alive = np.ptp(windows, axis=-1).min(axis=1) > 0
    if alive.sum() >= _FEWEST_CORRELATED:
        sds = np.sqrt(np.diag(products)[alive])
        r = products[np.ix_(alive, alive)] / np.outer(sds, sds)
        if np.median(np.abs(r[np.triu_indices_from(r, k=1)])) < _CORRELATED:
            return True
    pieces = windows[alive].reshape(-1, windows.shape[-1])
    for compared in (pieces[:, :_PREFIX], pieces):
        n_different = len({piece.tobytes() for piece in compared})
        if n_different == len(pieces):  # none, or all begin differently
            return False
    return 1 - n_different / len(pieces) > _REPEATED


def recorded_references(info: Mapping[str, Any]) -> dict[str, int]:
    """Return the references of a table's recordings, as far as they are known, with counts.

    ``info`` is that of the table; features that were computed after re-referencing have one.
    Recordings that name none, and whose mean over channels is not zero, are known not to have the
    average of these channels.
    """
    facts = [dict(recording.get("facts") or {}) for recording in info.get("recordings") or []]
    if info.get("reference") == "average":
        return {"average": len(facts)} if facts else {}
    names = [fact.get("reference") or (_UNNAMED if _has_mean(fact) else None) for fact in facts]
    return dict(Counter(name for name in names if name))


def _has_mean(fact: Mapping[str, Any]) -> bool:
    """Return whether the mean over channels was looked at, and is not zero."""
    return "reference" in fact and (fact.get("n_channels") or 0) > 1


def _differ(one: str, other: str) -> bool:
    """Return whether two references are known to differ."""
    return one != other and (_UNNAMED not in (one, other) or "average" in (one, other))


def describe_other_references(references: Sequence[str], info: Mapping[str, Any]) -> str:
    """Warn of recordings of a table with another reference than a model's; empty without."""
    counts = recorded_references(info)
    other = {
        name: count
        for name, count in counts.items()
        if references and all(_differ(name, known) for known in references)
    }
    if not other:
        return ""
    named = listing([f"{name} ({count})" for name, count in other.items()])
    return (
        f"the model was trained on recordings with the reference {listing(list(references))}, but "
        f"{sum(other.values())} of {sum(counts.values())} recordings have another: {named}. "
        "Features and probabilities change with the reference; record or re-reference alike"
    )


def describe_study(facts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say in a line each what of a study's recordings should not be analysed silently."""
    lines = []
    if len(references := Counter(f["reference"] for f in facts if f.get("reference"))) > 1:
        named = listing([f"{name} ({count})" for name, count in references.items()])
        lines.append(
            f"reference   differs between recordings: {named}. Features depend on it unless "
            "--reference average is given"
        )
    clipped = [fact["clipped"] for fact in facts if (fact.get("clipped") or 0) >= _CLIPPED]
    if clipped:
        share = f"{100 * float(np.median(clipped)):.0f} %"
        lines.append(
            f"limits      {len(clipped)} recordings have samples at the amplifier's limits, "
            f"in {share} of their channel epochs (median)"
        )
    if n_generated := sum(bool(fact.get("generated")) for fact in facts):
        lines.append(
            f"generated   {n_generated} recordings look generated: channels are not correlated, "
            "signals repeat exactly, or the header says so"
        )
    return lines


def _median(values: Floats) -> float:
    """Take the median over the channels that have a signal."""
    positive = values[np.isfinite(values) & (values > 0)]
    return float(np.median(positive)) if positive.size else np.nan


def _number(value: float, unit: float = 1.0) -> float | None:
    """Round to the digits that a number is good for; None, which JSON can hold, for NaN."""
    return float(f"{value * unit:.6g}") if np.isfinite(value) else None


# --- from headers -----------------------------------------------------------------------------


def header_facts(recordings: Sequence[Recording]) -> list[dict[str, int]]:
    """Return when each recording was made, and whether its header contradicts the study.

    ``months``: since the earliest recording. ``other_condition``: the header names a condition,
    and not the recording's. ``generated``: it says that the file was. ``shared_name``: files of
    another subject have the same name in their headers, one that stands for a person. Where there
    is nothing to compare, there is no entry.
    """
    headers = [_read_header(recording) for recording in recordings]
    first = min((day for day, _, _ in headers if day), default=date.max)
    conditions = [_condition_words(recording.condition or "") for recording in recordings]
    known = {"ec", "eo"}.union(*conditions)
    owners: dict[str, set[str]] = defaultdict(set)
    for recording, (_, person, _) in zip(recordings, headers, strict=True):
        owners[person].add(recording.subject)
    n_subjects = len({recording.subject for recording in recordings})
    compared: list[dict[str, int]] = []
    for condition, (day, person, text) in zip(conditions, headers, strict=True):
        facts = {}
        if day:
            facts["months"] = round((day - first).days / _DAYS_OF_A_MONTH)
        words = _condition_words(text)
        if words & _GENERATED:
            facts["generated"] = 1
        named = known & words
        if condition and named:
            facts["other_condition"] = int(not named & condition)
        # What most files have is the name of a programme, or none.
        n_owners = len(owners[person])
        if person and (n_owners <= 2 or 2 * n_owners <= n_subjects):
            facts["shared_name"] = int(n_owners > 1)
        compared.append(facts)
    return compared


def _read_header(recording: Recording) -> tuple[date | None, str, str]:
    """Read day, person and all text of a header: only compared, never kept; empty if unreadable.

    EDF and BDF files are read without MNE; of others, FIF and BrainVision are opened.
    """
    path = next(iter(recording.files), Path())
    ending = path.suffix.lower()
    day, person, text = None, "", ""
    try:
        if ending in BYTES_PER_SAMPLE:
            with path.open("rb") as file:
                head = file.read(176).decode("latin-1")
            patient = head[8:88].split()
            # EDF+ has code, sex, birthday and name; X stands for what is unknown.
            plus = len(patient) > 3 and re.fullmatch(r"X|\d\d-\w{3}-\d{4}", patient[2])
            person = " ".join(patient[3:4] if plus else patient)
            day, text = _edf_day(head[168:]), head[8:168]
        elif ending in (".fif", ".vhdr"):
            import mne

            info = mne.io.read_raw(path, verbose="ERROR").info
            subject = info["subject_info"] or {}
            names = [str(subject.get(key) or "") for key in ("first_name", "last_name")]
            person = " ".join(names).strip() or str(subject.get("his_id") or "")
            day = info["meas_date"] and info["meas_date"].date()
            text = f"{person} {info['description'] or ''}"
    except Exception:  # readers raise anything; what cannot be read is not known
        return None, "", ""
    words = re.findall(r"\w+", person.casefold())
    return day, " ".join(word for word in words if word not in _NOBODY), text


def _edf_day(text: str) -> date | None:
    try:
        day, month, year = (int(part) for part in text.split("."))
        day_recorded = date(year + (1900 if year >= 85 else 2000), month, day)
    except ValueError:
        return None
    return None if day_recorded == date(1985, 1, 1) else day_recorded  # which stands for no date


def _condition_words(text: str) -> set[str]:
    """Part a text into words, eyes closed and open written as EC and EO."""
    plain = re.sub(r"[\W_]*eyes?[\W_]*(closed?|open)", r" \1 ", text.casefold())
    return {_EYE_STATES.get(word, word) for word in re.findall(r"[^\W_]+", plain)}
