"""Public estimators take X, y and groups as scikit-learn does, and work in all its tools."""

import importlib
import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from idfsmec import FeatureTable, _validation, idfs_path, prediction, selection
from idfsmec.errors import InputError
from idfsmec.selection import feature_effects

REFUSED = r"^a FeatureTable is not X: [^\n]*fit\(table\.X, table\.y\)[^\n]*$"
COUNTS = {"n_features_to_select": [1, 2]}
FAST = {"cv": 2, "costs": [0.01], "n_features_to_select": [2, 4]}
SEARCH = {"lams": [1.0], "gammas": [2.0], **FAST}
CLASSIFIER = make_pipeline(SimpleImputer(), LogisticRegression())
REGRESSOR = make_pipeline(SimpleImputer(), LinearRegression())

#: An estimator of each class, with a grid to search.
CASES = {
    "Adjuster": ({"require_covariates": False}, {"splines": [False, True]}),
    "CDLSR": ({"random_state": 0}, COUNTS),
    "ChannelImputer": ({}, {"n_factors": [1, 2]}),
    "ChannelPCA": ({"n_components": 2}, {"n_components": [1, 2]}),
    "GroupLasso": ({}, COUNTS),
    "HarmonizedClassifier": ({"classifier": CLASSIFIER}, {"random_state": [0, 1]}),
    "HarmonizedRegressor": ({"regressor": REGRESSOR}, {"random_state": [0, 1]}),
    "IDFSMEC": ({"n_features_to_select": 3}, {"lam": [0.1, 1.0]}),
    "IDFSMECCV": (SEARCH, {"cv": [2, 3]}),
    "IDFSMECClassifier": ({"cv": 2}, {"lam": [0.1, 1.0]}),
    "IDFSMECRegressor": ({"cv": 2}, {"lam": [0.1, 1.0]}),
    "PSNSGA": ({"n_generations": 1, "population_size": 6, "random_state": 0}, COUNTS),
    "SiteHarmonizer": ({"unseen": "keep"}, {"empirical_bayes": [True, False]}),
    "StabilitySelector": (
        {"n_resamples": 4, "threshold": 0.6, "random_state": 0},
        {"threshold": [0.6, 0.7]},
    ),
    "TunedPipeline": (FAST, {"clip": [3.0, 6.0]}),
    "TunedRegressor": (FAST, {"clip": [3.0, 6.0]}),
    **{name: ({}, COUNTS) for name in ("FSOR", "GRMOR", "RFS", "CMIM", "MRMR", "MRMSR", "RRCT")},
    "ReliefF": ({"n_neighbors": 3}, COUNTS),
}


def public_estimators():
    """Names of all public classes that are fitted to samples by features."""
    names = set()
    for module in ("idfsmec", "idfsmec.selection", "idfsmec.prediction"):
        imported = importlib.import_module(module)
        public = {name: getattr(imported, name) for name in imported.__all__}
        names |= {
            name
            for name, value in public.items()
            if inspect.isclass(value) and issubclass(value, BaseEstimator)
        }
    return names - {"FeatureExtractor"}  # it takes epochs


def test_no_public_estimator_is_left_out():
    assert public_estimators() == set(CASES)


@pytest.fixture(scope="module")
def table():
    """Twenty-four participants of two sites with four epochs each, and missing channels."""
    rng = np.random.default_rng(0)
    subjects = np.repeat(np.arange(24), 4)
    y = np.where(subjects % 2, "MDD", "HC")
    names = [f"{channel}__{band}" for channel in ("F3", "O2") for band in ("a", "b", "c")]
    X = pd.DataFrame(rng.normal(size=(24, 6))[subjects] + rng.normal(size=(96, 6)), columns=names)
    X["O2__b"] += 3 * (y == "MDD")
    X.loc[rng.random(96) < 0.1, names[:3]] = np.nan
    sites = pd.Series(np.where(subjects % 4 < 2, "Oslo", "Lund"))
    return FeatureTable(X, y, [f"s{subject:02d}" for subject in subjects], sites=sites)


def with_sites(table):
    """X of a table with subjects and sites in the index."""
    return table.X.set_index(pd.Index(table.sites, name="site"), append=True)


def make(name):
    cls = getattr(prediction, name, None) or getattr(selection, name)
    return cls(**CASES[name][0])


def in_pipeline(estimator):
    """A pipeline that predicts; its steps keep the index."""
    steps = [("scale", StandardScaler())]
    if not get_tags(estimator).input_tags.allow_nan:
        steps.append(("complete", SimpleImputer()))
    steps.append(("estimator", estimator))
    if not hasattr(estimator, "predict"):
        steps += [("impute", SimpleImputer()), ("classify", LogisticRegression())]
    return Pipeline(steps).set_output(transform="pandas")


def target(estimator, table):
    return table.X["O2__b"].to_numpy() if is_regressor(estimator) else table.y


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    """Warnings that are given once in a process are given once in a test."""
    monkeypatch.setattr(_validation, "_warned", set())


def takes_groups(estimator):
    return "groups" in inspect.signature(estimator.fit).parameters


