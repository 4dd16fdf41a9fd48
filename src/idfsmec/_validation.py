"""Check parameters of estimators; find groups, folds and seeds.

The only module that touches scikit-learn's own, not quite public, checks. An estimator derives
from :class:`CheckedEstimator` and decorates its ``fit`` with :func:`validate_params`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from hashlib import sha256
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import HasMethods as HasMethods
from sklearn.utils._param_validation import (
    Interval,
    RealNotInt,
    make_constraint,
    validate_parameter_constraints,
)
from sklearn.utils._param_validation import InvalidParameterError as InvalidParameterError
from sklearn.utils._param_validation import StrOptions as StrOptions
from sklearn.utils.validation import check_consistent_length

from idfsmec.errors import ArgumentError

#: Name of an index that says which subject each row comes from.
SUBJECT = "subject"
RandomState = int | np.random.Generator | np.random.RandomState | None
#: From a parameter's name to what it may be, any one of a list, as scikit-learn writes it: what
#: the functions and classes of this module give, ``"boolean"``, ``"array-like"``,
#: ``"random_state"``, ``"verbose"``, ``"cv_object"``, ``callable``, a type, or None.
Constraints = Mapping[str, list[Any]]

_Fit = TypeVar("_Fit", bound=Callable[..., Any])


class _Number(Interval):
    """An interval that True and False are not in."""

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, bool) and super().is_satisfied_by(val)


def integer(low: int, high: int | None = None) -> Interval:
    """Allow whole numbers from ``low`` to ``high``, both included; no bool."""
    return _Number(Integral, low, high, closed="left" if high is None else "both")


def number(low: float | None, high: float | None = None, *, closed: str = "neither") -> Interval:
    """Allow finite numbers between ``low`` and ``high`` (None: no bound); no NaN, no bool."""
    return _Number(Real, low, high, closed=closed)


def fraction() -> Interval:
    """Allow floats above 0 and at most 1.0; the integer 1 is a count."""
    return _Number(RealNotInt, 0, 1, closed="right")


#: Workers as joblib counts them: any whole number but 0, or None.
N_JOBS = [integer(1), _Number(Integral, None, -1, closed="right"), None]


class SequenceOf(HasMethods):
    """Allow sequences of at least one item, each allowed by one of the constraints."""

    def __init__(self, *constraints: Any) -> None:
        super().__init__(["__len__", "__iter__"])
        self.constraints = [make_constraint(constraint) for constraint in constraints]

    def is_satisfied_by(self, val: Any) -> bool:
        if isinstance(val, str | Mapping) or not super().is_satisfied_by(val):
            return False
        return len(val) > 0 and all(
            any(constraint.is_satisfied_by(item) for constraint in self.constraints)
            for item in val
        )

    def __str__(self) -> str:
        return f"a sequence of {' or '.join(map(str, self.constraints))}"


class CheckedEstimator(BaseEstimator):
    """An estimator that declares in ``_parameter_constraints`` what its parameters may be.

    A class declares what it adds to its parents' parameters or changes of them.
    """

    _parameter_constraints: ClassVar[Constraints] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        declared: dict[str, list[Any]] = {}
        for parent in reversed(cls.__mro__):
            declared |= vars(parent).get("_parameter_constraints", {})
        cls._parameter_constraints = declared


def validate_params(fit: _Fit) -> _Fit:
    """Check the estimator's parameters before this method runs, as scikit-learn's own do."""
    return cast(_Fit, _fit_context(prefer_skip_nested_validation=False)(fit))


def check_parameters(owner: str, constraints: Constraints, values: Mapping[str, Any]) -> None:
    """Refuse values that are not allowed; for what is not set on an estimator."""
    validate_parameter_constraints(constraints, values, caller_name=owner)


def group_codes(X: Any, groups: ArrayLike | None) -> NDArray[np.intp] | None:
    """Return the number of each sample's group, by first appearance: names must not matter."""
    names = group_names(X, groups)
    return None if names is None else pd.factorize(names.astype(str))[0]


def split_by_score(
    scores: ArrayLike, n_parts: int, random_state: np.random.RandomState
) -> NDArray[np.intp]:
    """Return the number of each unit's part, so that all parts have low and high scores alike.

    Of units next to each other in the order of their scores, each goes to a part of its own.
    """
    values = np.asarray(scores, dtype=np.float64)
    order = np.lexsort([random_state.permutation(values.size), values])
    parts = np.empty(values.size, dtype=np.intp)
    for first in range(0, values.size, n_parts):
        block = order[first : first + n_parts]
        parts[block] = random_state.permutation(n_parts)[: block.size]
    return parts


def group_names(X: Any, groups: ArrayLike | None) -> NDArray[Any] | None:
    """Return the group of each sample: of ``groups``, or else of an index named "subject".

    ``X`` is taken before it is turned into an array: scikit-learn's splitters keep the index of a
    DataFrame, so groups reach estimators inside ``cross_val_score`` and ``GridSearchCV`` too.
    Samples without a name are refused: they are not samples of one subject.
    """
    if groups is None:
        place, names = f'the index of X named "{SUBJECT}"', index_level(X, SUBJECT)
        if names is None:
            return None
    else:
        check_consistent_length(X, groups)
        place, names = "groups", np.asarray(groups)
    unnamed = np.flatnonzero(pd.isna(names))
    if unnamed.size:
        raise ArgumentError(
            f"{place} has no name for {unnamed.size} of {len(names)} samples, first in row "
            f"{unnamed[0]}: name the participant of every sample, or drop these samples.",
            argument="groups",
        )
    return names


def index_level(X: Any, level: str) -> NDArray[Any] | None:
    """Return a level of the index of a DataFrame; None where there is none of that name."""
    index = getattr(X, "index", None)
    if level not in (getattr(index, "names", None) or ()):
        return None
    return np.asarray(X.index.get_level_values(level))


_warned: set[str] = set()


def warn_without_groups(owner: str, stacklevel: int = 3) -> None:
    """Warn, once for every kind of estimator (``owner``), that every row counts as a subject."""
    if owner in _warned:
        return
    _warned.add(owner)
    warnings.warn(
        f"{owner} got no groups: every row counts as a participant. Give groups, or a DataFrame X "
        f'with an index named "{SUBJECT}"; a step before that returns an array drops the index, '
        'unless set_output(transform="pandas") is called on it.',
        UserWarning,
        stacklevel=stacklevel,
    )


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return the Generator that ``random_state`` stands for.

    A whole number gives the same stream each time, a Generator is used (and advanced) as it is, a
    RandomState supplies the seed, None is different on every call.
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


def derive_seed(purpose: str, *coordinates: object) -> int:
    """Derive a seed from where a task lies in the grid, never from data or from order."""
    text = "\x1f".join([purpose, *(repr(value) for value in coordinates)])
    return int.from_bytes(sha256(text.encode()).digest()[:4], "big") // 2
