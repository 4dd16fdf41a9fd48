"""What estimators of samples with missing channels share: an engine made of their input."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from idfsmec._groups import groups_of
from idfsmec._parameters import CheckedEstimator, Constraints
from idfsmec.selection._base import refuse_infinite
from idfsmec.selection.idfsmec.engine import GAMMA, LAM, OPTIONS, Engine, check_weights
from idfsmec.selection.idfsmec.fits import Fits, Weighing

Array = NDArray[np.float64]


class ChannelEstimator(CheckedEstimator):
    """What estimators of samples with missing channels share: an engine made of their input.

    A subclass has the parameters ``channels``, ``lam`` and ``gamma``, and those of
    :data:`~idfsmec.selection.idfsmec.engine.OPTIONS` that it offers.
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "channels": ["array-like", None],
        "lam": [LAM],
        "gamma": [GAMMA],
        **OPTIONS,
    }

    channels: ArrayLike | None
    lam: float
    gamma: float

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check_samples(
        self, X: ArrayLike, y: ArrayLike | None, **how: Any
    ) -> tuple[Array, NDArray]:
        """Give samples as numbers, NaN allowed; learn their number and names."""
        checked, target = validate_data(
            self, X, y, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=2, **how
        )
        names = getattr(self, "feature_names_in_", np.arange(checked.shape[1]))
        refuse_infinite(type(self).__name__, checked, names)
        return checked, target

    def _options(self) -> dict[str, Any]:
        """How channels are posed, solved and weighed."""
        return {name: value for name, value in self.get_params(False).items() if name in OPTIONS}

    def _engine(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Engine:
        """Check the input; learn classes and channels."""
        checked, labels = self._check_samples(X, y)
        engine = Engine.for_classes(
            checked,
            labels,
            self.channels,
            getattr(self, "feature_names_in_", None),
            weights=check_weights(sample_weight, checked),
            groups=groups_of(X, groups),
            **self._options(),
        )
        self.classes_, self.channel_names_ = engine.classes, engine.channel_names
        return engine

    def _hold(self, fits: Fits) -> Weighing:
        """Keep what was found with all samples; give the order of features."""
        found, weighing = fits.channels, fits.weigh(self.gamma)
        self.objective_ = found.objectives[0, 0]
        self.held_out_loss_ = fits.held_out_loss
        self.feature_weights_ = found.feature_weights[0, 0]
        self.kkt_residuals_ = found.kkt_residuals[0, 0]
        self.channel_weights_ = weighing.channel_weights
        self.objective_history_ = fits.history(self.gamma)
        self.n_iter_ = int(found.n_iter.max())
        return weighing
