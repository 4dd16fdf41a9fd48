"""ChannelPCA reduces each channel alone, from the samples that have it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedGroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec import FeatureTable, IDFSMECClassifier
from idfsmec.prediction import ChannelPCA


@parametrize_with_checks([ChannelPCA()])
def test_follows_the_rules_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def table():
    """Embeddings of two channels in 30 columns each, one direction of which differs."""
    rng = np.random.default_rng(0)
    subjects = np.repeat(np.arange(30), 2)
    y = np.where(subjects % 2, "MDD", "HC")
    X = rng.normal(size=(60, 60))
    X[:, :30] += 2.0 * np.outer(y == "MDD", np.ones(30))
    X[rng.random(60) < 0.3, 30:] = np.nan
    names = [f"{channel}__e{i}" for channel in ("F3", "O2") for i in range(30)]
    return FeatureTable(pd.DataFrame(X, columns=names), y, subjects)


def test_each_channel_has_the_components_of_its_own_samples(table):
    reduced = ChannelPCA(n_components=3).set_output(transform="pandas").fit(table.X)
    found = reduced.transform(table.X)
    assert list(found) == [f"{c}__pc{k}" for c in ("F3", "O2") for k in (1, 2, 3)]
    seen = table.observed["O2"].to_numpy()
    assert found["O2__pc1"].isna().to_numpy().tolist() == (~seen).tolist()
    own = table.X.filter(like="O2__").to_numpy()[seen]
    expected = PCA(3, svd_solver="full").fit_transform(own)
    np.testing.assert_allclose(found.filter(like="O2__").to_numpy()[seen], expected, atol=1e-9)


def test_few_columns_or_samples_give_fewer_components_and_an_unseen_channel_none():
    X = np.random.default_rng(0).normal(size=(3, 7))
    X[:, 6] = np.nan
    reduced = ChannelPCA(["a", "a", "b", "b", "b", "b", "c"]).fit(X)
    names = reduced.get_feature_names_out().tolist()
    assert names == ["a__pc1", "a__pc2", "b__pc1", "b__pc2", "b__pc3"]
    assert reduced.transform(X).shape == (3, 5)


def test_it_stands_before_a_classifier_inside_the_folds(table):
    model = make_pipeline(
        ChannelPCA(n_components=4).set_output(transform="pandas"), IDFSMECClassifier(cv=2)
    )
    folds = StratifiedGroupKFold(3)
    accuracy = cross_val_score(model, table.X, table.y, groups=table.subjects, cv=folds)
    assert accuracy.mean() > 0.9
