"""What IDFSMEC promises: every decision about missing channels, each as a statement."""

import functools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from idfsmec import IDFSMEC
from idfsmec.selection import ranking_frame
from idfsmec.solver.solve import Options, solve_channels
from tests.conftest import make_channels
from tests.solver.problems import moments_of

EXACT = {"tol": 1e-9}


def fitted(X, y, channels=None, **parameters):
    return IDFSMEC(channels, **parameters).fit(X, y)


@functools.cache
def fitted_once(n_samples, seed=0, **parameters):
    """A fit that examples of Hypothesis are compared with."""
    return fitted(*make_channels(n_samples=n_samples, seed=seed), **parameters)


# --- the solution -----------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_weights_are_normalised_and_conditions_hold(n_classes, lam):
    X, y, channels = make_channels(n_classes=n_classes)
    selector = fitted(X, y, channels, lam=lam)
    assert selector.channel_weights_.sum() == pytest.approx(1)
    assert_allclose(selector.feature_weights_.reshape(4, 5).sum(axis=1), 1)
    assert (selector.feature_weights_ >= 0).all()
    assert (selector.kkt_residuals_ <= 1e-6).all()
    assert (np.diff(selector.objective_history_) <= 0).all()
    assert selector.objective_history_.shape == (selector.n_iter_ + 1,)
    assert_array_equal(np.sort(selector.ranking_), np.arange(1, 21))
    by_rank = selector.scores_[np.argsort(selector.ranking_)]
    assert (np.diff(by_rank) <= 0).all()


def test_the_last_objective_is_the_weighted_sum_over_channels(incomplete):
    selector = fitted(*incomplete, gamma=3.0)
    total = np.sum(selector.channel_weights_**3 * selector.objective_)
    assert selector.objective_history_[-1] == pytest.approx(total)


def test_too_few_iterations_are_said(incomplete):
    with pytest.warns(ConvergenceWarning, match=r"did not reach tol=1e-06 in 2 iterations \(E1"):
        fitted(*incomplete, max_iter=2)


def test_informative_features_and_their_channels_rank_first():
    rng = np.random.default_rng(1)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 30))
    X[:, [7, 23]] += 1.5 * y[:, None]
    X[rng.random((400, 6)).repeat(5, axis=1) < 0.4] = np.nan
    selector = fitted(X, y, np.repeat(["E1", "E2", "E3", "E4", "E5", "E6"], 5))
    assert set(np.flatnonzero(selector.ranking_ <= 2)) == {7, 23}
    assert set(selector.channel_names_[np.argsort(-selector.channel_weights_)[:2]]) == {"E2", "E5"}


@pytest.mark.parametrize("n_features", [2, 3, 4, 5])
def test_with_subjects_the_right_one_of_few_features_comes_first(n_features):
    rng = np.random.default_rng(n_features)
    columns = [f"{channel}__{j}" for channel in "ABCD" for j in range(n_features)]
    X, y = pd.DataFrame(rng.normal(size=(100, len(columns))), columns=columns), np.arange(100) % 2
    X["B__1"] += y
    selector = IDFSMEC().fit(X, y, groups=np.arange(100))
    assert X.columns[selector.ranking_.argmin()] == "B__1"


# --- missing channels -------------------------------------------------------------------------


@pytest.mark.slow
@given(seed=st.integers(0, 10_000))
def test_values_of_missing_channels_have_no_influence(seed):
    X, y, channels = make_channels(n_samples=40, seed=seed % 7)
    rng = np.random.default_rng(seed)
    other = X.copy()
    for v in range(4):
        gone = np.isnan(X[:, 5 * v])
        # Keep one NaN, so that the channel still counts as missing; the rest may be anything.
        other[np.ix_(gone, np.arange(5 * v + 1, 5 * v + 5))] = rng.normal(
            scale=1e3, size=(gone.sum(), 4)
        )
    here, there = fitted_once(40, seed % 7), fitted(other, y, channels)
    assert_array_equal(here.scores_, there.scores_)
    assert_array_equal(here.ranking_, there.ranking_)


