"""Recordings on a Dask cluster: workers read and compute, what they find is kept here."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from idfsmec._cluster import MOST_LOSSES, ClusterRun, Lost, connected, distributed
from idfsmec.errors import InputError
from idfsmec.features._finish import Computed, compute, keep
from idfsmec.features._parts import read_notes
from idfsmec.features.outcomes import RecordingOutcome
from idfsmec.features.settings import FeatureSettings
from idfsmec.recordings import Recording

# Warnings and limits on threads are those of a process: one recording at a time in each.
_one_at_a_time = threading.Lock()


def finish_on_cluster(
    tasks: Iterable[tuple[int, Recording]],
    settings: FeatureSettings,
    folder: Path,
    kept: frozenset[str],
    dask: Any,
) -> Iterator[tuple[int, RecordingOutcome, Path]]:
    """Have workers compute recordings, and keep what they find in a folder of this machine.

    Parameters
    ----------
    tasks : iterable of (position, recording)
        Taken as workers get free, not before.
    settings : FeatureSettings
    folder : Path
    kept : set of str
        Names of the files in it when the run began.
    dask : str or distributed.Client
    """
    whole = frozenset(name for name in kept if read_notes(folder / name) is not None)
    about = settings, settings.digest(), whole
    with connected(dask) as client:
        sent = ((position, recording, *about) for position, recording in tasks)
        for task, found in ClusterRun(client, _compute_there).outcomes(sent, ahead=False):
            position, recording, *_ = task
            if isinstance(found, Lost):
                found, where = Computed("", error=_lost(found)), ""
            else:
                found, where = found
            if found.unreadable is not None and _is_readable(found.unreadable):
                raise InputError(
                    f"the Dask worker {where} cannot read {found.unreadable}, which this machine "
                    "can: let workers see the recordings under the same path, on a disk that all "
                    "share, or use processes here (n_jobs)",
                    argument="dask",
                )
            yield keep(position, recording, found, folder, kept)


def _compute_there(
    position: int,
    recording: Recording,
    settings: FeatureSettings,
    digest: str,
    whole: frozenset[str],
) -> tuple[Computed, str]:
    """On a worker; also say which one it is."""
    with _one_at_a_time:
        found = compute(position, recording, settings, digest, whole.__contains__)
    return found, distributed.get_worker().address


def _lost(found: Lost) -> str:
    last = found.reason.strip().splitlines()[-1]
    return (
        f"the Dask cluster lost it {MOST_LOSSES + 1} times ({last}); give workers more memory, or "
        "leave it out"
    )


def _is_readable(path: Path) -> bool:
    try:
        path.open("rb").close()
    except OSError:
        return False
    return True
