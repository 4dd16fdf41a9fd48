"""Test whether missing channels are associated with the label: exact and permutation tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
# Shares of samples are tested with so many permutations, until so many are as extreme in each.
_BLOCK, _PERMUTATIONS, _EXTREME = 1_000, 10_000, 100
# Probabilities that agree but for rounding count as equal.
_EQUAL = 1e-7


def missingness_association(table: FeatureTable) -> pd.DataFrame:
    """Test for every channel of a table whether having it is associated with the label.

    A channel that subjects have in all of their samples or in none is tested by counts: with two
    classes by Fisher's test, with more by its generalisation to larger tables (Freeman and
    Halton), exact where the tables with the same margins can be enumerated and by seeded draws of
    them otherwise. For any other channel each subject counts with its share of samples, and
    labels are permuted. With a score the tests are Mann and Whitney's, of who has the channel
    against who lacks it, and Spearman's, of the shares.

    Parameters
    ----------
    table : FeatureTable
        A subject with samples of several classes counts in each.

    Returns
    -------
    DataFrame
        One row for every channel: ``channel``; for every class ``have_<class>`` subjects of
        ``n_<class>`` have it in at least half of their samples, and ``share_<class>``, the mean of
        their shares (with a score those of all, ``participants``); ``p`` and ``p_holm``,
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
    from scipy.stats import mannwhitneyu, spearmanr  # take a while to load

    y = np.asarray(scores, dtype=np.float64)
    subject = np.arange(y.size) if subjects is None else pd.factorize(np.asarray(subjects))[0]
    means = pd.Series(y).groupby(subject).mean().to_numpy()
    shares = pd.DataFrame(observed.astype(float)).groupby(subject).mean().to_numpy()
    has = shares >= 0.5
    varying = np.ptp(shares, axis=0) > 0
    p = np.ones(shares.shape[1])
    for v in np.flatnonzero(varying):
        if np.isin(shares[:, v], (0, 1)).all():
            p[v] = mannwhitneyu(means[has[:, v]], means[~has[:, v]]).pvalue
        else:
            p[v] = np.nan_to_num(spearmanr(shares[:, v], means).pvalue, nan=1.0)
    p_holm = np.ones_like(p)
    p_holm[varying] = holm(p[varying])
    counts = {
        "have_participants": has.sum(axis=0),
        "n_participants": means.size,
        "share_participants": shares.mean(axis=0),
    }
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
    shares = pd.DataFrame(observed.astype(float)).groupby([codes, subject]).mean()
    by_class = (shares >= 0.5).groupby(level=0)
    counts, sizes = by_class.sum().to_numpy().T, by_class.size().to_numpy()
    frame = missingness_from_counts(counts, sizes, seen, classes, channels)
    values = shares.to_numpy()
    partly = ((values > 0) & (values < 1)).any(axis=0)
    if partly.any():
        unit_codes = shares.index.get_level_values(0).to_numpy()
        frame.loc[partly, "p"] = _permutation_p(values[:, partly], unit_codes, sizes)
        frame["p_holm"] = _correct(frame["p"].to_numpy(), np.ptp(values, axis=0) > 0)
    means = shares.groupby(level=0).mean().to_numpy()
    names = classes.tolist()
    frame = pd.concat(
        [frame, pd.DataFrame(means.T, columns=[f"share_{n}" for n in names])], axis=1
    )
    columns = [f"{what}_{name}" for name in names for what in ("have", "n", "share")]
    return frame[["channel", *columns, "p", "p_holm", "dead"]]


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
    frame = pd.DataFrame(columns).assign(p=p, p_holm=_correct(p, varying))
    return frame.assign(dead=seen.sum(axis=1) < 2)


def _correct(p: NDArray[np.float64], varying: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Correct for the channels that some subjects lack, by Holm's method."""
    corrected = np.ones_like(p)
    corrected[varying] = holm(p[varying])
    return corrected


def _permutation_p(
    shares: NDArray[np.float64], codes: NDArray[np.intp], sizes: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return for each column how often permuted labels differ as much in their mean shares."""
    centred = shares - shares.mean(axis=0)

    def between(labels: NDArray[np.intp]) -> NDArray[np.float64]:
        sums = [(labels == k).astype(float) @ centred for k in range(sizes.size)]
        return np.asarray(sum(of**2 / n for of, n in zip(sums, sizes, strict=True)))

    observed = between(codes[None])[0] * (1 - _EQUAL)
    rng = np.random.default_rng(derive_seed("association of gaps", *sizes.tolist()))
    beyond, n_drawn = np.zeros(shares.shape[1]), 0
    while n_drawn < _PERMUTATIONS and (beyond < _EXTREME).any():
        labels = rng.permuted(np.tile(codes, (_BLOCK, 1)), axis=1)
        beyond += (between(labels) >= observed).sum(axis=0)
        n_drawn += _BLOCK
    return np.asarray((1 + beyond) / (1 + n_drawn))


def describe_presence(row: Mapping[Any, Any], classes: Sequence[str]) -> list[str]:
    """Say how many subjects of each class have a channel, or in which share of samples."""
    shares = [row.get(f"share_{name}", np.nan) for name in classes]
    counts = [(row[f"have_{name}"], row[f"n_{name}"]) for name in classes]
    if any(abs(k / n - share) > _EQUAL for share, (k, n) in zip(shares, counts, strict=True)):
        said = [f"{100 * share:.0f} % of samples" for share in shares]
    else:
        said = [f"{k} of {n}" for k, n in counts]
    return [f"{of} {name}" for of, name in zip(said, classes, strict=True)]


def association_warning(frame: pd.DataFrame) -> str | None:
    """Return a warning of missing channels that are associated with the label, or None."""
    classes = [name.removeprefix("have_") for name in frame.columns if name.startswith("have_")]
    channels = [
        f"{row['channel']}: {', '.join(describe_presence(row, classes))}"
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
        f"participants or samples have a channel ({'; '.join(channels[:5])}{more}; exact or "
        "permutation test, corrected for all channels). The classes may differ by the recording, "
        "not by the EEG."
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
