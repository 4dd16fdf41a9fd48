"""Sound files in every format that is read, written by real writers, kept as bytes."""

from __future__ import annotations

import io
import tempfile
from functools import cache
from pathlib import Path

import edfio
import mne
import numpy as np
import openpyxl
from scipy.io import savemat

CHANNELS = ("Fp1", "Cz", "O1")
FIRST_FILE = {
    "edf": "recording.edf",
    "bdf": "recording.bdf",
    "set": "recording.set",
    "set+fdt": "recording.set",
    "fif": "recording_raw.fif",
    "vhdr": "recording.vhdr",
}


def make_raw(names=CHANNELS, *, sfreq=250.0, seconds=9.0, seed=0):
    """Noise of the size of EEG."""
    rng = np.random.default_rng(seed)
    signals = rng.normal(scale=1e-5, size=(len(names), int(sfreq * seconds)))
    return mne.io.RawArray(signals, mne.create_info(list(names), sfreq, "eeg"), verbose="error")


def write_raw(raw, path: Path) -> None:
    """Write a recording in the format of its name."""
    if path.suffix == ".fif":
        raw.save(path, overwrite=True, verbose="error")
        return
    if path.suffix == ".bdf":  # MNE's own export came only after the oldest MNE we support
        signals = [
            edfio.BdfSignal(samples * 1e6, raw.info["sfreq"], label=name, physical_dimension="uV")
            for name, samples in zip(raw.ch_names, raw.get_data(), strict=True)
        ]
        edfio.Bdf(signals).write(path)
        return
    options = {"physical_range": "auto"} if path.suffix == ".edf" else {}
    mne.export.export_raw(path, raw, overwrite=True, verbose="error", **options)


def mat_bytes(variables) -> bytes:
    """Write a MATLAB file."""
    file = io.BytesIO()
    savemat(file, variables)
    return file.getvalue()


def eeglab_struct(raw, data):
    """Make the structure that EEGLAB keeps a recording in."""
    places = [(name, 0.0) for name in raw.ch_names]
    return {
        "setname": "x",
        "data": data,
        "srate": raw.info["sfreq"],
        "nbchan": len(raw.ch_names),
        "pnts": raw.n_times,
        "trials": 1,
        "xmin": 0.0,
        "xmax": raw.times[-1],
        "chanlocs": np.array(places, dtype=[("labels", object), ("X", object)]),
        "event": np.array(
            [(2.0, 1.0, 0.0)], dtype=[("type", object), ("latency", object), ("duration", object)]
        ),
    }


@cache
def files_of_format(kind: str, seed: int = 0) -> dict[str, bytes]:
    """All files of one sound recording, by name."""
    raw = make_raw(seed=seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if kind == "set+fdt":
            microvolts = (raw.get_data() * 1e6).astype("<f4")
            struct = eeglab_struct(raw, "recording.fdt")
            (folder / "recording.set").write_bytes(mat_bytes({"EEG": struct}))
            (folder / "recording.fdt").write_bytes(microvolts.T.tobytes())
        else:
            write_raw(raw, folder / FIRST_FILE[kind])
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def raw_bytes(raw, name: str) -> bytes:
    """One recording as the bytes of one file."""
    with tempfile.TemporaryDirectory() as place:
        write_raw(raw, Path(place) / name)
        return (Path(place) / name).read_bytes()


def book_bytes(rows, sheet="Sheet1") -> bytes:
    """Write an Excel file."""
    book = openpyxl.Workbook()
    book.active.title = sheet
    for row in rows:
        book.active.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def flip_bits(content: bytes, seed: int, n: int = 24, within: int | None = None) -> bytes:
    """Flip single bits at random places, all of them or those at the beginning."""
    rng = np.random.default_rng(seed)
    damaged = bytearray(content)
    for place in rng.integers(min(within or len(damaged), len(damaged)), size=n):
        damaged[place] ^= 1 << int(rng.integers(8))
    return bytes(damaged)
