"""Protocol: decisions about an evaluation that are not about a table or a method, and folds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from operator import index
from typing import Any, Literal, get_args

import numpy as np

from idfsmec.errors import InputError
from idfsmec.metrics import CRITERIA, METRICS, SCORE_CRITERIA, SCORE_METRICS
from idfsmec.missing import PATTERNS
from idfsmec.prediction.adjuster import Corrections, make_corrections
from idfsmec.prediction.folds import Fold, FoldUnit, make_folds
from idfsmec.prediction.samples import Samples
from idfsmec.selection.defaults import (
    CRITERION,
    N_FEATURES,
    N_INNER_SPLITS,
    SCORE_CRITERION,
    SVM_COSTS,
)
from idfsmec.solver.scaling import FAR
from idfsmec.table import FeatureTable

MissingIn = Literal["everywhere", "selection"]
Tuning = Literal["nested", "oracle", "grid", "time"]


@dataclass(frozen=True)
class Protocol:
    """How methods are compared.

    Parameters
    ----------
    folds : {"subject", "sample", "site"}
        Whether a subject's samples stay together (honest), are spread (the paper's folds), or one
        site after the other is held out. Inner folds are of the same kind; by site only where two
        of the sites in training can be held out, else by subject.
    missing_in : {"everywhere", "selection"}
        Whether channels are missing in training and test samples alike, or only in what the
        selector sees.
    tuning : {"nested", "oracle", "grid", "time"}
        ``nested``: hyper-parameters and k are chosen by inner folds of the training fold.
        ``oracle``: all settings are scored on the held-out folds and the best on average is
        marked as chosen, as papers do; optimistic. ``grid``: all settings are scored, none is
        chosen. ``time``: the selection is timed and nothing is scored.
    n_splits, n_inner_splits : int
        Outer and inner folds. Inner folds are fewer where a class has too few subjects. Outer
        folds by site are as many as there are sites, whatever ``n_splits`` is.
    rates : sequence of float
        Shares of the observed channels that are taken away.
    patterns : sequence of str
        Which channels are missing together; see :func:`idfsmec.missing.simulate_missing`.
    seeds : sequence of int
        Repeats: each has its own folds and missing channels.
    ks : sequence of int or float
        Numbers of selected features; 1.0 is all. Those beyond a table's number of features are
        left out.
    metric : str
        What is reported first, and what ``oracle`` picks by; one of ``idfsmec.metrics.METRICS``,
        or of ``SCORE_METRICS``. For a score one of those of classes stands for R2 (the AUC for
        Spearman's correlation).
    tuned_by : str
        What nested tuning maximises; one of ``idfsmec.metrics.CRITERIA``. By default the log loss
        by subject, with its sign turned; see :mod:`idfsmec.prediction.tuning`.
    svm_costs : sequence of float
        Values of the classifier's C. A ``grid`` is scored with the middle one.
    clip : float, optional
        Standardised values further from the training mean than so many deviations count as this
        far away for the classifier; None leaves them as they are. Selectors see what is there.
    harmonize : bool or str
        Whether sites are brought to one location and scale before all else, learned from the
        training samples of each fold (:class:`idfsmec.prediction.SiteHarmonizer`): True from all,
        the name of a class, such as ``"HC"``, from the samples of that class only. A site that is
        held out goes by its own samples, without their labels.
    adjust : sequence of str
        Columns of the tables' rows, such as ``["age", "sex"]``, whose effect is taken out next,
        learned from the training samples of each fold (:class:`idfsmec.prediction.Adjuster`);
        ``"age:spline"`` has a spline.
    adjust_from : str, optional
        Learn these effects from the samples of this class only.

    Examples
    --------
    >>> Protocol(rates=(0.1, 0.5), n_splits=5).folds
    'subject'
    """

    folds: FoldUnit = "subject"
    missing_in: MissingIn = "everywhere"
    tuning: Tuning = "nested"
    n_splits: int = 10
    n_inner_splits: int = N_INNER_SPLITS
    rates: Sequence[float] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    patterns: Sequence[str] = ("random",)
    seeds: Sequence[int] = (0,)
    ks: Sequence[int | float] = N_FEATURES
    metric: str = "subject_balanced_accuracy"
    tuned_by: str = CRITERION
    svm_costs: Sequence[float] = SVM_COSTS
    clip: float | None = FAR
    harmonize: bool | str = False
    adjust: Sequence[str] = ()
    adjust_from: str | None = None

    def __post_init__(self) -> None:
        listed: dict[str, Callable[[Any], Any]] = {
            "rates": float,
            "seeds": int,
            "ks": _count_or_all,
            "svm_costs": float,
            "patterns": str,
        }
        for name, kind in listed.items():
            object.__setattr__(self, name, _listed(name, getattr(self, name), kind))
        adjust = _listed("adjust", self.adjust, str) if self.adjust else ()
        object.__setattr__(self, "adjust", adjust)
        numbers = {"n_splits": _as_integer, "n_inner_splits": _as_integer, "clip": _as_number}
        for name, convert in numbers.items():
            object.__setattr__(self, name, convert(name, getattr(self, name)))
        choices: dict[str, Sequence[Any]] = {
            "folds": get_args(FoldUnit),
            "missing_in": get_args(MissingIn),
            "tuning": get_args(Tuning),
            "metric": (*METRICS, *SCORE_METRICS),
            "tuned_by": (*CRITERIA, *SCORE_CRITERIA),
            "patterns": PATTERNS,
        }
        if not isinstance(self.harmonize, str):
            choices["harmonize"] = (True, False)
        for name, known in choices.items():
            for value in getattr(self, name) if name in listed else [getattr(self, name)]:
                if value not in known:
                    names = ", ".join(map(str, known))
                    raise InputError(f"{name} has {value!r}; choose from {names}")
        tiny, finite = np.nextafter(0.0, 1.0), np.finfo(float).max
        limits = {
            "rates": (0.0, np.nextafter(1.0, 0.0), "from 0 to below 1"),
            "seeds": (0, np.inf, "at least 0"),
            "ks": (1, np.inf, "at least 1"),
            "svm_costs": (tiny, finite, "above 0"),
            "clip": (tiny, np.inf, "above 0"),
            "n_splits": (2, np.inf, "at least 2"),
            "n_inner_splits": (2, np.inf, "at least 2"),
        }
        for name, (low, high, wanted) in limits.items():
            for value in getattr(self, name) if name in listed else [getattr(self, name)]:
                if value is not None and not low <= value <= high:
                    raise InputError(f"{name} has {value}; give numbers {wanted}")

    def per_task(self) -> dict[str, Any]:
        """Return what determines the result of a task, beside its own coordinates."""
        grid = {"rates", "patterns", "seeds"}
        # What is not adjusted for does not count: earlier results stay.
        unused = set() if self.adjust else {"adjust", "adjust_from"}
        return {key: value for key, value in asdict(self).items() if key not in grid | unused}

    def corrections(self, classes: Iterable[Any]) -> Corrections:
        """Return what is taken out of features of these classes."""
        return make_corrections(classes, self.harmonize, self.adjust, self.adjust_from)

    def for_scores(self) -> Protocol:
        """Return the protocol with a metric and a criterion of scores in place of classes'."""
        metric, tuned_by = self.metric, self.tuned_by
        if metric not in SCORE_METRICS:
            metric = "subject_spearman" if metric == "subject_roc_auc" else "subject_r2"
        if tuned_by not in SCORE_CRITERIA:
            tuned_by = SCORE_CRITERION
        return replace(self, metric=metric, tuned_by=tuned_by)

    def with_changes(self, **changes: Any) -> Protocol:
        """Return a protocol with changed options; None keeps one, but ``clip=None`` ends it."""
        known = {field.name for field in fields(self)}
        if unknown := set(changes) - known:
            raise InputError(
                f"there is no option {', '.join(sorted(unknown))}; "
                f"choose from {', '.join(sorted(known))}"
            )
        changed = {key: v for key, v in changes.items() if v is not None or key == "clip"}
        return replace(self, **changed)


def protocol_from(options: Protocol | Mapping[str, Any] | None, usual: Protocol) -> Protocol:
    """Return a protocol, or the default one with the options of a mapping."""
    return options if isinstance(options, Protocol) else usual.with_changes(**(options or {}))


def _as_integer(name: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        raise InputError(f"{name} is {value!r}; give a whole number") from None


def _as_number(name: str, value: Any) -> float | None:
    """Return Python's own number, which JSON can hold; None stays."""
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {value!r}; give a number, or None") from None


def _count_or_all(value: Any) -> int | float:
    """Return a number of features; 1.0 and "all" stand for all."""
    if value == "all" or (isinstance(value, float) and value == 1.0):
        return 1.0
    return int(value)


def _listed(name: str, values: Any, kind: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return each value once, as what it should be."""
    if isinstance(values, str):
        raise InputError(f"give {name} as a list, such as [{values!r}]")
    try:
        once = tuple(dict.fromkeys(kind(value) for value in values))
    except (TypeError, ValueError):
        wanted = "names" if kind is str else "numbers"
        raise InputError(f"{name} is {values!r}; give a list of {wanted}") from None
    if not once:
        raise InputError(f"{name} is empty; give at least one")
    return once


def split_table(
    table: FeatureTable | Samples, protocol: Protocol, random_state: int = 0
) -> list[Fold]:
    """Split a table, or its arrays, into the outer folds of a protocol."""
    kind = protocol.folds, protocol.n_splits, random_state
    if isinstance(table, FeatureTable):
        y, numeric = table.targets, table.target.is_numeric
    else:
        y, numeric = table.y, table.numeric
    return make_folds(y, table.subjects, *kind, sites=table.sites, numeric=numeric)
