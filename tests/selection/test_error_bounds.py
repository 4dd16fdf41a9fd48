"""The bounds on false selections, against simulation and each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idfsmec.selection.agreement import false_selections, smallest_threshold


def test_the_general_bound_is_that_of_meinshausen_and_buehlmann():
    assert false_selections(0.9, 30, 1000, 50, "none") == pytest.approx(900 / (0.8 * 1000))


@pytest.mark.parametrize(
    ("threshold", "factor"),
    [(0.7, 1 / (2 * (0.4 - 0.01))), (0.9, 4 * (0.1 + 0.01) / 1.02), (1.0, 4 * 0.01 / 1.02)],
)
def test_the_unimodal_bound_is_that_of_shah_and_samworth(threshold, factor):
    """Theorem 2 with B = 50, written out by hand."""
    assert false_selections(threshold, 10, 1000, 50) == pytest.approx(0.1 * factor)


def test_no_frequency_of_a_half_or_below_bounds_anything():
    assert false_selections(0.5, 3, 100, 50) == np.inf


def test_many_features_per_half_leave_the_unimodal_bound_without_its_theorem():
    assert false_selections(0.9, 70, 100, 50) == false_selections(0.9, 70, 100, 50, "none")


@given(
    threshold=st.floats(0.51, 1.0),
    q=st.integers(1, 50),
    n_features=st.integers(50, 3000),
    n_pairs=st.integers(5, 200),
)
def test_an_assumption_never_loosens_the_bound(threshold, q, n_features, n_pairs):
    tight = false_selections(threshold, q, n_features, n_pairs)
    assert tight <= false_selections(threshold, q, n_features, n_pairs, "none")


@given(q=st.integers(1, 30), n_features=st.integers(60, 500), allowed=st.floats(0.05, 5.0))
def test_the_threshold_is_the_smallest_frequency_that_meets_the_bound(q, n_features, allowed):
    threshold = smallest_threshold(allowed, q, n_features, 50)
    if threshold is None:
        assert false_selections(1.0, q, n_features, 50) > allowed
        return
    assert false_selections(threshold, q, n_features, 50) <= allowed * (1 + 1e-9)
    if threshold > 0.51:
        assert false_selections(threshold - 0.01, q, n_features, 50) > allowed


def test_features_picked_at_random_stay_within_the_bound():
    """Independent random picks of q on every half: the worst the theorems allow for."""
    rng = np.random.default_rng(0)
    n_features, q, n_pairs = 60, 12, 10
    for threshold in (0.55, 0.65):
        kept = []
        for _ in range(200):
            picks = rng.random((2 * n_pairs, n_features)).argsort(axis=1).argsort(axis=1) < q
            kept.append((picks.mean(axis=0) >= threshold).sum())
        assert np.mean(kept) <= false_selections(threshold, q, n_features, n_pairs)
