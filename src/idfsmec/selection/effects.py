"""Direction and size: in which class a feature is higher, by how much, and how sure that is.

Subjects are the units: a subject's value is the mean over their samples that have the feature.
Hedges' g and eta squared have the exact intervals for normal values of equal variance, AUCs
Newcombe's, correlations Fisher's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtrc, ncfdtrinc, nctdtrinc, stdtr
from scipy.stats import false_discovery_control, rankdata
from sklearn.utils.validation import check_is_fitted

from idfsmec._validation import group_names
from idfsmec.metrics import auc_intervals
from idfsmec.solver.scaling import is_constant
from idfsmec.table.columns import SEPARATOR, channel_codes, channel_columns
from idfsmec.table.feature_table import refuse_table

Array = NDArray[np.float64]
Sums = tuple[Array, Array, Array]

# Standard errors to either side of an estimate.
_Z = 1.959963984540054
# Beyond this t, and this F, limits of the noncentral distributions are proportional to it.
_LARGEST_T, _LARGEST_F = 100.0, 100.0


def feature_effects(
    X: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    numeric: bool = False,
) -> pd.DataFrame:
    """Compute how every feature differs between classes, or is related to a score, by subject.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        NaN where a channel is missing.
    y : array-like of shape (n_samples,)
        Class labels, or a score.
    groups : array-like of shape (n_samples,), optional
        Subject of every sample; by default an index of X named ``subject``. With neither every
        sample is a subject. A subject with samples of several classes counts in each.
    names : sequence of str, optional
        Of the features; by default the columns of X.
    numeric : bool, default=False
        Whether y is a score.

    Returns
    -------
    DataFrame
        One row for every feature, in the order of the columns, with ``feature``,
        ``n_subjects`` (who have it) and:

        - two classes: ``direction`` ("higher in MDD"), ``hedges_g`` of the second class against
          the first, its interval from the noncentral t distribution [1]_, and ``auc``, oriented
          to at least 0.5 (:func:`idfsmec.metrics.auc_interval`), each with ``_low`` and
          ``_high``, their 95 % intervals;
        - more classes: ``direction`` (where the mean is largest), ``eta_squared``, its interval
          from the noncentral F distribution [3]_;
        - a score: ``direction`` ("rises with the score"), ``spearman`` and ``pearson``, with
          Fisher's intervals; the standard error of Spearman's is that of Bonett and Wright [2]_;
        - ``p`` of Student's t test, of the F test, or of Spearman's correlation, and ``q``, the
          false discovery rate among the features from this one on (Benjamini and Hochberg).

        NaN where too few subjects have the feature.

    References
    ----------
    .. [1] Hedges, Olkin, "Statistical methods for meta-analysis", 1985, chapter 5; Cumming,
       Finch, "A primer on the understanding, use, and calculation of confidence intervals",
       Educational and Psychological Measurement 61, 2001.
    .. [2] Bonett, Wright, "Sample size requirements for estimating Pearson, Kendall and Spearman
       correlations", Psychometrika 65, 23-28, 2000.
    .. [3] Steiger, "Beyond the F test", Psychological Methods 9, 164-182, 2004.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["HC", "MDD"], 30)
    >>> X = pd.DataFrame({"F3__alpha": rng.normal(size=60) - (y == "MDD")})
    >>> effects = feature_effects(X, y, groups=np.arange(60))
    >>> effects[["feature", "direction", "hedges_g", "auc"]].round(2)
         feature     direction  hedges_g   auc
    0  F3__alpha  higher in HC     -0.67  0.67
    """
    refuse_table(X)
    groups = group_names(X, groups)
    if names is None:
        names = [str(name) for name in getattr(X, "columns", range(np.shape(X)[1]))]
    values = np.asarray(X, dtype=np.float64)
    target = np.asarray(y)
    subjects = np.arange(len(target)) if groups is None else groups
    classes, codes = (np.empty(0), 0) if numeric else np.unique(target, return_inverse=True)
    unit = np.unique(subjects, return_inverse=True)[1] * max(classes.size, 1) + codes
    # A subject's score; or a class, the same for all samples of a unit.
    scores = pd.Series(target if numeric else codes).groupby(unit).mean().to_numpy()
    means = pd.DataFrame(values).groupby(unit).mean().to_numpy()
    # Effects have no unit. Powers of two change no digit, and squares stay finite.
    means = np.ldexp(means, -np.frexp(np.fmax.reduce(np.abs(means), axis=0, initial=0.0))[1])
    if numeric:
        sizes = _with_score(means, scores)
    else:
        sizes = _between([means[scores == k] for k in range(classes.size)], classes)
    frame = pd.DataFrame({"feature": list(names), "n_subjects": (~np.isnan(means)).sum(axis=0)})
    return frame.assign(**sizes, q=_q_values(sizes["p"]))


def effects_of_sums(
    sums: Sequence[Sums], classes: ArrayLike, names: Sequence[str]
) -> pd.DataFrame:
    """Return what of :func:`feature_effects` follows from sums, in any units of the features."""
    count = np.sum([n for n, _, _ in sums], axis=0)
    if len(sums) == 2:
        sizes = _hedges(sums)
        size = sizes["hedges_g"]
    else:
        size = _eta_squared(sums)
        sizes = _of_eta(size, count, len(sums))
    sizes["q"] = _q_values(sizes["p"])
    n_subjects = count.astype(int)
    frame = pd.DataFrame({"feature": list(names), "n_subjects": n_subjects})
    means = [np.where(n > 0, s / np.maximum(n, 1.0), -np.inf) for n, s, _ in sums]
    return frame.assign(direction=_direction(size, means, np.asarray(classes)), **sizes)


def _direction(size: Array, means: Sequence[Array], classes: NDArray[Any]) -> NDArray[Any]:
    """Return in which class the mean is highest; empty where the size is not known."""
    # Of two classes the sign of Hedges' g decides, which is that of the difference of means.
    highest = (size > 0).astype(int) if len(means) == 2 else np.argmax(means, axis=0)
    word = "higher" if len(means) == 2 else "highest"
    words = np.array([f"{word} in {label}" for label in classes])
    return np.where(np.isnan(size), "", words[highest])


def _between(parts: list[Array], classes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Direction and sizes from the subjects' means of each class."""
    # Centred by everyone's mean: squares lose no digits then.
    every = np.concatenate(parts)
    centre = np.nansum(every, axis=0) / np.maximum((~np.isnan(every)).sum(axis=0), 1)
    sums = [_sums(part - centre) for part in parts]
    means = [np.where(n > 0, s / np.maximum(n, 1), -np.inf) for n, s, _ in sums]
    if len(parts) == 2:
        sizes = _hedges(sums)
        sizes = {"direction": _direction(sizes["hedges_g"], means, classes)} | sizes
        (n0, _, _), (n1, _, _) = sums
        ranks = rankdata(every, axis=0, nan_policy="omit")[len(parts[0]) :]
        with np.errstate(divide="ignore", invalid="ignore"):
            auc = (np.nansum(ranks, axis=0) - n1 * (n1 + 1) / 2) / (n0 * n1)
        auc = np.maximum(auc, 1 - auc)
        return sizes | dict(
            zip(("auc", "auc_low", "auc_high"), (auc, *auc_intervals(auc, n1, n0)), strict=True)
        )
    size = _eta_squared(sums)
    of_eta = _of_eta(size, np.asarray(sum(n for n, _, _ in sums)), len(parts))
    return {"direction": _direction(size, means, classes)} | of_eta


