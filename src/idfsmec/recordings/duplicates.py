"""The same recording given twice: found by its bytes, refused where two subjects share it."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from os import SEEK_END
from pathlib import Path

from idfsmec.errors import DuplicateRecordingsError
from idfsmec.recordings.recording import Recording, hash_file

# Formats with a header of their own keep the signal here. The header names this file, so it
# changes when both are renamed, while the signal stays the same.
_SIGNAL_ENDINGS = (".eeg", ".fdt")
_SIDECAR_ENDINGS = (".tsv", ".json")
_GLANCE = 8192


def find_duplicates(recordings: Iterable[Recording]) -> list[list[Recording]]:
    """Group recordings that hold the same signal, byte for byte.

    Sizes are compared first, then the first and last bytes, and only what is still alike is
    read through, in chunks. Several parts cut from one file (see ``Recording.variant``) are
    different recordings.

    Parameters
    ----------
    recordings : iterable of Recording

    Returns
    -------
    list of list of Recording
        Each group has two members or more, in the order given; none if all differ.

    Examples
    --------
    >>> find_duplicates([])
    []
    """
    groups = [[recording for recording in recordings if recording.files]]
    groups = _split(groups, lambda recording: recording.variant)
    for look in (_size, _ends, cache(hash_file)):
        groups = _split(groups, lambda one, look=look: tuple(map(look, _signal_files(one))))  # type: ignore[misc]
    return groups


def _split(
    groups: Iterable[list[Recording]], key: Callable[[Recording], Hashable]
) -> list[list[Recording]]:
    """Split groups by a key, and forget those who are left alone."""
    finer = []
    for group in groups:
        parts: dict[Hashable, list[Recording]] = defaultdict(list)
        for recording in group:
            parts[key(recording)].append(recording)
        finer += [part for part in parts.values() if len(part) > 1]
    return finer


def _size(path: Path) -> int:
    return path.stat().st_size


def _ends(path: Path) -> tuple[bytes, bytes]:
    """Read a little from both ends: enough to tell most recordings of equal size apart."""
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
        What :func:`find_duplicates` found.

    Raises
    ------
    DuplicateRecordingsError
        If two subjects share a recording and that is not allowed.
    """
    groups = find_duplicates(recordings)
    shared = [group for group in groups if len({one.subject for one in group}) > 1]
    if shared and not allow:
        raise DuplicateRecordingsError(
            f"The same recording is given for different subjects: {_listed(shared)}. Remove all "
            "but one of each. If two subjects are one person, give them one name; with "
            "allow=True they stay two, and one recording stands on both sides of a fold.",
            copies=[(one.source, one.subject) for group in shared for one in group],
        )
    if groups:
        warnings.warn(
            f"The same recording is given more than once: {_listed(groups)}.", stacklevel=2
        )
    return groups


def _listed(groups: Sequence[Sequence[Recording]]) -> str:
    return "; ".join(
        " and ".join(f"{one.source} (subject {one.subject})" for one in group) for group in groups
    )
