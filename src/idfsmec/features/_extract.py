"""One call from what people have (Raw, Epochs, an array) to a frame of features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.features._compute import compute_features
from idfsmec.features._prepare import (
    PreparedEpochs,
    SignalPath,
    prepare_epochs,
    prepare_recording,
)
from idfsmec.features._registry import Feature
from idfsmec.features._settings import FeatureSettings

# MNE keeps volts; everybody else in this field speaks of microvolts.
MICROVOLTS_PER_VOLT = 1e6


def extract_features(
    data: Any,
    *,
    sfreq: float | None = None,
    ch_names: Sequence[str] | None = None,
    features: Iterable[str | Feature] | None = None,
    settings: FeatureSettings | None = None,
    path: SignalPath | None = None,
) -> pd.DataFrame:
    """Compute features of a recording or of epochs.

    Parameters
    ----------
    data : mne.io.Raw, mne.Epochs or array of shape (n_epochs, n_channels, n_times)
        From MNE objects the EEG channels are taken, in microvolts; channels in
        ``info["bads"]`` are missing. Arrays are taken in the unit they come in.
    sfreq : float, optional
        Sampling rate in Hz; needed for arrays.
    ch_names : sequence of str, optional
        For arrays; default ``ch000``, ``ch001``, ...
    features : iterable of str or Feature, optional
        Default: :data:`DEFAULT_FEATURES`.
    settings : FeatureSettings, optional
        Bands and constants of the features.
    path : SignalPath, optional
        Resampling, band-pass and cutting into epochs.

    Returns
    -------
    DataFrame of shape (n_epochs, n_channels * n_outputs)
        Columns ``<channel>__<feature>``; the index holds the start of each epoch in seconds
        (for epochs that are cut already: as if one followed the other). NaN where a channel is
        missing in an epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec.features import extract_features
    >>> epochs = np.random.default_rng(0).standard_normal((4, 2, 2500))
    >>> frame = extract_features(epochs, sfreq=250, ch_names=["Fp1", "Fp2"])
    >>> frame.shape
    (4, 36)
    >>> list(frame.columns[:3])
    ['Fp1__mean', 'Fp1__variance', 'Fp1__nsi']
    """
    path = path or SignalPath()
    settings = settings or FeatureSettings()
    names, prepared = _prepared(data, sfreq, ch_names, settings, path)
    values, outputs = compute_features(
        prepared.data,
        prepared.sfreq,
        features=features,
        settings=settings,
        missing=prepared.missing,
    )
    return pd.DataFrame(
        values.reshape(len(values), -1),
        columns=feature_columns(names, outputs),
        index=pd.Index(prepared.starts, name="start"),
    )


def feature_columns(ch_names: Iterable[str], outputs: Sequence[str]) -> list[str]:
    """Name the columns of a table, channel by channel.

    The last ``__`` parts the two. A feature's name holds none and begins with no ``_``, so a
    channel may have any name, one with ``__`` too.

    Examples
    --------
    >>> feature_columns(["Fz", "Cz"], ["mean", "nsi"])
    ['Fz__mean', 'Fz__nsi', 'Cz__mean', 'Cz__nsi']
    """
    return [f"{channel}__{output}" for channel in ch_names for output in outputs]


def _prepared(
    data: Any,
    sfreq: float | None,
    ch_names: Sequence[str] | None,
    settings: FeatureSettings,
    path: SignalPath,
) -> tuple[list[str], PreparedEpochs]:
    import mne  # takes a while to load and arrays do not need it

    if not isinstance(data, mne.io.BaseRaw | mne.BaseEpochs):
        array, rate, names = _checked_array(data, sfreq, ch_names)
        settings.check_rate(rate)
        return names, prepare_epochs(array, rate, path)
    rate = float(data.info["sfreq"])
    settings.check_rate(rate)
    picks = mne.pick_types(data.info, eeg=True, exclude=())
    if not len(picks):
        raise InputError(
            "The recording has no EEG channel: set the types of its channels, for example "
            "raw.set_channel_types({'Fp1': 'eeg'})."
        )
    names = [data.ch_names[pick] for pick in picks]
    array = data.get_data(picks=picks) * MICROVOLTS_PER_VOLT
    array[..., np.isin(names, data.info["bads"]), :] = np.nan
    is_raw = isinstance(data, mne.io.BaseRaw)
    return names, (prepare_recording if is_raw else prepare_epochs)(array, rate, path)


def _checked_array(
    data: Any, sfreq: float | None, ch_names: Sequence[str] | None
) -> tuple[NDArray[np.floating], float, list[str]]:
    array = np.asarray(data)
    if not np.issubdtype(array.dtype, np.floating):
        array = array.astype(np.float64)
    if array.ndim != 3 or 0 in array.shape[1:]:
        raise InputError(
            "Epochs must be an array of shape (n_epochs, n_channels, n_times), an mne.Epochs or "
            f"an mne.io.Raw; got shape {array.shape}."
        )
    if sfreq is None:
        raise InputError("The sampling rate of an array must be given: sfreq=250, for example.")
    names = [f"ch{i:03d}" for i in range(array.shape[1])] if ch_names is None else list(ch_names)
    if len(names) != array.shape[1]:
        raise InputError(f"{len(names)} channel names for {array.shape[1]} channels.")
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{name!r} cannot name a channel: use a text that is not empty.")
    if len(set(names)) < len(names):
        raise InputError("Channel names must differ from each other.")
    return array, float(sfreq), names