def _with_score(means: Array, scores: Array) -> dict[str, NDArray[Any]]:
    """Direction and correlations from the subjects' means and scores."""
    # The score counts, and is ranked, among those who have the feature.
    observed = ~np.isnan(means)
    of_score = np.where(observed, scores[:, None], np.nan)
    ranks = (rankdata(values, axis=0, nan_policy="omit") for values in (means, of_score))
    rho, r = _correlation(*ranks), _correlation(means, of_score)
    words = np.where(rho > 0, "rises with the score", "falls with the score")
    sizes = {"direction": np.where(np.isnan(rho), "", words)}
    n = observed.sum(axis=0)
    for name, size, extra in (("spearman", rho, rho**2 / 2), ("pearson", r, 0.0)):
        low, high = fisher_interval(size, n, extra)
        sizes |= {name: size, f"{name}_low": low, f"{name}_high": high}
    freedom = n - 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        t = rho * np.sqrt(freedom / (1 - rho**2))
    return sizes | {"p": _p_of_t(t, freedom)}


def fisher_interval(r: Any, n: Any, extra: Any = 0.0) -> tuple[Array, Array]:
    """Return the 95 % CI of a correlation of n subjects by Fisher's transformation.

    ``extra`` adds to the variance ``1 / (n - 3)``, as a share of it: 0 for Pearson's, half its
    square for Spearman's.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        z, error = np.arctanh(r), np.sqrt((1 + extra) / np.maximum(np.asarray(n) - 3.0, 0.0))
        return np.tanh(z - _Z * error), np.tanh(z + _Z * error)


def _sums(values: Array) -> Sums:
    """Count, sum and sum of squares of each feature."""
    zeroed = np.nan_to_num(values)
    return (~np.isnan(values)).sum(axis=0) * 1.0, zeroed.sum(axis=0), (zeroed**2).sum(axis=0)


def _hedges(sums: Sequence[Sums]) -> dict[str, Array]:
    """Hedges' g of the second class against the first, its interval, and p of Student's t."""
    (n0, s0, q0), (n1, s1, q1) = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = n0 + n1 - 2.0
        spread = np.sqrt((q0 - s0**2 / n0 + q1 - s1**2 / n1) / freedom)
        error = np.sqrt(1 / n0 + 1 / n1)
        d = (s1 / n1 - s0 / n0) / spread
        d = np.where((freedom > 0) & np.isfinite(d), d, np.nan)
        t = d / error
        # The noncentrality for which a t as large is as rare as 2.5 % on either side.
        far = np.maximum(np.abs(t) / _LARGEST_T, 1.0)
        low, high = (far * nctdtrinc(freedom, p, t / far) * error for p in (0.975, 0.025))
    g = d * _correction(freedom)
    sizes = {"hedges_g": g, "hedges_g_low": low, "hedges_g_high": high}
    return sizes | {"p": _p_of_t(t, freedom)}


def _correction(freedom: Any) -> Any:
    """Factor that takes the bias of small samples from a standardised difference."""
    return 1.0 - 3.0 / (4.0 * freedom - 1.0)


def _p_of_t(t: Array, freedom: Array) -> Array:
    """Two-sided p-value; NaN without degrees of freedom."""
    return np.where(freedom > 0, 2 * stdtr(np.maximum(freedom, 1), -np.abs(t)), np.nan)


def _of_eta(eta: Array, count: Array, n_classes: int) -> dict[str, Array]:
    """Eta squared, its interval, and p of the F test of one-way analysis of variance."""
    freedom, others = count - n_classes, n_classes - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(freedom > 0, eta / (1 - eta) * freedom / others, np.nan)
        # The noncentrality for which an F as large, or as small, is as rare as 2.5 %.
        far = np.maximum(ratio / _LARGEST_F, 1.0)
        limits = (far * ncfdtrinc(others, freedom, p, ratio / far) for p in (0.975, 0.025))
        low, high = (np.where(ratio < np.inf, shift / (shift + count), eta) for shift in limits)
    p = np.where(freedom > 0, fdtrc(others, np.maximum(freedom, 1), ratio), np.nan)
    return {"eta_squared": eta, "eta_squared_low": low, "eta_squared_high": high, "p": p}


def _q_values(p: Array) -> Array:
    """False discovery rates of Benjamini and Hochberg over the features that have a p-value."""
    q = np.full(np.shape(p), np.nan)
    known = ~np.isnan(p)
    if known.any():
        q[known] = false_discovery_control(p[known])
    return q


def adjusted_effects(
    X: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike,
    covariates: pd.DataFrame,
    *,
    numeric: bool = False,
) -> pd.DataFrame:
    """Compute how two classes differ, or how a score is related, at equal covariates, by subject.

    A subject's mean of a feature is regressed on class or score and covariates by least squares.
    Subjects of whom a covariate is not known are left out.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        NaN where a channel is missing.
    y, groups : array-like of shape (n_samples,)
        Class labels, or a score, and subject of every sample.
    covariates : DataFrame of n_samples rows
        Of every sample, such as age and sex; what is not a number is a category. Those of a
        subject's first sample count.
    numeric : bool, default=False
        Whether y is a score.

    Returns
    -------
    DataFrame
        For every feature ``g_adjusted``, the adjusted difference of the second class from the
        first in the unit of ``hedges_g`` (the standard deviation within classes, not adjusted),
        or with a score ``r_adjusted``, Pearson's partial correlation; and ``p_adjusted`` of its t
        test. NaN where they cannot be estimated.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, age = np.repeat([0, 1], 40), rng.normal(40, 10, 80)
    >>> X = pd.DataFrame({"F3__alpha": rng.normal(size=80) + y + age / 10})
    >>> adjusted_effects(X, y, np.arange(80), pd.DataFrame({"age": age})).round(3)
       g_adjusted  p_adjusted
    0       0.636         0.0
    """
    target, subjects = np.asarray(y), np.asarray(groups)
    unit = pd.factorize(subjects)[0]
    if numeric:
        target = pd.Series(target).groupby(unit).transform("mean").to_numpy(dtype=np.float64)
    else:
        target = pd.factorize(target, sort=True)[0]
        unit = pd.factorize(pd.MultiIndex.from_arrays([subjects, target]))[0]
    first = np.unique(unit, return_index=True)[1]
    columns = [np.ones(first.size), *_covariates(covariates.iloc[first]), target[first]]
    design = np.column_stack(columns)
    known = ~np.isnan(design).any(axis=1)
    means = pd.DataFrame(np.asarray(X, dtype=float)).groupby(unit).mean().to_numpy()
    means = np.ldexp(means, -np.frexp(np.fmax.reduce(np.abs(means), axis=0, initial=0.0))[1])
    adjusted = np.full((2, means.shape[1]), np.nan)
    # Features of a channel are missing together: one regression for each pattern.
    patterns, which = np.unique(~np.isnan(means), axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T):
        here, rows = np.flatnonzero(which.ravel() == number), pattern & known
        A, values = design[rows], means[np.ix_(rows, here)]
        rank = np.linalg.matrix_rank(A)
        freedom = np.asarray(float(len(A) - rank))
        if freedom > 0 and rank > np.linalg.matrix_rank(A[:, :-1]):
            inverse = np.linalg.pinv(A)
            coefs = inverse @ values
            error = np.sqrt(np.sum((values - A @ coefs) ** 2, axis=0) / freedom)
            with np.errstate(divide="ignore", invalid="ignore"):
                t = coefs[-1] / (error * np.linalg.norm(inverse[-1]))
                if numeric:
                    size = t / np.sqrt(t**2 + freedom)
                else:
                    parts = [values[A[:, -1] == k] for k in (0, 1)]
                    within = sum(np.sum((part - part.mean(axis=0)) ** 2, axis=0) for part in parts)
                    of_all = len(A) - 2.0
                    size = coefs[-1] / np.sqrt(within / of_all) * _correction(of_all)
            adjusted[:, here] = size, _p_of_t(t, freedom)
    name = "r_adjusted" if numeric else "g_adjusted"
    return pd.DataFrame({name: adjusted[0], "p_adjusted": adjusted[1]})


def _covariates(known: pd.DataFrame) -> list[Array]:
    """Return columns of numbers: covariates that are numbers, and one per category."""
    columns = []
    for name in known:
        values = known[name].replace("", np.nan)
        numbers = pd.to_numeric(values, errors="coerce")
        if 2 * numbers.notna().sum() < values.notna().sum():
            codes, categories = pd.factorize(values, sort=True)
            which = np.where(codes < 0, np.nan, codes)
            columns += [np.where(codes < 0, np.nan, which == k) for k in range(len(categories))]
        else:
            columns.append(numbers.to_numpy(dtype=float) - numbers.mean())
    return columns


def _eta_squared(sums: Sequence[Sums]) -> Array:
    """Share of the variance that lies between classes."""
    with np.errstate(divide="ignore", invalid="ignore"):
        count, total = sum(n for n, _, _ in sums), sum(s for _, s, _ in sums)
        whole = sum(q for _, _, q in sums) - total**2 / count
        between = sum(np.where(n > 0, s**2 / n, 0.0) for n, s, _ in sums) - total**2 / count
        eta = between / whole
    return np.where(np.isfinite(eta) & (whole > 0), np.clip(eta, 0.0, 1.0), np.nan)


def _correlation(first: Array, second: Array) -> Array:
    """Pearson's correlation of each column over the subjects who have both values."""
    a, b = _centred(first), _centred(second)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = (a * b).sum(axis=0) / np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0))
    return np.asarray(np.clip(r, -1.0, 1.0))


