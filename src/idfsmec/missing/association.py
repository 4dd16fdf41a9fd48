"""Test whether missing channels are associated with the label: counts by class, an exact test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from idfsmec._validation import derive_seed
from idfsmec.metrics import holm

if TYPE_CHECKING:
    from idfsmec.table import FeatureTable

#: Corrected p-values below this are worth a warning.
ALPHA = 0.05
# Tables that are enumerated for one channel at most; beyond, so many are drawn at random.
_MOST_TABLES, _DRAWN = 20_000, 6_000
# Probabilities that agree but for rounding count as equal.
_EQUAL = 1e-7


def missingness_association(table: FeatureTable) -> pd.DataFrame:
    """Test for every channel of a table whether having it is associated with the label.

    A subject has a channel that is observed in at least half of its samples. With two classes
    the test is Fisher's, with more its generalisation to larger tables (Freeman and Halton), exact
    where the tables with the same margins can be enumerated and by seeded draws of them otherwise.
    With a score it is Mann and Whitney's, of who has the channel against who lacks it.

    Parameters
    ----------
    table : FeatureTable
        A subject with samples of several classes counts in each.

    Returns
    -------
    DataFrame
        One row for every channel: ``channel``; for every class ``have_<class>`` subjects of
        ``n_<class>`` (with a score those of all, ``have_participants``); ``p`` and ``p_holm``,
        corrected for the number of channels that some subject lacks; ``dead``, whether the channel
        was not once observed for more than one class (with a score, in fewer than two samples).

    Examples
    --------
    >>> from idfsmec import FeatureTable
    >>> X = pd.DataFrame({"Fp1__mean": [1.0] * 16, "22A__mean": [1.0] * 8 + [np.nan] * 8})
    >>> table = FeatureTable(X, ["HC"] * 8 + ["MDD"] * 8, [f"s{i:02}" for i in range(16)])
    >>> columns = ["channel", "have_HC", "have_MDD", "p_holm", "dead"]
    >>> missingness_association(table)[columns].round(5)
      channel  have_HC  have_MDD   p_holm   dead
    0     Fp1        8         8  1.00000  False
    1     22A        8         0  0.00016   True
    """
    observed = table.observed.to_numpy()
    by = missingness_by_score if table.target.is_numeric else missingness_by_class
    return by(observed, table.targets, table.subjects, table.channels)


def missingness_by_score(
    observed: NDArray[np.bool_], scores: ArrayLike, subjects: ArrayLike | None, channels: ArrayLike
) -> pd.DataFrame:
    """Test channels of arrays against a score; without subjects each sample counts as one."""
    from scipy.stats import mannwhitneyu  # takes a while to load

    y = np.asarray(scores, dtype=np.float64)
    subject = np.arange(y.size) if subjects is None else pd.factorize(np.asarray(subjects))[0]
    means = pd.Series(y).groupby(subject).mean().to_numpy()
    has = (pd.DataFrame(observed.astype(float)).groupby(subject).mean() >= 0.5).to_numpy()
    n_having = has.sum(axis=0)
    varying = (n_having > 0) & (n_having < means.size)
    p = np.ones(n_having.size)
    for v in np.flatnonzero(varying):
        p[v] = mannwhitneyu(means[has[:, v]], means[~has[:, v]]).pvalue
    p_holm = np.ones_like(p)
    p_holm[varying] = holm(p[varying])
    counts = {"have_participants": n_having, "n_participants": means.size}
    dead = observed.sum(axis=0) < 2
    return pd.DataFrame({"channel": np.asarray(channels), **counts}).assign(
        p=p, p_holm=p_holm, dead=dead
    )


def missingness_by_class(
    observed: NDArray[np.bool_], labels: ArrayLike, subjects: ArrayLike | None, channels: ArrayLike
) -> pd.DataFrame:
    """Test channels of arrays; without subjects each sample counts as one."""
    classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    seen = np.stack([observed[codes == k].any(axis=0) for k in range(classes.size)], axis=1)
    subject = np.arange(codes.size) if subjects is None else pd.factorize(np.asarray(subjects))[0]
    shares = pd.DataFrame(observed.astype(float)).groupby([codes, subject]).mean() >= 0.5
    by_class = shares.groupby(level=0)
    return missingness_from_counts(
        by_class.sum().to_numpy().T, by_class.size().to_numpy(), seen, classes, channels
    )


def missingness_from_counts(
    counts: NDArray[np.integer],
    n_subjects: NDArray[np.integer],
    seen: NDArray[np.bool_],
    classes: ArrayLike,
    channels: ArrayLike,
) -> pd.DataFrame:
    """Test channels from how many subjects have them, and whether any sample of a class does."""
    rows, index = np.unique(counts, axis=0, return_inverse=True)
    p = np.array([_exact_p(row, n_subjects) for row in rows])[index.ravel()]
    columns: dict[str, ArrayLike] = {"channel": np.asarray(channels)}
    for k, name in enumerate(np.asarray(classes).tolist()):
        columns |= {f"have_{name}": counts[:, k], f"n_{name}": n_subjects[k]}
    varying = (counts.sum(axis=1) % max(1, n_subjects.sum())) > 0
    p_holm = np.ones_like(p)
    p_holm[varying] = holm(p[varying])
    return pd.DataFrame(columns).assign(p=p, p_holm=p_holm, dead=seen.sum(axis=1) < 2)


def association_warning(frame: pd.DataFrame) -> str | None:
    """Return a warning of missing channels that are associated with the label, or None."""
    classes = [name.removeprefix("have_") for name in frame.columns if name.startswith("have_")]
    channels = [
        f"{row['channel']}: "
        + ", ".join(f"{row[f'have_{name}']} of {row[f'n_{name}']} {name}" for name in classes)
        for row in frame[frame["p_holm"] < ALPHA].sort_values("p").to_dict("records")
    ]
    if not channels:
        return None
    more = f"; and {len(channels) - 5} more" if len(channels) > 5 else ""
    if classes == ["participants"]:
        return (
            "Missing channels are associated with the score: participants who lack a channel have "
            f"other scores ({'; '.join(channels[:5])}{more}; rank test, corrected for all "
            "channels). The score may be associated with the recording, not with the EEG."
        )
    return (
        "Missing channels are associated with the label: classes differ in how many "
        f"participants have a channel ({'; '.join(channels[:5])}{more}; exact test, corrected "
        "for all channels). The classes may differ by the recording, not by the EEG."
    )


def _exact_p(counts: NDArray[np.integer], n_subjects: NDArray[np.integer]) -> float:
    """Return the probability of a table no more probable than this one, margins as they are."""
    from scipy.stats import multivariate_hypergeom  # takes a while to load

    n_having = int(counts.sum())
    if n_having in (0, n_subjects.sum()):
        return 1.0
    order = np.argsort(n_subjects)  # the largest class takes what the others leave
    sizes = n_subjects[order]
    chance_of = multivariate_hypergeom(sizes, n_having)
    observed = chance_of.logpmf(counts[order])
    if np.prod(sizes[:-1] + 1.0) <= _MOST_TABLES:
        tables = np.indices((sizes[:-1] + 1).tolist()).reshape(sizes.size - 1, -1).T
        last = n_having - tables.sum(axis=1)
        possible = (last >= 0) & (last <= sizes[-1])
        chances = chance_of.pmf(np.column_stack([tables, last])[possible])
        return float(min(1.0, chances[chances <= np.exp(observed) * (1 + _EQUAL)].sum()))
    rng = np.random.default_rng(derive_seed("association of gaps", *counts.tolist()))
    drawn = rng.multivariate_hypergeometric(sizes, n_having, size=_DRAWN, method="marginals")
    as_rare = chance_of.logpmf(drawn) <= observed + _EQUAL
    return float((1 + as_rare.sum()) / (1 + _DRAWN))