def test_a_channel_with_some_features_missing_counts_as_missing(incomplete):
    X, y, channels = incomplete
    partly = X.copy()
    partly[5, 2] = np.nan
    wholly = X.copy()
    wholly[5, :5] = np.nan
    assert_array_equal(fitted(partly, y, channels).scores_, fitted(wholly, y, channels).scores_)


def test_a_sample_without_any_channel_changes_nothing_but_the_scale(incomplete):
    X, y, channels = incomplete
    more = np.vstack([X, np.full((1, 20), np.nan)])
    plain = {"missing_correction": None, "lam_scale": "paper"}
    here = fitted(X, y, channels, **plain)
    there = fitted(more, np.append(y, 0), channels, **plain)
    assert_allclose(here.scores_, there.scores_, rtol=1e-12)


def test_a_never_observed_channel_gets_no_weight_and_ranks_last(incomplete):
    X, y, channels = incomplete
    X[:, 5:10] = np.nan
    with pytest.warns(UserWarning, match=r"weight 0 and rank last: E2 \(never observed\)") as said:
        selector = IDFSMEC(channels).fit(X, y)
    assert said[0].filename == __file__  # a warning points at who called
    assert selector.channel_weights_[1] == 0
    assert selector.channel_weights_.sum() == pytest.approx(1)
    assert set(selector.ranking_[5:10]) == set(range(16, 21))
    assert np.isfinite(selector.scores_).all()


@pytest.mark.filterwarnings("ignore:Missing channels are associated with the label")
def test_a_channel_observed_for_one_class_only_gets_no_weight(incomplete):
    X, y, channels = incomplete
    X[y == 1, 5:10] = np.nan
    with pytest.warns(UserWarning, match=r"E2 \(observed for one class only\)"):
        selector = fitted(X, y, channels)
    assert selector.channel_weights_[1] == 0
    assert set(selector.ranking_[5:10]) == set(range(16, 21))


def test_a_channel_of_constant_features_gets_no_weight(incomplete):
    X, y, channels = incomplete
    X[:, 5:10] = np.where(np.isnan(X[:, 5:10]), np.nan, 7.0)
    with pytest.warns(UserWarning, match=r"E2 \(all features constant\)"):
        selector = fitted(X, y, channels)
    assert selector.channel_weights_[1] == 0


@pytest.mark.parametrize("lam", [1e-3, 1e3])
def test_a_constant_feature_gets_no_weight_and_ranks_last(incomplete, lam):
    X, y, channels = incomplete
    X[:, 3] = np.where(np.isnan(X[:, 3]), np.nan, -2.5)
    selector = fitted(X, y, channels, lam=lam)
    assert selector.feature_weights_[3] == 0
    assert selector.ranking_[3] == 20


def test_when_no_channel_carries_anything_the_error_says_why():
    X = np.full((4, 2), np.nan)
    with pytest.raises(ValueError, match=r"No channel carries information: a \(never observed\)"):
        fitted(X, [0, 1, 0, 1], ["a", "b"])


def test_a_rarely_seen_channel_is_not_favoured():
    """The plain sum makes the most broken electrode win; the correction must not."""
    X, y, channels = make_channels(n_samples=600, missing=0.0, effect=0.0)
    X[:, ::5] += 0.5 * y[:, None]
    X[np.random.default_rng(0).random(600) < 0.8, :5] = np.nan
    plain = fitted(X, y, channels, missing_correction=None, channel_loss="in-sample")
    assert plain.channel_weights_[0] > 0.5
    for loss in ("in-sample", "held-out"):
        corrected = fitted(X, y, channels, channel_loss=loss)
        assert corrected.channel_weights_[0] < 0.3


def test_with_equal_missing_rates_the_correction_changes_no_rank():
    X, y, channels = make_channels(missing=0.0)
    for v in range(4):
        X[30 * v : 30 * v + 30, 5 * v : 5 * v + 5] = np.nan
    here = fitted(X, y, channels, lam=0.0, **EXACT)
    there = fitted(X, y, channels, lam=0.0, missing_correction=None, **EXACT)
    assert_allclose(here.scores_, there.scores_, atol=1e-6)


