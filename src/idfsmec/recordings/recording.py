"""Recording: the name of one recording and how to load it, without the signal itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec._names import refuse_alike

if TYPE_CHECKING:
    import mne


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
    load: Callable[[], mne.io.BaseRaw]
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

    ``mdd`` beside ``MDD`` would be a third class, and ``s1`` beside ``s01`` one person on both
    sides of a fold.

    Parameters
    ----------
    recordings : sequence of Recording
    where : str
        The beginning of the message, such as the manifest's name.
    """
    for what in ("subject", "label", "session", "condition", "site"):
        first: dict[str, str] = {}
        for recording in recordings:
            if name := getattr(recording, what):
                first.setdefault(name, Path(recording.source).name)
        refuse_alike(first, what, where)


def hash_file(path: Path) -> str:
    """SHA-256 of a file's bytes, read in chunks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
