"""Who counts once: estimators take the subjects of a table, and say once if they have none."""

import warnings

import numpy as np
import pandas as pd
import pytest

from idfsmec import (
    IDFSMEC,
    IDFSMECCV,
    ChannelImputer,
    FeatureTable,
    IDFSMECClassifier,
    IDFSMECRegressor,
    StabilitySelector,
    idfs_path,
)
from idfsmec.prediction import SiteHarmonizer
from idfsmec.selection import MRMR, feature_effects


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
        MRMR(),
        IDFSMECClassifier(cv=2),
        ChannelImputer(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_table_stands_for_its_samples_labels_and_subjects(estimator, table):
    takes_groups = (
        {} if isinstance(estimator, MRMR | ChannelImputer) else {"groups": table.subjects}
    )
    wanted = learned(estimator.fit(table.X.reset_index(drop=True), table.y, **takes_groups))
    found = learned(estimator.fit(table))
    assert wanted.keys() == found.keys() != set()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_a_score_stands_in_for_the_labels_of_a_table(table):
    score = np.arange(48) / 48 + (table.y == "MDD")
    found = IDFSMECRegressor(cv=2).fit(table, score)
    wanted = IDFSMECRegressor(cv=2).fit(table.X, score)
    np.testing.assert_array_equal(found.coef_, wanted.coef_)
    assert "spearman" in feature_effects(table, score, numeric=True)


def test_functions_and_harmonizers_take_a_table(table):
    found, wanted = idfs_path(table), idfs_path(table.X, table.y)
    np.testing.assert_array_equal(found.scores, wanted.scores)
    assert (feature_effects(table)["n_subjects"] == 24).all()
    shift = SiteHarmonizer().fit(table).shift_
    np.testing.assert_array_equal(shift, SiteHarmonizer().fit(table.X, sites=table.sites).shift_)
