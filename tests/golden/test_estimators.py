"""Selectors, baselines, the imputer, the harmonizer, the classifier and the regressor."""

import warnings

import numpy as np
import pytest

from tests.golden import api
from tests.golden.cases import case, cases_of, check
from tests.golden.inputs import make_complete, make_table

#: What ``tol=1e-6`` leaves open in weights; scores are ten times as exact.
DEFAULT_TOL = {"rtol": 1e-6, "atol": 1e-7}
#: Options of IDFSMEC whose outcomes are recorded.
VARIANTS = {
    "default": {},
    "default tolerance": {"tol": 1e-6},
    "paper scale": {"lam_scale": "paper"},
    "as measured": {"standardize": False},
    "no correction": {"missing_correction": None},
    "equal channels": {"channel_weighting": False},
    "no indicator": {"missing_indicator": False},
    "in-sample": {"channel_loss": "in-sample"},
    "as in the paper": {
        "channel_loss": "in-sample",
        "lam_scale": "paper",
        "missing_correction": None,
    },
    "no redundancy": {"lam": 0.0},
    "much redundancy": {"lam": 100.0, "gamma": 1.3},
    "a share": {"n_features_to_select": 0.2, "lam": 3.0, "gamma": 8.0},
}


def names(selector, X, count=20):
    """The first features of the ranking, which counts for more than their scores."""
    return list(np.asarray(X.columns)[np.argsort(selector.ranking_, kind="stable")][:count])


def about(selector, X):
    loss = selector.held_out_loss_
    return {
        "ranking": names(selector, X),
        "n_selected": int(selector.support_.sum()),
        "channels": selector.channel_names_,
        "channel_weights": selector.channel_weights_,
        "feature_weights": selector.feature_weights_,
        "scores": selector.scores_,
        "objective": selector.objective_,
        "held_out_loss": loss,
        "solved": bool((selector.kkt_residuals_ < 1e-5).all()),
    }


