"""Open a recording safely: which files it has, whether they are whole, and ready for features."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec.errors import InputError, RecordingError
from idfsmec.recordings._matlab import DamagedMatError, check_elements
from idfsmec.recordings.prepare import prepare_own

if TYPE_CHECKING:
    import mne

_BYTES_PER_SAMPLE = {".edf": 2, ".bdf": 3}
_FIF_BEGINS = 100  # the first tag of every FIF file


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
        return _named_in_header(path)
    if suffix == ".set":
        return [path.with_suffix(ending) for ending in (".fdt", ".FDT", ".dat")]
    if suffix == ".fif":
        return sorted(path.parent.glob(f"{_escape(path.stem)}-[0-9]*.fif"))
    return []


def check_regular(path: Path) -> None:
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


def is_special(path: Path) -> bool:
    """Whether something is there that is neither a file nor a folder."""
    return path.exists() and not (path.is_file() or path.is_dir())


def _escape(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def _named_in_header(path: Path) -> list[Path]:
    """Find the data and marker file that a BrainVision header names."""
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # "Codepage=ANSI"
    named = r"^[ \t]*(?:DataFile|MarkerFile)[ \t]*[=:][ \t]*(.+?)\s*$"
    names = re.findall(named, text, flags=re.MULTILINE | re.IGNORECASE)
    return [path.parent / name.replace("$b", path.stem) for name in names]


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
        check_regular(path)
        check_whole(path)
        raw = read()
        check_signals(raw)
        return prepare_own(raw if cut is None else cut(raw), bads=bads, source=str(path))
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


def check_whole(path: Path) -> None:
    """Refuse an EDF or BDF file that lost its end, and a damaged ``.set`` or FIF file.

    MNE reads what is left of an EDF file as if it were all; a cut recording would count as a
    short one, and nobody would know. Other damage would end the process, or never end.
    """
    ending = path.suffix.lower()
    if not path.is_file():
        return  # a format that is a folder
    if ending in _BYTES_PER_SAMPLE:
        _check_records(path, _BYTES_PER_SAMPLE[ending])
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


def _check_tags(path: Path) -> None:
    """Refuse a FIF file whose tags lead in a circle: MNE would follow them until memory ends."""
    back: set[int] = set()  # a circle leads back to the same place again and again
    place = 0
    with path.open("rb") as file:
        while len(head := file.read(16)) == 16:
            kind, _, size, following = struct.unpack(">iIii", head)
            if place == 0 and kind != _FIF_BEGINS:
                return  # no FIF file at all, as MNE will say
            here, place = place, following or place + 16 + size
            if place < 0:
                return  # the last tag
            if place <= here:
                if place in back:
                    raise InputError(
                        f"{path}: the file is damaged (its tags lead in a circle). Copy it again "
                        "from where it came."
                    )
                back.add(place)
            file.seek(place)


def check_signals(raw: mne.io.BaseRaw) -> None:
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


def _check_records(path: Path, width: int) -> None:
    """Compare the size of a file with the number of data records that its header tells."""
    with path.open("rb") as file:
        head = file.read(256)
        # Read as the other one, either would be another signal.
        for called, begins, real in ((2, b"\xffBIOSEMI", "BDF"), (3, b"0       ", "EDF")):
            if width == called and head[:8] == begins:
                right = real.lower()
                raise InputError(f"{path}: this is {real}, not {path.suffix}. Name it .{right}.")
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
