"""Group lasso against its optimality conditions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning

from idfsmec.selection import GroupLasso

CHANNELS = np.repeat(["a", "b", "c", "d", "e"], [6, 6, 6, 6, 6])


def problem(n_classes=3):
    return make_classification(
        120, 30, n_informative=8, n_classes=n_classes, random_state=0, shuffle=False
    )


def residual_correlations(selector, X, y):
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = np.eye(y.max() + 1)[y]
    return Z.T @ (Y - Y.mean(axis=0) - Z @ selector.coef_) / y.size


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("alpha", [0.05, 0.5])
def test_every_channel_meets_its_first_order_condition(n_classes, alpha):
    X, y = problem(n_classes)
    selector = GroupLasso(CHANNELS, alpha=alpha, tol=1e-12).fit(X, y)
    pulls = residual_correlations(selector, X, y)
    for name, norm in zip(selector.channel_names_, selector.channel_norms_, strict=True):
        own = name == CHANNELS
        threshold = selector.penalty_ * np.sqrt(own.sum())
        if norm:
            expected = threshold * selector.coef_[own] / norm
            np.testing.assert_allclose(pulls[own], expected, atol=1e-5)
        else:
            assert np.linalg.norm(pulls[own]) <= threshold * (1 + 1e-6)
    assert selector.channel_norms_.any()


def test_the_penalty_is_a_share_of_the_least_that_removes_all_channels():
    X, y = problem()
    nothing = GroupLasso(CHANNELS, alpha=1.0).fit(X, y)
    assert not nothing.coef_.any()
    assert np.count_nonzero(GroupLasso(CHANNELS, alpha=0.99).fit(X, y).channel_norms_) == 1
    assert GroupLasso(CHANNELS, alpha=0.5).fit(X, y).penalty_ == pytest.approx(
        0.5 * nothing.penalty_
    )


def test_a_larger_penalty_leaves_fewer_channels():
    X, y = problem()
    left = [
        np.count_nonzero(GroupLasso(CHANNELS, alpha=alpha).fit(X, y).channel_norms_)
        for alpha in (0.01, 0.4, 0.9)
    ]
    assert left[0] > left[1] > left[2]


def test_features_of_vanished_channels_follow_by_how_near_their_channel_is_to_entering():
    X, y = problem()
    selector = GroupLasso(CHANNELS, alpha=0.7).fit(X, y)
    pulls = residual_correlations(selector, X, y)
    out = selector.channel_norms_ == 0
    assert 2 <= out.sum() < 5
    names = selector.channel_names_[out]
    nearness = [np.linalg.norm(pulls[name == CHANNELS]) for name in names]
    expected = names[np.argsort(nearness)[::-1]].repeat(6)
    by_rank = np.argsort(selector.ranking_)
    assert CHANNELS[by_rank[-expected.size :]].tolist() == expected.tolist()
    within = np.linalg.norm(pulls[by_rank[-6:]], axis=1)
    assert (np.diff(within) <= 0).all()


def test_channels_come_from_column_names():
    X, y = problem()
    names = [f"{channel}__f{place}" for place, channel in enumerate(CHANNELS)]
    named = GroupLasso(alpha=0.5).fit(pd.DataFrame(X, columns=names), y)
    given = GroupLasso(CHANNELS, alpha=0.5).fit(X, y)
    np.testing.assert_allclose(named.coef_, given.coef_, atol=1e-12)
    assert named.channel_names_.tolist() == ["a", "b", "c", "d", "e"]


def test_units_do_not_matter():
    X, y = load_wine(return_X_y=True)
    channels = ["acids"] * 6 + ["colours"] * 7
    plain, scaled = (GroupLasso(channels).fit(data, y) for data in (X, X * 10.0 ** np.arange(13)))
    np.testing.assert_allclose(scaled.coef_, plain.coef_, atol=1e-9)


def test_a_channel_of_constant_features_vanishes():
    X, y = problem()
    X[:, :6] = 3.0
    selector = GroupLasso(CHANNELS, alpha=0.1).fit(X, y)
    assert selector.channel_norms_[0] == 0
    assert set(selector.ranking_[:6]) == set(range(25, 31))


def test_too_few_channel_labels_are_refused():
    with pytest.raises(ValueError, match="one label for each of the 30 features"):
        GroupLasso(["a", "b"]).fit(*problem())


def test_too_few_iterations_are_warned_of():
    with pytest.warns(ConvergenceWarning, match=r"GroupLasso did not reach tol=1e-12 in 1 iter"):
        GroupLasso(CHANNELS, max_iter=1, tol=1e-12).fit(*problem())
