"""One list of methods by name, for the benchmark, the command line and a user's own method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from idfsmec.selection.idfsmec.estimator import IDFSMEC
from idfsmec.selection.rivals import (
    CDLSR,
    CMIM,
    FSOR,
    GRMOR,
    MRMR,
    MRMSR,
    PSNSGA,
    RFS,
    RRCT,
    ReliefF,
)

Family = Literal["filter", "wrapper", "embedded"]

_POWERS_OF_TEN = tuple(10.0**power for power in range(-3, 4))


@dataclass(frozen=True)
class Method:
    """A selection method as the evaluation uses it.

    Attributes
    ----------
    name : str
        Key in :data:`METHODS`, used in results.
    estimator : estimator
        Carries the evaluation's defaults; never fitted itself.
    family : {"filter", "wrapper", "embedded"}
    accepts_nan : bool
        Whether it takes missing values as they are; the others get filled data.
    label : str
        A few words for tables and figures.
    grid : mapping of str to sequence
        Hyper-parameters that nested evaluation tunes; empty if the lineage tunes none.
    depends_on_k : bool
        Whether the features are chosen together, for one number of them: the first five of ten
        are then not the best five, and each number needs a fit.
    """

    name: str
    estimator: BaseEstimator
    family: Family
    accepts_nan: bool
    label: str
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    depends_on_k: bool = False

    def build(self, *, random_state: int | None = None, **parameters: Any) -> BaseEstimator:
        """Make a fresh estimator.

        Parameters
        ----------
        random_state : int, optional
            Given to estimators that have one, ignored by the others.
        **parameters
            Set on the estimator, such as ``n_features_to_select``.

        Examples
        --------
        >>> METHODS["CD-LSR"].build(n_features_to_select=5, random_state=1)
        CDLSR(n_features_to_select=5, random_state=1)
        """
        fresh = clone(self.estimator)
        if random_state is not None and "random_state" in fresh.get_params():
            parameters["random_state"] = random_state
        return fresh.set_params(**parameters)


_methods: dict[str, Method] = {}
#: All methods by name, read-only; :func:`register_method` adds to it.
METHODS: Mapping[str, Method] = MappingProxyType(_methods)


def register_method(
    name: str,
    estimator: BaseEstimator,
    *,
    family: Family,
    label: str | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    depends_on_k: bool = False,
    replace: bool = False,
) -> Method:
    """Add a selection method, so that benchmark and command line know it by name.

    Parameters
    ----------
    name : str
        How results will call it. No commas: the command line separates names by them.
    estimator : estimator
        A scikit-learn selector with a parameter ``n_features_to_select`` that has ``ranking_``
        after fit. Whether it takes NaN is read from its tags.
    family : {"filter", "wrapper", "embedded"}
        Kind of method.
    label : str, optional
        A few words for tables and figures; the name by default.
    grid : mapping of str to sequence, optional
        Hyper-parameters to tune.
    depends_on_k : bool, default=False
        Whether the order changes with ``n_features_to_select``, so that each number of features
        needs a fit.
    replace : bool, default=False
        Whether a method of that name may be replaced.

    Returns
    -------
    method : Method

    Examples
    --------
    >>> from idfsmec.selection import METHODS, MRMR, register_method
    >>> method = register_method("mRMR-10", MRMR(n_bins=10), family="filter", replace=True)
    >>> METHODS["mRMR-10"].estimator
    MRMR(n_bins=10)
    """
    if "," in name or not name.strip():
        raise ValueError(
            f"A method needs a name without commas, got {name!r}: the command line takes names "
            "separated by commas."
        )
    if name in _methods and not replace:
        raise ValueError(f"There is a method {name!r} already; pass replace=True to replace it.")
    if family not in get_args(Family):
        raise ValueError(f"family must be one of {', '.join(get_args(Family))}, got {family!r}.")
    known = estimator.get_params()
    for parameter in ["n_features_to_select", *(grid or {})]:
        if parameter not in known:
            raise ValueError(
                f"{type(estimator).__name__} has no parameter {parameter!r}, which the "
                "evaluation would set."
            )
    accepts_nan = bool(get_tags(estimator).input_tags.allow_nan)
    frozen_grid = MappingProxyType({key: tuple(values) for key, values in (grid or {}).items()})
    method = Method(name, estimator, family, accepts_nan, label or name, frozen_grid, depends_on_k)
    _methods[name] = method
    return method


def _register_all() -> None:
    register_method("ReliefF", ReliefF(), family="filter", label="ReliefF (10 neighbours)")
    register_method("mRMR", MRMR(), family="filter", label="mRMR (difference)")
    register_method("CMIM", CMIM(), family="filter")
    register_method("MRMSR", MRMSR(), family="filter")
    register_method("RRCT", RRCT(), family="filter")
    register_method("PS-NSGA", PSNSGA(random_state=0), family="wrapper", label="PS-NSGA (1-NN)")
    register_method(
        "RFS", RFS(standardize=True), family="embedded", grid={"gamma": _POWERS_OF_TEN}
    )
    register_method("FSOR", FSOR(), family="embedded")
    register_method("GRMOR", GRMOR(), family="embedded", grid={"lam": _POWERS_OF_TEN})
    register_method(
        "CD-LSR",
        CDLSR(random_state=0),
        family="embedded",
        label="CD-LSR (10 starts)",
        depends_on_k=True,
    )
    register_method(
        "IDFS-MEC",
        IDFSMEC(),
        family="embedded",
        grid={"lam": _POWERS_OF_TEN, "gamma": (1.1, 1.5, 2.0, 3.0, 5.0, 9.0)},
    )


_register_all()