def test_without_the_indicator_it_equals_a_fit_of_the_filled_table(incomplete):
    X, y, channels = incomplete
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    exact = {"channel_loss": "in-sample", **EXACT}  # folds fill with their own means
    here = fitted(X, y, channels, missing_indicator=False, **exact)
    there = fitted(filled, y, channels, **exact)
    assert_allclose(here.scores_, there.scores_, atol=1e-7)
    assert not np.allclose(here.scores_, fitted(X, y, channels).scores_, atol=1e-4)


def test_without_channel_weighting_all_channels_weigh_the_same(incomplete):
    selector = fitted(*incomplete, channel_weighting=False)
    assert_allclose(selector.channel_weights_, 0.25)


# --- invariances ------------------------------------------------------------------------------


def test_permuting_samples_channels_or_features_permutes_the_result(incomplete):
    X, y, channels = incomplete
    rng = np.random.default_rng(3)
    here = fitted(X, y, channels, **EXACT)
    rows = rng.permutation(len(y))
    assert_allclose(fitted(X[rows], y[rows], channels, **EXACT).scores_, here.scores_, atol=1e-6)
    columns = rng.permutation(20)
    there = fitted(X[:, columns], y, channels[columns], **EXACT)
    assert_allclose(there.scores_, here.scores_[columns], atol=1e-6)
    assert_array_equal(there.ranking_, here.ranking_[columns])


@pytest.mark.slow
@given(st.lists(st.floats(-30, 30), min_size=20, max_size=20), st.integers(0, 1000))
def test_rescaling_or_shifting_a_feature_changes_nothing(exponents, seed):
    X, y, channels = make_channels(n_samples=60)
    shift = np.random.default_rng(seed).normal(size=20)
    other = (X + shift) * 10.0 ** np.array(exponents)
    here, there = fitted_once(60, **EXACT), fitted(other, y, channels, **EXACT)
    assert_allclose(here.scores_, there.scores_, atol=1e-5)


def test_without_standardising_the_scale_matters(incomplete):
    X, y, channels = incomplete
    scaled = X * np.where(np.arange(20) % 5 == 0, 100.0, 1.0)
    here = fitted(X, y, channels, standardize=False).scores_
    assert not np.allclose(here, fitted(scaled, y, channels, standardize=False).scores_, atol=1e-3)


def test_flipping_the_class_names_changes_nothing(incomplete):
    X, y, channels = incomplete
    here = fitted(X, y, channels, **EXACT)
    there = fitted(X, np.where(y == 0, "b", "a"), channels, **EXACT)
    assert_allclose(here.scores_, there.scores_, atol=1e-6)
    assert there.classes_.tolist() == ["a", "b"]


def test_results_are_equal_for_one_and_many_blas_threads():
    X, y, channels = make_channels(n_samples=500, n_channels=16, n_features=18)
    results = []
    for threads in (1, 4):
        with threadpool_limits(threads):
            results.append(fitted(X, y, channels))
    assert_array_equal(results[0].scores_, results[1].scores_)
    assert_array_equal(results[0].ranking_, results[1].ranking_)


def test_identical_features_rank_in_column_order():
    X, y, _ = make_channels(n_channels=1, n_features=3)
    X = np.hstack([X, X])
    selector = fitted(X, y, np.repeat(["a", "b"], 3))
    assert_array_equal(selector.scores_[:3], selector.scores_[3:])
    assert (selector.ranking_[3:] == selector.ranking_[:3] + 1).all()


def test_features_without_weight_rank_by_what_they_would_add():
    X, y, channels = make_channels(n_samples=300, n_channels=2, n_features=12, missing=0.0, seed=5)
    selector = fitted(X, y, channels, lam=1e-3)
    moments = moments_of(X, y, 2, [np.arange(12), np.arange(12, 24)])
    gains = solve_channels([moments], [1e-3], Options()).gains[0, 0]
    idle = selector.feature_weights_ == 0
    assert idle.sum() >= 3
    gains *= np.repeat(selector.channel_weights_, 12)
    assert_array_equal(np.argsort(selector.ranking_[idle]), np.argsort(-gains[idle]))
    assert selector.ranking_[idle].min() > selector.ranking_[~idle].max()


