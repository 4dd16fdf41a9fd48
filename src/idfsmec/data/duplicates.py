"""The same recording given twice: found by its bytes, refused where two subjects share it."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

from idfsmec.data.recording import Recording, hash_file
from idfsmec.errors import InputError

# Formats with a header of their own keep the signal here. The header names this file, so it
# changes when both are renamed, while the signal stays the same.
_SIGNAL_ENDINGS = (".eeg", ".fdt")


def find_duplicates(recordings: Iterable[Recording]) -> list[list[Recording]]:
    """Group recordings that hold the same signal, byte for byte.

    Only files of equal size are read, in chunks. Several parts cut from one file (see
    ``Recording.variant``) are different recordings.

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
    known_hashes: dict[Path, str] = {}

    def content(recording: Recording) -> Hashable:
        for path in _signal_files(recording):
            if path not in known_hashes:
                known_hashes[path] = hash_file(path)
        return tuple(known_hashes[path] for path in _signal_files(recording))

    by_size: dict[Hashable, list[Recording]] = defaultdict(list)
    for recording in recordings:
        if recording.files:
            sizes = tuple(path.stat().st_size for path in _signal_files(recording))
            by_size[recording.variant, sizes].append(recording)
    groups: list[list[Recording]] = []
    for same_size in by_size.values():
        by_content: dict[Hashable, list[Recording]] = defaultdict(list)
        if len(same_size) > 1:
            for recording in same_size:
                by_content[content(recording)].append(recording)
        groups += [group for group in by_content.values() if len(group) > 1]
    return groups


def _signal_files(recording: Recording) -> tuple[Path, ...]:
    """Pick the files with the signal; all of them, where header and signal are one."""
    first, *partners = recording.files
    if first.suffix.lower() in (".vhdr", ".ahdr", ".set"):
        signal = tuple(path for path in partners if path.suffix.lower() in _SIGNAL_ENDINGS)
        if signal:
            return signal
    return recording.files


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
    InputError
        If two subjects share a recording and that is not allowed.
    """
    groups = find_duplicates(recordings)
    for group in groups:
        names = " and ".join(f"{one.source} (subject {one.subject})" for one in group)
        if len({one.subject for one in group}) > 1 and not allow:
            raise InputError(
                f"The same recording is given for different subjects: {names}. Remove all but "
                "one, or allow duplicates if these subjects are one person."
            )
        warnings.warn(f"The same recording is given more than once: {names}.", stacklevel=2)
    return groups
