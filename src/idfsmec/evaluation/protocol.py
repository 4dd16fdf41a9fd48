"""Protocol: all decisions about an evaluation that are not about a table or a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from idfsmec.errors import InputError
from idfsmec.metrics import CRITERIA, METRICS
from idfsmec.missing import PATTERNS
from idfsmec.selection.defaults import CRITERION, N_FEATURES, N_INNER_SPLITS, SVM_COSTS
from idfsmec.solver.scaling import FAR

Folds = Literal["subject", "sample", "site"]
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
    ks : sequence of int
        Numbers of selected features. Those beyond a table's number of features are left out.
    metric : str
        What is reported first, and what ``oracle`` picks by; one of ``idfsmec.metrics.METRICS``.
    tuned_by : str
        What nested tuning maximises; one of ``idfsmec.metrics.CRITERIA``. By default the log loss
        by subject, with its sign turned; see :mod:`idfsmec.selection.tuning`.
    svm_costs : sequence of float
        Values of the classifier's C. A ``grid`` is scored with the middle one.
    class_weight : {"balanced", None}
        Whether the SVM weighs classes by their rarity.
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
    class_weight: Literal["balanced"] | None = "balanced"
    clip: float | None = FAR
    harmonize: bool | str = False

    def __post_init__(self) -> None:
        for name, kind in (("rates", float), ("seeds", int), ("ks", int), ("svm_costs", float)):
            object.__setattr__(self, name, _numbers(name, getattr(self, name), kind))
        object.__setattr__(self, "patterns", _each_once("patterns", self.patterns))
        _check_choice("folds", self.folds, get_args(Folds))
        _check_choice("missing_in", self.missing_in, get_args(MissingIn))
        _check_choice("tuning", self.tuning, get_args(Tuning))
        _check_choice("metric", self.metric, METRICS)
        _check_choice("tuned_by", self.tuned_by, CRITERIA)
        _check_choice("class_weight", self.class_weight, ("balanced", None))
        for pattern in self.patterns:
            _check_choice("patterns", pattern, PATTERNS)
        _check_range("rates", self.rates, lambda rate: 0 <= rate < 1, "from 0 to below 1")
        _check_range("seeds", self.seeds, lambda seed: seed >= 0, "at least 0")
        _check_range("ks", self.ks, lambda k: k >= 1, "at least 1")
        _check_range("svm_costs", self.svm_costs, lambda c: 0 < c < float("inf"), "above 0")
        if self.clip is not None:
            _check_range("clip", [self.clip], lambda c: c > 0, "above 0")
        if not isinstance(self.harmonize, str):
            _check_choice("harmonize", self.harmonize, (True, False))
        for name in ("n_splits", "n_inner_splits"):
            _check_range(name, [getattr(self, name)], lambda n: n >= 2, "at least 2")

    def per_task(self) -> dict[str, Any]:
        """Return what determines the result of a task, beside its own coordinates."""
        grid = {"rates", "patterns", "seeds"}
        return {key: value for key, value in asdict(self).items() if key not in grid}

    def with_changes(self, **changes: Any) -> Protocol:
        """Return a protocol that differs in the options named; None leaves one as it is.

        Examples
        --------
        >>> Protocol().with_changes(folds="sample", ks=None).folds
        'sample'
        """
        known = {field.name for field in fields(self)}
        if unknown := set(changes) - known:
            raise InputError(
                f"there is no option {', '.join(sorted(unknown))}; "
                f"choose from {', '.join(sorted(known))}"
            )
        return replace(self, **{key: v for key, v in changes.items() if v is not None})


def protocol_from(given: Protocol | Mapping[str, Any] | None, usual: Protocol) -> Protocol:
    """Return a protocol as it is, or the usual one with the options that a mapping changes.

    Examples
    --------
    >>> protocol_from({"n_splits": 5}, Protocol(rates=[0.3])).rates
    (0.3,)
    """
    if given is None:
        return usual
    return given if isinstance(given, Protocol) else usual.with_changes(**given)


def _numbers(name: str, values: Any, kind: type) -> tuple[Any, ...]:
    try:
        numbers = [kind(value) for value in values]
    except (TypeError, ValueError):
        raise InputError(f"{name} is {values!r}; give a list of numbers") from None
    return _each_once(name, numbers)


def _each_once(name: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, str):
        raise InputError(f"give {name} as a list, such as [{values!r}]")
    once = tuple(dict.fromkeys(values))
    if not once:
        raise InputError(f"{name} is empty; give at least one")
    return once


def _check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    if value not in choices:
        raise InputError(f"{name} has {value!r}; choose from {', '.join(map(str, choices))}")


def _check_range(name: str, values: Sequence[Any], valid: Any, wanted: str) -> None:
    for value in values:
        if not valid(value):
            raise InputError(f"{name} has {value}; give numbers {wanted}")
