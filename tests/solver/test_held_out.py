"""What channels cost on other subjects, from sums alone, is what loops over samples find."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from idfsmec.solver.solve import Options, clipped_error, held_out_losses, solve_channels
from idfsmec.solver.sums import table_sums

COLUMNS = [np.array([0, 1, 2]), np.array([3, 4])]
# Training parts are solved to this tolerance.
LOOSE = Options(tol=1e-2)


@given(st.floats(-3, 4), st.floats(0.01, 3), st.sampled_from([0.0, 1.0]))
def test_the_error_is_that_of_a_clipped_normal_prediction(mean, deviation, truth):
    density = norm(mean, deviation)
    inside, _ = quad(lambda s: (s - truth) ** 2 * density.pdf(s), 0, 1, epsabs=1e-12)
    wanted = inside + truth**2 * density.cdf(0) + (1 - truth) ** 2 * density.sf(1)
    assert clipped_error(mean, deviation**2, truth) == pytest.approx(wanted, abs=1e-9)


@given(st.floats(-1e300, 1e300), st.floats(0, 1e300), st.sampled_from([0.0, 1.0]))
def test_it_never_exceeds_one(mean, variance, truth):
    assert 0 <= clipped_error(mean, variance, truth) <= 1 + 1e-12


def cohort(seed, n=120, n_subjects=30):
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_subjects, size=n)
    codes = groups % 2
    X = rng.normal(size=(n, 5)) + rng.normal(size=(n_subjects, 5))[groups]
    X[:, [0, 3]] += codes[:, None]
    for own in COLUMNS:
        X[np.ix_(rng.random(n) < 0.3, own)] = np.nan
    return X, codes, groups, rng.integers(3, size=(2, n_subjects))[:, groups]


def predicted(X, own, rows, fits, at, channel, lam):
    return (
        fits.class_shares[at, channel]
        + (X[np.ix_(rows, own)] - fits.centres[at, own]) @ fits.coefficients[at, lam][:, own].T
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("grouped", [False, True])
def test_classes_are_judged_as_loops_over_samples_judge_them(seed, grouped):
    X, codes, groups, folds = cohort(seed)
    how = {"groups": groups} if grouped else {}
    sums = table_sums(X, COLUMNS, codes, folds, 2, n_folds=3, **how)
    lams, splits = [0.1, 10.0], sums.splits()
    fits = solve_channels([sums.moments(split.train) for split in splits], lams, LOOSE)
    (judged,) = held_out_losses([sums], lams, Options())
    any_channel = np.any([~np.isnan(X[:, own]).any(axis=1) for own in COLUMNS], axis=0)
    some = np.unique(groups[any_channel]) % 2 if grouped else codes[any_channel]
    shares = np.bincount(some) / some.size
    for channel, own in enumerate(COLUMNS):
        there = ~np.isnan(X[:, own]).any(axis=1)
        for lam in range(2):
            total, count = np.zeros(2), np.zeros(2)
            for at in range(len(splits)):
                repeat, fold = divmod(at, 3)
                for k in range(2):
                    rows = np.flatnonzero((folds[repeat] == fold) & (codes == k) & there)
                    if not rows.size:
                        continue
                    w = np.ones(rows.size)
                    if grouped:
                        w /= [np.sum(groups[rows] == g) for g in groups[rows]]
                    said = predicted(X, own, rows, fits, at, channel, lam)
                    mean = w @ said / w.sum()
                    variance = w @ (said - mean) ** 2 / w.sum()
                    total[k] += w.sum() * clipped_error(mean, variance, np.eye(2)[k]).sum()
                    count[k] += w.sum()
            wanted = pytest.approx(total / count @ shares, rel=1e-9)
            assert judged[lam, channel] == wanted


def test_a_numeric_target_is_judged_by_plain_squared_errors():
    X, _, groups, folds = cohort(5)
    y = np.random.default_rng(5).normal(size=30)[groups] + np.nan_to_num(X[:, 0])
    codes = np.zeros(y.size, dtype=int)
    sums = table_sums(X, COLUMNS, codes, folds, 1, n_folds=3, groups=groups, target=y)
    splits = sums.splits()
    fits = solve_channels([sums.moments(split.train) for split in splits], [1.0], LOOSE)
    (judged,) = held_out_losses([sums], [1.0], Options())
    for channel, own in enumerate(COLUMNS):
        there = ~np.isnan(X[:, own]).any(axis=1)
        total = count = 0.0
        for at in range(len(splits)):
            rows = np.flatnonzero((folds[at // 3] == at % 3) & there)
            w = 1 / np.array([np.sum(groups[rows] == g) for g in groups[rows]])
            said = predicted(X, own, rows, fits, at, channel, 0)[:, 0]
            total += w @ (said - y[rows]) ** 2
            count += w.sum()
        assert judged[0, channel] == pytest.approx(total / count, rel=1e-9)


def test_a_fold_that_leaves_a_class_without_a_channel_does_not_judge_it():
    X, codes, groups, folds = cohort(0)
    X[np.ix_((codes == 1) & (folds[0] != 0), COLUMNS[0])] = np.nan
    sums = table_sums(X, COLUMNS, codes, folds[:1], 2, n_folds=3, groups=groups)
    (judged,) = held_out_losses([sums], [1.0], Options())
    assert np.isinf(judged[0, 0])
    assert np.isfinite(judged[0, 1])


def test_where_missing_channels_count_as_the_mean_all_subjects_are_judged():
    X, codes, groups, folds = cohort(1)
    X[:, COLUMNS[1]] = np.where((groups < 4)[:, None], X[:, COLUMNS[1]], np.nan)
    sums = table_sums(X, COLUMNS, codes, folds, 2, n_folds=3, groups=groups)
    (plain,) = held_out_losses([sums], [1.0], Options())
    (imputed,) = held_out_losses([sums], [1.0], Options(missing_indicator=False))
    # Nearly all are predicted the shares of the classes.
    shares = np.bincount(sums.classes, sums.seen) / sums.seen.sum()
    assert imputed[0, 1] == pytest.approx(1 - (shares**2).sum(), abs=0.15)
    assert not np.isclose(plain[0, 1], imputed[0, 1])
