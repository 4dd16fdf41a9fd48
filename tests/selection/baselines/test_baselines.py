"""What all baselines promise."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec.selection import (
    CDLSR,
    CMIM,
    FSOR,
    GRMOR,
    MRMR,
    MRMSR,
    PSNSGA,
    RFS,
    RRCT,
    GroupLasso,
    ReliefF,
)

ALL = [
    ReliefF(),
    MRMR(),
    CMIM(),
    MRMSR(),
    RRCT(),
    PSNSGA(population_size=6, n_generations=2, random_state=0),
    RFS(),
    FSOR(),
    GRMOR(),
    CDLSR(n_restarts=3, random_state=0),
    GroupLasso(),
]

each_method = pytest.mark.parametrize("method", ALL, ids=lambda method: type(method).__name__)


# The methods differ in how they score features: one per base class stands for the others, which
# have their turn in the long tests.
FIRST = (ReliefF, MRMR)


@parametrize_with_checks([method for method in ALL if isinstance(method, FIRST)])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.long
@parametrize_with_checks([method for method in ALL if not isinstance(method, FIRST)])
def test_so_do_the_others(estimator, check):
    check(estimator)


def problem(n_samples=60, n_features=8, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % n_classes
    X = rng.normal(size=(n_samples, n_features))
    X[:, 0] += 2.0 * y
    return X, y


def check_total_order(selector, n_features):
    assert sorted(selector.ranking_) == list(range(1, n_features + 1))
    assert np.isfinite(selector.scores_).all()
    by_rank = selector.scores_[np.argsort(selector.ranking_)]
    assert (np.diff(by_rank) <= 0).all()
    n_kept = selector.support_.sum()
    assert (selector.ranking_[selector.support_] <= n_kept).all()


@each_method
@pytest.mark.parametrize(
    ("n_samples", "n_features", "n_classes"),
    [(20, 50, 3), (4, 5, 2), (40, 1, 2), (60, 12, 10)],
    ids=["wide", "two per class", "one feature", "ten classes"],
)
def test_gives_a_total_order_that_scores_agree_with(method, n_samples, n_features, n_classes):
    X, y = problem(n_samples, n_features, n_classes)
    check_total_order(clone(method).fit(X, y), n_features)


# FSOR, GRMOR and the group lasso of one group decompose matrices of that size:
# benchmarks/speed/methods.py runs them.
@pytest.mark.parametrize(
    "method",
    [method for method in ALL if not isinstance(method, FSOR | GRMOR | GroupLasso)],
    ids=lambda method: type(method).__name__,
)
def test_ranks_2304_features_of_few_samples(method):
    X, y = problem(n_samples=24, n_features=2304, n_classes=3)
    check_total_order(clone(method).set_params(n_features_to_select=20).fit(X, y), 2304)


@each_method
def test_puts_the_one_informative_feature_first(method):
    X, y = problem(n_samples=100)
    X[:, 0] += 2.0 * y
    assert clone(method).set_params(n_features_to_select=1).fit(X, y).ranking_[0] <= 2


@each_method
def test_ranks_constant_features_last_with_finite_scores(method):
    X, y = problem()
    X[:, [2, 5]] = [7.0, 0.1]
    selector = clone(method).fit(X, y)
    assert set(selector.ranking_[[2, 5]]) == {7, 8}
    check_total_order(selector, 8)


@each_method
def test_rounding_noise_counts_as_constant(method):
    X, y = problem()
    X[:, 2] = np.where(y == 1, 0.1, np.nextafter(0.1, 1.0))  # tells the classes apart exactly
    assert clone(method).fit(X, y).ranking_[2] == 8


@each_method
def test_ranks_even_when_every_feature_is_constant(method):
    X, y = np.ones((10, 3)), np.arange(10) % 2
    check_total_order(clone(method).fit(X, y), 3)


# The random starts of the two others depend on the number of features.
@pytest.mark.parametrize(
    "method",
    [method for method in ALL if not isinstance(method, PSNSGA | CDLSR)],
    ids=lambda method: type(method).__name__,
)
def test_a_constant_feature_does_not_change_the_order_of_the_others(method):
    X, y = problem()
    alone = clone(method).set_params(n_features_to_select=3).fit(X, y)
    joined = clone(method).set_params(n_features_to_select=3)
    joined.fit(np.column_stack([X, np.full(60, 3.0)]), y)
    assert joined.ranking_[:8].tolist() == alone.ranking_.tolist()


@each_method
def test_refuses_nan_and_says_what_to_put_in_front(method):
    X, y = problem()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN in 1 columns.*SimpleImputer"):
        clone(method).fit(X, y)


@each_method
def test_works_behind_an_imputer_with_named_columns_and_text_labels(method):
    X, y = problem()
    frame = pd.DataFrame(X, columns=[f"Cz__f{j}" for j in range(8)])
    frame.iloc[3, 4] = np.nan
    labels = np.where(y == 1, "MDD", "HC")
    selector = clone(method).set_params(n_features_to_select=2)
    pipeline = make_pipeline(SimpleImputer().set_output(transform="pandas"), selector, LinearSVC())
    assert pipeline.fit(frame, labels).score(frame, labels) > 0.7
    assert len(pipeline[:-1].get_feature_names_out()) == 2


@each_method
def test_gives_the_same_result_twice(method):
    X, y = problem(n_classes=3)
    first, second = clone(method).fit(X, y), clone(method).fit(X, y)
    assert first.ranking_.tolist() == second.ranking_.tolist()
    np.testing.assert_array_equal(first.scores_, second.scores_)


@each_method
def test_does_not_depend_on_the_names_or_kind_of_labels(method):
    X, y = problem(n_classes=3)
    as_text = clone(method).fit(X, np.array(["a", "b", "c"])[y])
    assert as_text.ranking_.tolist() == clone(method).fit(X, y).ranking_.tolist()


@pytest.mark.parametrize(
    "method",
    [ReliefF(), CDLSR(random_state=0), PSNSGA(n_generations=2, random_state=0)],
    ids=lambda method: type(method).__name__,
)
def test_any_number_of_threads_gives_identical_scores(method):
    X, y = make_classification(600, 10, n_informative=6, n_classes=3, random_state=1)
    one = clone(method).set_params(n_jobs=1).fit(X, y)
    two = clone(method).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.scores_, two.scores_)
    assert one.ranking_.tolist() == two.ranking_.tolist()


@each_method
def test_asking_for_too_many_features_keeps_all_and_warns_once(method):
    X, y = problem()
    with pytest.warns(UserWarning, match="more than the 8 features") as caught:
        selector = clone(method).set_params(n_features_to_select=99).fit(X, y)
    assert selector.support_.all()
    assert len(caught) == 1
