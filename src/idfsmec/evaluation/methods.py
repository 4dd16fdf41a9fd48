"""The registry of methods: all that a comparison knows by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from idfsmec.errors import InputError
from idfsmec.evaluation.method import Family, Method, settings_grid
from idfsmec.evaluation.parts import Registry, lazily
from idfsmec.selection.defaults import GAMMAS, LAMS

if TYPE_CHECKING:  # names alone are wanted by the Tab key, which does not wait for scikit-learn
    from sklearn.base import BaseEstimator

#: Families that are compared when no methods are named; an ablation is a method in pieces.
COMPARED: tuple[Family, ...] = ("proposed", "filter", "wrapper", "embedded", "sanity")

#: All methods by name; :func:`register_method` adds to it.
METHODS: Registry[Method] = Registry("method")


def register_method(
    name: str,
    selector: BaseEstimator | Callable[[], BaseEstimator],
    *,
    family: Family,
    overwrite: bool = False,
    **options: Any,
) -> Method:
    """Add a method, so that evaluation, report and command line know it by name.

    Parameters
    ----------
    name, selector, family, **options
        As in :class:`Method`.
    overwrite : bool
        Whether a method of that name may be replaced.

    Returns
    -------
    Method

    Examples
    --------
    >>> from idfsmec.selection import MRMR
    >>> method = register_method("mRMR-10", MRMR(n_bins=10), family="filter")
    >>> METHODS["mRMR-10"].build()
    MRMR(n_bins=10)
    >>> METHODS.remove("mRMR-10")
    """
    return METHODS.add(Method(name, selector, family, **options), overwrite=overwrite)


def find_methods(
    methods: Iterable[str | Method] | None = None, *, families: Sequence[Family] = COMPARED
) -> list[Method]:
    """Look up methods by name.

    Parameters
    ----------
    methods : iterable of str or Method, optional
        Names, or methods of your own. Left out: all of the families that can run here.
    families : sequence of str
        Which families are taken when ``methods`` is left out.

    Returns
    -------
    list of Method

    Examples
    --------
    >>> [one.name for one in find_methods(["IDFS-MEC", "ANOVA F"])]
    ['IDFS-MEC', 'ANOVA F']
    """
    if methods is None:
        found = [one for one in METHODS.values() if one.family in families and one.available]
    else:
        found = [METHODS.find(one) for one in methods]
    if not found:
        raise InputError("there are no methods to compare; give at least one")
    names = [one.name for one in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(f"the method {sorted(twice)[0]!r} is given twice; give other names")
    for one in found:
        if not one.available:
            raise InputError(
                f"the method {one.name!r} needs the package {one.needs!r}, which is not installed"
            )
    return found


def proposed_method(methods: Iterable[Method] = ()) -> Method | None:
    """Say which method ranks whole tables: the first proposed one of these, or else of all."""
    for one in (*methods, *METHODS.values()):
        if one.family == "proposed":
            return one
    return None


def _add(name: str, selector: Callable[[], Any], family: Family, **options: Any) -> None:
    METHODS.add(Method(name, selector, family, **options))


# Seconds: docs/studies/speed.md, "A whole comparison".
_add(
    "IDFS-MEC",
    lazily("idfsmec.selection.IDFSMEC"),
    "proposed",
    settings=settings_grid(lam=LAMS, gamma=GAMMAS),
    takes=(0.7, 0.6),
)
_add(
    "ReliefF",
    lazily("idfsmec.selection.ReliefF"),
    "filter",
    label="ReliefF (10 neighbours)",
    takes=(0.6, 0.95),
)
# The first of these three counts pairs for all: a third of that for each.
_add(
    "mRMR", lazily("idfsmec.selection.MRMR"), "filter", label="mRMR (difference)", takes=(0.2, 0.9)
)
_add("CMIM", lazily("idfsmec.selection.CMIM"), "filter", takes=(0.2, 0.9))
_add("MRMSR", lazily("idfsmec.selection.MRMSR"), "filter", takes=(0.2, 0.9))
_add("RRCT", lazily("idfsmec.selection.RRCT"), "filter", takes=(0.3, 0.9))
# Full searches on all samples choose no better: docs/studies/speed.md, "PS-NSGA".
_add(
    "PS-NSGA",
    lazily("idfsmec.selection.PSNSGA", max_samples=600, random_state=0),
    "wrapper",
    label="PS-NSGA (1-NN)",
    inner={"n_generations": 10},
    needs="pymoo",
    slow=True,
    takes=(20.0, 1.7),
)
# Three values where the lineage has seven: a setting costs a fit per inner fold.
_add(
    "RFS",
    lazily("idfsmec.selection.RFS", standardize=True),
    "embedded",
    settings={"gamma": (1e-2, 1.0, 1e2)},
    takes=(0.7, 0.8),
)
_add("FSOR", lazily("idfsmec.selection.FSOR"), "embedded", takes=(0.2, 1.3))
_add(
    "GRMOR",
    lazily("idfsmec.selection.GRMOR"),
    "embedded",
    settings={"lam": (1e-3, 1.0, 1e3)},
    takes=(0.25, 1.6),
)
_add(
    "CD-LSR",
    lazily("idfsmec.selection.CDLSR", random_state=0),
    "embedded",
    label="CD-LSR (10 starts)",
    depends_on_k=True,
    takes=(0.5, 0.9),
)
_columns = lazily("idfsmec.evaluation.sanity.ColumnOrder")
_add(
    "all features",
    _columns,
    "sanity",
    all_features=True,
    costs=(1e-4, 1e-3, 1e-2, 1e-1),
    takes=(0.2, 1.1),
)
_add("random", lazily("idfsmec.evaluation.sanity.RandomOrder"), "sanity", takes=(0.1, 0.3))
_add("ANOVA F", lazily("idfsmec.evaluation.sanity.AnovaF"), "sanity", takes=(0.1, 0.5))
_forest = lazily("idfsmec.evaluation.sanity.ForestImportance")
_few = {"n_estimators": 30, "n_further": 0}
_add("random forest", _forest, "sanity", inner=_few, takes=(0.6, 0.4))
_add(
    "gradient boosting",
    _columns,
    "sanity",
    all_features=True,
    classifier="boosting",
    takes=(0.5, 0.9),
)
