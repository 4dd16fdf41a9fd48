"""FSOR and GRMOR are special cases of IDFS-MEC."""

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning

from idfsmec.selection import FSOR, GRMOR, IDFSMEC


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
    np.testing.assert_allclose(fsor.feature_weights_, idfs.feature_weights_, atol=1e-9)
    assert fsor.ranking_.tolist() == idfs.ranking_.tolist()
    assert fsor.objective_ == pytest.approx(idfs.objective_[0])


@pytest.mark.parametrize("lam", [0.01, 1.0, 100.0])
def test_grmor_is_idfs_mec_with_one_channel(data, lam):
    X, y = data
    grmor, idfs = GRMOR(lam=lam, tol=1e-8).fit(X, y), one_channel(X, lam).fit(X, y)
    np.testing.assert_allclose(grmor.feature_weights_, idfs.feature_weights_, atol=1e-9)
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
