"""Open recordings safely and make them ready for features.

Which files a recording has, whether they are whole, where it was interrupted, and from what a
file holds to what features need: EEG channels only, standard names, positions, volts.
"""

from __future__ import annotations

import re
import struct
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from idfsmec.errors import InputError, RecordingError
from idfsmec.recordings._matlab import DamagedMatError, check_elements
from idfsmec.table.positions import (
    ChannelPlan,
    choose_montage,
    plan_channels,
    standard_montage,
    standard_name,
)

if TYPE_CHECKING:
    import mne

_BYTES_PER_SAMPLE = {".edf": 2, ".bdf": 3}
_FIF_BEGINS = 100  # the first tag of every FIF file
#: What readers and programs write where pieces were put together, apart from ``BAD``.
_BOUNDARY_WORDS = ("boundary", "edge boundary", "edf boundary", "new segment")
# Seconds. Times in files are rounded; pieces closer than this follow each other.
_LEAST_PAUSE = 0.001


def files_of(path: Path) -> tuple[Path, ...]:
    """List all files that make up the recording named by ``path``, that one first.

    BrainVision headers and EEGLAB ``.set`` files keep the signal in another file, long FIF
    recordings go on in ``-1.fif``, and some formats are folders.
    """
    if path.is_dir():
        return tuple(sorted(file for file in path.rglob("*") if file.is_file()))
    if not path.is_file():
        return ()  # a pipe or a device: whoever opens it may wait for ever
    return (path, *(partner for partner in _partners(path) if partner.is_file()))


def _partners(path: Path) -> list[Path]:
    """Name the files that may belong to a recording, whether they are there or not."""
    suffix = path.suffix.lower()
    if suffix in (".vhdr", ".ahdr"):
        content = path.read_bytes()
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = content.decode("latin-1")  # "Codepage=ANSI"
        named = r"^[ \t]*(?:DataFile|MarkerFile)[ \t]*[=:][ \t]*(.+?)\s*$"
        names = re.findall(named, text, flags=re.MULTILINE | re.IGNORECASE)
        return [path.parent / name.replace("$b", path.stem) for name in names]
    if suffix == ".set":
        return [path.with_suffix(ending) for ending in (".fdt", ".FDT", ".dat")]
    if suffix == ".fif":
        return sorted(path.parent.glob(f"{_escape(path.stem)}-[0-9]*.fif"))
    return []


def _escape(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def is_special(path: Path) -> bool:
    """Tell whether there is something that is neither a file nor a folder."""
    return path.exists() and not (path.is_file() or path.is_dir())


@dataclass(frozen=True)
class FileLoader:
    """Loads a file that MNE opens by its ending; can be pickled."""

    path: Path
    bads: tuple[str, ...] = ()

    def __call__(self) -> mne.io.BaseRaw:
        """Load it, ready for features."""
        return load_raw(self.path, self._read, bads=self.bads)

    def _read(self) -> mne.io.BaseRaw:
        import mne

        return mne.io.read_raw(self.path, verbose="ERROR")


def load_raw(
    path: Path,
    read: Callable[[], mne.io.BaseRaw],
    *,
    cut: Callable[[mne.io.BaseRaw], mne.io.BaseRaw] | None = None,
    bads: tuple[str, ...] = (),
) -> mne.io.BaseRaw:
    """Read and prepare a recording: the end of every loader that opens a file.

    Parameters
    ----------
    path : Path
    read : callable
        Opens it.
    cut : callable, optional
        Takes the part that is wanted.
    bads : tuple of str
        See :func:`prepare_raw`.

    Raises
    ------
    RecordingError
        Whatever goes wrong: one clear line that names the file.
    """
    if not path.exists():
        raise RecordingError(f"{path}: there is no such file.", source=str(path))
    try:
        _check_regular(path)
        _check_whole(path)
        raw = read()
        _check_signals(raw)
        return _prepare(raw if cut is None else cut(raw), bads=bads, source=str(path))
    except InputError as error:
        raise RecordingError(str(error), source=str(path)) from error
    except Exception as error:
        # Readers of binary files raise anything on a damaged one, down to struct.error.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise RecordingError(
            f"{path}: MNE cannot open this recording ({reason}). Check that the file is whole, "
            "of a format mne.io.read_raw knows, and lies with the files that belong to it.",
            source=str(path),
        ) from error


