import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from idfsmec.solver import channel_weights, total_objective


@given(
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6), st.floats(1.01, 20), st.integers(0, 99)
)
def test_no_other_weights_on_the_simplex_cost_less(objectives, gamma, seed):
    U = np.array(objectives)
    alpha = channel_weights(U, gamma)
    assert alpha.sum() == pytest.approx(1)
    best = np.sum(alpha**gamma * U)
    for other in np.random.default_rng(seed).dirichlet(np.ones(U.size), size=20):
        assert best <= np.sum(other**gamma * U) * (1 + 1e-9)


def test_a_lower_loss_gives_a_larger_weight():
    alpha = channel_weights(np.array([3.0, 1.0, 2.0]), 2.0)
    assert alpha.argsort().tolist() == [0, 2, 1]


@pytest.mark.parametrize("gamma", [1.001, 2.0, 50.0])
def test_extreme_losses_and_gammas_stay_finite(gamma):
    alpha = channel_weights(np.array([0.0, 1e-300, 1.0, 1e300]), gamma)
    assert np.isfinite(alpha).all()
    assert alpha.sum() == pytest.approx(1)


def test_without_weighting_all_channels_count_alike():
    U = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert_allclose(channel_weights(U, 2.0, weighting=False), 0.5)
    assert_allclose(total_objective(U, 2.0, weighting=False), [0.75, 1.75])
