"""ScalpSplines: missing channels of a feature map interpolated over the scalp."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from idfsmec._parameters import CheckedEstimator, Constraints, checks_parameters, integer, number

Floats = NDArray[np.float64]


class ScalpSplines(TransformerMixin, CheckedEstimator):
    """Fill missing channels from the others of the same sample by splines on a sphere.

    The values of one feature over the electrodes are a map. As EEG people do with a bad channel's
    signal, the map is interpolated by spherical splines (F. Perrin et al., "Spherical splines for
    scalp potential and current density mapping", 1989). Nothing is learned from other samples.

    Parameters
    ----------
    channels, features : array-like of shape (n_features,), optional
        Which channel each column belongs to, as a row of ``positions``, and which feature it is.
    positions : array-like of shape (n_channels, 3), optional
        Directions of the electrodes from the middle of the head. A channel without (NaN) takes no
        part and is filled with 0, and so are samples without any channel; without ``positions``
        this is all that is done.
    stiffness : int, default=4
        Of the splines; 4 is usual.
    n_terms : int, default=50
        Legendre polynomials that are summed.
    regularization : float, default=1e-5
        Added to the diagonal of the system that is solved.

    Examples
    --------
    >>> positions = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, -1, 0]])
    >>> splines = ScalpSplines([0, 1, 2, 3], ["power"] * 4, positions)
    >>> splines.fit_transform([[1.0, 3.0, np.nan, 3.0], [2.0, 2.0, 2.0, np.nan]]).round(2)
    array([[1.  , 3.  , 2.94, 3.  ],
           [2.  , 2.  , 2.  , 2.  ]])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "channels": ["array-like", None],
        "features": ["array-like", None],
        "positions": ["array-like", None],
        "stiffness": [integer(2)],
        "n_terms": [integer(1)],
        "regularization": [number(0)],
    }

    def __init__(
        self,
        channels: ArrayLike | None = None,
        features: ArrayLike | None = None,
        positions: ArrayLike | None = None,
        *,
        stiffness: int = 4,
        n_terms: int = 50,
        regularization: float = 1e-5,
    ) -> None:
        self.channels = channels
        self.features = features
        self.positions = positions
        self.stiffness = stiffness
        self.n_terms = n_terms
        self.regularization = regularization

    @checks_parameters
    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Work out how each electrode sees the others."""
        n_columns = validate_data(self, X, ensure_all_finite="allow-nan", dtype=np.float64).shape[
            1
        ]
        self._maps: list[NDArray[np.intp]] = []
        if self.positions is None or self.channels is None:
            return self
        places = np.asarray(self.positions, dtype=np.float64)
        channels = np.asarray(self.channels)
        features = np.zeros(n_columns) if self.features is None else np.asarray(self.features)
        known = np.array([bool(np.isfinite(place).all()) for place in places])
        units = np.where(known[:, None], places, 0.0)
        units /= np.maximum(np.linalg.norm(units, axis=1, keepdims=True), 1e-12)
        self._splines = spherical_splines(units @ units.T, self.stiffness, self.n_terms)
        self._channels = channels
        usable = known[channels]
        self._maps = [np.flatnonzero((features == one) & usable) for one in np.unique(features)]
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Fill what is missing; what is there stays as it is."""
        check_is_fitted(self, "_maps")
        filled: Floats = validate_data(
            self, X, reset=False, ensure_all_finite="allow-nan", dtype=np.float64, copy=True
        )
        for columns in self._maps:
            missing = np.isnan(filled[:, columns])
            patterns, which = np.unique(missing, axis=0, return_inverse=True)
            for place, gone in enumerate(patterns):
                if gone.any() and not gone.all():
                    rows = np.flatnonzero(which.ravel() == place)
                    values = filled[np.ix_(rows, columns[~gone])]
                    weights = self._weights(columns[gone], columns[~gone])
                    filled[np.ix_(rows, columns[gone])] = values @ weights.T
        return np.nan_to_num(filled, copy=False)

    def _weights(self, gone: NDArray[np.intp], there: NDArray[np.intp]) -> Floats:
        """What each missing column takes of each that is there: rows of the result."""
        to, from_ = self._channels[gone], self._channels[there]
        size = there.size
        system = np.ones((size + 1, size + 1))
        system[:size, :size] = self._splines[np.ix_(from_, from_)]
        system[range(size), range(size)] += self.regularization
        system[size, size] = 0.0
        asked = np.column_stack([self._splines[np.ix_(to, from_)], np.ones(gone.size)])
        # The system is symmetric: solving for what is asked gives the weights of the values.
        return np.linalg.lstsq(system, asked.T, rcond=None)[0][:size].T

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def spherical_splines(cosines: Floats, stiffness: int = 4, n_terms: int = 50) -> Floats:
    """Sum the Legendre series of a spherical spline, for cosines of the angles between points.

    Examples
    --------
    >>> spherical_splines(np.array([[1.0, -1.0]])).round(4)
    array([[ 0.0152, -0.0147]])
    """
    order = np.arange(1, n_terms + 1)
    factors = (2 * order + 1) / (order * (order + 1)) ** stiffness / (4 * np.pi)
    return np.polynomial.legendre.legval(np.clip(cosines, -1.0, 1.0), np.append(0.0, factors))