def _check_regular(path: Path) -> None:
    """Refuse pipes, devices and sockets, as the recording or beside it under its name.

    Opening one may wait for ever, or never come to an end. What a header names is looked at
    too; in a format that is a folder, all that is in it.
    """
    suspects = [path, *path.parent.glob(f"{_escape(path.stem)}.*")]
    if path.is_dir():
        suspects += path.rglob("*")
    elif path.is_file():
        suspects += _partners(path)
    for suspect in suspects:
        if is_special(suspect):
            raise InputError(
                f"{path}: {suspect.name} is a pipe or a device, not a file. Give a recording "
                "that lies on a disk."
            )


def _check_whole(path: Path) -> None:
    """Refuse an EDF or BDF file that lost its end, and a damaged ``.set`` or FIF file.

    MNE reads what is left of an EDF file as if it were all; a cut recording would count as a
    short one, and nobody would know. Other damage would end the process, or never end.
    """
    ending = path.suffix.lower()
    if not path.is_file():
        return  # a format that is a folder
    if ending in _BYTES_PER_SAMPLE:
        _check_records(path)
    elif ending == ".fif":
        for part in files_of(path):
            _check_tags(part)
    elif ending == ".set":
        try:
            check_elements(path)
        except DamagedMatError as error:
            raise InputError(
                f"{path}: the file is damaged ({error}). Copy it again from where it came."
            ) from error


@dataclass(frozen=True)
class _EdfHeader:
    """What the header of an EDF or BDF file says about its data records."""

    n_bytes: int
    n_records: int
    seconds: float
    labels: list[bytes]
    samples: list[int]

    @classmethod
    def read(cls, file: BinaryIO, head: bytes) -> _EdfHeader:
        """Read the rest of a header whose first 256 bytes are ``head``; may raise ValueError."""
        n_bytes, n_records, n_signals = (
            int(head[start:stop]) for start, stop in ((184, 192), (236, 244), (252, 256))
        )
        seconds = float(head[244:252])
        labels = file.read(max(16 * n_signals, 0))
        file.seek(max(256 + 216 * n_signals, 0))  # label, transducer, units, ranges, filters
        counts = file.read(max(8 * n_signals, 0))
        signals = range(n_signals)
        return cls(
            n_bytes,
            n_records,
            seconds,
            [labels[16 * i : 16 * i + 16] for i in signals],
            [int(counts[8 * i : 8 * i + 8]) for i in signals],
        )


def _check_records(path: Path) -> None:
    """Compare the size of a file with the number of data records that its header tells."""
    width = _BYTES_PER_SAMPLE[path.suffix.lower()]
    with path.open("rb") as file:
        head = file.read(256)
        # Read as the other one, either would be another signal.
        for called, begins, real in ((2, b"\xffBIOSEMI", "BDF"), (3, b"0       ", "EDF")):
            if width == called and head[:8] == begins:
                right = real.lower()
                raise InputError(f"{path}: this is {real}, not {path.suffix}. Name it .{right}.")
        try:
            header = _EdfHeader.read(file, head)
        except ValueError:
            # The reader's own words would quote what stands there, which may be a name.
            raise InputError(
                f"{path}: the header has no numbers where EDF and BDF files have them. Check "
                "that the file is whole and of that format."
            ) from None
    record = width * sum(header.samples)
    if record > 0 and not header.seconds > 0:
        raise InputError(
            f"{path}: the header says that data records last {header.seconds:g} s, so that nobody "
            "knows the sampling rate. Repair the header with the program that wrote it."
        )
    if header.n_records > 0 and record > 0:
        there = max(path.stat().st_size - header.n_bytes, 0) // record
        if there < header.n_records:
            raise InputError(
                f"{path}: the file is cut short: {there} of {header.n_records} data records are "
                "there. Copy it again from where it came."
            )


def _check_tags(path: Path) -> None:
    """Refuse a FIF file whose tags lead in a circle: MNE would follow them until memory ends."""
    targets: set[int] = set()  # of steps back; a circle leads to the same one again and again
    position = 0
    with path.open("rb") as file:
        while len(head := file.read(16)) == 16:
            kind, _, size, following = struct.unpack(">iIii", head)
            if position == 0 and kind != _FIF_BEGINS:
                return  # no FIF file at all, as MNE will say
            before, position = position, following or position + 16 + size
            if position < 0:
                return  # the last tag
            if position <= before:
                if position in targets:
                    raise InputError(
                        f"{path}: the file is damaged (its tags lead in a circle). Copy it again "
                        "from where it came."
                    )
                targets.add(position)
            file.seek(position)


