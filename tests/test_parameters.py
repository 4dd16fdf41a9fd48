"""Every estimator declares its parameters and refuses what they cannot be before it fits."""

import importlib
import inspect
import pkgutil
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression

from idfsmec.selection import (
    CDLSR,
    CMIM,
    FSOR,
    GRMOR,
    IDFSMEC,
    MRMR,
    MRMSR,
    PSNSGA,
    RFS,
    ReliefF,
)

X = np.random.default_rng(0).normal(size=(12, 4))
Y = np.tile([0, 1], 6)
ANY_VALUE = {"reference"}  # a label
REQUIRED = {
    "HarmonizedClassifier": {"classifier": LogisticRegression()},
    "HarmonizedRegressor": {"regressor": LinearRegression()},
    "PresetOrder": {"ranks": [1, 2, 3, 4]},
}


def make(estimator, /, **parameters):
    return estimator(**REQUIRED.get(estimator.__name__, {}) | parameters)


def subclasses(base: type) -> set[type]:
    return {base}.union(*map(subclasses, base.__subclasses__()))


def is_of_scikit_learn(base: type) -> bool:
    """Whether scikit-learn itself checks the parameters."""
    return base.__module__.startswith("sklearn.") and "_parameter_constraints" in vars(base)


def estimators() -> list[type]:
    """All classes of the package that can be made and fitted."""
    for name in ("features", "selection", "prediction", "evaluation"):
        package = importlib.import_module(f"idfsmec.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"idfsmec.{name}."):
            importlib.import_module(module.name)
    found = [
        one
        for one in subclasses(BaseEstimator)
        if one.__module__.startswith("idfsmec.")
        and "__init__" in vars(one)
        and hasattr(one, "fit")
        and not any(is_of_scikit_learn(base) for base in one.__bases__)
        and not inspect.isabstract(one)
    ]
    return sorted(found, key=lambda one: one.__name__)


ALL = estimators()


def test_the_estimators_of_all_packages_are_looked_at():
    names = {one.__name__ for one in ALL}
    assert names >= {"FeatureExtractor", "IDFSMEC", "RFS", "IDFSMECClassifier", "RandomOrder"}
    assert len(names) >= 21


@pytest.mark.parametrize("estimator", ALL)
def test_every_parameter_is_declared_and_refuses_what_is_no_value_at_all(estimator):
    for name in set(make(estimator).get_params(deep=False)) - ANY_VALUE:
        with pytest.raises(ValueError, match=f"'{name}' parameter of {estimator.__name__} must"):
            make(estimator, **{name: object()}).fit(X, Y)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (RFS(max_iter=0), r"'max_iter' parameter of RFS must be an int in .*\[1, inf\). Got 0"),
        (IDFSMEC(standardize="no"), "'standardize' parameter of IDFSMEC must be .* Got 'no'"),
        (IDFSMEC(gamma=1), r"'gamma' parameter of IDFSMEC must be .*\(1.0, inf\). Got 1"),
        (RFS(gamma=0), "'gamma' parameter of RFS"),
        (FSOR(tol=-1), r"'tol' parameter of FSOR must be a float in .*\(0.0, inf\). Got -1"),
        (FSOR(standardize="no"), "'standardize' parameter of FSOR"),
        (GRMOR(lam=np.nan), "'lam' parameter of GRMOR must be .* Got nan"),
        (GRMOR(lam=np.inf), "'lam' parameter of GRMOR"),
        (CDLSR(tol="x"), "'tol' parameter of CDLSR must be .* Got 'x'"),
        (CDLSR(n_restarts=True), "'n_restarts' parameter of CDLSR must be .* Got True"),
        (CDLSR(n_jobs=0), "'n_jobs' parameter of CDLSR"),
        (ReliefF(n_neighbors=0), "'n_neighbors' parameter of ReliefF"),
        (MRMR(method="MIX"), "'method' parameter of MRMR must be a str among"),
        (MRMR(n_bins=1), "'n_bins' parameter of MRMR"),
        (CMIM(n_bins=256), r"'n_bins' parameter of CMIM must be .*\[2, 255\] or None. Got 256"),
        (MRMSR(n_bins=0), "'n_bins' parameter of MRMSR"),
        (PSNSGA(population_size=1), "'population_size' parameter of PSNSGA"),
        (PSNSGA(n_generations=-1), "'n_generations' parameter of PSNSGA"),
        *(
            (MRMR(n_features_to_select=count), "'n_features_to_select' parameter of MRMR")
            for count in (0, 1.5, 0.0, True, None, np.nan, "all")
        ),
    ],
)
def test_the_message_names_parameter_choices_and_value(selector, message):
    with pytest.raises(ValueError, match=message):
        selector.fit(X, Y)


def test_a_parent_class_need_not_be_repeated():
    class Longer(RFS):
        _parameter_constraints: ClassVar = {"verdict": ["boolean"]}

        def __init__(self, *, n_features_to_select=20, max_iter=5, verdict=True):
            super().__init__(n_features_to_select=n_features_to_select, max_iter=max_iter)
            self.verdict = verdict

    with pytest.raises(ValueError, match="'max_iter' parameter of Longer"):
        Longer(max_iter=0).fit(X, Y)
    with pytest.raises(ValueError, match="'verdict' parameter of Longer"):
        Longer(verdict="yes").fit(X, Y)
