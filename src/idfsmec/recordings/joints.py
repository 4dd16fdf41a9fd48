"""Joints: where a recording was interrupted, and what was hours apart lies side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import mne

_BYTES_PER_SAMPLE = {".edf": 2, ".bdf": 3}
#: What readers and programs write where pieces were put together, apart from ``BAD``.
_WORDS = ("boundary", "edge boundary", "edf boundary", "new segment")
# Times in files are rounded; pieces closer than this follow each other.
_LEAST_GAP = 0.001


def find_joints(raw: mne.io.BaseRaw) -> NDArray[np.float64]:
    """Give the times at which a continuous recording is none, in seconds from its beginning.

    Discontinuous EDF and BDF files (EDF+D) say when each of their data records begins, which
    MNE's reader leaves out; EEGLAB, BrainVision and MNE itself mark joints by annotations.

    Parameters
    ----------
    raw : mne.io.BaseRaw

    Returns
    -------
    ndarray of shape (n_joints,)
        Sorted; a joint at the very beginning or end is none.

    Examples
    --------
    >>> import mne
    >>> raw = mne.io.RawArray(np.zeros((1, 2500)), mne.create_info(1, 250.0), verbose=False)
    >>> both = mne.concatenate_raws([raw, raw.copy()], verbose=False)
    >>> find_joints(both).tolist()
    [10.0]
    """
    times = [mark["onset"] - raw.first_time for mark in raw.annotations if _is_joint(mark)]
    for path in {Path(name) for name in raw.filenames if name}:
        if len(raw.filenames) == 1 and path.suffix.lower() in _BYTES_PER_SAMPLE:
            times += [time - raw.first_time for time in file_joints(path)]
    found = np.unique(np.round(np.array(times, dtype=np.float64), 6))
    length = raw.n_times / raw.info["sfreq"]
    return found[(found > _LEAST_GAP) & (found < length - _LEAST_GAP)]


def _is_joint(mark: dict[str, object]) -> bool:
    words = str(mark["description"]).casefold().removeprefix("bad ").strip()
    return words.startswith(_WORDS)


def file_joints(path: Path) -> list[float]:
    """Times in a discontinuous EDF or BDF file, as it is read, at which records do not follow.

    Parameters
    ----------
    path : Path

    Returns
    -------
    list of float
        Seconds of signal before each joint; empty for files that are continuous or damaged.
    """
    try:
        with path.open("rb") as file:
            head = file.read(256)
            if head[192:197] not in (b"EDF+D", b"BDF+D"):
                return []
            n_header, n_records, n_signals = (
                int(head[start:stop]) for start, stop in ((184, 192), (236, 244), (252, 256))
            )
            seconds = float(head[244:252])
            labels = file.read(16 * n_signals)
            file.seek(256 + 216 * n_signals)
            counts = file.read(8 * n_signals)
            samples = [int(counts[8 * i : 8 * i + 8]) for i in range(n_signals)]
            marks = next(
                i for i in range(n_signals) if b"Annotations" in labels[16 * i : 16 * i + 16]
            )
            width = _BYTES_PER_SAMPLE[path.suffix.lower()]
            before, size = width * sum(samples[:marks]), width * samples[marks]
            onsets = []
            for record in range(n_records):
                file.seek(n_header + record * width * sum(samples) + before)
                # "+12.5" and the byte 20: when this record began
                onsets.append(float(file.read(size).split(b"\x14", 1)[0].split(b"\x15")[0]))
    except (OSError, ValueError, StopIteration):
        return []
    steps = np.diff(onsets)
    return [(i + 1) * seconds for i in np.flatnonzero(np.abs(steps - seconds) > _LEAST_GAP)]
