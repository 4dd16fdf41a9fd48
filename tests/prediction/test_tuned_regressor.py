"""The estimator of a method for a score: folds, scores by participant, ridge, tuning."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec.errors import InputError
from idfsmec.prediction import IDFSMECCV, METHODS, TunedRegressor
from idfsmec.prediction.folds import make_folds, make_inner_folds
from idfsmec.prediction.methods import methods_for_scores
from idfsmec.prediction.ridge import BoostedScore, LinearRidge
from idfsmec.selection import IDFSMEC


@parametrize_with_checks([LinearRidge(C=0.1)])
def test_ridge_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def scored(n=60, n_epochs=2, seed=0):
    """Six features of two channels; the score goes with the second feature of Cz."""
    rng = np.random.default_rng(seed)
    trait = rng.normal(size=(n, 6))
    bdi = np.round(15 + 6 * trait[:, 4] + 3 * rng.normal(size=n))
    X = np.repeat(trait, n_epochs, axis=0) + 0.3 * rng.normal(size=(n * n_epochs, 6))
    X[rng.random(len(X)) < 0.2, :3] = np.nan
    columns = [f"{v}__{f}" for v in ("F3", "Cz") for f in "abc"]
    frame = pd.DataFrame(X, columns=columns, index=pd.Index(np.repeat(np.arange(n), n_epochs)))
    return frame.rename_axis("subject"), np.repeat(bdi, n_epochs)


@pytest.mark.parametrize("shape", [(50, 8), (20, 40)])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_ridge_is_scikit_learns_on_the_standardised_score(shape, C):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=shape), rng.normal(20, 7, shape[0])
    ours = LinearRidge(C).fit(X, y)
    theirs = Ridge(0.5 / C).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-9)
    assert_allclose(ours.predict(X), theirs.predict(X))
    sets = [(np.array([3, 1]), C), (np.arange(shape[1]), 2 * C), (np.array([3, 1]), 3 * C)]
    for decided, (columns, cost) in zip(ours.decide_sets(X, y, X, sets, 1), sets, strict=True):
        alone = Ridge(0.5 / cost).fit(X[:, columns], y)
        assert_allclose(decided[:, 0], alone.predict(X[:, columns]))


def test_folds_keep_participants_together_and_have_low_and_high_scores_alike():
    rng = np.random.default_rng(0)
    scores = rng.exponential(10, 43)
    y, subjects = np.repeat(scores, 3), np.repeat(np.arange(43), 3)
    folds = make_folds(y, subjects, n_splits=5, numeric=True)
    held_out = np.concatenate([test for _, test in folds])
    assert_array_equal(np.sort(held_out), np.arange(129))
    for train, test in folds:
        assert not set(subjects[train]) & set(subjects[test])
        assert np.unique(subjects[test]).size in (8, 9)
        # Of five participants next to each other by their scores, one is in each fold.
        fives = np.argsort(np.argsort(scores))[np.unique(subjects[test])] // 5
        assert sorted(fives)[:8] == list(range(8))
    inner = make_inner_folds(y, subjects, "subject", 20, 0, numeric=True)
    assert len(inner) == 10  # each holds out at least four participants
    with pytest.raises(InputError, match=r"43 participants with a score.*give 2 to 10"):
        make_folds(y, subjects, n_splits=11, numeric=True)
    sites = np.where(subjects < 41, "Lund", "Oslo")
    with pytest.raises(InputError, match="site Oslo has 2 participants with a score"):
        make_folds(y, subjects, "site", sites=sites, numeric=True)


def test_tuning_finds_what_the_score_was_made_of():
    X, y = scored()
    model = TunedRegressor(n_features_to_select=[1, 2, 6]).fit(X, y)
    assert model.ranking_[4] == 1
    assert model.regressor_.coef_.size == model.columns_.size
    assert model.score(X, y) > 0.5
    assert "classes_" not in vars(model)
    assert model.best_score_ > -y.var()
    votes = model.channel_votes(X)
    complete = ~np.isnan(votes).any(axis=1)
    assert_allclose(
        votes[complete].sum(axis=1) + model.regressor_.intercept_,
        model.predict(X)[complete],
        atol=1e-6,
    )


def test_the_search_tunes_a_score_and_does_not_depend_on_its_unit():
    X, y = scored()
    lean = {"lams": [0.1, 1.0], "gammas": [2.0], "n_features_to_select": [1, 3], "numeric": True}
    search = IDFSMECCV(**lean).fit(X, y)
    other = IDFSMECCV(**lean).fit(X, 1000 * y + 5)
    assert search.best_params_ == other.best_params_
    assert_array_equal(search.ranking_, other.ranking_)
    assert isinstance(search.selector_, IDFSMEC)
    assert search.ranking_[4] == 1
    assert search.effects_["direction"][4] == "rises with the score"


def test_too_few_participants_are_refused():
    X, y = scored(n=7)
    with pytest.raises(ValueError, match="at least 8 participants"):
        TunedRegressor().fit(X, y)


def test_methods_without_a_form_for_scores_are_named():
    chosen, without = methods_for_scores(METHODS.values())
    assert {
        "IDFS-MEC",
        "ReliefF",
        "mRMR",
        "CMIM",
        "RRCT",
        "elastic net",
        "group lasso",
        "random forest",
        "ANOVA F",
        "all features",
        "random",
    } <= {m.name for m in chosen}
    assert {"RFS", "FSOR", "GRMOR", "CD-LSR", "PS-NSGA"} <= set(without)
    with pytest.raises(InputError, match="'FSOR' has no form for scores"):
        METHODS["FSOR"].pipeline(numeric=True)


@pytest.mark.parametrize("name", ["ANOVA F", "gradient boosting", "all features"])
def test_registered_methods_predict_scores(name):
    X, y = scored()
    model = METHODS[name].pipeline(numeric=True, n_features_to_select=(2, 6)).fit(X, y)
    assert model.score(X, y) > 0.3


def test_boosting_takes_columns_without_any_value():
    X = np.column_stack([np.arange(40.0), np.full(40, np.nan)])
    assert BoostedScore(random_state=0).fit(X, np.arange(40) % 7).predict(X).shape == (40,)
