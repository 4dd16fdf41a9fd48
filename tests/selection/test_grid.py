"""A grid of settings over folds equals separate fits, whoever does the work."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone

from idfsmec.selection import CDLSR, GRMOR, RFS, rank_grid
from idfsmec.selection.base import CompleteSelector

RNG = np.random.default_rng(4)
X = RNG.normal(size=(60, 8))
Y = np.tile([0, 1, 2], 20)
X[:, 5] += Y
HELD_OUT = [np.arange(0, 60, 2), np.arange(10)]
SETTINGS = [{"gamma": 0.1}, {"gamma": 10.0, "standardize": True}, {}]


@pytest.mark.parametrize("frame", [False, True])
def test_a_grid_equals_separate_fits(frame):
    data = pd.DataFrame(X, columns=[f"F3__{j}" for j in range(8)]) if frame else X
    found = rank_grid(RFS(), data, Y, SETTINGS, held_out=HELD_OUT)
    assert found.shape == (2, 3, 8)
    for fold, left_out in enumerate(HELD_OUT):
        kept = np.setdiff1d(np.arange(60), left_out)
        for place, setting in enumerate(SETTINGS):
            alone = RFS(**setting).fit(X[kept], Y[kept])
            assert_array_equal(found[fold, place], alone.ranking_)


def test_without_folds_all_samples_are_fitted_and_the_selector_stays_as_it_is():
    selector = RFS()
    found = rank_grid(selector, X, Y, [{"gamma": 3.0}])
    assert_array_equal(found, [[RFS(gamma=3.0).fit(X, Y).ranking_]])
    assert selector.gamma == 1.0
    assert not hasattr(selector, "ranking_")


def test_a_selector_that_does_it_in_one_go_is_asked_to():
    asked = []

    class InOneGo(BaseEstimator):
        def rank_grid(self, X, y, settings, *, held_out=None, groups=None):
            asked.append((len(settings), len(held_out), groups))
            return "ranks"

    assert rank_grid(InOneGo(), X, Y, SETTINGS, held_out=HELD_OUT, groups=Y) == "ranks"
    assert asked == [(3, 2, Y)]


@pytest.mark.parametrize(
    ("selector", "settings"),
    [
        (GRMOR(), [{"lam": 1e-3}, {"lam": 1.0}, {"lam": 1e3}]),
        (CDLSR(random_state=0), [{"n_features_to_select": k} for k in (1, 3, 6)]),
        (GRMOR(), [{"lam": 1.0, "standardize": False}, {"lam": 2.0}]),
        (CDLSR(random_state=0), [{"n_restarts": 2}, {"n_features_to_select": 2}]),
    ],
)
@pytest.mark.parametrize("held_out", [None, HELD_OUT])
def test_settings_that_share_work_rank_as_separate_fits(selector, settings, held_out):
    found = rank_grid(selector, X, Y, settings, held_out=held_out)
    for fold, left_out in enumerate([[]] if held_out is None else held_out):
        kept = np.setdiff1d(np.arange(60), left_out)
        for place, setting in enumerate(settings):
            alone = clone(selector).set_params(**setting).fit(X[kept], Y[kept])
            assert_array_equal(found[fold, place], alone.ranking_)
    assert not hasattr(selector, "n_features_in_")


class BySubjects(CompleteSelector):
    """Ranks features by their order, shifted by the number of subjects."""

    def __init__(self, *, n_features_to_select=20):
        self.n_features_to_select = n_features_to_select

    def fit(self, X, y, groups=None):
        self._set_order(np.roll(np.arange(8), np.unique(groups).size))
        return self

    def _rank(self, X, y):
        raise AssertionError


def test_groups_reach_a_fit_that_takes_them_fold_by_fold():
    subjects = np.repeat(np.arange(3), 20)
    found = rank_grid(BySubjects(), X, Y, [{}], held_out=[[], np.arange(20)], groups=subjects)
    assert found[:, 0, 0].tolist() == [4, 3]


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        rank_grid(RFS(), X, Y[:-1], [{}])
