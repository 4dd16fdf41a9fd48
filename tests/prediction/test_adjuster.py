"""Adjuster: what covariates explain is taken out, as a regression of each feature says."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose
from scipy.interpolate import CubicSpline
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec.errors import ArgumentError, InputError
from idfsmec.prediction import Adjuster, SiteHarmonizer
from idfsmec.prediction.adjuster import Corrections, make_corrections, table_covariates
from idfsmec.table import FeatureTable


@parametrize_with_checks([Adjuster(require_covariates=False)])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def make_samples(n=120, n_features=5, seed=0):
    """Features with an effect of age and sex."""
    rng = np.random.default_rng(seed)
    known = pd.DataFrame({"age": rng.uniform(18, 70, n), "sex": rng.choice(["f", "m", "x"], n)})
    X = rng.normal(size=(n, n_features)) + np.outer(known["age"], rng.normal(size=n_features)) / 20
    return X + (known["sex"] == "m").to_numpy()[:, None], known


def residuals(X, known, train, test):
    """Those of a linear regression with dummies on training rows, by scikit-learn."""
    coding = make_column_transformer(
        (OneHotEncoder(drop="first"), ["sex"]), remainder="passthrough"
    )
    model = make_pipeline(coding, LinearRegression()).fit(known.iloc[train], X[train])
    return X[test] - model.predict(known.iloc[test])


def test_residuals_are_those_of_a_linear_regression_on_the_same_folds():
    X, known = make_samples()
    for train, test in GroupKFold(5).split(X, groups=np.arange(len(X))):
        adjuster = Adjuster().fit(X[train], covariates=known.iloc[train])
        found = adjuster.transform(X[test], covariates=known.iloc[test]) - adjuster.mean_
        assert_allclose(found, residuals(X, known, train, test), atol=1e-10)
    assert adjuster.terms_ == ["age", "sex m", "sex x"]


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (None, [0.593345656192, 1.273567467652, -0.399630314233, -0.816081330869]),
        ("HC", [0.013262599469, 0.135278514589, -0.438992042440, -2.838196286472]),
    ],
)
def test_residuals_are_those_of_julearn(reference, expected):
    """Numbers of julearn 0.3.4, ConfoundRemover, by all and by controls (row_select_vals)."""
    age = [20.0, 25, 31, 38, 44, 52, 60, 23, 35, 47, 58, 66]
    known = pd.DataFrame({"age": age, "sex": list("fmfmmfmmffmf")})
    X = np.array([1.0, 3, 2, 5, 4, 4, 7, 2, 3, 5, 6, 5])[:, None]
    y = np.tile(["HC", "MDD"], 4)
    adjuster = Adjuster(reference=reference).fit(X[:8], y, covariates=known[:8])
    found = adjuster.transform(X[8:], covariates=known[8:]) - adjuster.mean_
    assert_allclose(found[:, 0], expected, atol=1e-11)


def test_each_feature_is_regressed_where_it_is_observed():
    X, known = make_samples()
    X[::3, 0], X[1::4, 2:4] = np.nan, np.nan
    adjuster = Adjuster().fit(X, covariates=known)
    adjusted = adjuster.transform(X, covariates=known)
    assert (np.isnan(adjusted) == np.isnan(X)).all()
    for column in range(X.shape[1]):
        rows = np.flatnonzero(~np.isnan(X[:, column]))
        alone = residuals(X[:, [column]], known, rows, rows)[:, 0]
        assert_allclose(adjusted[rows, column] - adjuster.mean_[column], alone, atol=1e-10)


def test_a_subject_with_many_epochs_counts_once():
    X, known = make_samples(30)
    times = np.where(np.arange(30) < 5, 40, 1)
    subjects = np.repeat(np.arange(30), times)
    once = Adjuster().fit(X, covariates=known)
    many = Adjuster().fit(X[subjects], covariates=known.iloc[subjects], groups=subjects)
    assert_allclose(many.coef_, once.coef_, atol=1e-10)
    assert_allclose(many.mean_, once.mean_, atol=1e-10)
    frame = pd.DataFrame(X[subjects], index=pd.Index(subjects, name="subject"))
    by_index = Adjuster().fit(frame, covariates=known.iloc[subjects])
    assert_allclose(by_index.coef_, many.coef_)


def test_learned_from_one_class_it_leaves_the_difference_between_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(["HC", "MDD"], 400)
    age = rng.normal(40, 8, 800) + 10 * (y == "MDD")
    X = (0.1 * age + 1.0 * (y == "MDD") + rng.normal(size=800))[:, None]
    known = pd.DataFrame({"age": age})

    def difference(**options):
        adjusted = Adjuster(**options).fit_transform(X, y, covariates=known)
        return adjusted[y == "MDD"].mean() - adjusted[y == "HC"].mean()

    assert difference(reference="HC") == pytest.approx(1.0, abs=0.2)
    assert difference() < 0.8  # part of it goes out with age


def test_splines_are_natural_cubic_ones_and_linear_beyond_the_knots():
    age = np.linspace(20, 80, 200)
    known = pd.DataFrame({"age": age})
    adjuster = Adjuster(splines=True).fit(age[:, None], covariates=known)
    knots = adjuster.covariates_["age"]
    assert_allclose(knots, np.quantile(age, [0.05, 0.35, 0.65, 0.95]))
    curve = CubicSpline(knots, [3.0, -1.0, 2.0, 5.0], bc_type="natural")
    within = (age >= knots[0]) & (age <= knots[-1])
    ends = np.clip(age, knots[0], knots[-1])
    smooth = np.where(within, curve(age), curve(ends) + curve(ends, 1) * (age - ends))
    left = Adjuster(splines=["age"]).fit_transform(smooth[:, None], covariates=known)
    assert np.ptp(left) < 1e-8
    assert np.ptp(Adjuster().fit_transform(smooth[:, None], covariates=known)) > 1


def test_values_of_the_average_participant_stay():
    X, known = make_samples()
    adjusted = Adjuster().fit_transform(X, covariates=known)
    assert_allclose(adjusted.mean(axis=0), X.mean(axis=0))


def test_an_unknown_category_counts_as_the_average_with_a_warning():
    X, known = make_samples()
    adjuster = Adjuster().fit(X, covariates=known)
    with pytest.warns(UserWarning, match="sex d was not seen in fit"):
        one = adjuster.transform(X[:1], covariates=pd.DataFrame({"age": [40.0], "sex": ["d"]}))
    shares = (known["sex"].to_numpy()[:, None] == ["m", "x"]).mean(axis=0)
    effect = (40 - known["age"].mean()) * adjuster.coef_[0]
    assert_allclose(one[0], X[0] - effect)
    assert shares.min() > 0


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"covariates": None}, "covariates is not given"),
        ({"covariates": pd.DataFrame({"age": [30.0]})}, "1 rows for 120 samples"),
        ({"covariates": pd.DataFrame({"age": [np.nan] * 120})}, "age is missing"),
        ({"splines": ["bdi"]}, "splines names 'bdi', and the covariates are age and sex"),
        ({"reference": "BD"}, "no sample has the label reference='BD'"),
    ],
)
def test_what_cannot_be_adjusted_for_is_refused(change, match):
    X, known = make_samples()
    given = {"covariates": known, **{k: v for k, v in change.items() if k == "covariates"}}
    adjuster = Adjuster(**{k: v for k, v in change.items() if k != "covariates"})
    with pytest.raises(ArgumentError, match=match):
        adjuster.fit(X, ["HC"] * 120, **given)


def test_other_covariates_than_in_fit_are_refused():
    X, known = make_samples()
    adjuster = Adjuster().fit(X, covariates=known)
    with pytest.raises(ArgumentError, match="covariates are age where fit had age and sex"):
        adjuster.transform(X, covariates=known[["age"]])
    with pytest.raises(ArgumentError, match="age is a text where fit had numbers"):
        adjuster.transform(X, covariates=known.assign(age="old"))


def test_covariates_reach_it_inside_a_pipeline_by_metadata_routing():
    X, known = make_samples()
    y = np.where(known["age"] > known["age"].median(), 1, 0)  # all that tells is age
    with sklearn.config_context(enable_metadata_routing=True):
        adjuster = Adjuster().set_fit_request(covariates=True)
        adjuster = adjuster.set_transform_request(covariates=True)
        pipeline = make_pipeline(adjuster, LogisticRegression())
        adjusted = cross_val_score(pipeline, X, y, params={"covariates": known}).mean()
    assert adjusted < 0.65 < cross_val_score(LogisticRegression(), X, y).mean()


def test_sites_are_harmonized_first_and_keep_what_covariates_explain():
    X, known = make_samples()
    frame, sites = pd.DataFrame(X), np.where(known["age"] > 40, "Lund", "Oslo")
    both = Corrections(SiteHarmonizer(), Adjuster())
    fitted, corrected = both.fit(frame, None, sites, known)
    terms = Adjuster().fit(X, covariates=known).terms(known)
    harmonized = SiteHarmonizer().fit_transform(X, sites=sites, covariates=terms)
    expected = Adjuster().fit_transform(harmonized, covariates=known)
    assert_allclose(corrected, expected)
    assert_allclose(fitted.apply(frame, sites, known), expected)
    assert list(fitted.adjuster.covariates_) == ["age", "sex"]


def make_table(**rows):
    X = pd.DataFrame(np.eye(4), columns=["F3__a", "F3__b", "O1__a", "O1__b"])
    y, subjects = ["HC", "HC", "MDD", "MDD"], ["s1", "s2", "s3", "s4"]
    return FeatureTable(X, y, subjects, rows=pd.DataFrame(rows) if rows else None)


def test_covariates_are_columns_of_a_table_as_numbers_where_all_are():
    table = make_table(age=["20", "31", "42.5", "53"], sex=["f", "m", "m", "f"])
    wanted = make_corrections(["HC", "MDD"], False, ["age:spline", "sex"], "HC")
    assert wanted.adjuster.splines == ["age"]
    assert wanted.adjuster.reference == "HC"
    known = table_covariates(table, wanted.names)
    assert known["age"].tolist() == [20, 31, 42.5, 53]
    assert known["sex"].tolist() == ["f", "m", "m", "f"]
    assert table_covariates(table, []) is None


def test_unknown_covariates_of_a_table_are_named():
    with pytest.raises(InputError, match="needs a column age, and beside features it has none"):
        table_covariates(make_table(), ["age"])
    table = make_table(age=[20, np.nan, 40, 50], sex=["f", "m", "", "f"])
    with pytest.raises(InputError, match="it is missing for s2; fill it in, or leave them out"):
        table_covariates(table, ["age"])
    with pytest.raises(InputError, match="it is missing for s3"):
        table_covariates(table, ["sex"])
    with pytest.raises(InputError, match="adjust_from is 'BD', and the classes are HC, MDD"):
        make_corrections(["HC", "MDD"], False, ["age"], "BD")
    with pytest.raises(InputError, match="adjust_from needs adjust"):
        make_corrections(["HC", "MDD"], False, [], "HC")