def _check_signals(raw: mne.io.BaseRaw) -> None:
    """Refuse an EEGLAB recording whose ``.fdt`` file cannot be its own, whole or not."""
    expected = 4 * len(raw.ch_names) * raw.n_times
    for path in (Path(name) for name in raw.filenames if name):
        if is_special(path):
            raise InputError(f"{path}: is a pipe or a device, not a file.")
        if path.suffix.lower() == ".fdt" and path.stat().st_size != expected:
            raise InputError(
                f"{path.with_suffix('.set')}: {path.name} has {path.stat().st_size} bytes instead "
                f"of {expected} ({len(raw.ch_names)} channels, {raw.n_times} samples). Copy both "
                "files again from where they came."
            )


def find_boundaries(raw: mne.io.BaseRaw) -> NDArray[np.float64]:
    """Find the times at which a recording was interrupted, in seconds from its beginning.

    Discontinuous EDF and BDF files (EDF+D) say when each of their data records begins, which
    MNE's reader leaves out; EEGLAB, BrainVision and MNE itself mark boundaries by annotations.

    Parameters
    ----------
    raw : mne.io.BaseRaw

    Returns
    -------
    ndarray of shape (n_boundaries,)
        Sorted; the very beginning and end are none.

    Examples
    --------
    >>> import mne
    >>> raw = mne.io.RawArray(np.zeros((1, 2500)), mne.create_info(1, 250.0), verbose=False)
    >>> both = mne.concatenate_raws([raw, raw.copy()], verbose=False)
    >>> find_boundaries(both).tolist()
    [10.0]
    """
    times = [
        mark["onset"]
        for mark in raw.annotations
        if mark["description"].casefold().removeprefix("bad ").strip().startswith(_BOUNDARY_WORDS)
    ]
    paths = [Path(name) for name in raw.filenames if name]
    if len(raw.filenames) == 1 and paths and paths[0].suffix.lower() in _BYTES_PER_SAMPLE:
        times += _boundaries_in_file(paths[0])
    seconds = np.unique(np.round(np.array(times, dtype=np.float64) - raw.first_time, 6))
    length = raw.n_times / raw.info["sfreq"]
    return seconds[(seconds > _LEAST_PAUSE) & (seconds < length - _LEAST_PAUSE)]


def _boundaries_in_file(path: Path) -> list[float]:
    """List the seconds of signal before each pause of a discontinuous EDF or BDF file.

    The list is empty for files that are continuous or damaged.
    """
    width = _BYTES_PER_SAMPLE[path.suffix.lower()]
    try:
        with path.open("rb") as file:
            head = file.read(256)
            if head[192:197] not in (b"EDF+D", b"BDF+D"):
                return []
            header = _EdfHeader.read(file, head)
            marks = next(i for i, label in enumerate(header.labels) if b"Annotations" in label)
            first = header.n_bytes + width * sum(header.samples[:marks])
            onsets = []
            for record in range(header.n_records):
                file.seek(first + record * width * sum(header.samples))
                text = file.read(width * header.samples[marks])
                # "+12.5" and the byte 20: when this record began
                onsets.append(float(text.split(b"\x14", 1)[0].split(b"\x15")[0]))
    except (OSError, ValueError, StopIteration):
        return []
    late = np.abs(np.diff(onsets) - header.seconds) > _LEAST_PAUSE
    return [(i + 1) * header.seconds for i in np.flatnonzero(late)]


def prepare_raw(
    raw: mne.io.BaseRaw,
    *,
    bads: Iterable[str] = (),
    montage: str | None = None,
    source: str = "recording",
) -> mne.io.BaseRaw:
    """Make a recording ready for features: every loader ends with this.

    EEG channels are picked and get their standard names, a montage is attached, bad channels
    are marked, and names, birth dates and the day of the recording are removed. Signals are
    left as they are, in volts, which is what MNE's readers give. What became of the channels
    can be asked with :func:`channel_plan`.

    Parameters
    ----------
    raw : mne.io.BaseRaw
        Stays as it is.
    bads : iterable of str
        Bad channels, by their name in the file or by their standard name.
    montage : str, optional
        A montage built into MNE. By default the one that fits the names.
    source : str
        What error messages call the recording.

    Returns
    -------
    mne.io.BaseRaw
        A copy. Prepared again, it stays the same.

    Raises
    ------
    InputError
        If no EEG channel is found, or a bad channel is not in the recording.

    Examples
    --------
    >>> import mne, numpy as np
    >>> info = mne.create_info(["EEG Fp1-LE", "EEG T3-LE", "EKG"], 250.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((3, 500)), info, verbose=False)
    >>> ready = prepare_raw(raw, bads=["T3"])
    >>> ready.ch_names, ready.info["bads"]
    (['Fp1', 'T7'], ['T7'])
    >>> channel_plan(ready).renamed
    {'EEG Fp1-LE': 'Fp1', 'EEG T3-LE': 'T7'}
    """
    return _prepare(raw.copy(), bads=bads, montage=montage, source=source)


