"""Participants count once: they are groups, or the index of X; without, a warning says so."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from idfsmec import (
    IDFSMEC,
    IDFSMECCV,
    FeatureTable,
    IDFSMECClassifier,
    IDFSMECRegressor,
    StabilitySelector,
    idfs_path,
    summarise,
)
from idfsmec.errors import InputError
from idfsmec.prediction import TunedPipeline
from idfsmec.selection import feature_effects


def messages_of(fits):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for fit in fits:
            fit()
    return [str(one.message) for one in caught if "got no groups" in str(one.message)]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (IDFSMEC, {}),
        (IDFSMECCV, {"lams": [1.0], "gammas": [2.0], "n_features_to_select": [2]}),
        (IDFSMECClassifier, {}),
        (IDFSMECRegressor, {}),
    ],
)
def test_rows_that_count_as_participants_are_said_once(kind, options):
    # What was said is remembered by name: this kind has said nothing yet.
    fresh = type(f"Fresh{kind.__name__}", (kind,), {"__init__": kind.__init__})
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 6)) + y[:, None]
    channels = [0, 0, 0, 1, 1, 1]
    frame = pd.DataFrame(X, index=pd.Index(np.arange(40) // 2 * 2 + y, name="subject"))
    model = fresh(channels, **options)
    assert messages_of([lambda: model.fit(X, y, groups=np.arange(40))]) == []
    assert messages_of([lambda: model.fit(frame.add_prefix("x"), y)]) == []
    said = messages_of([lambda: model.fit(X, y)] * 2)
    assert len(said) == 1
    assert f"Fresh{kind.__name__}" in said[0]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    subjects = np.repeat(np.arange(24), 2)
    y = np.where(subjects % 2, "MDD", "HC")
    names = [f"{channel}__{band}" for channel in ("F3", "O2") for band in ("a", "b", "c")]
    X = pd.DataFrame(rng.normal(size=(48, 6)), columns=names)
    X["O2__b"] += y == "MDD"
    sites = np.where(subjects < 12, "Oslo", "Lund")
    return FeatureTable(X, y, subjects, sites=sites)


def learned(estimator):
    """All arrays that an estimator has learned."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype == float
    }


@pytest.mark.parametrize(
    "estimator",
    [
        IDFSMEC(),
        IDFSMECCV(lams=[1.0], gammas=[2.0], n_features_to_select=[2]),
        StabilitySelector(n_resamples=4, threshold=0.6, random_state=0),
        IDFSMECClassifier(cv=2),
        TunedPipeline(cv=2, costs=[0.01], n_features_to_select=[2]),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_the_index_of_x_stands_for_groups(estimator, table):
    X = table.X.reset_index(drop=True)
    wanted = learned(clone(estimator).fit(X, table.y, groups=table.subjects))
    by_index = learned(clone(estimator).fit(table.X, table.y))
    assert wanted.keys() == by_index.keys() != set()
    for name, value in wanted.items():
        np.testing.assert_array_equal(by_index[name], value, err_msg=name)


def test_functions_read_the_index_of_x_too(table):
    X = table.X.reset_index(drop=True)
    path, wanted = idfs_path(table.X, table.y), idfs_path(X, table.y, groups=table.subjects)
    np.testing.assert_array_equal(path.scores, wanted.scores)
    assert (feature_effects(table.X, table.y)["n_subjects"] == 24).all()


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_samples_without_a_group_are_not_samples_of_one_participant(table, missing):
    groups = table.subjects.astype(object)
    groups[[3, 7, 8]] = missing
    message = "groups has no name for 3 of 48 samples, first in row 3: name the participant"
    for estimator in (IDFSMEC(), IDFSMECClassifier(), StabilitySelector(), TunedPipeline()):
        with pytest.raises(InputError, match=message):
            estimator.fit(table.X, table.y, groups=groups)
    X = table.X.set_axis(pd.Index(groups, name="subject"))
    with pytest.raises(InputError, match='the index of X named "subject" has no name for 3 of'):
        feature_effects(X, table.y)


@pytest.mark.filterwarnings("ignore:Channels are weighted by the training loss")
def test_summaries_may_be_given_by_name(table):
    summaries = [summarise(table)]
    by_name = IDFSMEC().fit_summaries(summaries=summaries)
    np.testing.assert_array_equal(by_name.ranking_, IDFSMEC().fit_summaries(summaries).ranking_)
