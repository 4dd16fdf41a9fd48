import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from idfsmec import IDFSMEC, idfs_path
from tests.conftest import make_channels


@pytest.mark.parametrize("n_classes", [2, 4])
def test_every_entry_equals_a_separate_fit(n_classes):
    X, y, channels = make_channels(n_classes=n_classes)
    lams, gammas = [1e-3, 1.0, 1e3], [1.1, 2.0, 9.0]
    path = idfs_path(X, y, channels=channels, lams=lams, gammas=gammas)
    for i, lam in enumerate(lams):
        for j, gamma in enumerate(gammas):
            single = IDFSMEC(channels, lam=lam, gamma=gamma).fit(X, y)
            assert_array_equal(path.scores[i, j], single.scores_)
            assert_array_equal(path.rankings[i, j], single.ranking_)
            assert_array_equal(path.channel_weights[i, j], single.channel_weights_)
        assert_array_equal(path.feature_weights[i], single.feature_weights_)
        assert_array_equal(path.objectives[i], single.objective_)


def test_options_and_weights_reach_the_fit(incomplete):
    X, y, channels = incomplete
    weights = np.random.default_rng(0).random(len(y))
    options = {"standardize": False, "missing_correction": None, "channel_weighting": False}
    path = idfs_path(
        X, y, channels=channels, lams=[0.5], gammas=[2], sample_weight=weights, **options
    )
    single = IDFSMEC(channels, lam=0.5, **options).fit(X, y, sample_weight=weights)
    assert_allclose(path.scores[0, 0], single.scores_)


def test_bad_grids_are_named(incomplete):
    X, y, _ = incomplete
    with pytest.raises(ValueError, match="'gammas' parameter of idfs_path"):
        idfs_path(X, y, gammas=[2, 1])
    with pytest.raises(ValueError, match="'lams' parameter"):
        idfs_path(X, y, lams=[1.0, -1.0])


def test_unsolved_and_unusable_channels_are_named(incomplete):
    X, y, channels = incomplete
    with pytest.warns(ConvergenceWarning, match="did not reach"):
        idfs_path(X, y, channels=channels, max_iter=1)
    X[:, :5] = np.nan
    with pytest.warns(UserWarning, match=r"E1 \(never observed\)"):
        idfs_path(X, y, channels=channels)
