"""Features as a scikit-learn transformer: from epochs to a prediction in one pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from idfsmec.features._extract import extract_features
from idfsmec.features._prepare import SignalPath
from idfsmec.features._registry import Feature
from idfsmec.features._settings import FeatureSettings


class FeatureExtractor(TransformerMixin, BaseEstimator):
    """Turn epochs into features, one row per epoch.

    Nothing is learnt from the data: ``fit`` remembers the channels and checks the parameters.
    A channel that is missing in an epoch (flat or not finite) gives NaN there, so that an
    imputer or a method that takes NaN comes next.

    Parameters
    ----------
    sfreq : float, optional
        Sampling rate of arrays in Hz; ``mne.Epochs`` know theirs.
    ch_names : sequence of str, optional
        Channel names of arrays; default ``ch000``, ``ch001``, ...
    features : iterable of str or Feature, optional
        Default: :data:`DEFAULT_FEATURES`.
    settings : FeatureSettings, optional
        Bands and constants.
    resample : float or None
        Sampling rate in Hz to convert to; None keeps the rate.
    band_pass : (float, float) or None
        Band-pass in Hz; None for epochs that are filtered already.

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

    def __init__(
        self,
        sfreq: float | None = None,
        *,
        ch_names: Sequence[str] | None = None,
        features: Iterable[str | Feature] | None = None,
        settings: FeatureSettings | None = None,
        resample: float | None = 250.0,
        band_pass: tuple[float, float] | None = (1.0, 45.0),
    ) -> None:
        self.sfreq = sfreq
        self.ch_names = ch_names
        self.features = features
        self.settings = settings
        self.resample = resample
        self.band_pass = band_pass

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Remember the channels.

        Parameters
        ----------
        X : array of shape (n_epochs, n_channels, n_times) or mne.Epochs
        y : ignored
        """
        # One epoch is enough to know the columns, and to fail early on parameters.
        frame = self._frame(X[:1])
        self.feature_names_out_ = frame.columns.to_numpy(dtype=object)
        self.n_channels_in_ = len({name.rpartition("__")[0] for name in frame.columns})
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

    def _frame(self, X: Any) -> Any:
        return extract_features(
            X,
            sfreq=self.sfreq,
            ch_names=self.ch_names,
            features=self.features,
            settings=self.settings,
            path=SignalPath(resample=self.resample, band_pass=self.band_pass),
        )
