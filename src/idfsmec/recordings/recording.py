"""Name recordings without loading them: Recording, spelling of names, the same recording twice."""

from __future__ import annotations

import hashlib
import warnings
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from os import SEEK_END
from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec.errors import DuplicateRecordingsError
from idfsmec.table.columns import refuse_alike

if TYPE_CHECKING:
    import mne

# Formats with a header of their own keep the signal here. The header names this file, so it
# changes when both are renamed, while the signal stays the same.
_SIGNAL_ENDINGS = (".eeg", ".fdt")
_SIDECAR_ENDINGS = (".tsv", ".json")
_GLANCE = 8192  # bytes


@dataclass(frozen=True)
class Recording:
    """One EEG recording of one subject, loaded only when asked.

    Parameters
    ----------
    subject : str
        Who was recorded; recordings of one subject never end up on both sides of a fold.
    label : str
        The class of this recording, such as ``"MDD"``.
    load : callable
        Gives the recording as an :class:`mne.io.BaseRaw` that is ready for features: EEG
        channels only, standard names, volts, ``info["bads"]`` set. It can be pickled, so that
        worker processes can load.
    source : str
        Where it comes from, for messages: a path, or a few words.
    session, condition : str, optional
        Free names that tell apart several recordings of one subject.
    bads : tuple of str
        Channels known to be bad, as written by the user. ``load`` has them in
        ``info["bads"]`` under their standard names.
    files : tuple of Path
        All files whose bytes make up the recording; none for simulated ones.
    variant : str
        What besides the bytes decides the signal, such as the unit assumed or the part cut
        out.
    site : str, optional
        The hospital.
    details : mapping of str to str
        What else the study knows about it, such as age and sex: one column of the table's
        ``rows`` each. Text; empty where it is not known.

    Examples
    --------
    >>> from functools import partial
    >>> import mne, numpy as np
    >>> def noise(seed):
    ...     samples = np.random.default_rng(seed).normal(scale=1e-5, size=(1, 500))
    ...     return mne.io.RawArray(samples, mne.create_info(["Cz"], 250.0, "eeg"), verbose=False)
    >>> recording = Recording("s1", "HC", partial(noise, 0), "white noise")
    >>> recording.load().ch_names
    ['Cz']
    """

    subject: str
    label: str
    load: Callable[[], mne.io.BaseRaw] = field(compare=False)
    source: str
    session: str | None = None
    condition: str | None = None
    bads: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    variant: str = ""
    site: str | None = None
    details: Mapping[str, str] = field(default_factory=dict, hash=False)

    def fingerprint(self) -> str | None:
        """Hash of all that decides the loaded signal: the key for a cache of its features.

        Moving or renaming files does not change it; changing their bytes does. None for a
        recording without files.
        """
        if not self.files:
            return None
        parts = [self.variant, ";".join(self.bads), *(hash_file(path) for path in self.files)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def check_spelling(recordings: Sequence[Recording], where: str = "") -> None:
    """Refuse subjects, labels and the like whose names only look different.

    ``mdd`` beside ``MDD`` would be a third class, and ``s1`` beside ``s01`` one subject on both
    sides of a fold. ``where`` begins the message.
    """
    for what in ("subject", "label", "session", "condition", "site"):
        first: dict[str, str] = {}
        for recording in recordings:
            if name := getattr(recording, what):
                first.setdefault(name, Path(recording.source).name)
        refuse_alike(first, what, where)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, read in chunks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_duplicates(recordings: Iterable[Recording]) -> list[list[Recording]]:
    """Group recordings that hold the same signal, byte for byte; groups of two or more.

    Sizes are compared first, then the first and last bytes, and only what is still alike is
    read through. Parts cut from one file (``Recording.variant``) are different recordings.
    """
    groups = [[recording for recording in recordings if recording.files]]
    for look in (_size, _ends, cache(hash_file)):
        finer: dict[Hashable, list[Recording]] = defaultdict(list)
        for number, group in enumerate(groups):
            for recording in group:
                looks = tuple(look(path) for path in _signal_files(recording))
                finer[number, recording.variant, looks].append(recording)
        groups = [group for group in finer.values() if len(group) > 1]
    return groups


def _size(path: Path) -> int:
    return path.stat().st_size


def _ends(path: Path) -> tuple[bytes, bytes]:
    with path.open("rb") as file:
        head = file.read(_GLANCE)
        file.seek(-min(_GLANCE, _size(path)), SEEK_END)
        return head, file.read()


def _signal_files(recording: Recording) -> tuple[Path, ...]:
    """Pick the files with the signal; all of them, where header and signal are one."""
    first, *partners = recording.files
    if first.suffix.lower() in (".vhdr", ".ahdr", ".set"):
        signal = tuple(path for path in partners if path.suffix.lower() in _SIGNAL_ENDINGS)
        if signal:
            return signal
    return tuple(path for path in recording.files if path.suffix.lower() not in _SIDECAR_ENDINGS)


def check_duplicates(
    recordings: Sequence[Recording], allow: bool = False
) -> list[list[Recording]]:
    """Refuse recordings that two subjects share, and warn about other repetitions.

    A recording that counts for two subjects ends up on both sides of a fold, and then any
    method looks good.

    Parameters
    ----------
    recordings : sequence of Recording
    allow : bool
        Whether to warn only, even where subjects differ.

    Returns
    -------
    list of list of Recording
        Groups of recordings that hold the same signal, byte for byte.

    Raises
    ------
    DuplicateRecordingsError
        If two subjects share a recording and that is not allowed.
    """
    groups = find_duplicates(recordings)
    shared = [group for group in groups if len({copy.subject for copy in group}) > 1]
    if shared and not allow:
        raise DuplicateRecordingsError(
            f"The same recording is given for different subjects: {_listed(shared)}. Remove all "
            "but one of each. If two subjects are one person, give them one name; with "
            "allow=True they stay two, and one recording stands on both sides of a fold.",
            copies=[(copy.source, copy.subject) for group in shared for copy in group],
        )
    if groups:
        warnings.warn(
            f"The same recording is given more than once: {_listed(groups)}.", stacklevel=2
        )
    return groups


def _listed(groups: Sequence[Sequence[Recording]]) -> str:
    return "; ".join(
        " and ".join(f"{copy.source} (subject {copy.subject})" for copy in group)
        for group in groups
    )
