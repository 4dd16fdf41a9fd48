"""Read which channel is observed in which epoch from MNE objects and other marks, and apply it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from idfsmec.errors import InputError
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
                f"{', '.join(ch_names)}: mend the name or take it out"
            )
    return _all_epochs(names, ch_names, n_epochs)


def observed_from_annotations(
    annotations: mne.Annotations | mne.io.BaseRaw | mne.BaseEpochs,
    ch_names: Sequence[str],
    starts: Sequence[float] | np.ndarray | None = None,
    duration: float | None = None,
    *,
    min_share: float = 0.0,
) -> pd.DataFrame:
    """Take stretches annotated as bad: descriptions that begin with ``BAD``, in any case.

    An annotation with ``ch_names`` concerns those channels, one without concerns all.

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
    min_share : float
        A channel is missing in an epoch if more than this share of the epoch is annotated (in
        one piece or several). 0: the least overlap is enough.

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
    marked = [mark for mark in marks if mark["description"].upper().startswith("BAD")]
    observed = _all_epochs((), ch_names, len(first))
    for name in ch_names:
        spans = [
            (mark["onset"], mark["onset"] + mark["duration"])
            for mark in marked
            if not mark.get("ch_names") or name in mark["ch_names"]
        ]
        covered, touched = _coverage(spans, first, duration)
        observed[name] = ~(touched if min_share == 0 else covered > min_share * duration)
    return observed


def onsets_of(epochs: mne.BaseEpochs) -> np.ndarray:
    """Give the seconds at which epochs begin in the recording that they were cut from."""
    # Events count the samples of the recording, which was faster where epochs were resampled; of
    # epochs that were saved, MNE reads this rate as an array.
    rate = np.ravel(getattr(epochs, "_raw_sfreq", epochs.info["sfreq"]))[0]
    return epochs.events[:, 0] / float(rate) + epochs.times[0]


def observed_from_reject_log(
    reject_log: autoreject.RejectLog,
    ch_names: Sequence[str] | None = None,
    *,
    interpolated: bool = False,
    whole_epochs: bool = False,
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
    whole_epochs : bool
        Whether all channels are missing in the epochs that autoreject would drop.

    Returns
    -------
    DataFrame of shape (n_epochs, n_channels), bool
        True where observed.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> log = SimpleNamespace(ch_names=["Fp1", "Fp2"], labels=np.array([[0, 1.0], [2, 0]]),
    ...                       bad_epochs=np.array([False, False]))
    >>> observed_from_reject_log(log)
         Fp1    Fp2
    0   True  False
    1  False   True
    """
    labels = np.asarray(reject_log.labels, dtype=float)
    bad = (labels == 1) | ((labels == 2) & (not interpolated))
    if whole_epochs:
        bad |= np.asarray(reject_log.bad_epochs, dtype=bool)[:, None]
    observed = pd.DataFrame(~bad, columns=pd.Index(reject_log.ch_names))
    if ch_names is None:
        return observed
    return observed.reindex(columns=list(ch_names), fill_value=True)


def combine_observed(*observed: pd.DataFrame) -> pd.DataFrame:
    """Combine masks: a channel is observed where none of them says it is missing.

    Parameters
    ----------
    *observed : DataFrame of shape (n_epochs, n_channels), bool
        Masks of the same epochs. The result has the channels of all; a mask without a channel
        has nothing against it.

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


def mask_table(table: FeatureTable, observed: np.ndarray | pd.DataFrame) -> FeatureTable:
    """Set a table's features to NaN where their channel is not observed.

    What is missing in the table stays missing.

    Parameters
    ----------
    table : FeatureTable
        The features.
    observed : DataFrame or ndarray of shape (n_samples, n_channels), bool
        A DataFrame's columns are channels; channels of the table that it does not have are left
        alone. An array's columns are ``table.channels``.

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
    channels = table.channels
    if not isinstance(observed, pd.DataFrame):
        array = np.asarray(observed, dtype=bool)
        if array.ndim != 2 or array.shape[1] != len(channels):
            raise InputError(
                f"observed has the shape {array.shape}; the table has {len(table)} samples and "
                f"{len(channels)} channels"
            )
        observed = pd.DataFrame(array, columns=pd.Index(channels))
    if len(observed) != len(table):
        raise InputError(f"observed has {len(observed)} rows, the table {len(table)} samples")
    unknown = [name for name in observed.columns if name not in set(channels)]
    if unknown:
        raise InputError(f"the table has no channel {unknown[0]!r}")
    seen = observed.reindex(columns=table.column_channels, fill_value=True).to_numpy(bool)
    return replace(table, X=table.X.reset_index(drop=True).where(seen))


def _all_epochs(missing: Iterable[str], ch_names: Sequence[str], n_epochs: int) -> pd.DataFrame:
    """Return the mask of channels that are missing in the whole recording."""
    observed = ~np.isin(np.array(ch_names, dtype=object), list(missing))
    return pd.DataFrame(np.tile(observed, (n_epochs, 1)), columns=pd.Index(list(ch_names)))


def _coverage(
    spans: list[tuple[float, float]], starts: np.ndarray, duration: float
) -> tuple[np.ndarray, np.ndarray]:
    """Give the seconds of each epoch that spans cover, and whether any span touches it."""
    covered = np.zeros(len(starts))
    touched = np.zeros(len(starts), dtype=bool)
    reached = -np.inf
    for begin, end in sorted(spans):
        # A mark without duration is a moment: it touches the epoch that holds it.
        touched |= (begin < starts + duration - _INSTANT) & (
            max(end, begin + 2 * _INSTANT) > starts + _INSTANT
        )
        fresh = max(begin, reached)  # what an earlier span covers is not counted twice
        overlap = np.minimum(end, starts + duration) - np.maximum(fresh, starts)
        covered += np.clip(overlap, 0.0, None)
        reached = max(reached, end)
    return covered, touched
