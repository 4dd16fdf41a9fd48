"""Is a recording's file whole? What the readers themselves do not ask, or only after a crash."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec.errors import InputError
from idfsmec.recordings._mat_elements import DamagedMatError, check_elements

if TYPE_CHECKING:
    import mne

_BYTES_PER_SAMPLE = {".edf": 2, ".bdf": 3}


def check_whole(path: Path) -> None:
    """Refuse an EDF or BDF file that lost its end, and a ``.set`` file that is damaged.

    MNE reads what is left of an EDF file as if it were all; a cut recording would count as a
    short one, and nobody would know.
    """
    ending = path.suffix.lower()
    if ending in _BYTES_PER_SAMPLE and path.is_file():
        _check_records(path, _BYTES_PER_SAMPLE[ending])
    elif ending == ".set" and path.is_file():
        try:
            check_elements(path)
        except DamagedMatError as error:
            raise InputError(
                f"{path}: the file is damaged ({error}). Copy it again from where it came."
            ) from error


def check_signals(raw: mne.io.BaseRaw) -> None:
    """Refuse an EEGLAB recording whose ``.fdt`` file cannot be its own, whole or not."""
    expected = 4 * len(raw.ch_names) * raw.n_times
    for path in (Path(name) for name in raw.filenames if name):
        if path.suffix.lower() == ".fdt" and path.stat().st_size != expected:
            raise InputError(
                f"{path.with_suffix('.set')}: {path.name} has {path.stat().st_size} bytes instead "
                f"of {expected} ({len(raw.ch_names)} channels, {raw.n_times} samples). Copy both "
                "files again from where they came."
            )


def _check_records(path: Path, width: int) -> None:
    """Compare the size of a file with the number of data records that its header tells."""
    with path.open("rb") as file:
        head = file.read(256)
        if width == 2 and head[:8] == b"\xffBIOSEMI":  # read as EDF it would be another signal
            raise InputError(f"{path}: this is a BDF file. Let its name end in .bdf.")
        try:
            n_header, n_records, n_signals = (
                int(head[start:stop]) for start, stop in ((184, 192), (236, 244), (252, 256))
            )
            seconds = float(head[244:252])
            samples_at = 256 + 216 * n_signals  # behind label, transducer, units, ranges, filters
            file.seek(max(samples_at, 0))
            per_signal = file.read(max(8 * n_signals, 0))
            samples = [int(per_signal[i : i + 8]) for i in range(0, 8 * n_signals, 8)]
        except ValueError:
            # The reader's own words would quote what stands there, which may be a name.
            raise InputError(
                f"{path}: the header has no numbers where EDF and BDF files have them. Check "
                "that the file is whole and of that format."
            ) from None
    record = width * sum(samples)
    if record > 0 and not seconds > 0:
        raise InputError(
            f"{path}: the header says that data records last {seconds:g} s, so that nobody knows "
            "the sampling rate. Repair the header with the program that wrote it."
        )
    if n_records > 0 and record > 0:
        there = max(path.stat().st_size - n_header, 0) // record
        if there < n_records:
            raise InputError(
                f"{path}: the file is cut short: {there} of {n_records} data records are there. "
                "Copy it again from where it came."
            )