# --- weights of samples -----------------------------------------------------------------------


def test_integer_sample_weights_are_repetitions(incomplete):
    X, y, channels = incomplete
    repeats = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = IDFSMEC(channels, **EXACT).fit(X, y, sample_weight=repeats)
    repeated = fitted(np.repeat(X, repeats, axis=0), np.repeat(y, repeats), channels, **EXACT)
    assert_allclose(weighted.scores_, repeated.scores_, atol=1e-6)


def test_negative_sample_weights_are_refused(incomplete):
    X, y, channels = incomplete
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        IDFSMEC(channels).fit(X, y, sample_weight=-np.ones(len(y)))


# --- odd shapes -------------------------------------------------------------------------------


def test_one_feature_per_channel():
    X, y, _ = make_channels(n_channels=6, n_features=1)
    selector = fitted(X, y, np.arange(6))
    assert_allclose(selector.feature_weights_, 1)
    assert_array_equal(np.argsort(selector.ranking_), np.argsort(-selector.channel_weights_))


def test_fewer_features_than_classes():
    X, y, channels = make_channels(n_features=2, n_classes=5)
    selector = fitted(X, y, channels)
    assert_allclose(selector.feature_weights_.reshape(4, 2).sum(axis=1), 1)


def test_channels_of_different_sizes():
    X, y, _ = make_channels(n_channels=4, n_features=5)
    sizes = [1, 7, 2, 10]
    selector = fitted(X, y, np.repeat(["a", "b", "c", "d"], sizes))
    sums = np.add.reduceat(selector.feature_weights_, np.cumsum([0, *sizes[:-1]]))
    assert_allclose(sums, 1)


def test_two_samples_are_enough():
    X = np.array([[0.0, 1.0, 3.0], [1.0, 1.5, -2.0]])
    with pytest.warns(UserWarning, match="too few participants to hold out some of each class"):
        selector = fitted(X, ["HC", "MDD"], ["a", "a", "b"])
    assert np.isfinite(selector.scores_).all()
    assert selector.held_out_loss_ is None


def test_one_channel_when_columns_have_no_channel_names():
    X, y, _ = make_channels(missing=0.0)
    selector = fitted(X, y)
    assert selector.channel_names_.tolist() == ["all features"]
    assert_allclose(selector.channel_weights_, 1)


def test_channels_come_from_column_names_in_order_of_appearance():
    X, y, _ = make_channels(n_channels=2, n_features=2)
    names = ["O2__mean", "Fp1__a__mean", "O2__hoc", "Fp1__a__hoc"]
    selector = fitted(pd.DataFrame(X[:, [0, 2, 1, 3]], columns=names), y)
    assert selector.channel_names_.tolist() == ["O2", "Fp1__a"]


# --- errors that name the cause ---------------------------------------------------------------


def test_infinity_is_refused_with_the_column(incomplete):
    X, y, channels = incomplete
    frame = pd.DataFrame(X, columns=[f"{c}__f{j}" for j, c in enumerate(channels)])
    frame.iloc[3, 7] = np.inf
    with pytest.raises(ValueError, match=r"infinity, first in column 'E2__f7'"):
        IDFSMEC().fit(frame, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"channels": ["a", "b"]}, r"each of the 20 features, but has shape \(2,\)"),
        ({"lam": -1.0}, r"'lam' parameter of IDFSMEC must be .* \[0.0, inf\)"),
        ({"lam": np.nan}, "'lam' parameter"),
        ({"gamma": 1.0}, r"'gamma' parameter .* \(1.0, inf\)"),
        ({"tol": 0}, "'tol' parameter"),
        ({"max_iter": 0}, "'max_iter' parameter"),
        ({"standardize": "no"}, "'standardize' parameter"),
        ({"missing_correction": "mean"}, "'missing_correction' parameter"),
    ],
)
def test_bad_parameters_are_named(incomplete, parameters, message):
    X, y, _ = incomplete
    with pytest.raises(ValueError, match=message):
        IDFSMEC(**parameters).fit(X, y)


