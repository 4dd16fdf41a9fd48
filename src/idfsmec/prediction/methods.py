"""The registries: methods, imputers, classifiers and regressors that a comparison knows by name.

Nothing here imports scikit-learn before it is needed: the Tab key asks for names only.
"""

from __future__ import annotations

import importlib.util
import itertools
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from idfsmec.errors import InputError, find_name
from idfsmec.selection.defaults import GAMMAS, LAMS

if TYPE_CHECKING:
    from idfsmec.prediction.pipeline import HarmonizedClassifier, TunedPipeline, TunedRegressor

Family = Literal["proposed", "filter", "wrapper", "embedded", "sanity", "ablation"]
#: Families that are compared when no methods are named; an ablation is a method in pieces.
COMPARED: tuple[Family, ...] = ("proposed", "filter", "wrapper", "embedded", "sanity")

Entry = TypeVar("Entry", bound="Imputer | Classifier | Method")


class Registry(dict[str, Entry]):
    """Entries by name."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind

    def add(self, entry: Entry, *, overwrite: bool = False) -> Entry:
        """Add an entry; one of the same name is replaced only with ``overwrite``."""
        if entry.name in self and not overwrite:
            raise InputError(
                f"there is a {self._kind} {entry.name!r} already; replace it with overwrite=True",
                argument="overwrite",
            )
        self[entry.name] = entry
        return entry

    def find(self, entry: str | Entry) -> Entry:
        """Look up a name; an entry is returned as it is."""
        if not isinstance(entry, str):
            return entry
        return self[find_name(entry, self, f"there is no {self._kind} {entry!r}")]


@dataclass(frozen=True)
class Part:
    """A name, and an estimator or a function without arguments that makes one."""

    name: str
    estimator: Any

    def build(self, **parameters: Any) -> Any:
        """Make a fresh estimator; parameters that it lacks and those that are None are not set."""
        from idfsmec.prediction.samples import with_parameters

        is_made = hasattr(self.estimator, "get_params")
        return with_parameters(self.estimator if is_made else self.estimator(), **parameters)

    @property
    def takes_missing(self) -> bool:
        """Whether it takes NaN; otherwise it gets imputed data."""
        from sklearn.utils import get_tags

        return bool(get_tags(self.build()).input_tags.allow_nan)

    def describe(self) -> dict[str, Any]:
        """Return what determines its results, as JSON can hold it.

        Raises
        ------
        Indescribable
            A part of it cannot be described, so that results are not kept for another run.
        """
        from idfsmec._fingerprint import describe

        return {"name": self.name, "estimator": describe(self.build())}


@dataclass(frozen=True)
class Imputer(Part):
    """An imputer of missing values; see :func:`register_imputer`."""

    marks_missing: bool = False


@dataclass(frozen=True)
class Classifier(Part):
    """A classifier of selected features; see :func:`register_classifier`."""


@dataclass(frozen=True)
class Method(Part):
    """A method of a comparison: selector, imputer and classifier under one name.

    Parameters
    ----------
    name : str
        How results call it. No commas: the command line separates names by them.
    estimator : selector or classifier, or a function without arguments that makes one
        A selector, with ``fit``, ``ranking_`` and a parameter ``n_features_to_select``. It is
        cloned for each fit; ``random_state`` and ``channels`` are set where it has them. One that
        takes NaN (its tags say so) sees missing values, the others see imputed data. One with a
        method ``rank_grid`` ranks all settings and inner folds at once; see
        :func:`idfsmec.selection.rank_grid`. Or a whole classifier, such as a ``Pipeline``: it gets
        the samples as they are, a DataFrame with NaN where channels are missing, and tunes itself
        where it wants to (``GridSearchCV``); imputer, classifier and settings do not apply.
    family : {"filter", "wrapper", "embedded", "proposed", "sanity", "ablation"}
        Kind of method, for tables and colours. A ``"proposed"`` one also ranks whole tables.
    label : str
        A few words for tables and figures; by default the name.
    imputer : str or Imputer
        Imputer of missing values, by its name in ``IMPUTERS``, for the classifier and for a
        selector that takes none.
    classifier : str or Classifier
        What is scored on the selected features, by its name in ``CLASSIFIERS``.
    regressor : str or Classifier
        The same for a score, by its name in ``REGRESSORS``.
    settings : sequence of dict, or mapping of parameter to values
        Parameters of the selector to try; tuning picks one of them. A mapping stands for all
        combinations of its values. The one nearest to the selector's own parameters is the
        default, which tuning leaves only for a clear gain.
    depends_on_k : bool
        Whether the features are chosen together, for one number of them: the first five of ten
        are then not the best five, and each number needs a fit.
    all_features : bool
        Whether all features are used, so that there is no k.
    costs : sequence of float, optional
        Values of the classifier's C to try in place of the protocol's.
    inner : dict, optional
        Parameters of the selector on inner folds, which only choose a number of features, a cost
        and a setting: where a rougher ranking does for that, such as one by fewer trees.
    inner_samples : int, optional
        Most samples that the selector sees on an inner fold, drawn at random within classes, where
        the time of a ranking grows with their square.
    needs : str, optional
        A module without which the method cannot run.
    slow : bool
        Whether one fold takes minutes on tables of some size. Such a method is compared only where
        it is named, and at each missing rate after the others.

    Examples
    --------
    >>> from idfsmec.selection import IDFSMEC
    >>> mine = Method("mine", IDFSMEC(), settings={"lam": [0.1, 10.0]})
    >>> mine.takes_missing, mine.settings
    (True, ({'lam': 0.1}, {'lam': 10.0}))
    """

    family: Family = "filter"
    label: str = ""
    imputer: str | Imputer = "factors"  # on average it loses least to missing channels
    classifier: str | Classifier = "svm"
    regressor: str | Classifier = "ridge"
    settings: tuple[dict[str, Any], ...] = ({},)
    depends_on_k: bool = False
    all_features: bool = False
    costs: tuple[float, ...] | None = None
    inner: dict[str, Any] = field(default_factory=dict)
    inner_samples: int | None = None
    needs: str | None = None
    slow: bool = False

    def __post_init__(self) -> None:
        if "," in self.name or not self.name.strip():
            raise InputError(
                f"a method needs a name without commas, got {self.name!r}: lists of methods "
                "separate names by them"
            )
        if self.family not in get_args(Family):
            raise InputError(
                f"family is {self.family!r}; choose from {', '.join(get_args(Family))}"
            )
        named: Any = self.settings
        settings = settings_grid(**named) if isinstance(named, Mapping) else map(dict, named)
        object.__setattr__(self, "settings", tuple(settings) or ({},))
        object.__setattr__(self, "label", self.label or self.name)
        if self.costs is not None:
            object.__setattr__(self, "costs", tuple(map(float, self.costs)))
        if not callable(self.estimator):
            self._check_parameters()

    def _check_parameters(self) -> None:
        names = {parameter for setting in (*self.settings, self.inner) for parameter in setting}
        if self.is_whole:
            if names:
                raise InputError(
                    f"the method {self.name!r} is a whole classifier: there is no selector to set "
                    f"{sorted(names)[0]!r} on; tune it inside, with GridSearchCV",
                    argument="settings",
                )
            return
        known = self.build().get_params()
        for parameter in ("n_features_to_select", *sorted(names)):
            if parameter not in known:
                raise InputError(
                    f"{type(self.estimator).__name__} has no parameter {parameter!r}, which the "
                    "evaluation would set"
                )

    @property
    def available(self) -> bool:
        """Whether what it needs is installed."""
        return self.needs is None or importlib.util.find_spec(self.needs) is not None

    @property
    def takes_scores(self) -> bool:
        """Whether its selector has a form for scores, which its parameter ``numeric`` says."""
        return "numeric" in self.build().get_params()

    @property
    def is_whole(self) -> bool:
        """Whether it is a classifier of samples as they are, not a selector."""
        from sklearn.base import is_classifier

        return bool(is_classifier(self.build()))

    def build(
        self, *, random_state: int | None = None, channels: Any = None, **parameters: Any
    ) -> Any:
        """Make a fresh selector; ``random_state`` and ``channels`` are set where it has them."""
        fresh = super().build(random_state=random_state, channels=channels)
        return fresh.set_params(**parameters)

    @property
    def imputing(self) -> Imputer:
        """The imputer itself, also where it is given by name."""
        return IMPUTERS.find(self.imputer)

    @property
    def classifying(self) -> Classifier:
        """The classifier itself, also where it is given by name."""
        return CLASSIFIERS.find(self.classifier)

    @property
    def regressing(self) -> Classifier:
        """The regressor itself, also where it is given by name."""
        return REGRESSORS.find(self.regressor)

    def resolve(self) -> Method:
        """Put objects in the place of names: what a worker that knows no registry can run."""
        return replace(
            self,
            estimator=self.build(),
            imputer=self.imputing,
            classifier=self.classifying,
            regressor=self.regressing,
        )

    def pipeline(
        self, *, numeric: bool = False, **parameters: Any
    ) -> TunedPipeline | TunedRegressor | HarmonizedClassifier:
        """Make the estimator of the method, with ``numeric`` that for a score.

        ``parameters`` are those of :class:`~idfsmec.prediction.TunedPipeline` that the method
        itself does not decide. A whole classifier takes ``harmonizer``, ``adjuster`` and
        ``random_state``.
        """
        from idfsmec.prediction.pipeline import (
            HarmonizedClassifier,
            TunedPipeline,
            TunedRegressor,
        )

        if numeric and not self.takes_scores:
            raise InputError(f"the method {self.name!r} has no form for scores")
        if self.is_whole:
            taken = {
                key: parameters.get(key) for key in ("harmonizer", "adjuster", "random_state")
            }
            return HarmonizedClassifier(self.build(), **taken)
        imputer, last = self.imputing, self.regressing if numeric else self.classifying
        if self.costs is not None:
            parameters["costs"] = self.costs
        if self.all_features:
            parameters["n_features_to_select"] = (1.0,)
        steps = f"imputed by {imputer.name}, {last.name}"
        if last.takes_missing:
            steps = f"missing values as they are, {last.name}"
        parameters |= {
            "settings": self.settings,
            "imputer": imputer.build(),
            "add_indicator": imputer.marks_missing and not last.takes_missing,
            "ranks_per_count": self.depends_on_k,
            "inner_parameters": self.inner or None,
            "inner_samples": self.inner_samples,
            "label": f"{self.name}, {steps}",
        }
        if numeric:
            return TunedRegressor(self.build(), regressor=last.build(), **parameters)
        return TunedPipeline(self.build(), classifier=last.build(), **parameters)

    def describe_ranking(self) -> dict[str, Any]:
        """Return what determines how it ranks a table with one setting."""
        described = super().describe()
        return described if self.is_whole else {**described, "imputer": self.imputing.describe()}

    def describe(self) -> dict[str, Any]:
        """Return what determines the method's results, as JSON can hold it; see above."""
        described = self.describe_ranking()
        if self.is_whole:
            return described
        from idfsmec._fingerprint import describe

        options = {
            "settings": self.settings,
            "depends_on_k": self.depends_on_k,
            "all_features": self.all_features,
            "costs": self.costs,
            "inner": self.inner,
            "inner_samples": self.inner_samples,
            "marks_missing": self.imputing.marks_missing,
        }
        return {
            **described,
            "classifier": self.classifying.describe(),
            "regressor": self.regressing.describe(),
            "options": describe(options),
        }


