"""How far selections agree, and the bounds on false ones, against simulation and each other."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from idfsmec.selection import selection_stability
from idfsmec.selection.stability import Stability, false_selections, smallest_threshold

selections = arrays(bool, st.tuples(st.integers(2, 7), st.integers(2, 8)))


def kuncheva_over_pairs(selected):
    """Mean over pairs of (r - k^2/d) / (k - k^2/d), Kuncheva 2007; all rows of one size."""
    d, k = selected.shape[1], selected[0].sum()
    return np.mean(
        [
            ((one & other).sum() - k**2 / d) / (k - k**2 / d)
            for one, other in itertools.combinations(selected, 2)
        ]
    )


@given(st.integers(2, 6), st.integers(3, 8), st.data())
def test_for_selections_of_one_size_it_is_kunchevas_index(n, d, data):
    k = data.draw(st.integers(1, d - 1))
    rows = [data.draw(st.permutations([True] * k + [False] * (d - k))) for _ in range(n)]
    selected = np.array(rows)
    assert selection_stability(selected).value == pytest.approx(kuncheva_over_pairs(selected))


@given(selections)
def test_it_agrees_with_the_definition_written_out(selected):
    """Nogueira et al. 2018, Definition 4, feature by feature."""
    n, d = selected.shape
    found = selection_stability(selected)
    mean_size = selected.sum() / n
    if mean_size in (0, d):
        assert np.isnan(found.value)
        return
    variance = sum(np.var(selected[:, f], ddof=1) for f in range(d)) / d
    expected = 1 - variance / (mean_size / d * (1 - mean_size / d))
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert -1 / (n - 1) - 1e-9 <= found.value <= 1


@given(selections)
def test_the_interval_follows_from_numerical_derivatives(selected):
    """The delta method: how disagreement and what chance allows move with each row's weight."""
    n, d = selected.shape
    found = selection_stability(selected)
    if np.isnan(found.value):
        return
    z = selected.astype(float)

    def parts(weights):
        frequency = weights @ z
        share = frequency.sum() / d
        return np.array([(frequency * (1 - frequency)).mean(), share * (1 - share)])

    step, even = 1e-4, np.full(n, 1 / n)  # both are quadratic: central differences are exact
    slopes = np.array(
        [(parts(even + step * e) - parts(even - step * e)) / (2 * step) for e in np.eye(n)]
    )
    influence = (-slopes[:, 0] + (1 - found.value) * slopes[:, 1]) / parts(even)[1]
    half = 1.959964 * np.sqrt(((influence - influence.mean()) ** 2).sum()) / n
    assert found.value - found.low == pytest.approx(half, rel=1e-6, abs=1e-8)
    assert found.high == pytest.approx(min(found.value + half, 1), rel=1e-6, abs=1e-8)


def test_a_hand_computed_example_agrees():
    # p = (1, 2/3, 1/3, 0): sum of p(1-p) = 4/9; 1 - 3/2 * (4/9)/4 / (1/2 * 1/2) = 1/3
    found = selection_stability([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]])
    assert found.value == pytest.approx(1 / 3)
    # Theorem 7 by hand: influences 4 * (5/12 - 1/4 + 1/6 * 1/2), twice, and
    # 4 * (1/3 - 1/4 + 1/12) = 1, 1, 2/3; variance 4/9 * 2/27
    assert found.value - found.low == pytest.approx(1.959964 * np.sqrt(4 / 9 * 2 / 27), rel=1e-6)
    assert found.verdict == "poor"


# Ten selections of 4 of 10 features, in the demonstration of the authors' Python code
# (nogueirs/JMLR2018, python/stabilityDemo.ipynb), with the numbers that it prints.
DEMONSTRATION = ["0123", "3567", "1567", "0146", "1245", "1236", "0389", "3567", "2345", "4789"]