def test_one_class_is_refused(incomplete):
    X, _, channels = incomplete
    with pytest.raises(ValueError, match="holds only one class"):
        fitted(X, np.zeros(len(X)), channels)


def test_more_features_than_there_are_are_all_kept_with_a_warning(incomplete):
    with pytest.warns(UserWarning, match="more than the 20 features"):
        selector = fitted(*incomplete, n_features_to_select=50)
    assert selector.support_.all()


@pytest.mark.parametrize(("wanted", "kept"), [(20, 20), (3, 3), (0.25, 5), (1.0, 20), (1, 1)])
def test_number_of_features_kept(incomplete, wanted, kept):
    selector = fitted(*incomplete, n_features_to_select=wanted)
    assert selector.support_.sum() == kept
    assert_array_equal(selector.support_, selector.ranking_ <= kept)


# --- hard numbers -----------------------------------------------------------------------------


def test_duplicated_and_nearly_dependent_features_do_no_harm():
    X, y, channels = make_channels(n_samples=200, missing=0.2)
    X[:, 1] = X[:, 0]
    X[:, 6] = X[:, 5] + 1e-9 * X[:, 7]
    for lam in (0.0, 1e-3, 1e3):
        selector = fitted(X, y, channels, lam=lam)
        assert np.isfinite(selector.scores_).all()


def test_perfectly_separable_channels_do_no_harm():
    y = np.arange(60) % 2
    X = np.column_stack([y * 1.0, y * 2.0 + 1, np.random.default_rng(0).normal(size=60)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector = fitted(X, y, ["a", "a", "b"])
    assert selector.channel_weights_[0] > selector.channel_weights_[1]


def test_float32_input_is_computed_in_double_precision(incomplete):
    X, y, channels = incomplete
    here = fitted(X.astype(np.float32), y, channels)
    there = fitted(X.astype(np.float32).astype(np.float64), y, channels)
    assert_array_equal(here.scores_, there.scores_)


def test_fewer_samples_than_features_still_permutes_and_flips():
    """Many projections cost nothing then; rounding must not choose among them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(16, 30)), np.arange(16) % 2
    order, signs = rng.permutation(30), rng.choice([-1.0, 1.0], 30)
    here = fitted(X, y, **EXACT)
    there = fitted((X * signs)[:, order], y, **EXACT)
    assert_allclose(there.scores_, here.scores_[order], atol=1e-6)


# --- what a reader of the ranking is told -------------------------------------------------------


def test_missing_channels_that_go_with_the_label_are_said(incomplete):
    X, y, channels = incomplete
    X = X.copy()
    X[np.ix_(np.flatnonzero(y == 1)[12:], np.flatnonzero(channels == channels[0]))] = np.nan
    with pytest.warns(
        UserWarning, match=rf"associated with the label.*{channels[0]}: \d+ of \d+ 0"
    ):
        selector = fitted(X, y, channels)
    worst = selector.missingness_.set_index("channel").loc[channels[0]]
    assert worst["have_1"] <= 12
    assert worst["p_holm"] < 0.001
    assert not worst["dead"]


def test_effects_are_computed_when_asked_for_and_not_pickled_with_the_samples(incomplete):
    X, y, channels = incomplete
    selector = IDFSMEC(channels).fit(X, y)
    thin = pickle.loads(pickle.dumps(selector))
    assert not hasattr(thin, "effects_")
    assert len(selector.effects_) == 20
    kept = pickle.loads(pickle.dumps(selector)).effects_
    pd.testing.assert_frame_equal(kept, selector.effects_)
    flipped = selector.fit(X, 1 - y).effects_
    assert_allclose(flipped["hedges_g"], -kept["hedges_g"])
    assert "direction" in ranking_frame(selector)
    assert "direction" not in ranking_frame(thin)
