"""Read which channel is observed in which epoch from MNE objects and other marks, and apply it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from idfsmec.errors import InputError
from idfsmec.recordings.recording import OTHER_CONDITION
from idfsmec.table import FeatureTable

if TYPE_CHECKING:
    import autoreject
    import mne

# Seconds; a mark that ends where an epoch begins must not touch it by rounding.
_INSTANT = 1e-9


def observed_from_bads(
    bads: str | Iterable[str] | mne.Info | Any | None, ch_names: Sequence[str], n_epochs: int
) -> pd.DataFrame:
    """Take channels marked bad for a whole recording.

    Parameters
    ----------
    bads : str, iterable of str, Info, or an object with ``info`` (Raw, Epochs)
        A manifest's text such as ``"Fp1;F7"``, names (of PREP, ``noisy.get_bads()``), or an MNE
        object whose ``info["bads"]`` counts. None, NaN and ``""`` mean no bad channels.
    ch_names : sequence of str
        The channels of the mask.
    n_epochs : int
        The number of epochs.

    Returns
    -------
    DataFrame of shape (n_epochs, n_channels), bool
        True where observed; columns are ``ch_names``.

    Raises
    ------
    InputError
        A bad channel given by name is not in ``ch_names``. (Those of an MNE object may well be
        of other types, and are passed over.)

    Examples
    --------
    >>> observed_from_bads("Fp1; F7", ["Fp1", "Fp2", "F7"], n_epochs=2)
         Fp1   Fp2     F7
    0  False  True  False
    1  False  True  False
    """
    import mne

    info = bads if isinstance(bads, mne.Info) else getattr(bads, "info", None)
    if info is not None:
        return _all_epochs(info["bads"], ch_names, n_epochs)
    if bads is None or (isinstance(bads, float) and np.isnan(bads)):
        bads = ()
    parts = bads.split(";") if isinstance(bads, str) else bads
    names = [str(name).strip() for name in parts if str(name).strip()]
    for name in names:
        if name not in ch_names:
            raise InputError(
                f"bad channel {name!r} is not a channel of the recording, which has "
                f"{', '.join(ch_names)}: correct or remove the name"
            )
    return _all_epochs(names, ch_names, n_epochs)


def observed_from_annotations(
    annotations: mne.Annotations | mne.io.BaseRaw | mne.BaseEpochs,
    ch_names: Sequence[str],
    starts: Sequence[float] | np.ndarray | None = None,
    duration: float | None = None,
) -> pd.DataFrame:
    """Take stretches annotated as bad: descriptions that begin with ``BAD``, in any case.

    An annotation with ``ch_names`` concerns those channels, one without concerns all. The least
    overlap with an epoch is enough.

    Parameters
    ----------
    annotations : Annotations, Raw or Epochs
        From a Raw, the time of its first sample is taken care of. Onsets of bare Annotations
        are taken as seconds from the first sample. Epochs keep the annotations of the Raw that
        they were cut from, and know their own times.
    ch_names : sequence of str
        The channels of the mask.
    starts : array-like of shape (n_epochs,)
        Where each epoch begins, in seconds from the recording's first sample; not for Epochs.
    duration : float
        Length of an epoch in seconds; not for Epochs.

    Returns
    -------
    DataFrame of shape (n_epochs, n_channels), bool
        True where observed; columns are ``ch_names``.

    Examples
    --------
    >>> import mne
    >>> marks = mne.Annotations([12.0], [3.0], ["BAD_loose"], ch_names=[["Fp1"]])
    >>> observed_from_annotations(marks, ["Fp1", "Fp2"], starts=[0, 10], duration=10)
         Fp1   Fp2
    0   True  True
    1  False  True
    """
    import mne

    if isinstance(annotations, mne.BaseEpochs):
        starts = onsets_of(annotations)
        duration = len(annotations.times) / float(annotations.info["sfreq"])
        marks = annotations.annotations or ()
    elif starts is None or duration is None:
        raise InputError("starts and duration must be given: they say where the epochs lie")
    elif isinstance(annotations, mne.Annotations):
        marks = annotations
    else:
        starts = np.asarray(starts, dtype=float) + float(annotations.first_time)
        marks = annotations.annotations
    first = np.asarray(starts, dtype=float)
    observed = _all_epochs((), ch_names, len(first))
    for mark in marks:
        if not mark["description"].upper().startswith("BAD"):
            continue
        # A mark without duration is a moment: it touches the epoch that holds it.
        begin, end = mark["onset"], mark["onset"] + max(mark["duration"], 2 * _INSTANT)
        touched = (begin < first + duration - _INSTANT) & (end > first + _INSTANT)
        named = mark.get("ch_names")
        observed.loc[touched, [name for name in ch_names if not named or name in named]] = False
    return observed


def onsets_of(epochs: mne.BaseEpochs) -> np.ndarray:
    """Give the seconds at which epochs begin in the recording that they were cut from."""
    # Events count the samples of the recording, which was faster where epochs were resampled; of
    # epochs that were saved, MNE reads this rate as an array.
    rate = np.ravel(getattr(epochs, "_raw_sfreq", epochs.info["sfreq"]))[0]
    onsets: np.ndarray = epochs.events[:, 0] / float(rate) + epochs.times[0]
    return onsets


def observed_from_reject_log(
    reject_log: autoreject.RejectLog,
    ch_names: Sequence[str] | None = None,
    *,
    interpolated: bool = False,
) -> pd.DataFrame:
    """Take autoreject's verdict per epoch and channel.

    Parameters
    ----------
    reject_log : autoreject.RejectLog
        ``labels`` says 0 good, 1 bad, 2 bad and interpolated; NaN was not looked at.
    ch_names : sequence of str, optional
        The channels of the mask, all of the log if left out. Channels the log does not have
        count as observed.
    interpolated : bool
        Whether interpolated channels count as observed. Their signal was made from their
        neighbours, so by default they do not.

    Returns
    -------
    DataFrame of shape (n_epochs, n_channels), bool
        True where observed.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> log = SimpleNamespace(ch_names=["Fp1", "Fp2"], labels=np.array([[0, 1.0], [2, 0]]))
    >>> observed_from_reject_log(log)
         Fp1    Fp2
    0   True  False
    1  False   True
    """
    labels = np.asarray(reject_log.labels, dtype=float)
    bad = (labels == 1) | ((labels == 2) & (not interpolated))
    observed = pd.DataFrame(~bad, columns=pd.Index(reject_log.ch_names))
    if ch_names is None:
        return observed
    return observed.reindex(columns=list(ch_names), fill_value=True)


def read_reject_log(path: Path, epochs: mne.BaseEpochs) -> Any:
    """Read a reject log that autoreject has saved: its rows of the epochs that are left."""
    try:
        with np.load(path, allow_pickle=False) as saved:
            names, bad, labels = (saved[key] for key in ("ch_names", "bad_epochs", "labels"))
        if labels.shape != (len(bad), len(names)):
            raise ValueError(f"its labels have the shape {labels.shape}")
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise InputError(
            f"{path}: cannot be read as a reject log ({error}). Write it with autoreject's "
            "RejectLog.save."
        ) from error
    # Rows are the epochs that autoreject saw, some of which may be dropped now.
    good = labels[~bad.astype(bool)]
    for rows, later in ((labels, ("AUTOREJECT", "USER")), (good, ()), (labels, ())):
        reasons = {*later, OTHER_CONDITION}
        seen = [i for i, dropped in enumerate(epochs.drop_log) if reasons.issuperset(dropped)]
        if len(rows) == len(seen):
            rows = rows[np.searchsorted(seen, epochs.selection)]
            return SimpleNamespace(ch_names=names.tolist(), labels=rows)
    raise InputError(
        f"{path}: has {len(labels)} epochs, {int(bad.sum())} of them bad, and the recording has "
        f"{len(epochs)}. Give the reject log that belongs to it."
    )


def combine_observed(*observed: pd.DataFrame) -> pd.DataFrame:
    """Combine masks: a channel is observed where no mask marks it as missing.

    Parameters
    ----------
    *observed : DataFrame of shape (n_epochs, n_channels), bool
        Masks of the same epochs. The result has the channels of all; a mask without a channel
        counts it as observed.

    Returns
    -------
    DataFrame of shape (n_epochs, n_channels), bool

    Examples
    --------
    >>> marked = pd.DataFrame({"Fp1": [True, False]})
    >>> detected = pd.DataFrame({"Fp1": [True, True], "Fp2": [False, True]})
    >>> combine_observed(marked, detected)
         Fp1    Fp2
    0   True  False
    1  False   True
    """
    if not observed:
        raise InputError("there is nothing to combine")
    lengths = {len(frame) for frame in observed}
    if len(lengths) > 1:
        raise InputError(f"the masks have different numbers of epochs: {sorted(lengths)}")
    channels = list(dict.fromkeys(name for frame in observed for name in frame.columns))
    joint = np.logical_and.reduce(
        [frame.reindex(columns=channels, fill_value=True).to_numpy(bool) for frame in observed]
    )
    return pd.DataFrame(joint, columns=pd.Index(channels))


def mask_table(table: FeatureTable, observed: pd.DataFrame) -> FeatureTable:
    """Set a table's features to NaN where their channel is not observed.

    What is missing in the table stays missing.

    Parameters
    ----------
    table : FeatureTable
        The features.
    observed : DataFrame of shape (n_samples, n_channels), bool
        Columns are channels; channels of the table that it does not have are left alone.

    Returns
    -------
    FeatureTable
        A new table.

    Examples
    --------
    >>> X = pd.DataFrame({"Fp1__mean": [1.0, 2.0], "Fp2__mean": [3.0, 4.0]})
    >>> table = FeatureTable(X, ["HC", "MDD"], ["a", "b"])
    >>> mask_table(table, pd.DataFrame({"Fp2": [True, False]})).X
             Fp1__mean  Fp2__mean
    subject
    a              1.0        3.0
    b              2.0        NaN
    """
    if len(observed) != len(table):
        raise InputError(f"observed has {len(observed)} rows, the table {len(table)} samples")
    if unknown := [name for name in observed.columns if name not in table.channels]:
        raise InputError(f"the table has no channel {unknown[0]!r}")
    seen = observed.reindex(columns=table.column_channels, fill_value=True).to_numpy(bool)
    return replace(table, X=table.X.reset_index(drop=True).where(seen))


def _all_epochs(missing: Iterable[str], ch_names: Sequence[str], n_epochs: int) -> pd.DataFrame:
    """Return the mask of channels that are missing in the whole recording."""
    observed = ~np.isin(np.array(ch_names, dtype=object), list(missing))
    return pd.DataFrame(np.tile(observed, (n_epochs, 1)), columns=pd.Index(list(ch_names)))