def test_it_gives_the_numbers_of_its_authors():
    selected = [[str(j) in row for j in range(10)] for row in DEMONSTRATION]
    found = selection_stability(selected)
    assert found.value == pytest.approx(-0.037037037037)
    half = 1.959964 * np.sqrt(0.00516666666667)
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half))
    # The two of three features that differ every time.
    assert selection_stability([[1, 1, 0], [0, 1, 1], [1, 0, 1]]).value == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(0.39, "poor"), (0.4, "fair to good"), (0.75, "fair to good"), (0.76, "excellent")],
)
def test_the_words_are_those_of_fleiss(value, verdict):
    assert Stability(value, 0.0, 1.0, 10).verdict == verdict


def test_equal_selections_are_perfectly_stable():
    found = selection_stability(np.tile([True, False, True, False], (5, 1)))
    assert (found.value, found.low, found.high) == (1, 1, 1)
    assert found.verdict == "excellent"


def test_random_selections_are_about_zero_and_inside_the_interval():
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(300):
        found = selection_stability(rng.random((40, 30)) < 0.4)
        assert abs(found.value) < 0.2
        inside += found.low <= 0 <= found.high
    assert inside / 300 > 0.9


@pytest.mark.parametrize("selected", [np.ones((3, 4)), np.zeros((3, 4)), [[1, 0]]])
def test_where_it_is_undefined_it_says_nan(selected):
    found = selection_stability(selected)
    assert np.isnan([found.value, found.low, found.high]).all()
    assert found.verdict == "undefined"


def test_something_else_than_a_selection_is_refused():
    with pytest.raises(ValueError, match="True and False"):
        selection_stability([[0.5, 1]])


# --- false selections


def test_the_general_bound_is_that_of_meinshausen_and_buehlmann():
    assert false_selections(0.9, 30, 1000, 50, "none") == pytest.approx(900 / (0.8 * 1000))


@pytest.mark.parametrize(
    ("threshold", "factor"),
    [(0.7, 1 / (2 * (0.4 - 0.01))), (0.9, 4 * (0.1 + 0.01) / 1.02), (1.0, 4 * 0.01 / 1.02)],
)
def test_the_unimodal_bound_is_that_of_shah_and_samworth(threshold, factor):
    """Theorem 2 with B = 50, written out by hand."""
    assert false_selections(threshold, 10, 1000, 50) == pytest.approx(0.1 * factor)


@pytest.mark.parametrize(
    ("cutoff", "q", "p", "n_pairs", "printed"),
    [(0.8, 20, 88, 50, 3.743316), (0.97, 15, 32, 100, 0.975)],
)
def test_it_is_what_stabs_prints(cutoff, q, p, n_pairs, printed):
    """PFER of stabsel_parameters (R's stabs) under unimodality, of analyses that show it."""
    assert false_selections(cutoff, q, p, n_pairs) == pytest.approx(printed, rel=5e-4)


def tightest(threshold, q, n_features, n_pairs):
    """Theorem 2 of Shah and Samworth as it is written, and where it does not hold equation 5."""
    theta, B = q / n_features, n_pairs
    bounds = [q**2 / n_features / (2 * threshold - 1)]
    lowest = min(1 / 2 + theta**2, 1 / 2 + 1 / (2 * B) + 3 / 4 * theta**2)
    if theta <= 1 / np.sqrt(3) and lowest < threshold <= 3 / 4:
        bounds.append(theta * q / (2 * (2 * threshold - 1 - 1 / (2 * B))))
    if theta <= 1 / np.sqrt(3) and threshold > 3 / 4:
        bounds.append(theta * q * 4 * (1 - threshold + 1 / (2 * B)) / (1 + 1 / B))
    return min(bounds)


@pytest.mark.parametrize("n_pairs", [3, 10, 50])
@pytest.mark.parametrize("q", [5, 29, 49, 57, 58, 70])
def test_the_bound_is_that_of_the_theorem_at_every_frequency(q, n_pairs):
    for threshold in 0.5 + np.arange(1, n_pairs + 1) / (2 * n_pairs):
        expected = tightest(threshold, q, 100, n_pairs)
        assert false_selections(threshold, q, 100, n_pairs) == pytest.approx(expected)


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