def settings_grid(**values: Iterable[Any]) -> tuple[dict[str, Any], ...]:
    """Combine values of several parameters."""
    combinations = itertools.product(*values.values())
    return tuple(dict(zip(values, combination, strict=True)) for combination in combinations)


def lazily(path: str, **parameters: Any) -> Callable[..., Any]:
    """Name a function, or an estimator with parameters, that is imported when it is called."""
    return partial(_call, path, **parameters)


def _call(path: str, /, *args: Any, **parameters: Any) -> Any:
    return pkgutil.resolve_name(path)(*args, **parameters)


#: All methods by name; :func:`register_method` adds to it.
METHODS: Registry[Method] = Registry("method")
#: All imputers by name.
IMPUTERS: Registry[Imputer] = Registry("imputer")
#: All classifiers by name.
CLASSIFIERS: Registry[Classifier] = Registry("classifier")
#: What predicts a score from selected features, by name.
REGRESSORS: Registry[Classifier] = Registry("regressor")


def register_method(
    name: str, selector: Any, *, family: Family = "filter", overwrite: bool = False, **options: Any
) -> Method:
    """Register a method, so that evaluation, training, report and commands find it by name.

    Parameters
    ----------
    name, selector, family, **options
        As in :class:`Method`; a selector, or a whole classifier such as a ``Pipeline``.
    overwrite : bool
        Whether a method of that name may be replaced.

    Returns
    -------
    Method

    Examples
    --------
    >>> from idfsmec.selection import MRMR
    >>> method = register_method("mRMR-10", MRMR(n_bins=10))
    >>> METHODS["mRMR-10"].build()
    MRMR(n_bins=10)
    >>> del METHODS["mRMR-10"]
    """
    return METHODS.add(Method(name, selector, family, **options), overwrite=overwrite)


