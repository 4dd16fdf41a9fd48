"""RRCT against the rrct package."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_classification,
)

from idfsmec.selection import RRCT

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # deprecations inside pingouin's imports
    from rrct.algorithm import RRCTFeatureSelection


pytestmark = pytest.mark.long


def generated(n_classes):
    return make_classification(
        100, 8, n_informative=5, n_redundant=0, n_classes=n_classes, random_state=n_classes
    )


@pytest.mark.parametrize(
    ("data", "k"),
    [
        (load_diabetes(return_X_y=True), 10),
        (load_wine(return_X_y=True), 6),
        (load_iris(return_X_y=True), 4),
        (tuple(part[:200] for part in load_breast_cancer(return_X_y=True)), 4),
        (generated(2), 5),
        (generated(3), 5),
        (generated(5), 5),
    ],
    ids=["diabetes", "wine", "iris", "breast cancer", "2 classes", "3 classes", "5 classes"],
)
def test_chooses_the_same_features_in_the_same_order(data, k):
    X, y = data
    peer = RRCTFeatureSelection(K=k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.apply(X=X, y=y)
    ours = RRCT(n_features_to_select=k).fit(X, y)
    assert np.argsort(ours.ranking_)[:k].tolist() == list(peer.selected_features_indices_)
