"""IDFSMEC keeps scikit-learn's contract and works wherever a selector is used."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec import IDFSMEC


@pytest.mark.filterwarnings("ignore:Channels are weighted by the training loss")
@parametrize_with_checks([IDFSMEC()])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def frame(incomplete):
    X, y, channels = incomplete
    columns = [f"{channel}__f{j % 5}" for j, channel in enumerate(channels)]
    return pd.DataFrame(X, columns=columns), pd.Series(np.where(y == 1, "MDD", "HC"))


def test_works_in_a_pipeline_in_front_of_an_imputer_and_a_classifier(frame):
    X, y = frame
    pipeline = make_pipeline(
        IDFSMEC(n_features_to_select=5), SimpleImputer(), SVC(kernel="linear")
    )
    assert pipeline.fit(X, y).score(X, y) > 0.6


@pytest.mark.slow
def test_is_searched_over_by_grid_search(frame):
    X, y = frame
    pipeline = make_pipeline(IDFSMEC(), SimpleImputer(), SVC(kernel="linear"))
    grid = {
        "idfsmec__lam": [0.01, 1.0],
        "idfsmec__gamma": [1.5, 2.0],
        "idfsmec__n_features_to_select": [2, 0.5],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_clone_copies_parameters_and_forgets_the_fit(frame):
    selector = IDFSMEC(lam=0.5, n_features_to_select=3).fit(*frame)
    copy = clone(selector)
    assert copy.get_params() == selector.get_params()
    assert not hasattr(copy, "scores_")


def test_feature_names_and_pandas_output(frame):
    X, y = frame
    selector = IDFSMEC(n_features_to_select=4).set_output(transform="pandas").fit(X, y)
    kept = selector.transform(X)
    assert list(kept.columns) == list(selector.get_feature_names_out())
    pd.testing.assert_frame_equal(kept, X[kept.columns])


def test_polars_in_and_out(frame):
    X, y = frame
    here = IDFSMEC(n_features_to_select=4).fit(X, y)
    frame = pl.from_pandas(X, nan_to_null=False)
    there = IDFSMEC(n_features_to_select=4).set_output(transform="polars").fit(frame, y)
    np.testing.assert_array_equal(here.scores_, there.scores_)
    assert there.channel_names_.tolist() == ["E1", "E2", "E3", "E4"]
    assert there.transform(frame).columns == list(here.get_feature_names_out())