def register_imputer(
    name: str, transformer: Any, *, marks_missing: bool = False, overwrite: bool = False
) -> Imputer:
    """Register an imputer of missing values.

    Parameters
    ----------
    name : str
        How methods call it.
    transformer : transformer, or a function without arguments that makes one
        Takes NaN and gives none, with as many columns. It is fitted on training samples alone, and
        sees features that have been standardised by their observed training values: their means
        are 0. A parameter ``channels`` is set, where it has one, to the channel of each column.
    marks_missing : bool
        Whether the classifier also sees, for each channel it has a feature of, whether that is
        missing.
    overwrite : bool
        Whether an imputer of that name may be replaced.

    Examples
    --------
    >>> from sklearn.impute import KNNImputer
    >>> register_imputer("nearest", KNNImputer(keep_empty_features=True)).name
    'nearest'
    >>> del IMPUTERS["nearest"]
    """
    return IMPUTERS.add(Imputer(name, transformer, marks_missing), overwrite=overwrite)


def register_classifier(name: str, estimator: Any, *, overwrite: bool = False) -> Classifier:
    """Register a classifier, which is trained and scored on selected features.

    Parameters
    ----------
    name : str
        How methods call it.
    estimator : classifier, or a function without arguments that makes one
        With ``decision_function`` or ``predict_proba``. Parameters ``C`` (which is tuned),
        ``class_weight``, ``random_state`` and ``channels`` (the channel of each column) are set
        where it has them, and ``fit`` is given ``groups`` where it takes them. One that takes NaN
        (its tags say so) sees missing values, the others see imputed ones.
    overwrite : bool
        Whether a classifier of that name may be replaced.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> register_classifier("3-NN", KNeighborsClassifier(3)).takes_missing
    False
    >>> del CLASSIFIERS["3-NN"]
    """
    return CLASSIFIERS.add(Classifier(name, estimator), overwrite=overwrite)


