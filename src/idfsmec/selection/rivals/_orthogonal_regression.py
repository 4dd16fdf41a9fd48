"""FSOR and GRMOR are IDFS-MEC with one channel of all features and nothing missing."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from idfsmec._parameters import Constraints, integer, number
from idfsmec.selection._base import CompleteSelector
from idfsmec.selection.rivals._blas import blas_threads_for
from idfsmec.solver import Options, solve_channels, table_moments


class OrthogonalRegression(CompleteSelector):
    """Orthogonal regression on all features, with weights on the simplex.

    A subclass has the parameters ``standardize``, ``tol`` and ``max_iter`` and says what
    redundancy costs (:meth:`_price_of_redundancy`).
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "standardize": ["boolean"],
        "tol": [number(0)],
        "max_iter": [integer(1)],
    }

    standardize: bool
    tol: float
    max_iter: int

    def _price_of_redundancy(self) -> float:
        return 0.0

    def _rank(self, X: NDArray[np.float64], y: NDArray[np.intp]) -> None:
        lam = self._price_of_redundancy()
        columns = [np.arange(X.shape[1])]
        options = Options(
            standardize=bool(self.standardize), tol=float(self.tol), max_iter=int(self.max_iter)
        )
        moments = table_moments(X, y, int(y.max()) + 1, columns)
        with blas_threads_for(X.shape[1]):
            fits = solve_channels([moments], [lam], options)
        self.feature_weights_ = fits.feature_weights[0, 0]
        self.objective_ = float(fits.objectives[0, 0, 0])
        self.objective_history_ = np.minimum.accumulate(fits.history[:, 0])
        self.kkt_residual_ = float(fits.kkt_residuals[0, 0, 0])
        self.n_iter_ = int(fits.n_iter.max())
        self._warn_if_unsolved()
        # lexsort takes its last key first; features that were left out have gain -1.
        order = np.lexsort((-fits.gains[0, 0], -self.feature_weights_))
        self._set_ranking(self.feature_weights_, order)

    def _warn_if_unsolved(self) -> None:
        if self.kkt_residual_ > self.tol:
            warnings.warn(
                f"{type(self).__name__} did not reach tol={self.tol} in {self.max_iter} "
                f"iterations (residual {self.kkt_residual_:.1e}). Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
