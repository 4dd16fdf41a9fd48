"""Thin entries for what lies in memory: a function, and a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from idfsmec._columns import split_column
from idfsmec._parameters import (
    CheckedEstimator,
    Constraints,
    SequenceOf,
    checks_parameters,
    number,
)
from idfsmec.features.pipeline import extract_recording
from idfsmec.features.settings import FeatureSettings


def extract_features(
    data: Any,
    settings: FeatureSettings | None = None,
    *,
    sfreq: float | None = None,
    ch_names: Sequence[str] | None = None,
    unit: float | None = None,
) -> pd.DataFrame:
    """Compute features of a recording or of epochs.

    For the same recording and settings the numbers and the missing channels are those of
    ``idfsmec features`` and of :func:`extract_table`.

    Parameters
    ----------
    data : Recording, mne.io.Raw, mne.Epochs or array of shape (n_epochs, n_channels, n_times)
        Of MNE objects the EEG channels are taken, in microvolts. Nothing of it is changed.
    settings : FeatureSettings, optional
        What to compute and how.
    sfreq : float, optional
        Sampling rate in Hz of an array.
    ch_names : sequence of str, optional
        Names of an array's channels, in any spelling; default ``ch000``, ``ch001``, ...
    unit : float, optional
        Volts that one step of an array is, 1e-6 for microvolts: then its features are in
        microvolts and its channels are looked at by the detection, whose limits are in volts.
        By default an array is taken in whatever unit it comes, and channels are missing where
        the signal is constant or not finite.

    Returns
    -------
    DataFrame of shape (n_epochs, n_channels * n_outputs)
        Columns ``<channel>__<feature>`` with standard names (``EEG T3-LE`` is ``T7``); NaN
        where a channel is missing in an epoch. The index holds the start of each epoch in
        seconds (for epochs that are cut already: as if one followed the other). Epochs with
        no channel left are left out, but of epochs that are cut already all are kept.

    See Also
    --------
    extract_recording : The same with the reasons why channels are missing.
    extract_table : Many recordings, with labels and subjects.

    Notes
    -----
    A filter distorts the ends of what it filters. Of a Raw that is the ends of the recording;
    epochs that are cut already can only be filtered one by one. So filter before you cut, as
    MNE advises. ``mne.Epochs`` say what was done (``info["highpass"]``, ``info["lowpass"]``),
    and an edge of ``settings.band_pass`` that cuts nothing off that band is left out. An array
    says nothing: it is filtered unless ``band_pass`` is None. The detection, too, sees more in
    signals as they were recorded.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec.features import extract_features
    >>> epochs = np.random.default_rng(0).standard_normal((4, 2, 2500))
    >>> frame = extract_features(epochs, sfreq=250, ch_names=["Fp1", "EEG Fp2-LE"])
    >>> frame.shape
    (4, 36)
    >>> frame.columns[[0, 1, 18]].tolist()
    ['Fp1__mean', 'Fp1__variance', 'Fp2__mean']
    """
    return extract_recording(data, settings, sfreq=sfreq, ch_names=ch_names, unit=unit).X


class FeatureExtractor(TransformerMixin, CheckedEstimator):
    """Turn epochs into features, one row per epoch, as :func:`extract_features` does.

    Nothing is learnt from the data: ``fit`` remembers the channels and checks the parameters.
    A channel that is missing in an epoch gives NaN there, so that an imputer or a method that
    takes NaN comes next.

    Parameters
    ----------
    sfreq : float, optional
        Sampling rate of arrays in Hz; ``mne.Epochs`` know theirs.
    ch_names : sequence of str, optional
        Channel names of arrays; default ``ch000``, ``ch001``, ...
    unit : float, optional
        Volts that one step of an array is; see :func:`extract_features`. The detection, which
        comes with it, compares the epochs of one recording: do not mix recordings then, or set
        ``settings.detect`` to False.
    settings : FeatureSettings, optional
        What to compute and how. ``epoch``, ``overlap`` and ``keep_empty`` have no meaning for
        epochs that are cut already.

    Attributes
    ----------
    n_channels_in_ : int
    feature_names_out_ : ndarray of str
        ``<channel>__<feature>``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.impute import SimpleImputer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from idfsmec.features import FeatureExtractor
    >>> rng = np.random.default_rng(0)
    >>> epochs, y = rng.standard_normal((20, 3, 1000)), np.repeat([0, 1], 10)
    >>> epochs[y == 1] *= 3
    >>> model = make_pipeline(FeatureExtractor(sfreq=250), SimpleImputer(), SVC())
    >>> model.fit(epochs, y).score(epochs, y)
    1.0
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "sfreq": [number(0), None],
        "ch_names": [SequenceOf(str), None],
        "unit": [number(0), None],
        "settings": [FeatureSettings, None],
    }

    def __init__(
        self,
        sfreq: float | None = None,
        *,
        ch_names: Sequence[str] | None = None,
        unit: float | None = None,
        settings: FeatureSettings | None = None,
    ) -> None:
        self.sfreq = sfreq
        self.ch_names = ch_names
        self.unit = unit
        self.settings = settings

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        return tags

    @checks_parameters
    def fit(self, X: Any, y: Any = None) -> Self:
        """Remember the channels.

        Parameters
        ----------
        X : array of shape (n_epochs, n_channels, n_times) or mne.Epochs
        y : ignored
        """
        # One epoch is enough to know the columns, and to fail early on parameters.
        columns = self._frame(X[:1]).columns
        self.feature_names_out_ = columns.to_numpy(dtype=object)
        self.n_channels_in_ = len({split_column(name)[0] for name in columns})
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Compute the features.

        Parameters
        ----------
        X : array of shape (n_epochs, n_channels, n_times) or mne.Epochs

        Returns
        -------
        ndarray of shape (n_epochs, n_channels * n_outputs)
        """
        check_is_fitted(self)
        frame = self._frame(X)
        if list(frame.columns) != list(self.feature_names_out_):
            raise ValueError(
                f"X has other channels than those this {type(self).__name__} was fitted on: "
                f"{frame.shape[1]} columns beginning with {frame.columns[0]!r} instead of "
                f"{len(self.feature_names_out_)} beginning with {self.feature_names_out_[0]!r}."
            )
        return frame.to_numpy()

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of the output; ``input_features`` is ignored."""
        check_is_fitted(self)
        return self.feature_names_out_

    def _frame(self, X: Any) -> pd.DataFrame:
        return extract_features(
            X, self.settings, sfreq=self.sfreq, ch_names=self.ch_names, unit=self.unit
        )
