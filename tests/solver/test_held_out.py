"""What channels cost on other people, from sums alone, is what loops over people find."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from idfsmec.solver import (
    Options,
    Seats,
    clipped_error,
    held_out_errors,
    solve_channels,
    table_cells,
)

COLUMNS = [np.array([0, 1, 2]), np.array([3, 4])]


@given(st.floats(-3, 4), st.floats(0.01, 3), st.sampled_from([0.0, 1.0]))
def test_the_error_is_that_of_a_clipped_normal_prediction(mean, deviation, truth):
    density = norm(mean, deviation)
    inside, _ = quad(lambda s: (s - truth) ** 2 * density.pdf(s), 0, 1, epsabs=1e-12)
    wanted = inside + truth**2 * density.cdf(0) + (1 - truth) ** 2 * density.sf(1)
    assert clipped_error(mean, deviation**2, truth) == pytest.approx(wanted, abs=1e-9)


def test_draws_have_the_error_that_is_expected_of_them():
    drawn = np.random.default_rng(0).normal(0.7, 0.5, size=400_000).clip(0, 1)
    for truth in (0.0, 1.0):
        wanted = np.mean((drawn - truth) ** 2)
        assert clipped_error(0.7, 0.25, truth) == pytest.approx(wanted, abs=3e-3)


@given(st.floats(-1e300, 1e300), st.floats(0, 1e300), st.sampled_from([0.0, 1.0]))
def test_it_never_exceeds_one(mean, variance, truth):
    assert 0 <= clipped_error(mean, variance, truth) <= 1 + 1e-12


def cohort(seed, n=120, n_people=30):
    rng = np.random.default_rng(seed)
    people = rng.integers(n_people, size=n)
    codes = people % 2
    X = rng.normal(size=(n, 5)) + rng.normal(size=(n_people, 5))[people]
    X[:, [0, 3]] += codes[:, None]
    for own in COLUMNS:
        X[np.ix_(rng.random(n_people)[people] < 0.3, own)] = np.nan
    return X, codes, people, rng.integers(3, size=(2, n_people))[:, people]


def said_of_people(X, own, people, rows, fits, at, channel, lam):
    """Mean prediction of each person, and whose it is."""
    rows = np.flatnonzero(rows & ~np.isnan(X[:, own]).any(axis=1))
    said = (
        fits.class_shares[at, channel]
        + (X[np.ix_(rows, own)] - fits.centres[at, own]) @ fits.coefficients[at, lam][:, own].T
    )
    return [
        (rows[people[rows] == p][0], said[people[rows] == p].mean(0)) for p in set(people[rows])
    ]


@pytest.mark.parametrize("seed", range(3))
def test_classes_are_judged_as_loops_over_people_judge_them(seed):
    X, codes, people, fold = cohort(seed)
    cells = table_cells(X, Seats.of(fold, codes, (3, 2), people), COLUMNS)
    folds, lams = cells.folds(), [0.1, 10.0]
    fits = solve_channels([cells.training(*one) for one in folds], lams, Options())
    judged = held_out_errors(cells, fits)
    found, by_fold = judged.losses(), judged.by_fold()
    any_channel = np.any([~np.isnan(X[:, own]).any(axis=1) for own in COLUMNS], axis=0)
    shares = np.bincount(codes[any_channel]) / any_channel.sum()
    for channel, own in enumerate(COLUMNS):
        for lam in range(2):
            total, count = np.zeros((len(folds), 2)), np.zeros((len(folds), 2))
            for at, (deal, one) in enumerate(folds):
                for k in range(2):
                    rows = (fold[deal] == one) & (codes == k)
                    met = said_of_people(X, own, people, rows, fits, at, channel, lam)
                    if met:
                        said = np.array([mean for _, mean in met])
                        error = clipped_error(said.mean(0), said.var(0), np.eye(2)[k]).sum()
                        total[at, k] = len(met) * error
                        count[at, k] = len(met)
                if count[at].all():
                    wanted = pytest.approx(total[at] / count[at] @ shares, rel=1e-9)
                    assert by_fold[at, lam, channel] == wanted
                else:
                    assert by_fold[at, lam, channel] == np.inf
            wanted = pytest.approx(total.sum(0) / count.sum(0) @ shares, rel=1e-9)
            assert found[lam, channel] == wanted


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_judged_by_plain_squared_errors(weighted):
    X, _, people, fold = cohort(5)
    score = np.random.default_rng(5).normal(size=30)[people] + np.nan_to_num(X[:, 0])
    score = score.round(0)  # a person has few scores, and is as many people
    weights = np.random.default_rng(6).random(score.size) + 0.5 if weighted else None
    seats = Seats.of(fold, np.zeros(score.size, dtype=int), (3, 1), people, score)
    cells = table_cells(X, seats, COLUMNS, weights, score)
    folds = cells.folds()
    fits = solve_channels([cells.training(*one) for one in folds], [1.0], Options())
    found = held_out_errors(cells, fits).losses()
    w = np.ones(score.size) if weights is None else weights
    for channel, own in enumerate(COLUMNS):
        there = ~np.isnan(X[:, own]).any(axis=1)
        errors = []
        for at, (deal, one) in enumerate(folds):
            rows = np.flatnonzero((fold[deal] == one) & there)
            centred = X[np.ix_(rows, own)] - fits.centres[at, own]
            said = fits.class_shares[at, channel] + centred @ fits.coefficients[at, 0, :, own]
            for unit in set(zip(people[rows], score[rows], strict=True)):
                mine = [(p, s) == unit for p, s in zip(people[rows], score[rows], strict=True)]
                mean = np.average(said[mine, 0], weights=w[rows][mine])
                errors.append((mean - unit[1]) ** 2)
        assert found[0, channel] == pytest.approx(np.mean(errors), rel=1e-9)


def test_a_fold_that_leaves_a_class_without_a_channel_does_not_judge_it():
    X, codes, people, fold = cohort(0)
    X[np.ix_((codes == 1) & (fold[0] != 0), COLUMNS[0])] = np.nan
    one_deal = fold[:1]
    cells = table_cells(X, Seats.of(one_deal, codes, (3, 2), people), COLUMNS)
    fits = solve_channels([cells.training(*one) for one in cells.folds()], [1.0], Options())
    found = held_out_errors(cells, fits).losses()
    assert np.isinf(found[0, 0])
    assert np.isfinite(found[0, 1])


def test_where_gaps_count_as_samples_at_the_mean_everybody_is_judged():
    X, codes, people, fold = cohort(1)
    X[:, COLUMNS[1]] = np.where((people < 4)[:, None], X[:, COLUMNS[1]], np.nan)
    options = Options(missing_indicator=False)
    cells = table_cells(X, Seats.of(fold, codes, (3, 2), people), COLUMNS)
    fits = solve_channels([cells.training(*one) for one in cells.folds()], [1.0], options)
    plain = held_out_errors(cells, fits).losses()[0]
    filled = held_out_errors(cells, fits, missing_indicator=False).losses()[0]
    shares = cells.seen / cells.seen.sum()
    # Nearly everybody is predicted the shares of the classes.
    assert filled[1] == pytest.approx(1 - (shares**2).sum(), abs=0.15)
    assert not np.isclose(plain[1], filled[1])
    assert_allclose(held_out_errors(cells, fits).losses(), plain[None])
