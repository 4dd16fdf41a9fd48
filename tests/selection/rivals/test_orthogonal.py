"""FSOR and GRMOR are special cases of IDFS-MEC."""

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning

from idfsmec._remembered import fix
from idfsmec.selection import CDLSR, FSOR, GRMOR, IDFSMEC, rank_grid
from idfsmec.selection.grid import rank_each
from idfsmec.selection.rivals import _regression


@pytest.fixture(params=["wine", "generated"])
def data(request):
    if request.param == "wine":
        return load_wine(return_X_y=True)
    return make_classification(80, 15, n_informative=4, random_state=0)


def one_channel(X, lam):
    options = {"lam_scale": "paper", "channel_loss": "in-sample"}
    return IDFSMEC(["all"] * X.shape[1], lam=lam, tol=1e-8, **options)


def test_fsor_is_idfs_mec_with_one_channel_and_free_redundancy(data):
    X, y = data
    fsor, idfs = FSOR(tol=1e-8).fit(X, y), one_channel(X, 0.0).fit(X, y)
    np.testing.assert_array_equal(fsor.feature_weights_, idfs.feature_weights_)
    assert fsor.ranking_.tolist() == idfs.ranking_.tolist()
    assert fsor.objective_ == idfs.objective_[0]


@pytest.mark.parametrize("lam", [0.01, 1.0, 100.0])
def test_grmor_is_idfs_mec_with_one_channel(data, lam):
    X, y = data
    grmor, idfs = GRMOR(lam=lam, tol=1e-8).fit(X, y), one_channel(X, lam).fit(X, y)
    np.testing.assert_array_equal(grmor.feature_weights_, idfs.feature_weights_)
    assert grmor.ranking_.tolist() == idfs.ranking_.tolist()


def test_grmor_without_a_weight_on_redundancy_is_fsor(data):
    np.testing.assert_array_equal(GRMOR(lam=0).fit(*data).scores_, FSOR().fit(*data).scores_)


@pytest.mark.parametrize("selector", [FSOR(), GRMOR(lam=10.0)])
def test_weights_lie_on_the_simplex_and_the_loss_never_rises(selector, data):
    selector.fit(*data)
    assert selector.scores_.sum() == pytest.approx(1)
    assert selector.scores_.min() >= 0
    assert (np.diff(selector.objective_history_) <= 0).all()
    assert selector.kkt_residual_ <= selector.tol


def test_a_high_weight_of_redundancy_spreads_the_weight_over_unlike_features():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    signal = y + rng.normal(size=200)
    copies = signal[:, None] + 0.05 * rng.normal(size=(200, 3))
    X = np.column_stack([copies, 0.3 * y + rng.normal(size=200)])
    free, weighted = FSOR().fit(X, y).scores_, GRMOR(lam=1e3).fit(X, y).scores_
    assert weighted[3] > free[3]
    assert weighted[3] == pytest.approx(0.5, abs=0.05)


def test_too_few_iterations_are_warned_of():
    X, y = load_wine(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match=r"GRMOR did not reach tol=1e-14 in 1 iter"):
        GRMOR(max_iter=1, tol=1e-14).fit(X, y)


def test_a_grid_over_folds_ranks_as_separate_fits():
    X, y = make_classification(90, 30, n_informative=6, n_classes=3, random_state=1)
    X[:, [4, 17]] = 3.0
    settings = [{"lam": lam} for lam in (1e-3, 1.0, 1e3)]
    settings += [{"lam": 1.0, "standardize": False}, {"tol": 1e-2}, {"n_features_to_select": 3}]
    held_out = [np.arange(0, 90, 3), np.arange(1, 90, 3)]
    found = rank_grid(GRMOR(), X, y, settings, held_out=held_out)
    np.testing.assert_array_equal(found, rank_each(GRMOR(), X, y, settings, held_out=held_out))
    assert set(found[:, :, [4, 17]].ravel()) == {29, 30}
    np.testing.assert_array_equal(FSOR().rank_grid(X, y, [{}])[0, 0], FSOR().fit(X, y).ranking_)


def test_a_grid_refuses_and_warns_as_a_fit_does(data):
    with pytest.raises(ValueError, match="'lam' parameter of GRMOR"):
        GRMOR().rank_grid(*data, [{"lam": -1.0}])
    with pytest.warns(ConvergenceWarning, match="GRMOR did not reach"):
        GRMOR().rank_grid(*data, [{"max_iter": 1, "tol": 1e-12}])


@pytest.mark.parametrize(("n_features", "n_sums"), [(20, 1), (40, 3)])
def test_methods_share_the_sums_of_samples_that_nobody_can_change(monkeypatch, n_features, n_sums):
    X, y = make_classification(30, n_features, random_state=3)
    selectors = FSOR(), GRMOR(), CDLSR(n_features_to_select=3, random_state=0)
    alone = [rank_grid(one, X, y, [{}]) for one in selectors]
    counted = []

    def sum_up(*data):
        counted.append(data)
        return table_moments(*data)

    table_moments = _regression.table_moments
    monkeypatch.setattr(_regression, "table_moments", sum_up)
    fix(X)
    found = [rank_grid(one, X, y, [{}]) for one in selectors]
    np.testing.assert_array_equal(found, alone)
    assert len(counted) == n_sums  # sums that are larger than the samples are not kept
    rank_grid(FSOR(), X, 1 - y, [{}])
    assert len(counted) == n_sums + 1
