"""Files of a recording: the one a user names and the ones that belong to it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec.errors import InputError
from idfsmec.recordings._whole import check_signals, check_whole
from idfsmec.recordings.prepare import prepare_raw

if TYPE_CHECKING:
    import mne


def files_of(path: Path) -> tuple[Path, ...]:
    """List all files that make up the recording named by ``path``, that one first.

    BrainVision headers and EEGLAB ``.set`` files keep the signal in another file, long FIF
    recordings go on in ``-1.fif``, and some formats are folders.
    """
    if path.is_dir():
        return tuple(sorted(file for file in path.rglob("*") if file.is_file()))
    suffix = path.suffix.lower()
    partners: list[Path] = []
    if suffix in (".vhdr", ".ahdr"):
        partners = _named_in_header(path)
    elif suffix == ".set":
        partners = [path.with_suffix(ending) for ending in (".fdt", ".FDT", ".dat")]
    elif suffix == ".fif":
        partners = sorted(path.parent.glob(f"{_escape(path.stem)}-[0-9]*.fif"))
    return (path, *(partner for partner in partners if partner.is_file()))


def _escape(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def _named_in_header(path: Path) -> list[Path]:
    """Find the data and marker file that a BrainVision header names."""
    text = path.read_text(encoding="utf-8", errors="replace")
    names = re.findall(r"^(?:DataFile|MarkerFile)=(.+?)\s*$", text, flags=re.MULTILINE)
    return [path.parent / name.replace("$b", path.stem) for name in names]


@dataclass(frozen=True)
class FileLoader:
    """Loads a file that MNE opens by its ending; can be pickled."""

    path: Path
    bads: tuple[str, ...] = ()

    def __call__(self) -> mne.io.BaseRaw:
        return open_raw(self._read, self.path)

    def _read(self) -> mne.io.BaseRaw:
        import mne

        raw = mne.io.read_raw(self.path, verbose="ERROR")
        check_signals(raw)
        return prepare_raw(raw, bads=self.bads, source=str(self.path))


def open_raw(reader: Callable[[], mne.io.BaseRaw], path: Path) -> mne.io.BaseRaw:
    """Read and prepare a recording, and turn whatever goes wrong into one clear line."""
    if not path.exists():
        raise InputError(f"{path}: there is no such file.")
    try:
        check_whole(path)
        return reader()
    except InputError:
        raise
    except Exception as error:
        # Readers of binary files raise anything on a damaged one, down to struct.error.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{path}: MNE cannot open this recording ({reason}). Check that the file is whole, "
            "of a format mne.io.read_raw knows, and lies with the files that belong to it."
        ) from error
