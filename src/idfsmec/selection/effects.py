"""Direction and size: in which class a feature is higher, by how much, and how sure that is.

Subjects are the units: a subject's value is the mean over their samples that have the feature.
Intervals are percentiles over resampled subjects, drawn within classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from idfsmec._validation import RandomState, as_generator, group_names
from idfsmec.metrics import draw_within_classes
from idfsmec.table.columns import SEPARATOR, channel_codes, channel_columns
from idfsmec.table.feature_table import refuse_table

Array = NDArray[np.float64]
Sums = tuple[Array, Array, Array]

# Features handled at a time, and pairs of subjects x features for the AUC: what the memory takes.
_BLOCK, _PAIRS = 512, 400_000
# Beyond so many pairs of subjects the interval of the AUC is DeLong's, which is then as good.
_MOST_PAIRS = 20_000
# Standard errors to either side of an estimate.
_Z = 1.959963984540054


def feature_effects(
    X: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    numeric: bool = False,
    n_resamples: int = 1000,
    random_state: RandomState = 0,
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
    n_resamples : int, default=1000
        Bootstrap samples of the subjects.
    random_state : int, Generator, RandomState or None, default=0

    Returns
    -------
    DataFrame
        One row for every feature, in the order of the columns, with ``feature``,
        ``n_subjects`` (who have it) and:

        - two classes: ``direction`` ("higher in MDD"), ``hedges_g`` of the second class against
          the first, and ``auc``, oriented to at least 0.5, each with ``_low`` and ``_high``, their
          95 % intervals;
        - more classes: ``direction`` (where the mean is largest), ``eta_squared``;
        - a score: ``direction`` ("rises with the score"), ``spearman`` (its interval resamples
          the ranks as they are).

        NaN where too few subjects have the feature.

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
    rng = as_generator(random_state)
    classes, codes = (np.empty(0), 0) if numeric else np.unique(target, return_inverse=True)
    unit = np.unique(subjects, return_inverse=True)[1] * max(classes.size, 1) + codes
    # A subject's score; or a class, the same for all samples of a unit.
    scores = pd.Series(target if numeric else codes).groupby(unit).mean().to_numpy()
    rows = [np.arange(scores.size)] if numeric else [scores == k for k in range(classes.size)]
    means = pd.DataFrame(values).groupby(unit).mean().to_numpy()
    # Effects have no unit. Powers of two change no digit, and squares stay finite.
    means = np.ldexp(means, -np.frexp(np.fmax.reduce(np.abs(means), axis=0, initial=0.0))[1])
    drawn = draw_within_classes(0 * scores if numeric else scores, n_resamples, rng)
    draws = [drawn[:, members] for members in rows]
    n_pairs = len(draws[0][0]) * len(draws[-1][0]) if classes.size == 2 else 1
    width = min(_BLOCK, max(1, _PAIRS // n_pairs)) if n_pairs <= _MOST_PAIRS else _BLOCK
    blocks = []
    for block in gen_batches(values.shape[1], width):
        if numeric:
            sizes = _with_score(means[:, block], scores, draws[0])
        else:
            sizes = _between([means[members, block] for members in rows], classes, draws)
        blocks.append(pd.DataFrame(sizes))
    frame = pd.DataFrame({"feature": list(names), "n_subjects": (~np.isnan(means)).sum(axis=0)})
    return frame.join(pd.concat(blocks, ignore_index=True))


def effects_of_sums(
    sums: Sequence[Sums], classes: ArrayLike, names: Sequence[str]
) -> pd.DataFrame:
    """Return what of :func:`feature_effects` follows from sums, in any units of the features."""
    parts = [(n[None], s[None], q[None]) for n, s, q in sums]
    if len(sums) == 2:
        size, (n0, n1) = _hedges(parts)[0], (n for n, _, _ in sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = _Z * np.sqrt((n0 + n1) / (n0 * n1) + size**2 / (2 * (n0 + n1)))
        sizes = {"hedges_g": size, "hedges_g_low": size - reach, "hedges_g_high": size + reach}
    else:
        size = _eta_squared(parts)[0]
        sizes = {"eta_squared": size}
    n_subjects = np.asarray(sum(n for n, _, _ in sums), dtype=int)
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


def _between(
    parts: list[Array], classes: NDArray[Any], draws: list[Array]
) -> dict[str, NDArray[Any]]:
    """Direction and sizes from the subjects' means of each class."""
    name, statistic = ("hedges_g", _hedges) if len(parts) == 2 else ("eta_squared", _eta_squared)
    # Centred by everyone's mean: squares lose no digits then.
    every = np.concatenate(parts)
    centre = np.nansum(every, axis=0) / np.maximum((~np.isnan(every)).sum(axis=0), 1)
    centred = [part - centre for part in parts]
    once = [_sums(part, np.ones((1, len(part)))) for part in centred]
    size = statistic(once)[0]
    low, high = _percentiles(
        statistic([_sums(*pair) for pair in zip(centred, draws, strict=True)])
    )
    means = [np.where(n[0] > 0, s[0] / np.maximum(n[0], 1), -np.inf) for n, s, _ in once]
    direction = _direction(size, means, classes)
    sizes = {"direction": direction, name: size, f"{name}_low": low, f"{name}_high": high}
    if len(parts) == 2:
        auc, low, high = _auc(parts, draws)
        limits = np.where(auc < 0.5, (1 - auc, 1 - high, 1 - low), (auc, low, high))
        sizes |= dict(zip(("auc", "auc_low", "auc_high"), limits, strict=True))
    return sizes


