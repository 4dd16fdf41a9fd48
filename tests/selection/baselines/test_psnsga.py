"""PS-NSGA: objectives by definition, dominance, and the answer of the search."""

import builtins
import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier

from idfsmec.selection import PSNSGA


@pytest.fixture
def quick():
    return PSNSGA(n_generations=5, random_state=0)


def shuffled_by_class(y, rng):
    shuffled = rng.permutation(y.size)
    return shuffled[np.argsort(y[shuffled], kind="stable")]


def folds_of(y, rng):
    """Samples of each class, shuffled, go to ten folds in turn: what the search draws first."""
    folds = np.empty(y.size, dtype=int)
    folds[shuffled_by_class(y, rng)] = np.arange(y.size) % 10
    return folds


def objectives_by_definition(X, y, folds, mask):
    if not mask.any():
        return [1, 1, 1]
    X = ((X - X.min(axis=0)) / np.ptp(X, axis=0))[:, mask]
    predicted = np.empty_like(y)
    for fold in range(10):
        inside = folds == fold
        nearest = KNeighborsClassifier(1, algorithm="brute").fit(X[~inside], y[~inside])
        predicted[inside] = nearest.predict(X[inside])
    distance = cdist(X, X, "cityblock") / mask.sum()
    within = np.mean([distance[i, y == y[i]].max() for i in range(len(y))])
    between = np.mean([distance[i, y != y[i]].min() for i in range(len(y))])
    overlap = 1 / (1 + np.exp(-5 * (within - between)))
    return [1 - balanced_accuracy_score(y, predicted), mask.mean(), overlap]


def beats(first, second, margin=0.2):
    pareto = (first <= second).all() and (first < second).any()
    return pareto or first[0] + margin <= second[0] + 1e-12


def test_objectives_follow_their_definition(quick):
    X, y = load_wine(return_X_y=True)
    quick.fit(X, y)
    folds = folds_of(y, np.random.RandomState(0))
    expected = [objectives_by_definition(X, y, folds, mask) for mask in quick.front_]
    np.testing.assert_allclose(quick.front_objectives_, expected, atol=1e-11)


def test_with_many_ties_errors_are_those_of_the_first_nearest_sample_in_another_fold():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (40, 4)).astype(float), rng.permutation(40) % 2
    selector = PSNSGA(population_size=6, n_generations=2, random_state=0).fit(X, y)
    folds = folds_of(y, np.random.RandomState(0))
    order = np.argsort(folds, kind="stable")
    for mask, (error, _, _) in zip(selector.front_, selector.front_objectives_, strict=True):
        correct = []
        for i in range(40):
            others = order[folds[order] != folds[i]]
            squares = ((X[others] - X[i])[:, mask] ** 2).sum(axis=1)
            correct.append(y[others[squares.argmin()]] == y[i])
        recalls = [np.mean(np.array(correct)[y == code]) for code in (0, 1)]
        assert error == pytest.approx(1 - np.mean(recalls))


def test_samples_in_several_chunks_have_the_objectives_of_their_definition():
    rng = np.random.default_rng(0)
    y = np.arange(1100) % 2
    X = rng.normal(size=(1100, 2)) + y[:, None]
    selector = PSNSGA(population_size=2, n_generations=0, random_state=0).fit(X, y)
    folds = folds_of(y, np.random.RandomState(0))
    expected = [objectives_by_definition(X, y, folds, mask) for mask in selector.front_]
    np.testing.assert_allclose(selector.front_objectives_, expected, atol=1e-11)


def test_no_member_of_the_first_front_beats_another(quick):
    front = quick.fit(*load_wine(return_X_y=True)).front_objectives_
    assert len(front) > 1
    assert not any(beats(first, second) for first in front for second in front)


