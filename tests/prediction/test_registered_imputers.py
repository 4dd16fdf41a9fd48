"""Imputers by name: what each does where values are missing; it learns from training alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.impute import KNNImputer

from idfsmec.prediction import IMPUTERS, ChannelImputer
from tests.prediction.scalp_maps import smooth_maps


@pytest.fixture
def samples():
    return smooth_maps()


@pytest.mark.parametrize("name", list(IMPUTERS))
def test_observed_values_stay_and_missing_ones_come_from_training_alone(name, samples):
    X, _, about = samples
    imputer = IMPUTERS[name].build(**about).fit(X[:40])
    filled = imputer.transform(X[40:])
    there = ~np.isnan(X[40:])
    assert filled.shape == X[40:].shape
    assert np.isfinite(filled).all()
    assert_allclose(filled[there], X[40:][there])
    assert_allclose(imputer.transform(X[40:42]), filled[:2])  # one sample does not change another


@pytest.mark.parametrize("name", ["neighbours", "factors"])
def test_what_looks_at_other_channels_is_nearer_to_the_truth_than_the_mean(name, samples):
    X, whole, about = samples
    gone = np.isnan(X[40:])

    def error(one):
        filled = IMPUTERS[one].build(**about).fit(X[:40]).transform(X[40:])
        return np.mean((filled - whole[40:])[gone] ** 2)

    assert error(name) < 0.9 * error("mean")


def test_names_stand_for_what_they_say():
    assert isinstance(IMPUTERS["neighbours"].build(), KNNImputer)
    assert isinstance(IMPUTERS["factors"].build(), ChannelImputer)
    assert [name for name, one in IMPUTERS.items() if one.marks_missing] == ["indicators"]