def find_methods(
    methods: Iterable[str | Method] | None = None, *, families: Sequence[Family] = COMPARED
) -> list[Method]:
    """Look up methods by name; by default all of the families that can run and are not slow."""
    if methods is None:
        every = (method for method in METHODS.values() if method.family in families)
        chosen = [method for method in every if method.available and not method.slow]
    else:
        chosen = [METHODS.find(method) for method in methods]
    if not chosen:
        raise InputError("there are no methods to compare; give at least one")
    names = [method.name for method in chosen]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(f"the method {sorted(twice)[0]!r} is given twice; give other names")
    for method in chosen:
        if not method.available:
            raise InputError(
                f"the method {method.name!r} needs the package {method.needs!r}, which is not "
                "installed"
            )
    return chosen


def methods_for_scores(methods: Iterable[Method]) -> tuple[list[Method], list[str]]:
    """Return the methods that have a form for scores, and the names of the others."""
    every = list(methods)
    chosen = [method for method in every if method.takes_scores and not method.is_whole]
    return chosen, [method.name for method in every if method not in chosen]


def proposed_method(methods: Iterable[Method] = ()) -> Method | None:
    """Return the method that ranks whole tables: the first proposed one of these, or of all."""
    every = (*methods, *METHODS.values())
    return next((method for method in every if method.family == "proposed"), None)


def with_parts(
    methods: Iterable[Method],
    imputer: str | Imputer | None = None,
    classifier: str | Classifier | None = None,
) -> list[Method]:
    """Give methods one imputer and one classifier for all; None leaves each its own."""
    parts: dict[str, Any] = {} if imputer is None else {"imputer": IMPUTERS.find(imputer)}
    if classifier is not None:
        parts["classifier"] = CLASSIFIERS.find(classifier)
        if isinstance(classifier, str) and classifier in REGRESSORS:
            parts["regressor"] = REGRESSORS.find(classifier)
    return [replace(method, **parts) for method in methods]