@pytest.mark.filterwarnings("error:.* got no groups")
@pytest.mark.parametrize("name", sorted(CASES))
def test_an_estimator_works_in_all_of_scikit_learn(name, table):
    if name == "PSNSGA":
        pytest.importorskip("pymoo")
    estimator, grid = make(name), CASES[name][1]
    harmonizes = name == "SiteHarmonizer"
    X, subjects = with_sites(table) if harmonizes else table.X, table.subjects
    y = target(estimator, table)
    model = in_pipeline(estimator)
    folds = GroupKFold(3)

    # fit, predict, score in a pipeline.
    fitted = clone(model).fit(X, y)
    assert fitted.predict(X).shape == y.shape
    assert fitted.score(X, y) > 0.7

    # clone: the same parameters, nothing learned.
    copy = clone(fitted["estimator"])
    assert repr(copy) == repr(estimator)
    assert not [learned for learned in vars(copy) if learned.endswith("_")]

    # fit_transform, transform, set_output.
    if hasattr(estimator, "transform"):
        seen = X if get_tags(estimator).input_tags.allow_nan else X.fillna(0.0)
        fresh = clone(estimator).set_output(transform="pandas")
        frame = fresh.fit_transform(seen, y)
        pd.testing.assert_frame_equal(frame, fresh.transform(seen))
        assert frame.index.equals(X.index)
        assert list(frame.columns) == fresh.get_feature_names_out().tolist()

    # cross_val_score and GridSearchCV: the index reaches the estimator.
    scores = cross_val_score(model, X, y, groups=subjects, cv=folds, error_score="raise")
    assert scores.mean() > 0.6
    grid = {f"estimator__{parameter}": values for parameter, values in grid.items()}
    search = GridSearchCV(model, grid, cv=folds, error_score="raise")
    assert search.fit(X, y, groups=subjects).predict(X).shape == y.shape

    # cross_validate: groups are routed to splitter and estimator, from arrays.
    with config_context(enable_metadata_routing=True):
        routed = clone(model)
        if takes_groups(estimator):
            routed.set_params(estimator=clone(estimator).set_fit_request(groups=True))
        values = X if harmonizes else X.reset_index(drop=True)
        results = cross_validate(
            routed, values, y, params={"groups": subjects}, cv=folds, error_score="raise"
        )
    np.testing.assert_allclose(results["test_score"], scores)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", sorted(CASES))
def test_a_table_given_as_x_is_refused_with_the_right_call(name, table):
    if name == "PSNSGA":
        pytest.importorskip("pymoo")
    estimator = make(name)
    X = with_sites(table) if name == "SiteHarmonizer" else table.X
    y = target(estimator, table)
    model = in_pipeline(estimator)
    fitted = clone(model).fit(X, y)
    step = fitted["estimator"]
    calls = [
        lambda: clone(estimator).fit(table),
        lambda: clone(estimator).fit(table, None),
        lambda: clone(estimator).fit(table, y),
        lambda: clone(model).fit(table),
        lambda: clone(model).fit(table, y),
        lambda: fitted.predict(table),
        lambda: fitted.score(table, y),
        lambda: cross_val_score(model, table, y, groups=table.subjects, cv=GroupKFold(2)),
    ]
    if hasattr(estimator, "transform"):
        calls += [
            lambda: step.transform(table),
            lambda: clone(estimator).fit_transform(table, y),
        ]
    if is_classifier(estimator) or is_regressor(estimator):
        calls += [lambda: step.predict(table), lambda: step.score(table, y)]
    for call in calls:
        with pytest.raises(InputError, match=REFUSED):
            call()


def test_functions_and_steps_of_scikit_learn_refuse_a_table_too(table):
    for call in (
        lambda: StandardScaler().fit(table),
        lambda: make_pipeline(SimpleImputer(), LinearRegression()).fit(table, table.y),
        lambda: idfs_path(table, table.y),
        lambda: feature_effects(table, table.y),
        lambda: np.asarray(table),
    ):
        with pytest.raises(InputError, match=REFUSED):
            call()


def test_sites_and_groups_are_routed_through_a_pipeline(table):
    values, known = table.X.to_numpy(), {"sites": table.sites}
    by_index = make_pipeline(make("SiteHarmonizer"), make("TunedPipeline"))
    by_index.set_params(tunedpipeline__channels=table.column_channels)
    by_index[0].set_output(transform="pandas")
    expected = by_index.fit(with_sites(table), table.y).predict(with_sites(table))
    with config_context(enable_metadata_routing=True):
        harmonizer = make("SiteHarmonizer").set_fit_request(sites=True)
        harmonizer.set_transform_request(sites=True)
        tuned = make("TunedPipeline").set_params(channels=table.column_channels)
        tuned.set_fit_request(groups=True, sites=False).set_predict_request(sites=False)
        model = make_pipeline(harmonizer, tuned)
        model.fit(values, table.y, groups=table.subjects, **known)
        np.testing.assert_array_equal(model.predict(values, **known), expected)
        with pytest.raises(InputError, match="sites is not given"):
            model.predict(values)


@pytest.mark.parametrize("name", [name for name in sorted(CASES) if takes_groups(make(name))])
def test_a_step_that_drops_the_index_is_noticed(name, table):
    estimator = make(name)
    y = target(estimator, table)
    model = make_pipeline(StandardScaler(), estimator)
    if name in ("IDFSMECRegressor", "IDFSMECClassifier"):  # channels are in the names
        estimator.set_params(channels=table.column_channels)
    with pytest.warns(UserWarning, match=f"{name} got no groups: every row counts"):
        model.fit(table.X, y)
    _validation._warned.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_pipeline(estimator).fit(table.X, y)