def test_the_answer_is_the_least_error_of_the_first_front(quick):
    quick.fit(*load_wine(return_X_y=True))
    errors, shares = quick.front_objectives_[:, 0], quick.front_objectives_[:, 1]
    assert quick.subset_objectives_[0] == errors.min() < 0.1
    assert quick.subset_objectives_[1] == shares[errors == errors.min()].min()
    assert quick.subset_objectives_[1] == quick.subset_.mean()
    assert 20 <= quick.n_evaluations_ <= 20 * (1 + 5 * 4)


def test_ranks_by_share_of_the_first_front_then_by_relevance(quick):
    quick.fit(*load_wine(return_X_y=True))
    np.testing.assert_array_equal(quick.front_share_, quick.front_.mean(axis=0))
    shares = quick.front_share_[np.argsort(quick.ranking_)]
    assert (np.diff(shares) <= 0).all()


def test_more_generations_are_not_worse():
    X, y = load_iris(return_X_y=True)
    few = PSNSGA(n_generations=0, random_state=3).fit(X, y)
    many = PSNSGA(n_generations=10, random_state=3).fit(X, y)
    assert many.subset_objectives_[0] <= few.subset_objectives_[0]


def test_a_subset_that_turns_up_again_is_evaluated_once():
    X, y = load_iris(return_X_y=True)
    selector = PSNSGA(n_generations=10, random_state=0).fit(X, y)
    assert selector.n_evaluations_ <= 2**4


def test_few_samples_are_drawn_of_many_and_all_of_few(quick):
    X, y = load_iris(return_X_y=True)
    everyone = clone(quick).fit(X, y)
    same = clone(quick).set_params(max_samples=y.size).fit(X, y)
    np.testing.assert_array_equal(same.front_, everyone.front_)
    X = X + np.random.default_rng(0).normal(scale=0.01, size=X.shape)  # no ties
    few = clone(quick).set_params(max_samples=60).fit(X, y)
    rng = np.random.RandomState(0)
    by_class = shuffled_by_class(y, rng)
    drawn = np.sort(np.concatenate([by_class[y[by_class] == code][:20] for code in range(3)]))
    folds = folds_of(y[drawn], rng)
    for mask, values in zip(few.front_, few.front_objectives_, strict=True):
        # Scaled by all samples: the extremes stand beside those drawn.
        ends = np.vstack([X[drawn], X.min(axis=0), X.max(axis=0)])
        scaled = (ends - ends.min(axis=0)) / np.ptp(ends, axis=0)
        distance = cdist(scaled[:-2, mask], scaled[:-2, mask], "sqeuclidean")
        distance[folds[:, None] == folds] = np.inf
        correct = y[drawn][distance.argmin(axis=1)] == y[drawn]
        assert values[0] == pytest.approx(1 - correct.mean())


def test_every_class_is_drawn(quick):
    X, y = load_iris(return_X_y=True)
    y = np.where(np.arange(150) < 3, 3, y)
    selector = quick.set_params(max_samples=20, n_generations=1).fit(X, y)
    assert np.isfinite(selector.front_objectives_).all()


def test_the_seed_decides():
    X, y = load_wine(return_X_y=True)
    one, same, other = (PSNSGA(n_generations=2, random_state=seed).fit(X, y) for seed in (0, 0, 5))
    np.testing.assert_array_equal(one.front_share_, same.front_share_)
    assert one.front_share_.tolist() != other.front_share_.tolist()


def test_pymoo_does_not_change_the_warning_filters(quick):
    before = list(warnings.filters)
    quick.fit(*load_iris(return_X_y=True))
    assert list(warnings.filters) == before


def test_without_pymoo_the_error_says_how_to_install_it(monkeypatch, quick):
    real_import = builtins.__import__

    def no_pymoo(name, *args, **kwargs):
        if name.startswith("pymoo"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_pymoo)
    with pytest.raises(ImportError, match=r"pip install 'idfsmec\[wrapper\]'"):
        quick.fit(*load_iris(return_X_y=True))
