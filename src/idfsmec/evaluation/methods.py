"""Contestants: what takes part in a comparison, and which settings of it are tried."""

from __future__ import annotations

import importlib.util
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from idfsmec.errors import InputError
from idfsmec.evaluation._sanity import AnovaF, ColumnOrder, ForestImportance, RandomOrder
from idfsmec.selection import IDFSMEC, METHODS

#: The paper's grid.
PAPER_LAMS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
PAPER_GAMMAS = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
#: What nested tuning tries: gamma below 2 too, where channels matter more.
TUNED_LAMS = tuple(METHODS["IDFS-MEC"].grid["lam"])
TUNED_GAMMAS = tuple(METHODS["IDFS-MEC"].grid["gamma"])

#: Coarser than the registry's grids of seven: a setting costs a fit per inner fold.
_TUNED: dict[str, dict[str, tuple[float, ...]]] = {
    "RFS": {"gamma": (1e-2, 1.0, 1e2)},
    "GRMOR": {"lam": (1e-3, 1.0, 1e3)},
}

SANITY = ("all features", "random", "ANOVA F", "random forest", "gradient boosting")
ABLATIONS: dict[str, dict[str, Any]] = {
    "IDFS-MEC": {},
    "no redundancy": {"lam": 0.0},
    "no channel weights": {"channel_weighting": False},
    "no indicator": {"missing_indicator": False},
    "no correction": {"missing_correction": None},
}


@dataclass(frozen=True)
class Contestant:
    """A selector, the settings of it that are tried, and the classifier behind it.

    Parameters
    ----------
    name : str
        How it is called in results.
    selector : estimator
        With ``fit`` and ``ranking_``. It is cloned for each fit; ``n_features_to_select``,
        ``random_state`` and ``channels`` are set where it has them.
    grid : sequence of dict
        Parameters to set; tuning picks one of them.
    depends_on_k : bool
        Whether the order changes with ``n_features_to_select``, so that each k needs a fit.
    all_features : bool
        Whether all features are used, so that there is no k.
    classifier : {"svm", "boosting"}
        A linear SVM on filled data, or gradient boosting on data with gaps.
    svm_costs : sequence of float, optional
        Values of C to try in place of the protocol's.

    Examples
    --------
    >>> Contestant("mine", IDFSMEC(), grid=({"lam": 0.1}, {"lam": 10.0})).takes_gaps
    True
    """

    name: str
    selector: BaseEstimator
    grid: tuple[dict[str, Any], ...] = ({},)
    depends_on_k: bool = False
    all_features: bool = False
    classifier: Literal["svm", "boosting"] = "svm"
    svm_costs: tuple[float, ...] | None = None

    @property
    def takes_gaps(self) -> bool:
        """Whether the selector takes NaN; the others get filled data."""
        return bool(get_tags(self.selector).input_tags.allow_nan)

    def ks(self, wanted: Sequence[int], n_features: int) -> list[int]:
        """Say which numbers of features are scored."""
        if self.all_features:
            return [n_features]
        return sorted(k for k in wanted if k <= n_features) or [n_features]

    def describe(self) -> dict[str, Any]:
        """What determines the contestant's results, for the key of a unit."""
        kind = type(self.selector)
        return {
            "name": self.name,
            "selector": f"{kind.__module__}.{kind.__qualname__}",
            "params": {key: _plain(v) for key, v in self.selector.get_params().items()},
            "grid": [{key: _plain(v) for key, v in one.items()} for one in self.grid],
            "depends_on_k": self.depends_on_k,
            "all_features": self.all_features,
            "classifier": self.classifier,
            "svm_costs": self.svm_costs,
        }

    def build(
        self, setting: Mapping[str, Any], k: int, seed: int, channel_of: NDArray[np.intp]
    ) -> BaseEstimator:
        """Make an unfitted selector for a setting."""
        selector = clone(self.selector)
        known = selector.get_params()
        given = {"n_features_to_select": k, "random_state": seed, "channels": channel_of}
        selector.set_params(**{key: v for key, v in given.items() if key in known}, **setting)
        return selector