def quiet(function, *arguments, **options):
    """Fit where warnings about missingness are part of the input."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


def fitted(made, options, **given):
    """Fit until numbers are exact, so that they do not depend on the way to the solution."""
    X = made["X"]
    selector = api.IDFSMEC(**{"tol": 1e-10, **options})
    return about(quiet(selector.fit, X, made["y"], **given), X)


@case("estimators")
def idfsmec_variants(folder):
    made = make_table()
    return {name: fitted(made, options) for name, options in VARIANTS.items()}


@case("estimators")
def idfsmec_sample_weight(folder):
    made = make_table()
    return {
        name: fitted(made, VARIANTS[name], sample_weight=made["weight"])
        for name in ("default", "in-sample")
    }


@case("estimators")
def idfsmec_three_classes(folder):
    return fitted(make_table(36, 2, 6, 4, n_classes=3, seed=5), {})


# A feature that is there twice leaves a direction free: held-out losses follow rounding there.
@case("estimators", rtol=1e-5, atol=1e-5)
def idfsmec_odd_columns(folder):
    """A channel that is never there, a constant feature, and one that is there twice."""
    made = make_table()
    X = made["X"].copy()
    X.loc[:, X.columns.str.startswith("T7__")] = np.nan
    X["Cz__a"] = X["Cz__a"].where(X["Cz__a"].isna(), 3.0)
    X["F3__b"] = 2 * X["F3__a"] + 1
    selector = quiet(api.IDFSMEC().fit, X, made["y"])
    first, second = (list(X).index(name) for name in ("F3__a", "F3__b"))
    if selector.scores_[second] > 0:
        # Rounding decides which of the two gets the weight: let it be the first on any machine.
        for values in (selector.scores_, selector.feature_weights_, selector.ranking_):
            values[[first, second]] = values[[second, first]]
    return {**about(selector, X), "missingness": selector.missingness_}


@case("estimators", **DEFAULT_TOL)
def idfsmec_without_names(folder):
    made = make_table()
    channels = np.repeat(np.arange(7), 5)
    selector = quiet(api.IDFSMEC(channels).fit, made["X"].to_numpy(), made["y"] == "MDD")
    return {
        "ranking": selector.ranking_,
        "scores": selector.scores_,
        "channels": selector.channel_names_,
        "transformed": selector.transform(made["X"].to_numpy()).shape,
        "names": list(selector.get_feature_names_out())[:5],
    }


@case("estimators", **DEFAULT_TOL)
def frames_of_a_selector(folder):
    made = make_table()
    selector = quiet(api.IDFSMEC(n_features_to_select=4).fit, made["X"], made["y"])
    return {
        "ranking": api.ranking_frame(selector).head(8),
        "channels": api.channel_frame(selector),
        "missingness": selector.missingness_,
    }


def path(**given):
    made = make_table()
    grid = {"lams": [0.3, 1.0, 50.0], "gammas": [1.5, 4.0], **given}
    found = quiet(api.idfs_path, made["X"], made["y"], **grid)
    return {
        "scores": found.scores,
        "best": found.rankings.argsort(axis=-1, kind="stable")[..., :20],
        "channel_weights": found.channel_weights,
        "feature_weights": found.feature_weights,
        "objectives": found.objectives,
    }


@case("estimators", **DEFAULT_TOL)
def path_without_groups(folder):
    return path()


# With groups IDFSMEC is to count each subject once: these files are recorded again then.
@case("grouped")
def idfsmec_variants_by_subject(folder):
    made = make_table()
    return {
        name: fitted(made, options, groups=made["subjects"]) for name, options in VARIANTS.items()
    }


@case("grouped", **DEFAULT_TOL)
def samples_in_pieces(folder):
    """Of subjects whose samples come whole, as partial_fit sees them."""
    made = make_table()
    X, selector = made["X"], api.IDFSMEC()
    for rows in np.array_split(np.arange(len(X)), 3):
        given = X.iloc[rows], made["y"][rows]
        quiet(selector.partial_fit, *given, groups=made["subjects"][rows])
    return {"ranking": names(selector, X), "scores": selector.scores_}


@case("grouped")
def idfsmec_sample_weight_by_subject(folder):
    made = make_table()
    return fitted(made, {}, sample_weight=made["weight"], groups=made["subjects"])


@case("grouped")
def idfsmec_three_classes_by_subject(folder):
    made = make_table(36, 2, 6, 4, n_classes=3, seed=5)
    return fitted(made, {}, groups=made["subjects"])


@case("grouped", **DEFAULT_TOL)
def path_by_subject(folder):
    return path(groups=make_table()["subjects"])


@case("grouped", rtol=1e-4, atol=1e-4)  # scores of SVMs, which are solved to their own tolerance
def search_by_subject(folder):
    made = make_table()
    grid = {"lams": [0.1, 10.0], "gammas": [2.0, 4.0], "n_features_to_select": [4, 10]}
    search = api.IDFSMECCV(**grid, costs=[0.1], cv=3)
    quiet(search.fit, made["X"], made["y"], groups=made["subjects"])
    return {
        "best": search.best_params_,
        "score": search.best_score_,
        "scores": search.cv_results_["mean_test_score"],
        "ranking": names(search, made["X"]),
        "n_selected": int(search.support_.sum()),
    }


@case("estimators", rtol=1e-4, atol=1e-4)
def search_without_groups(folder):
    made = make_table(40, 1)
    search = api.IDFSMECCV(lams=[0.1, 10.0], gammas=[2.0], n_features_to_select=[5], cv=3)
    quiet(search.fit, made["X"], made["y"])
    return {
        "best": search.best_params_,
        "score": search.best_score_,
        "scores": search.cv_results_["mean_test_score"],
        "ranking": names(search, made["X"]),
    }


def stability(estimator, made, **given):
    selector = api.StabilitySelector(estimator, n_resamples=12, random_state=4)
    quiet(selector.fit, made["X"], made["y"], **given)
    value = selector.stability_
    return {
        "frequencies": selector.frequencies_,
        "channel_frequencies": selector.channel_frequencies_,
        "stability": [value.value, value.low, value.high, value.n],
        "threshold": selector.threshold_,
        "expected_false": selector.expected_false_,
        "selected": list(selector.get_feature_names_out()),
    }


@case("estimators")
def stability_without_groups(folder):
    return stability(api.IDFSMEC(n_features_to_select=6), make_table())


@case("estimators")
def stability_of_a_baseline(folder):
    made = make_table(missing=0.0)
    return stability(api.MRMR(n_features_to_select=6), made, groups=made["subjects"])


@case("grouped")
def stability_by_subject(folder):
    made = make_table()
    return stability(api.IDFSMEC(n_features_to_select=6), made, groups=made["subjects"])


@case("estimators")
def effects(folder):
    two, three = make_table(), make_table(36, 2, 4, 3, n_classes=3, seed=5)
    score = two["score"]
    return {
        "by sample": api.feature_effects(two["X"].iloc[:, :10], two["y"]),
        "by subject": api.feature_effects(two["X"].iloc[:, :10], two["y"], two["subjects"]),
        "three classes": api.feature_effects(three["X"], three["y"], three["subjects"]),
        "a score": api.feature_effects(
            two["X"].iloc[:, :10], score, two["subjects"], numeric=True
        ),
    }


def baseline(selector, n_classes=2, scores=True):
    X, y = make_complete(n_classes=n_classes)
    quiet(selector.fit, X, y)
    found = {"ranking": names(selector, X), "n_selected": int(selector.support_.sum())}
    return {**found, "scores": selector.scores_} if scores else found


def both(make):
    return {"two classes": baseline(make()), "three classes": baseline(make(), 3)}


@case("estimators")
def relieff(folder):
    return both(api.ReliefF) | {"3 neighbours": baseline(api.ReliefF(n_neighbors=3))}


@case("estimators")
def mrmr(folder):
    return both(api.MRMR) | {"quotient": baseline(api.MRMR(method="MIQ", n_bins=3))}


@case("estimators")
def cmim(folder):
    return both(api.CMIM) | {"variant B": baseline(api.CMIM(variant="B"))}


@case("estimators")
def mrmsr(folder):
    return both(api.MRMSR)


@case("estimators")
def rrct(folder):
    return both(api.RRCT)


# Iterations that end at a tolerance: numbers are as exact as that.
@case("estimators", rtol=1e-3, atol=1e-5)
def fsor(folder):
    return both(api.FSOR)


@case("estimators", rtol=1e-3, atol=1e-5)
def grmor(folder):
    return both(api.GRMOR) | {"little": baseline(api.GRMOR(lam=0.01))}


@case("estimators", rtol=1e-3, atol=1e-5)
def cdlsr(folder):
    return both(lambda: api.CDLSR(random_state=0, n_restarts=3))


# The linear programs of RFS give way to reweighting, which ends at 1e-5: the first features.
@case("estimators", rtol=1e-2, atol=1e-3)
def rfs(folder):
    X, y = make_complete()
    selector = quiet(api.RFS().fit, X, y)
    return {"ranking": names(selector, X, 8), "scores": selector.scores_}


# Its random numbers are drawn in another order by another implementation: what must stay is that
# the search finds informative features.
@case("estimators")
def psnsga(folder):
    X, y = make_complete(60, 12)
    selector = api.PSNSGA(
        n_features_to_select=4, population_size=20, n_generations=5, random_state=0
    )
    quiet(selector.fit, X, y)
    informative = {"f00", "f01", "f02", "f03", "f10", "f11"}
    return {
        "n_selected": int(selector.support_.sum()),
        "at least half informative": len(informative & set(names(selector, X, 4))) >= 2,
        "ranks": sorted(selector.ranking_.tolist()) == list(range(1, 13)),
    }


@case("estimators", rtol=1e-6, atol=1e-6)  # expectation maximisation
def imputer(folder):
    made = make_table()
    X, rows = made["X"], slice(0, 6)
    found = {}
    for name, options in {"default": {}, "two factors": {"n_factors": 2, "ridge": 5.0}}.items():
        fit = api.ChannelImputer(**options).fit(X)
        found[name] = {
            "completed": np.asarray(fit.transform(X))[rows],
            "mean": fit.mean_,
            "n_factors": fit.n_factors_,
        }
    fit = api.ChannelImputer().fit(X)
    found["factors"] = np.abs(fit.factors(X))[rows]
    found["of rows never seen"] = np.asarray(fit.transform(make_table(seed=8)["X"]))[rows]
    return found


@case("estimators", rtol=1e-6, atol=1e-6)
def harmonizer(folder):
    made = make_table()
    X, sites, rows = made["X"], made["sites"], slice(0, None, 16)
    found = {}
    for name, options in {"bayes": {}, "plain": {"empirical_bayes": False}}.items():
        fit = api.SiteHarmonizer(**options).fit(X, made["y"], sites=sites)
        found[name] = {
            "sites": fit.sites_,
            "X": np.asarray(fit.transform(X, sites=sites))[rows, :10],
        }
    age = made["age"][:, None]
    fit = api.SiteHarmonizer().fit(X, made["y"], sites=sites, covariates=age)
    found["covariate"] = np.asarray(fit.transform(X, sites=sites, covariates=age))[rows, :10]
    other = quiet(fit.transform, X, sites=np.repeat("Riga", len(X)), covariates=age)
    found["another site"] = np.asarray(other)[rows, :10]
    return found


def classified(made, **given):
    X, fresh = made["X"], make_table(6, seed=9)["X"]
    model = quiet(api.IDFSMECClassifier(cv=3).fit, X, made["y"], **given)
    return {
        "classes": model.classes_,
        "coef": model.coef_,
        "intercept": model.intercept_,
        "ranking": names(model, X),
        "probabilities": model.predict_proba(fresh)[:12],
        "predicted": model.predict(fresh),
    }


@case("estimators", rtol=1e-5, atol=1e-6)
def classifier_without_groups(folder):
    return classified(make_table(40, 1))


@case("grouped", rtol=1e-5, atol=1e-6)
def classifier_by_subject(folder):
    made = make_table()
    return classified(made, groups=made["subjects"])


def regressed(made, **given):
    X, fresh = made["X"], make_table(6, seed=9)["X"]
    model = quiet(api.IDFSMECRegressor(cv=3).fit, X, made["score"], **given)
    return {
        "coef": model.coef_,
        "intercept": model.intercept_,
        "ranking": names(model, X),
        "channel_weights": model.channel_weights_,
        "predicted": model.predict(fresh)[:12],
    }


@case("estimators", rtol=1e-5, atol=1e-6)
def regressor_without_groups(folder):
    return regressed(make_table(40, 1))


@case("grouped", rtol=1e-5, atol=1e-6)
def regressor_by_subject(folder):
    made = make_table()
    return regressed(made, groups=made["subjects"])


@pytest.mark.parametrize(("file", "name"), cases_of(__name__))
def test_estimators_do_as_recorded(file, name, folder):
    check(file, name, folder)