def _prepare(
    raw: mne.io.BaseRaw, *, bads: Iterable[str], source: str, montage: str | None = None
) -> mne.io.BaseRaw:
    """Do what :func:`prepare_raw` does, in place: for loaders, whose Raw nobody else has."""
    plan = plan_channels(raw.ch_names, raw.get_channel_types())
    if not plan.renamed:
        names = ", ".join(f"{name} ({reason})" for name, reason in plan.dropped.items())
        raise InputError(
            f"{source}: no EEG channel found. Its channels are: {names or 'none'}. "
            "Rename them to 10-20 names, or set their type to EEG."
        )
    marked = [*raw.info["bads"], *bads]
    raw.info["bads"] = []
    raw.pick(list(plan.renamed), verbose="ERROR")
    types = dict.fromkeys(raw.ch_names, "eeg")
    raw.set_channel_types(types, on_unit_change="ignore", verbose="ERROR")
    raw.rename_channels(plan.renamed, verbose="ERROR")
    raw.info["bads"] = _resolve_bads(marked, plan, source)
    montage = montage or choose_montage(raw.ch_names)
    if montage is not None:
        # Template positions replace those in the file, so that the channels of all recordings of
        # a study lie in one and the same head. Where no template knows the names, they stay.
        template = standard_montage(montage)
        known = set(template.ch_names)
        for channel in raw.info["chs"]:
            if channel["ch_name"] not in known:
                channel["loc"][:] = float("nan")
        raw.set_montage(template, on_missing="ignore", verbose="ERROR")
    # Remove whatever the header says about who was recorded, when and by whom.
    raw.info["subject_info"] = None
    with warnings.catch_warnings():
        # MNE warns where there is no date to remove, which is what is wanted.
        warnings.simplefilter("ignore", RuntimeWarning)
        raw.anonymize(verbose="ERROR")
    # After a second preparation names are still those of the file.
    earlier = channel_plan(raw)
    in_file = {new: old for old, new in earlier.renamed.items()}
    raw.info["temp"] = {
        "idfsmec": {
            "renamed": {in_file.get(old, old): new for old, new in plan.renamed.items()},
            "dropped": earlier.dropped
            | {in_file.get(old, old): reason for old, reason in plan.dropped.items()},
            "montage": montage,
        }
    }
    return raw


def _resolve_bads(bads: list[str], plan: ChannelPlan, source: str) -> list[str]:
    """Find bad channels by either of their names; those dropped anyway do not matter."""
    new_names = set(plan.renamed.values())
    resolved: dict[str, None] = {}
    for bad in bads:
        if bad in plan.dropped:
            continue
        name = plan.renamed.get(bad) or (bad if bad in new_names else standard_name(bad))
        if name not in new_names:
            if standard_name(bad) in {standard_name(dropped) for dropped in plan.dropped} - {None}:
                continue
            raise InputError(
                f"{source}: the bad channel {bad!r} is not in the recording. "
                f"It has {', '.join(plan.renamed)}."
            )
        resolved[str(name)] = None
    return list(resolved)


def _notes(raw: mne.io.BaseRaw) -> dict[str, Any]:
    return (raw.info.get("temp") or {}).get("idfsmec", {})


def channel_plan(raw: mne.io.BaseRaw) -> ChannelPlan:
    """Tell what :func:`prepare_raw` did with the channels of a recording."""
    notes = _notes(raw)
    return ChannelPlan(dict(notes.get("renamed", {})), dict(notes.get("dropped", {})))


def montage_name(raw: mne.io.BaseRaw) -> str | None:
    """Name the montage that :func:`prepare_raw` attached."""
    return _notes(raw).get("montage")
