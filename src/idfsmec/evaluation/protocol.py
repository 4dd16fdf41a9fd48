"""Protocol: decisions about an evaluation that are not about a table or a method, and folds."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from idfsmec.errors import InputError
from idfsmec.metrics import CRITERIA, METRICS
from idfsmec.missing import PATTERNS
from idfsmec.selection.defaults import CRITERION, N_FEATURES, N_INNER_SPLITS, SVM_COSTS
from idfsmec.solver.scaling import FAR

Folds = Literal["subject", "sample", "site"]
MissingIn = Literal["everywhere", "selection"]
Tuning = Literal["nested", "oracle", "grid", "time"]
#: Positions of the samples that train, and of those held out.
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


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
    ks : sequence of int
        Numbers of selected features. Those beyond a table's number of features are left out.
    metric : str
        What is reported first, and what ``oracle`` picks by; one of ``idfsmec.metrics.METRICS``.
    tuned_by : str
        What nested tuning maximises; one of ``idfsmec.metrics.CRITERIA``. By default the log loss
        by subject, with its sign turned; see :mod:`idfsmec.selection.search`.
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

    Examples
    --------
    >>> Protocol(rates=(0.1, 0.5), n_splits=5).folds
    'subject'
    """

    folds: Folds = "subject"
    missing_in: MissingIn = "everywhere"
    tuning: Tuning = "nested"
    n_splits: int = 10
    n_inner_splits: int = N_INNER_SPLITS
    rates: Sequence[float] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    patterns: Sequence[str] = ("random",)
    seeds: Sequence[int] = (0,)
    ks: Sequence[int] = N_FEATURES
    metric: str = "balanced_accuracy"
    tuned_by: str = CRITERION
    svm_costs: Sequence[float] = SVM_COSTS
    clip: float | None = FAR
    harmonize: bool | str = False

    def __post_init__(self) -> None:
        listed = {"rates": float, "seeds": int, "ks": int, "svm_costs": float, "patterns": str}
        for name, kind in listed.items():
            object.__setattr__(self, name, _listed(name, getattr(self, name), kind))
        choices: dict[str, Sequence[Any]] = {
            "folds": get_args(Folds),
            "missing_in": get_args(MissingIn),
            "tuning": get_args(Tuning),
            "metric": METRICS,
            "tuned_by": CRITERIA,
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
        return {key: value for key, value in asdict(self).items() if key not in grid}

    def with_changes(self, **changes: Any) -> Protocol:
        """Return a protocol with changed options; None keeps an option."""
        known = {field.name for field in fields(self)}
        if unknown := set(changes) - known:
            raise InputError(
                f"there is no option {', '.join(sorted(unknown))}; "
                f"choose from {', '.join(sorted(known))}"
            )
        return replace(self, **{key: v for key, v in changes.items() if v is not None})


def protocol_from(given: Protocol | Mapping[str, Any] | None, usual: Protocol) -> Protocol:
    """Return a protocol, or the default one with the options of a mapping."""
    return given if isinstance(given, Protocol) else usual.with_changes(**(given or {}))


def _listed(name: str, values: Any, kind: type) -> tuple[Any, ...]:
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


def make_folds(
    y: ArrayLike,
    subjects: ArrayLike,
    folds: Folds = "subject",
    n_splits: int = 10,
    random_state: int = 0,
    sites: ArrayLike | None = None,
) -> list[Fold]:
    """Split samples into training and held-out ones, in proportion to the classes or by site.

    For the kinds of folds see :class:`Protocol`; sites are held out in the order of their names.
    Every sample is held out once; positions are in rising order.
    """
    labels, groups = np.asarray(y), np.asarray(subjects)
    if folds not in get_args(Folds):
        raise InputError(f"folds is {folds!r}; choose 'subject', 'sample' or 'site'")
    if folds == "site":
        return _split_sites(labels, groups, sites)
    unit = "sample" if folds == "sample" else "participant"
    units = np.arange(labels.size) if folds == "sample" else groups
    most = most_splits(labels, units)
    if most == 0:
        raise InputError("there are no samples to split")
    if most == 1:
        label = next(k for k in np.unique(labels) if np.unique(units[labels == k]).size == 1)
        name = groups[labels == label][0]
        lone = f"one {unit} only, {'of participant ' if folds == 'sample' else ''}{name}"
        raise InputError(
            f"class {label} has {lone}: folds by {unit} need at least 2 in each class; add more, "
            "or leave that class out"
        )
    if not 2 <= n_splits <= most:
        raise InputError(
            f"{n_splits} folds by {unit} are not possible: the smallest class has {most} "
            f"{unit}s; give 2 to {most}"
        )
    how = {"n_splits": n_splits, "shuffle": True, "random_state": random_state}
    names, first, member = np.unique(units, return_index=True, return_inverse=True)
    if (labels == labels[first][member]).all():
        # One label per subject: stratify the subjects themselves, so that every fold has its
        # share of subjects of each class, however long their recordings are.
        splits = StratifiedKFold(**how).split(names, labels[first])
        masks = [np.isin(member, test) for _, test in splits]
        return [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in masks]
    mixed = StratifiedGroupKFold(**how).split(labels, labels, groups)
    return [(np.sort(train), np.sort(test)) for train, test in mixed]


def split_table(table: Any, protocol: Protocol, random_state: int = 0) -> list[Fold]:
    """Split a table, or its arrays, into the outer folds of a protocol."""
    kind = protocol.folds, protocol.n_splits, random_state
    return make_folds(table.y, table.subjects, *kind, sites=table.sites)


def most_splits(y: ArrayLike, units: ArrayLike) -> int:
    """Return how many folds are possible: the number of units in the smallest class."""
    y, units = np.asarray(y), np.asarray(units)
    return min((np.unique(units[y == label]).size for label in np.unique(y)), default=0)


def _split_sites(labels: NDArray, groups: NDArray, sites: ArrayLike | None) -> list[Fold]:
    """Hold out each site once; refuse sites that cannot be scored, with a remedy."""
    if sites is None:
        raise InputError(
            "folds by site need sites, and the table has no column 'site'; name the hospital of "
            "each recording in the manifest's column 'site', or use folds by participant"
        )
    where = np.asarray(sites)
    names = np.unique(where)
    if names.size < 2:
        raise InputError(
            f"folds by site need at least 2 sites; there is {names[0]} alone: use folds by "
            "participant"
        )
    for name in names:
        here = where == name
        if (present := np.unique(labels[here])).size == 1:
            raise InputError(
                f"site {name} has the class {present[0]} alone, so no score can be computed "
                "there; leave the site out, or use folds by participant"
            )
        if (alone := np.setdiff1d(labels, labels[~here])).size:
            raise InputError(
                f"the class {alone[0]} was recorded at site {name} alone: without the site it "
                "cannot be learned; leave the class out, or use folds by participant"
            )
        if (both := np.intersect1d(groups[here], groups[~here])).size:
            raise InputError(
                f"participant {both[0]} was at site {name} and at another: folds by site would "
                "have the participant in training and test; give each participant one site, or "
                "use folds by participant"
            )
    return [_hold_out(where, name) for name in names]


def _hold_out(where: NDArray, name: object) -> Fold:
    return np.flatnonzero(where != name), np.flatnonzero(where == name)


def make_inner_folds(
    y: NDArray,
    subjects: NDArray,
    folds: Folds,
    n_splits: int,
    random_state: int,
    sites: NDArray | None = None,
) -> list[Fold]:
    """Split training samples again, in the same way; fewer folds where subjects are few.

    By site each of the training sites that has two classes is held out. By subject, with a
    warning, where fewer than two sites have two classes, where a class would be missing from the
    training side, or where a subject was at two sites.
    """
    if folds == "site" and sites is not None:
        both = [name for name in np.unique(sites) if np.unique(y[sites == name]).size > 1]
        splits = [_hold_out(sites, name) for name in both]
        complete = all(np.unique(y[train]).size == np.unique(y).size for train, _ in splits)
        torn = any(np.intersect1d(subjects[train], subjects[test]).size for train, test in splits)
        if len(splits) > 1 and complete and not torn:
            return splits
        warnings.warn(
            "Inner folds are by participant: fewer than 2 of the sites in training can be held "
            "out there.",
            UserWarning,
            stacklevel=2,
        )
    kind: Folds = "subject" if folds == "site" else folds
    most = most_splits(y, np.arange(y.size) if kind == "sample" else subjects)
    return make_folds(y, subjects, kind, min(n_splits, most), random_state)
