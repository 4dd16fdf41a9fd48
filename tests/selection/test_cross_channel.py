"""CrossChannelReranker: redundancy between channels, weighed against their gaps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec.selection import CrossChannelReranker
from idfsmec.selection.cross_channel import filled_moments, forward_order
from idfsmec.selection.idfsmec.engine import Engine


@parametrize_with_checks([CrossChannelReranker()])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def twins(missing, n_samples=2000):
    """Channels 0 and 1 are nearly copies that tell much, channel 2 tells less; rest: noise."""
    rng = np.random.default_rng(0)
    y = np.arange(n_samples) % 2
    X = rng.normal(size=(n_samples, 9))
    X[:, 0] += 1.0 * y
    X[:, 3] = X[:, 0] + 0.1 * rng.normal(size=n_samples)
    X[:, 6] += 0.6 * y
    for v in range(3):
        X[rng.random(n_samples) < missing, 3 * v : 3 * v + 3] = np.nan
    return X, y, np.repeat([0, 1, 2], 3)


def test_a_copy_is_dropped_while_channels_are_reliable_and_kept_as_a_backup_when_not():
    chosen = {}
    for missing in (0.0, 0.6):
        X, y, channels = twins(missing)
        ranker = CrossChannelReranker(n_features_to_select=2, ridge=0.05, channels=channels)
        chosen[missing] = set(ranker.fit(X, y).get_support(indices=True))
        assert_allclose(ranker.missing_rates_, missing, atol=0.05)
    assert 6 in chosen[0.0]
    assert chosen[0.6] == {0, 3}


def test_every_step_takes_the_feature_that_lowers_the_penalised_error_the_most():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(30, 7))
    S, c = A.T @ A / 30 + 0.2 * np.eye(7), rng.normal(size=(7, 2))
    order, kept = forward_order(S, c), []
    for best in order:
        explained = {}
        for j in set(range(7)) - set(kept):
            own = [*kept, j]
            explained[j] = np.trace(c[own].T @ np.linalg.solve(S[np.ix_(own, own)], c[own]))
        assert max(explained, key=explained.get) == best
        kept.append(best)


def test_moments_are_those_of_features_filled_with_the_mean():
    """Against the moments of samples that really are filled, gaps being independent."""
    X, y, channels = twins(0.4, n_samples=40_000)
    S, c, missing = filled_moments(Engine.for_classes(X, y, channels), np.arange(9))
    seen = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    filled = (seen - seen.mean(axis=0)) / np.nanstd(X, axis=0)
    label = (y - y.mean()) / y.std()
    assert_allclose(S, filled.T @ filled / len(y), atol=0.02)
    assert_allclose(c[:, 1], filled.T @ label / len(y), atol=0.02)
    assert_allclose(missing, np.isnan(X[:, ::3]).mean(axis=0))


def test_with_an_endless_penalty_features_are_ordered_by_what_each_tells_alone():
    X, y, channels = twins(0.3)
    ranker = CrossChannelReranker(ridge=1e9, channels=channels).fit(X, y)
    _, covariance, _ = filled_moments(Engine.for_classes(X, y, channels), np.arange(9))
    alone = np.sum(covariance**2, axis=1)
    assert_array_equal(np.argsort(ranker.ranking_)[:3], np.argsort(-alone)[:3])


def test_features_that_are_no_candidates_follow_in_their_order():
    X, y, channels = twins(0.3)
    ranker = CrossChannelReranker(n_candidates=4, channels=channels).fit(X, y)
    before, after = (np.argsort(r) for r in (ranker.selector_.ranking_, ranker.ranking_))
    assert_array_equal(before[4:], after[4:])
    assert set(before[:4]) == set(after[:4])


def test_a_channel_that_carries_nothing_comes_last():
    X, y, channels = twins(0.3)
    X[:, 3:6] = np.nan
    with pytest.warns(UserWarning, match="1"):
        ranker = CrossChannelReranker(channels=channels).fit(X, y)
    assert set(np.argsort(ranker.ranking_)[-3:]) == {3, 4, 5}


@pytest.mark.parametrize(
    ("wrong", "said"), [({"n_candidates": 0}, "n_candidates"), ({"ridge": 0.0}, "ridge")]
)
def test_says_what_is_wrong_with_a_parameter(wrong, said):
    X, y, channels = twins(0.0, n_samples=40)
    with pytest.raises(ValueError, match=said):
        CrossChannelReranker(channels=channels, **wrong).fit(X, y)
