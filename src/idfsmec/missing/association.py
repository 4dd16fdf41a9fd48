"""Do gaps go with the label? Who has each channel, by class and by person, and an exact test.

A channel that most controls and hardly any patients have says more about amplifiers than about
brains. Whoever reads a ranking must be told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from idfsmec._random import derive_seed

if TYPE_CHECKING:
    from idfsmec.table import FeatureTable

Array = NDArray[np.float64]

#: Corrected p-values below this are worth a warning.
ALPHA = 0.05
# Tables that are enumerated for one channel at most; beyond, so many are drawn at random.
_MOST_TABLES, _DRAWN = 20_000, 6_000
# Probabilities that agree but for rounding count as equal.
_EQUAL = 1e-7


def association_of_gaps(table: FeatureTable) -> pd.DataFrame:
    """Test for every channel of a table whether having it goes with the label.

    Parameters
    ----------
    table : FeatureTable

    Returns
    -------
    DataFrame
        See :func:`gaps_by_class`.

    Examples
    --------
    >>> from idfsmec import FeatureTable
    >>> X = pd.DataFrame({"Fp1__mean": [1.0] * 16, "22A__mean": [1.0] * 8 + [np.nan] * 8})
    >>> table = FeatureTable(X, ["HC"] * 8 + ["MDD"] * 8, [f"s{i:02}" for i in range(16)])
    >>> association_of_gaps(table)[["channel", "have_HC", "have_MDD", "p_holm", "dead"]].round(5)
      channel  have_HC  have_MDD   p_holm   dead
    0     Fp1        8         8  1.00000  False
    1     22A        8         0  0.00016   True
    """
    return gaps_by_class(table.observed.to_numpy(), table.y, table.subjects, table.channels)


def gaps_by_class(
    observed: NDArray[np.bool_],
    labels: ArrayLike,
    subjects: ArrayLike | None,
    channels: ArrayLike,
) -> pd.DataFrame:
    """Count who has each channel, by class, and test whether classes differ.

    A person has a channel that is there in at least half of their samples. With two classes the
    test is Fisher's, with more its generalisation to larger tables (Freeman and Halton), exact
    where the tables with the same margins can be enumerated and by seeded draws of them otherwise.

    Parameters
    ----------
    observed : ndarray of bool, shape (n_samples, n_channels)
    labels : array-like of shape (n_samples,)
    subjects : array-like of shape (n_samples,), optional
        Who each sample comes from; by default every sample is a person. A person with samples of
        several classes counts in each.
    channels : array-like of shape (n_channels,)
        Their names.

    Returns
    -------
    DataFrame
        One row for every channel: ``channel``; for every class ``have_<class>`` people of
        ``n_<class>``; ``p`` and ``p_holm``, corrected for the number of channels that somebody
        lacks; ``dead``, whether the channel was not once observed for more than one class.
    """
    classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    who = np.arange(codes.size) if subjects is None else np.asarray(subjects)
    _, member = np.unique(who, return_inverse=True)
    units, unit = np.unique(member * classes.size + codes, return_inverse=True)
    samples = np.bincount(unit)
    by_unit = observed[np.argsort(unit, kind="stable")].astype(np.intp)
    there = np.add.reduceat(by_unit, np.cumsum(samples) - samples, axis=0)
    own_class = units % classes.size
    has = 2 * there >= samples[:, None]
    counts = np.stack([has[own_class == k].sum(axis=0) for k in range(classes.size)], axis=1)
    people = np.bincount(own_class, minlength=classes.size)
    seen = np.stack([observed[codes == k].any(axis=0) for k in range(classes.size)], axis=1)
    return gaps_of_counts(counts, people, seen, classes, channels)


def gaps_of_counts(
    counts: NDArray[np.integer],
    people: NDArray[np.integer],
    seen: NDArray[np.bool_],
    classes: ArrayLike,
    channels: ArrayLike,
) -> pd.DataFrame:
    """Test whether classes differ in who has each channel, from numbers of people.

    Parameters
    ----------
    counts : ndarray of int, shape (n_channels, n_classes)
        People who have the channel.
    people : ndarray of int, shape (n_classes,)
    seen : ndarray of bool, shape (n_channels, n_classes)
        Whether any sample of the class has the channel.
    classes : array-like of shape (n_classes,)
    channels : array-like of shape (n_channels,)

    Returns
    -------
    DataFrame
        See :func:`gaps_by_class`.
    """
    rows, place = np.unique(counts, axis=0, return_inverse=True)
    p = np.array([_exact_p(row, people) for row in rows])[place.ravel()]
    columns: dict[str, ArrayLike] = {"channel": np.asarray(channels)}
    for k, name in enumerate(np.asarray(classes).tolist()):
        columns |= {f"have_{name}": counts[:, k], f"n_{name}": people[k]}
    frame = pd.DataFrame(columns)
    varying = (counts.sum(axis=1) % max(1, people.sum())) > 0
    return frame.assign(p=p, p_holm=_holm(p, varying), dead=seen.sum(axis=1) < 2)


def describe_association(frame: pd.DataFrame, alpha: float = ALPHA) -> list[str]:
    """Name the channels whose gaps go with the label, and who has them.

    Parameters
    ----------
    frame : DataFrame
        From :func:`gaps_by_class`.
    alpha : float, default=0.05
        Of the corrected p-values.

    Returns
    -------
    list of str
        Such as ``"22A: 20 of 25 HC, 1 of 29 MDD"``; empty if there is none.
    """
    classes = [name.removeprefix("have_") for name in frame.columns if name.startswith("have_")]
    return [
        f"{row['channel']}: "
        + ", ".join(f"{row[f'have_{name}']} of {row[f'n_{name}']} {name}" for name in classes)
        for row in frame[frame["p_holm"] < alpha].sort_values("p").to_dict("records")
    ]


def association_warning(frame: pd.DataFrame) -> str | None:
    """Say in one sentence which gaps go with the label; None if there are none.

    Parameters
    ----------
    frame : DataFrame
        From :func:`gaps_by_class`.
    """
    said = describe_association(frame)
    if not said:
        return None
    shown = "; ".join(said[:5]) + (f"; and {len(said) - 5} more" if len(said) > 5 else "")
    return (
        f"Gaps go with the label: who has a channel differs between classes ({shown}; exact test, "
        "corrected for all channels). What tells the classes apart may be the recording."
    )


def _exact_p(counts: NDArray, people: NDArray) -> float:
    """Probability of a table no more probable than this one, margins as they are."""
    n_having = int(counts.sum())
    if n_having in (0, people.sum()):
        return 1.0
    # The largest class takes what the others leave.
    order = np.argsort(people)
    sizes, own = people[order], counts[order]
    if np.prod(sizes[:-1] + 1.0) <= _MOST_TABLES:
        tables = np.indices((sizes[:-1] + 1).tolist()).reshape(sizes.size - 1, -1).T
        last = n_having - tables.sum(axis=1)
        kept = (last >= 0) & (last <= sizes[-1])
        chances = np.exp(_log_chances(np.column_stack([tables, last])[kept], sizes, n_having))
        observed = np.exp(_log_chances(own[None], sizes, n_having))[0]
        return float(min(1.0, chances[chances <= observed * (1 + _EQUAL)].sum()))
    rng = np.random.default_rng(derive_seed("association of gaps", *counts.tolist()))
    drawn = rng.multivariate_hypergeometric(sizes, n_having, size=_DRAWN, method="marginals")
    least = _log_chances(own[None], sizes, n_having) + _EQUAL
    as_rare = _log_chances(drawn, sizes, n_having) <= least
    return float((1 + as_rare.sum()) / (1 + _DRAWN))


def _log_chances(tables: NDArray, sizes: NDArray, n_having: int) -> Array:
    """Logarithm of the multivariate hypergeometric probability of each row."""
    return _log_choose(sizes, tables).sum(axis=1) - _log_choose(sizes.sum(), n_having)


def _log_choose(n: ArrayLike, k: ArrayLike) -> Array:
    n, k = np.asarray(n, dtype=float), np.asarray(k, dtype=float)
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _holm(p: Array, tested: NDArray[np.bool_]) -> Array:
    """Correct p-values for the number of tests; 1 where nothing was tested."""
    corrected = np.ones_like(p)
    places = np.flatnonzero(tested)
    order = places[np.argsort(p[places], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(factors * p[order]))
    return corrected