_every = {"keep_empty_features": True}
# 0 is the training mean of a standardised feature.
_mean = lazily("sklearn.impute.SimpleImputer", strategy="constant", fill_value=0.0, **_every)
register_imputer("mean", _mean)
register_imputer("neighbours", lazily("sklearn.impute.KNNImputer", n_neighbors=10, **_every))
register_imputer("factors", lazily("idfsmec.prediction.ChannelImputer"))
register_imputer("indicators", _mean, marks_missing=True)

register_classifier("svm", lazily("idfsmec.prediction.svm.LinearSVM"))
register_classifier("logistic", lazily("sklearn.linear_model.LogisticRegression"))
register_classifier("ridge", lazily("idfsmec.prediction.sanity.RidgeByCost"))
register_classifier("idfsmec", lazily("idfsmec.prediction.IDFSMECClassifier"))
register_classifier("boosting", lazily("idfsmec.prediction.sanity.Boosting"))
for _name, _path in (
    ("ridge", "ridge.LinearRidge"),
    ("idfsmec", "IDFSMECRegressor"),
    ("boosting", "ridge.BoostedScore"),
):
    REGRESSORS.add(Classifier(_name, lazily(f"idfsmec.prediction.{_path}")))


def _add(
    name: str, path: str, family: Family, parameters: Mapping[str, Any] = {}, **options: Any
) -> None:
    METHODS.add(Method(name, lazily(f"idfsmec.{path}", **parameters), family, **options))


_add("IDFS-MEC", "selection.IDFSMEC", "proposed", settings={"lam": LAMS, "gamma": GAMMAS})
# Inner folds only choose a setting, the number of features and the cost: some samples do.
_some: dict[str, Any] = {"inner_samples": 600}
_add("ReliefF", "selection.ReliefF", "filter", label="ReliefF (10 neighbours)", **_some)
_add("mRMR", "selection.MRMR", "filter", label="mRMR (difference)")
_add("CMIM", "selection.CMIM", "filter")
_add("MRMSR", "selection.MRMSR", "filter")
_add("RRCT", "selection.RRCT", "filter")
# Full searches on all samples chose no better subsets.
_few, _rough = {"max_samples": 600, "random_state": 0}, {"n_generations": 10}
_search: dict[str, Any] = {"label": "PS-NSGA (1-NN)", "inner": _rough, "needs": "pymoo"}
_add("PS-NSGA", "selection.PSNSGA", "wrapper", _few, slow=True, **_search)
# Three values where the lineage has seven: a setting costs a fit per inner fold.
_gammas: dict[str, Any] = {"settings": {"gamma": (1e-2, 1.0, 1e2)}, "inner": {"tol": 1e-4}}
_add("RFS", "selection.RFS", "embedded", {"standardize": True}, **_gammas, **_some)
_add("FSOR", "selection.FSOR", "embedded")
_add("GRMOR", "selection.GRMOR", "embedded", settings={"lam": (1e-3, 1.0, 1e3)})
_starts: dict[str, Any] = {"label": "CD-LSR (10 starts)", "depends_on_k": True}
_add("CD-LSR", "selection.CDLSR", "embedded", {"random_state": 0}, **_starts)
# Seconds a fit on 19 channels, a minute on 128.
_add("group lasso", "selection.GroupLasso", "embedded", settings={"alpha": (0.1, 0.3)}, slow=True)
_net, _alphas = "prediction.sanity.ElasticNetOrder", {"alpha": (0.1, 0.3)}
_add("elastic net", _net, "embedded", settings=_alphas)
_columns, _costs = "prediction.sanity.ColumnOrder", (1e-4, 1e-3, 1e-2, 1e-1)
_add("all features", _columns, "sanity", all_features=True, costs=_costs)
_add("random", "prediction.sanity.RandomOrder", "sanity")
_add("ANOVA F", "prediction.sanity.AnovaF", "sanity")
_forest = "prediction.sanity.ForestImportance"
_add("random forest", _forest, "sanity", inner={"n_estimators": 30})
_boosting: dict[str, Any] = {"classifier": "boosting", "regressor": "boosting"}
_add("gradient boosting", _columns, "sanity", all_features=True, **_boosting)