def _centred(values: Array) -> Array:
    """Values less their column's mean; 0 where missing, and where that is all that they vary."""
    observed = ~np.isnan(values)
    zeroed, count = np.where(observed, values, 0.0), np.maximum(observed.sum(axis=0), 1)
    mean = zeroed.sum(axis=0) / count
    centred = np.where(observed, values - mean, 0.0)
    return np.where(is_constant(mean, np.sqrt((centred**2).sum(axis=0) / count)), 0.0, centred)


def ranking_frame(
    selector: Any, *, stability: Any = None, adjusted: pd.DataFrame | None = None
) -> pd.DataFrame:
    """All features of a fitted :class:`IDFSMEC` or :class:`~idfsmec.IDFSMECCV`, best first.

    Parameters
    ----------
    selector : IDFSMEC or IDFSMECCV
    stability : StabilitySelector, optional
        Fitted to the same features.
    adjusted : DataFrame, optional
        What ``idfsmec.selection.effects.adjusted_effects`` gives for the same features.

    Returns
    -------
    DataFrame
        Columns ``rank, channel, feature, score, channel_weight, feature_weight, selected``, then
        those of ``effects_`` where the selector has them: ``n_subjects``, ``direction`` ("higher
        in MDD") and sizes with intervals; of stability ``frequency``, the share of halves that
        selected a feature, and ``stable``; and those of ``adjusted``.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec import IDFSMEC
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["F3__alpha", "Cz__alpha"])
    >>> y = np.arange(40) % 2
    >>> X["Cz__alpha"] += 2 * y
    >>> selector = IDFSMEC(n_features_to_select=1).fit(X, y, groups=np.arange(40))
    >>> ranking_frame(selector)[["rank", "channel", "feature", "selected"]]
       rank channel feature  selected
    0     1      Cz   alpha      True
    1     2      F3   alpha     False
    """
    columns, names = _channels_of(selector)
    channel = channel_codes(columns)
    frame = pd.DataFrame(
        {
            "rank": selector.ranking_,
            "channel": selector.channel_names_[channel],
            "feature": [str(name).rpartition(SEPARATOR)[2] for name in names],
            "score": selector.scores_,
            "channel_weight": selector.channel_weights_[channel],
            "feature_weight": selector.feature_weights_,
            "selected": selector.support_,
        }
    )
    effects = getattr(selector, "effects_", None)
    if effects is not None:
        frame = frame.join(effects.drop(columns="feature"))
    if stability is not None:
        dead = frame["channel"].isin(stability.channel_names_[stability.dead_channels_])
        share = pd.Series(stability.frequencies_).mask(dead)
        frame = frame.assign(frequency=share, stable=stability.support_)
    if adjusted is not None:
        frame = frame.join(adjusted)
    return frame.sort_values("rank", ignore_index=True)


def channel_frame(selector: Any) -> pd.DataFrame:
    """All channels of a fitted :class:`IDFSMEC` or :class:`~idfsmec.IDFSMECCV`, heaviest first.

    Returns
    -------
    DataFrame
        Columns ``channel, weight, n_selected`` (how many of its features are kept).
    """
    columns, _ = _channels_of(selector)
    counts = [int(selector.support_[indices].sum()) for indices in columns]
    names, weights = selector.channel_names_, selector.channel_weights_
    frame = pd.DataFrame({"channel": names, "weight": weights, "n_selected": counts})
    return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)


def _channels_of(selector: Any) -> tuple[list[NDArray[np.intp]], Sequence[Any]]:
    """Columns of each channel, and names of all features, of a fitted selector."""
    check_is_fitted(selector, "ranking_")
    names, n_features = getattr(selector, "feature_names_in_", None), selector.ranking_.size
    _, columns = channel_columns(selector.channels, n_features, names)
    return columns, [f"x{j}" for j in range(n_features)] if names is None else names