def settings_grid(**values: Iterable[Any]) -> tuple[dict[str, Any], ...]:
    """Combine values of several parameters.

    Examples
    --------
    >>> settings_grid(lam=[0.1, 1.0], gamma=[2.0])
    ({'lam': 0.1, 'gamma': 2.0}, {'lam': 1.0, 'gamma': 2.0})
    """
    return tuple(
        dict(zip(values, one, strict=True)) for one in itertools.product(*values.values())
    )


def idfsmec_contestant(
    name: str = "IDFS-MEC",
    lams: Sequence[float] = TUNED_LAMS,
    gammas: Sequence[float] = TUNED_GAMMAS,
) -> Contestant:
    """IDFS-MEC, or one of its ablations by name, with a grid of settings."""
    fixed = dict(ABLATIONS[name])
    values: dict[str, Iterable[float]] = {"lam": lams, "gamma": gammas}
    if "lam" in fixed:
        values["lam"] = [fixed.pop("lam")]
    if fixed.get("channel_weighting") is False:
        values["gamma"] = [2.0]  # without channel weights gamma changes nothing
    return Contestant(name, IDFSMEC(**fixed), settings_grid(**values))


def sanity_contestant(name: str) -> Contestant:
    """One of the sanity lines by name."""
    if name == "all features":
        return Contestant(
            name, ColumnOrder(), all_features=True, svm_costs=(1e-4, 1e-3, 1e-2, 1e-1)
        )
    if name == "gradient boosting":
        return Contestant(name, ColumnOrder(), all_features=True, classifier="boosting")
    simple = {"random": RandomOrder, "ANOVA F": AnovaF, "random forest": ForestImportance}
    return Contestant(name, simple[name]())


def find_contestants(
    methods: Iterable[str | Contestant] | None = None, sanity: bool = True
) -> list[Contestant]:
    """Look up contestants by name.

    Parameters
    ----------
    methods : iterable of str or Contestant, optional
        Names as in ``idfsmec.selection.METHODS``, names of sanity lines and of ablations, or
        contestants of your own. Left out: all methods.
    sanity : bool
        Whether the sanity lines are added when ``methods`` is left out.

    Returns
    -------
    list of Contestant

    Examples
    --------
    >>> [one.name for one in find_contestants(["IDFS-MEC", "ANOVA F"])]
    ['IDFS-MEC', 'ANOVA F']
    """
    known = known_methods()
    if methods is None:
        methods = [*known, *(SANITY if sanity else ())]
    found = [_find(one, known) for one in methods]
    names = [one.name for one in found]
    if not found:
        raise InputError("there are no methods to compare; give at least one")
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(f"the method {sorted(twice)[0]!r} is given twice; give other names")
    return found


def known_methods() -> dict[str, Contestant]:
    """All registered methods that can run here, by name; IDFS-MEC first."""
    found = {"IDFS-MEC": idfsmec_contestant()}
    for name, method in METHODS.items():
        if name == "IDFS-MEC" or (name == "PS-NSGA" and not _has_pymoo()):
            continue
        found[name] = Contestant(
            name,
            method.estimator,
            settings_grid(**_TUNED.get(name, method.grid)),
            depends_on_k=method.depends_on_k,
        )
    return found


def _has_pymoo() -> bool:
    return importlib.util.find_spec("pymoo") is not None


def _find(method: str | Contestant, known: Mapping[str, Contestant]) -> Contestant:
    if isinstance(method, Contestant):
        return method
    if method in known:
        return known[method]
    if method in SANITY:
        return sanity_contestant(method)
    if method in ABLATIONS:
        return idfsmec_contestant(method)
    choices = ", ".join([*known, *SANITY, *list(ABLATIONS)[1:]])
    raise InputError(f"there is no method {method!r}; choose from {choices}")


def _plain(value: Any) -> Any:
    """Give a value as JSON can hold it, so that equal parameters give equal text."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return repr(value)
    return value
