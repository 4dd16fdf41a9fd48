import numpy as np
import pytest
from numpy.testing import assert_allclose

from idfsmec.solver import Options, fold_moments, solve_channels, table_moments

COLUMNS = [np.arange(0, 4), np.arange(4, 8), np.arange(8, 10)]


def table(seed=0, n=60):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 10)) @ rng.normal(size=(10, 10)) + 0.5 * y[:, None]
    X[rng.random(n) < 0.3, :4] = np.nan
    return X, y, np.array_split(rng.permutation(n), 5)


def outlier_in_fold(X, folds):
    """Nearly all variance of a feature sits in one held-out sample."""
    X[folds[0][0], 5] = 1e12


def constant_but_in_fold(X, folds):
    """Constant in the training part of fold 0 only."""
    keep = X[folds[0], 9].copy()
    X[:, 9] = 3.0
    X[folds[0], 9] = keep


def ill_conditioned(X, folds):
    X[:, 4] = 1e8 + X[:, 5] + 1e-6 * X[:, 6]


def one_class_left(X, folds):
    """A channel seen for the second class in fold 0 only."""
    gone = np.ones(len(X), dtype=bool)
    gone[::2] = False
    gone[folds[0]] = False
    X[gone, :4] = np.nan
    X[folds[0], :4] = np.arange(folds[0].size * 4).reshape(-1, 4) ** 1.5


def nothing(X, folds):
    pass


@pytest.mark.parametrize(
    "spoil", [nothing, outlier_in_fold, constant_but_in_fold, ill_conditioned, one_class_left]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_folds_by_subtraction_solve_to_what_separate_fits_give(spoil, weighted):
    X, y, folds = table()
    spoil(X, folds)
    weights = np.random.default_rng(1).random(len(y)) + 0.1 if weighted else None
    options = Options(tol=1e-9)
    fits = solve_channels(fold_moments(X, y, 2, COLUMNS, folds, weights), [0.1, 10.0], options)
    for number, left_out in enumerate(folds):
        kept = np.setdiff1d(np.arange(len(y)), left_out)
        taken = None if weights is None else weights[kept]
        alone = solve_channels(
            [table_moments(X[kept], y[kept], 2, COLUMNS, taken)], [0.1, 10.0], options
        )
        assert alone.unusable[0] == fits.unusable[number]
        usable = np.isfinite(alone.objectives[0])
        assert_allclose(fits.objectives[number][usable], alone.objectives[0][usable], rtol=1e-6)
        assert_allclose(fits.feature_weights[number], alone.feature_weights[0], atol=1e-4)
