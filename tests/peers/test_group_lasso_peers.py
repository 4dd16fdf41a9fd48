"""Group lasso against celer."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_classification

from idfsmec.selection import GroupLasso

pytestmark = pytest.mark.long

CelerGroupLasso = pytest.importorskip("celer", reason="celer has no wheel for 3.14").GroupLasso


@pytest.mark.parametrize("alpha", [0.02, 0.3])
@pytest.mark.parametrize(
    "data",
    [
        load_breast_cancer(return_X_y=True),
        make_classification(60, 120, n_informative=10, random_state=0),
    ],
    ids=["breast cancer", "more features than samples"],
)
def test_has_the_coefficients_of_celer(data, alpha):
    X, y = data
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = GroupLasso(np.arange(X.shape[1]) // 6, alpha=alpha, tol=1e-12).fit(X, y)
    # The two columns of W are one another's negatives: norms are sqrt(2) of those of one.
    peer = CelerGroupLasso(
        groups=6,
        alpha=ours.penalty_ / np.sqrt(2),
        weights=np.full(X.shape[1] // 6, np.sqrt(6)),
        tol=1e-12,
        max_iter=1000,
    ).fit(Z, y)
    np.testing.assert_allclose(ours.coef_[:, 1], peer.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.coef_[:, 0], -ours.coef_[:, 1], atol=1e-12)
