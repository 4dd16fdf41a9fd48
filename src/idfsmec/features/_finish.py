"""One recording of many: computed or found finished; what goes wrong comes back as an outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from idfsmec._warnings import heard, texts
from idfsmec.errors import InputError
from idfsmec.features._parts import ENDING, part_path, read_notes, write_part
from idfsmec.features.outcomes import RecordingOutcome
from idfsmec.features.pipeline import RecordingFeatures, extract_recording
from idfsmec.features.settings import FeatureSettings
from idfsmec.recordings import Recording


@dataclass(frozen=True)
class Computed:
    """What came of a recording.

    Attributes
    ----------
    name : str
        Of the file that keeps its features.
    features : RecordingFeatures, optional
        None where they were finished before, and where there is an error.
    said : tuple of str
        Warnings.
    error : str
        Why it failed; ``mendable`` says whether by the user's data.
    unreadable : Path, optional
        A file of it that cannot be read where this was tried.
    """

    name: str
    features: RecordingFeatures | None = None
    said: tuple[str, ...] = ()
    error: str = ""
    mendable: bool = False
    unreadable: Path | None = None


def compute(
    position: int,
    recording: Recording,
    settings: FeatureSettings,
    digest: str,
    is_finished: Callable[[str], bool],
) -> Computed:
    """Compute the features of a recording, unless they are finished under the name they get."""
    name = f"position-{position}{ENDING}"
    # Threads of BLAS split sums differently from run to run; one gives the same bits always.
    with heard() as said, threadpool_limits(1):
        try:
            fingerprint = recording.fingerprint()
            if fingerprint is not None:
                name = part_path(Path(), fingerprint, digest).name
            known = fingerprint is not None and is_finished(name)
            found = None if known else extract_recording(recording, settings)
        except Exception as error:
            # A damaged file makes readers raise anything; one file must not stop the others.
            reason = " ".join(str(error).split()) or type(error).__name__
            mendable = isinstance(error, InputError | OSError)
            text = reason.removeprefix(f"{recording.source}: ")
            return Computed(name, error=text, mendable=mendable, unreadable=_unreadable(recording))
    return Computed(name, found, tuple(texts(said)))


def _unreadable(recording: Recording) -> Path | None:
    for path in recording.files:
        try:
            path.open("rb").close()
        except OSError:
            return path
    return None


def finish(
    position: int,
    recording: Recording,
    *,
    settings: FeatureSettings,
    digest: str,
    folder: Path,
    kept: frozenset[str],
) -> tuple[int, RecordingOutcome, Path]:
    """Compute one recording, or find it finished, and keep it."""
    found = compute(
        position, recording, settings, digest, lambda name: read_notes(folder / name) is not None
    )
    return keep(position, recording, found, folder, kept)


def keep(
    position: int, recording: Recording, found: Computed, folder: Path, kept: frozenset[str]
) -> tuple[int, RecordingOutcome, Path]:
    """Write what was computed into the folder, and say what came of the recording.

    Parameters
    ----------
    kept : set of str
        Names of the files that were there when the run began.
    """
    path = folder / found.name
    who = (recording.source, recording.subject, recording.label)
    if found.error:
        failed = RecordingOutcome(*who, "failed", error=found.error, mendable=found.mendable)
        return position, failed, path
    said, features = found.said, found.features
    if features is None:
        status = "resumed" if found.name in kept else "done"
        features = read_notes(path)
        if features is None:  # it was whole a moment ago
            raise OSError(f"{path} is gone or damaged while it is used")
    else:
        status = "done"
        if recording.files and found.name in kept:
            said = (f"{path} was damaged: computed again.", *said)
        write_part(path, features)  # a full disk is no fault of the recording: this may raise
    return position, _outcome(who, status, features, said), path


def _outcome(
    who: tuple[str, str, str], status: str, found: RecordingFeatures, said: tuple[str, ...]
) -> RecordingOutcome:
    n_rows = found.n_rows
    return RecordingOutcome(
        *who,
        status if n_rows else "empty",
        n_epochs=found.n_epochs,
        n_rows=n_rows,
        channels=tuple(found.channels),
        reasons=found.reasons,
        montage=found.montage,
        renamed=found.renamed,
        dropped=found.dropped,
        notes=(*said, found.hint) if found.hint else said,
        epochs=tuple(found.epochs),
        cells=found.cells,
        facts=found.facts,
    )
