"""mRMR and CMIM against fast-select and ITMO_FS."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification

from idfsmec.selection import CMIM, MRMR
from idfsmec.selection.baselines.filters import discretize

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # old syntax inside ITMO_FS
    from fast_select import mRMR as FastMRMR
    from ITMO_FS.filters.multivariate import MultivariateFilter


pytestmark = pytest.mark.long


def generated(n_classes):
    return make_classification(
        151, 14, n_informative=6, n_redundant=0, n_classes=n_classes, random_state=n_classes
    )


DATA = {
    "breast cancer": load_breast_cancer(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "iris": load_iris(return_X_y=True),
    "2 classes": generated(2),
    "3 classes": generated(3),
    "5 classes": generated(5),
}


def order(selector, k):
    return np.argsort(selector.ranking_)[:k].tolist()


def itmo(measure, codes, y, k):
    peer = MultivariateFilter(measure, k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(codes, y)
    return list(peer.selected_features)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("method", ["MID", "MIQ"])
def test_mrmr_equals_fast_select(name, method):
    X, y = DATA[name]
    k = min(8, X.shape[1])
    peer = FastMRMR(n_features_to_select=k, method=method, backend="cpu").fit(discretize(X), y)
    ours = MRMR(n_features_to_select=k, method=method).fit(X, y)
    assert order(ours, k) == peer.top_features_.tolist()


@pytest.mark.parametrize("name", DATA)
def test_mrmr_equals_itmo_fs(name):
    X, y = DATA[name]
    k = min(6, X.shape[1])
    ours = MRMR(n_features_to_select=k).fit(X, y)
    assert order(ours, k) == itmo("MRMR", discretize(X).astype(int), y, k)


@pytest.mark.parametrize("name", DATA)
def test_cmim_b_equals_itmo_fs(name):
    X, y = DATA[name]
    k = min(6, X.shape[1])
    ours = CMIM(n_features_to_select=k, variant="B").fit(X, y)
    assert order(ours, k) == itmo("CMIM", discretize(X).astype(int), y, k)