def _with_score(means: Array, scores: Array, draws: Array) -> dict[str, NDArray[Any]]:
    """Direction and rank correlation from the subjects' means and scores."""
    ranks = rankdata(means, axis=0, nan_policy="omit")
    # The score is ranked among those who have the feature.
    observed = ~np.isnan(means)
    of_score = rankdata(np.where(observed, scores[:, None], np.nan), axis=0, nan_policy="omit")
    rho = _correlation(ranks, of_score, np.ones((1, len(scores))))[0]
    low, high = _percentiles(_correlation(ranks, of_score, draws))
    words = np.where(rho > 0, "rises with the score", "falls with the score")
    direction = np.where(np.isnan(rho), "", words)
    return {"direction": direction, "spearman": rho, "spearman_low": low, "spearman_high": high}


def _sums(values: Array, weights: Array) -> Sums:
    """Count, sum and sum of squares of the resampled subjects, each (n_resamples, n_features)."""
    observed = ~np.isnan(values)
    zeroed = np.where(observed, values, 0.0)
    count = weights @ observed if not observed.all() else weights.sum(axis=1)[:, None]
    return count, weights @ zeroed, weights @ zeroed**2


def _hedges(sums: list[Sums]) -> Array:
    """Hedges' g of the second class against the first."""
    (n0, s0, q0), (n1, s1, q1) = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        left = q0 - s0**2 / n0 + q1 - s1**2 / n1
        freedom = n0 + n1 - 2.0
        g = (s1 / n1 - s0 / n0) / np.sqrt(left / freedom)
        g = g * (1.0 - 3.0 / (4.0 * freedom - 1.0))
    return np.where((freedom > 0) & np.isfinite(g), g, np.nan)


def _eta_squared(sums: list[Sums]) -> Array:
    """Share of the variance that lies between classes."""
    with np.errstate(divide="ignore", invalid="ignore"):
        count, total = sum(n for n, _, _ in sums), sum(s for _, s, _ in sums)
        whole = sum(q for _, _, q in sums) - total**2 / count
        between = sum(np.where(n > 0, s**2 / n, 0.0) for n, s, _ in sums) - total**2 / count
        eta = between / whole
    return np.where(np.isfinite(eta) & (whole > 0), np.clip(eta, 0.0, 1.0), np.nan)


def _correlation(first: Array, second: Array, weights: Array) -> Array:
    """Correlation over the resampled subjects who have the feature."""
    observed = ~np.isnan(first)
    a, b = (np.where(observed, part - np.nanmean(part), 0.0) for part in (first, second))
    with np.errstate(divide="ignore", invalid="ignore"):
        count = weights @ observed
        mean_a, mean_b = weights @ a / count, weights @ b / count
        both = weights @ (a * b) / count - mean_a * mean_b
        size = (weights @ a**2 / count - mean_a**2) * (weights @ b**2 / count - mean_b**2)
        correlation = both / np.sqrt(size)
    return np.where(np.isfinite(correlation), np.clip(correlation, -1.0, 1.0), np.nan)


def _percentiles(spread: Array) -> tuple[Array, Array]:
    """Limits over the resamples that have a value; NaN where fewer than half do."""
    enough = 2 * (~np.isnan(spread)).sum(axis=0) >= len(spread)
    defined = np.where(enough, spread, 0.0)
    quantile = np.nanquantile if np.isnan(defined).any() else np.quantile
    low, high = quantile(defined, (0.025, 0.975), axis=0)
    return np.where(enough, low, np.nan), np.where(enough, high, np.nan)


def _auc(parts: list[Array], draws: list[Array]) -> tuple[Array, Array, Array]:
    """Chance that a subject of the second class is above one of the first, with its interval."""
    everyone = rankdata(np.concatenate(parts), axis=0, nan_policy="omit")
    counts = n0, n1 = [(~np.isnan(part)).sum(axis=0) for part in parts]
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.nansum(everyone[len(parts[0]) :], axis=0) - n1 * (n1 + 1) / 2
        auc = np.where(n0 * n1 > 0, above / (n0 * n1), np.nan)
        if len(parts[0]) * len(parts[1]) > _MOST_PAIRS:  # from placements among the other class
            variance = np.zeros(auc.size)
            ranks = np.split(everyone, [len(parts[0])])
            for part, among, n, n_other in zip(parts, ranks, counts, counts[::-1], strict=True):
                share = (among - rankdata(part, axis=0, nan_policy="omit")) / n_other
                mean = np.nansum(share, axis=0) / n
                variance += np.nansum((share - mean) ** 2, axis=0) / (n - 1) / n
            reach = _Z * np.sqrt(variance)
            return auc, np.clip(auc - reach, 0, 1), np.clip(auc + reach, 0, 1)
        # wins[f, i, j]: the second class's j against the first's i; 0 where one lacks it.
        first, second = parts[0].T[:, :, None], parts[1].T[:, None, :]
        wins = (second > first) + 0.5 * (second == first)
        flat = wins.transpose(1, 0, 2).reshape(len(parts[0]), -1).astype(np.float32)
        by_second = (draws[0].astype(np.float32) @ flat).reshape(-1, auc.size, len(parts[1]))
        total = np.einsum("bfj,bj->bf", by_second, draws[1].astype(np.float32), dtype=np.float64)
        pairs = (draws[0] @ ~np.isnan(parts[0])) * (draws[1] @ ~np.isnan(parts[1]))
        return auc, *_percentiles(np.where(pairs > 0, total / pairs, np.nan))


def ranking_frame(selector: Any) -> pd.DataFrame:
    """All features of a fitted :class:`IDFSMEC` or :class:`~idfsmec.IDFSMECCV`, best first.

    Returns
    -------
    DataFrame
        Columns ``rank, channel, feature, score, channel_weight, feature_weight, selected``, then
        those of ``effects_`` where the selector has them: ``n_subjects``, ``direction`` ("higher
        in MDD") and sizes with intervals.

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
