"""Scores of predictions by sample and by subject, with their intervals and Holm's correction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from scipy.stats import kendalltau, rankdata

Scores = dict[str, float]
Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
#: All scores that are reported, by name.
METRICS = (
    "accuracy",
    "balanced_accuracy",
    "f1",
    "roc_auc",
    "subject_accuracy",
    "subject_balanced_accuracy",
    "subject_roc_auc",
)
#: What tuning may maximise: those, and the log loss by subject with its sign turned.
CRITERIA = (*METRICS, "subject_neg_log_loss")
#: Those of a score by subject: R2 against the mean of training, correlations, and the mean
#: absolute error with that of this mean beside it.
SCORE_METRICS = (
    "subject_r2",
    "subject_spearman",
    "subject_pearson",
    "subject_mae",
    "subject_mae_of_mean",
)
#: What tuning may maximise for a score.
SCORE_CRITERIA = (*SCORE_METRICS[:3], "subject_neg_squared_error")
#: Level of each of two families of facts, so that both together are wrong in 5 % of studies; how
#: many times the p-value of a pair of facts counts; power of statements about what is found.
FACT_ALPHA, PAIR_WEIGHT, POWER = 0.025, 5.0, 0.8
#: By how much the variance of a share of subjects held out in folds exceeds that of independent
#: ones: each fold, and the final model, has a training set of its own. Chosen on one generator of
#: studies (``factors`` of benchmarks/quality/intervals.py), judged on others (docs/guarantees.md).
CROSS_VALIDATED = 1.5
#: Decisions of a linear SVM times this are log odds, roughly: at its margin it is sure by 88 %.
SVM_SLOPE = 2.0


def score_decisions(
    decisions: Floats,
    y: Codes,
    subjects: Codes,
    wanted: Sequence[str] = METRICS,
    slope: float = SVM_SLOPE,
) -> Scores:
    """Score decision values, of shape (n_samples, n_classes), in the ways that are ``wanted``.

    The class with the highest value is predicted; of equals, the first. ``slope`` makes log odds
    of decisions: 2 for a linear SVM, 1 for what gives log odds itself. Subjects are scored by the
    majority of their samples (accuracies) or by the mean of their decisions (AUC and log loss, in
    which classes count alike). Higher is better, NaN where a score is undefined.
    """
    by_sample = decisions.argmax(axis=1)
    by_majority: Any = None
    by_mean: Any = None
    if {"subject_accuracy", "subject_balanced_accuracy"} & set(wanted):
        by_majority = majority(decisions, y, subjects)
    if {"subject_roc_auc", "subject_neg_log_loss"} & set(wanted):
        by_mean = mean_decisions(decisions, y, subjects)
    compute: dict[str, Callable[[], float]] = {
        "accuracy": lambda: float((y == by_sample).mean()),
        "balanced_accuracy": lambda: balanced_accuracy(y, by_sample),
        "f1": lambda: _mean_f1(y, by_sample),
        "roc_auc": lambda: mean_auc(decisions, y),
        "subject_accuracy": lambda: float(np.equal(*by_majority).mean()),
        "subject_balanced_accuracy": lambda: balanced_accuracy(*by_majority),
        "subject_roc_auc": lambda: mean_auc(*by_mean),
        "subject_neg_log_loss": lambda: -float(_log_loss(*by_mean, slope=slope)),
    }
    return {name: compute[name]() for name in wanted}


def score_each(
    decisions: Floats, y: Codes, subjects: Codes, wanted: Sequence[str], slope: float = SVM_SLOPE
) -> list[Scores]:
    """Score decisions of shape (n_sets, n_samples, n_classes), each set on its own."""
    if list(wanted) == ["subject_neg_log_loss"]:  # tuning asks for it alone, of hundreds of sets
        losses = _log_loss(*mean_decisions(decisions, y, subjects), slope=slope)
        return [{"subject_neg_log_loss": -float(loss)} for loss in losses]
    return [score_decisions(of_set, y, subjects, wanted, slope) for of_set in decisions]


def score_predictions(
    predicted: Floats, y: Floats, subjects: Codes, trained: Floats, wanted: Sequence[str]
) -> Scores:
    """Score predictions of a score, (n_samples,), by subject: by their means over its samples.

    ``trained`` are the scores of the subjects of training. R2 is by how much the squared error is
    below that of their mean, as a share of what that mean's is expected to be: the few subjects of
    a fold vary more or less by chance, and averages of ratios to that would be too low. R2 is
    negative where predictions are worse. Correlations are NaN where all predictions are equal.
    """
    means, true = mean_by_subject(np.stack([predicted, y], axis=1), subjects).T
    errors, from_mean = true - means, true - trained.mean()
    expected = trained.var(ddof=1) * (1 + 1 / trained.size)

    def correlation(first: Floats, second: Floats) -> float:
        a, b = first - first.mean(), second - second.mean()
        size = np.sqrt((a @ a) * (b @ b))
        near = 1e-12 * true.size * max(np.abs(first).max() * np.abs(second).max(), 1e-300)
        return float(np.clip(a @ b / size, -1, 1)) if size > near else float("nan")

    compute: dict[str, Callable[[], float]] = {
        "subject_r2": lambda: float((from_mean**2 - errors**2).mean() / expected),
        "subject_spearman": lambda: correlation(rankdata(means), rankdata(true)),
        "subject_pearson": lambda: correlation(means, true),
        "subject_mae": lambda: float(np.abs(errors).mean()),
        "subject_mae_of_mean": lambda: float(np.abs(from_mean).mean()),
        "subject_neg_squared_error": lambda: -float(errors @ errors) / errors.size,
    }
    return {name: compute[name]() for name in wanted}


def score_grades(predicted: Floats, true: Codes, n_grades: int) -> Scores:
    """Score numbers predicted for grades, which are codes from 0, one of each subject.

    ``grade_kappa`` is Cohen's kappa of the nearest grades with quadratic weights (Psychological
    Bulletin 70, 213-220, 1968), ``grade_auc`` the mean AUC over the cuts between neighbouring
    grades. NaN where a score is undefined.
    """
    nearest = np.clip(np.round(predicted), 0, n_grades - 1).astype(np.intp)
    apart = (nearest - true) ** 2
    by_chance = (nearest[:, None] - true[None]) ** 2
    cuts = [auc(predicted, true >= cut) for cut in range(1, n_grades)]
    defined = [value for value in cuts if np.isfinite(value)]
    return {
        "grade_kappa": float(1 - apart.mean() / by_chance.mean()) if by_chance.any() else np.nan,
        "grade_auc": float(np.mean(defined)) if defined else np.nan,
    }


def mean_by_subject(values: Floats, subjects: Codes) -> Floats:
    """Return the means over the samples of each subject, in order of the codes."""
    member = np.unique(subjects, return_inverse=True)[1]
    sums = np.zeros((member.max() + 1, *values.shape[1:]))
    np.add.at(sums, member, values)
    return np.asarray((sums.T / np.bincount(member)).T)


def majority(decisions: Floats, y: Codes, subjects: Codes) -> tuple[Codes, Codes]:
    """Return true and predicted class by subject: that of most samples, in order of the codes.

    Of equally many, the larger mean of decisions wins.
    """
    votes = np.eye(decisions.shape[1])[decisions.argmax(axis=1)]
    (shares, strength), true = mean_decisions(np.stack([votes, decisions]), y, subjects)
    leading = shares == shares.max(axis=1, keepdims=True)
    return true, np.where(leading, strength, -np.inf).argmax(axis=1)


def mean_decisions(decisions: Floats, y: Codes, subjects: Codes) -> tuple[Floats, Codes]:
    """Average the decisions, of shape ([n_sets, ]n_samples, n_classes), of each subject.

    Also returns the class that most of a subject's samples have; both in order of the codes.
    """
    member = np.unique(subjects, return_inverse=True)[1]
    *sets, _, n_classes = decisions.shape
    counts = np.bincount(member)
    sums = np.zeros((counts.size, *sets, n_classes))
    np.add.at(sums, member, np.moveaxis(decisions, -2, 0))
    true = np.bincount(member * n_classes + y, minlength=counts.size * n_classes)
    means = np.moveaxis(sums, 0, -2) / counts[:, None]
    return means, true.reshape(-1, n_classes).argmax(axis=1)


# scikit-learn's functions give the same numbers, but check their input: they take 20 to 130 times
# as long as these, and tuning scores hundreds of sets of decisions in every fold.
def balanced_accuracy(true: Codes, predicted: Codes) -> float:
    """Return the mean recall over the classes that occur."""
    return float(np.mean([(predicted[true == k] == k).mean() for k in np.unique(true)]))


def _mean_f1(true: Codes, predicted: Codes) -> float:
    scores = []
    for k in np.union1d(true, predicted):
        both = (true == k).sum() + (predicted == k).sum()
        scores.append(2 * ((true == k) & (predicted == k)).sum() / both)
    return float(np.mean(scores))


def _log_loss(decisions: Floats, y: Codes, *, slope: float) -> Floats:
    """Mean over the classes that occur of the mean log loss, with softmax as probabilities."""
    log_odds = slope * decisions
    losses = special.logsumexp(log_odds, axis=-1) - log_odds[..., np.arange(y.size), y]
    of_classes = [losses[..., y == k].mean(axis=-1) for k in np.unique(y)]
    return np.asarray(np.mean(of_classes, axis=0))


def mean_auc(decisions: Floats, y: Codes) -> float:
    """Return the AUC of decisions of shape (n, n_classes), the mean over the classes."""
    n_classes = decisions.shape[1]
    if n_classes == 2:
        return auc(decisions[:, 1] - decisions[:, 0], y == 1)
    return float(np.mean([auc(decisions[:, k], y == k) for k in range(n_classes)]))


def auc(values: Floats, positive: NDArray[np.bool_]) -> float:
    """Return the share of pairs in the right order, ties half; NaN if a class or a value lacks."""
    inside, outside = values[positive], np.sort(values[~positive])
    if not (inside.size and outside.size) or np.isnan(values).any():
        return float("nan")
    won = sum(np.searchsorted(outside, inside, side).sum() for side in ("left", "right"))
    return float(won / 2 / (inside.size * outside.size))


def concordance(values: Floats, score: Floats) -> float:
    """Return the share of pairs with different scores whose values are in their order, ties half.

    Of two classes it is the AUC; of scores (1 + Somers' D) / 2, Harrell's C. NaN without such
    pairs.
    """
    if np.ptp(score) == 0 or np.isnan(values).any():
        return float("nan")
    if np.ptp(values) == 0:
        return 0.5
    n_pairs = [
        score.size * (score.size - 1) - (counts * (counts - 1)).sum()
        for counts in (np.unique(column, return_counts=True)[1] for column in (values, score))
    ]
    return float(
        0.5 + 0.5 * kendalltau(values, score).statistic * np.sqrt(n_pairs[0] / n_pairs[1])
    )


def auc_from_ranks(ranks: Floats, member: Floats) -> Floats:
    """Return the AUC of each column for many labellings at once, from ranks.

    ``ranks`` is of shape (n_subjects, n_columns), ``member`` (n_labellings, n_classes,
    n_subjects): 1 where a subject is of the class, which is held against the rest. The result is
    of shape (n_labellings, n_classes, n_columns).
    """
    inside = member.sum(axis=-1, keepdims=True)
    above = member @ ranks - inside * (inside + 1) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(above / (inside * (member.shape[-1] - inside)))


def auc_variance(value: float, n_positive: float, n_negative: float) -> float:
    """Return the variance of an AUC (Hanley and McNeil, Radiology 143, 29-36, 1982)."""
    first, second = value / (2 - value) - value**2, 2 * value**2 / (1 + value) - value**2
    variance = value * (1 - value) + (n_positive - 1) * first + (n_negative - 1) * second
    return max(variance, 0.0) / (n_positive * n_negative)


def detectable_auc(
    n_positive: float, n_negative: float, critical_p: float, power: float = POWER
) -> float:
    """Return the smallest AUC of a fact that a rank test finds with this power.

    Examples
    --------
    >>> round(detectable_auc(40, 40, 0.05), 2)
    0.68
    """
    reach = -special.ndtri(critical_p / 2)
    at_chance = np.sqrt((n_positive + n_negative + 1) / (12 * n_positive * n_negative))
    low, high = 0.5, 1.0
    for _ in range(50):  # bisection
        auc = (low + high) / 2
        spread = np.sqrt(auc_variance(auc, n_positive, n_negative))
        is_found = auc - 0.5 >= reach * at_chance + special.ndtri(power) * spread
        low, high = (low, auc) if is_found else (auc, high)
    return high


def expected_critical_p(n_facts: int) -> float:
    """Return about which p-value a single test has to reach in a family of so many facts.

    Facts count twice, for values and extremes, and pairs by their weight, as if independent.

    Examples
    --------
    >>> round(expected_critical_p(10), 5)
    0.00086
    """
    n_pairs = n_facts * (n_facts - 1) / 2
    return FACT_ALPHA / max(2 * n_facts + n_pairs / PAIR_WEIGHT, 1)


def concordance_interval(value: float, n: int) -> tuple[float, float]:
    """Return a 95 % CI of a concordance, by Fisher's z of Kendall's tau.

    Its variance is 0.437 / (n - 4) (Fieller, Hartley and Pearson, Biometrika 44, 470-481, 1957).
    """
    if not np.isfinite(value) or n < 5:
        return float("nan"), float("nan")
    z = np.arctanh(np.clip(2 * value - 1, -1 + 1e-9, 1 - 1e-9))
    ends = z + np.array([-1, 1]) * special.ndtri(0.975) * np.sqrt(0.437 / (n - 4))
    low, high = (1 + np.tanh(ends)) / 2
    return float(low), float(high)


def auc_interval(
    value: float, n_positive: int, n_negative: int, n_looks: int = 1
) -> tuple[float, float]:
    """Return a 95 % CI of an AUC, by Newcombe's fifth method (Stat. Med. 25, 559-573, 2006).

    An AUC of 1 among few subjects has an interval of some length, where resampling gives none.
    For the best of ``n_looks`` AUCs it holds for whichever that is (Bonferroni).
    """
    low, high = auc_intervals(
        np.array([value]), np.array([n_positive]), np.array([n_negative]), n_looks
    )
    return float(low[0]), float(high[0])


def auc_intervals(
    values: Floats, n_positive: NDArray[Any], n_negative: NDArray[Any], n_looks: int = 1
) -> tuple[Floats, Floats]:
    """Return :func:`auc_interval` of several AUCs."""
    values = np.where(np.minimum(n_positive, n_negative) > 0, values, np.nan)
    extra, n_pairs = (n_positive + n_negative) / 2 - 1, np.maximum(n_positive * n_negative, 1)
    z = float(special.ndtri(1 - 0.025 / n_looks))
    limits = []
    for bound in (0.0, 1.0):
        near, far = values, np.where(np.isnan(values), np.nan, bound)
        for _ in range(60):  # bisection
            middle = (near + far) / 2
            spread = 1 + extra * ((1 - middle) / (2 - middle) + middle / (1 + middle))
            variance = middle * (1 - middle) * spread / n_pairs
            is_beyond = (values - middle) ** 2 > z**2 * variance
            near, far = np.where(is_beyond, near, middle), np.where(is_beyond, middle, far)
        limits.append((near + far) / 2)
    return limits[0], limits[1]


def fixed_auc(values: Floats, positive: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return the AUC of a fixed model, and its 95 % CI over subjects.

    Wilson's, with the effective number of subjects that follows from DeLong's variance (DeLong,
    DeLong and Clarke-Pearson, Biometrics 44, 837-845, 1988), at most twice the smaller class, and
    Welch's degrees of freedom. Newcombe's holds less often where the spread of the classes and
    their sizes differ (benchmarks/quality/validation.py).
    """
    value, sides = auc(values, positive), (values[positive], values[~positive])
    sizes = np.array([side.size for side in sides])
    if not np.isfinite(value) or sizes.min() < 2:
        return value, *auc_interval(value, int(sizes[0]), int(sizes[1]))
    variances = np.empty(2)
    for place, (side, others) in enumerate((sides, sides[::-1])):
        others = np.sort(others)
        below = np.searchsorted(others, side) + np.searchsorted(others, side, "right")
        variances[place] = (below / (2 * others.size)).var(ddof=1) / side.size
    total = float(variances.sum())
    df = total**2 / (variances**2 / (sizes - 1)).sum() if total else sizes.min() - 1
    _, low, high = share_interval(value, np.sqrt(total), df, 2 * sizes.min())
    return value, low, high


def draw_within_classes(y: Codes, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Draw subjects anew within their classes: how often each, of shape (n_resamples, n)."""
    counts = np.zeros((n_resamples, y.size))
    for k in np.unique(y):
        members = np.flatnonzero(y == k)
        shares = np.full(members.size, 1 / members.size)
        counts[:, members] = rng.multinomial(members.size, shares, n_resamples)
    return counts


def weighted_aucs(
    decisions: Floats, y: Codes, weights: Floats, near: NDArray[np.bool_] | None = None
) -> Floats:
    """Return the AUC, mean over the classes, for each weighting of the subjects (a row each).

    It is the share of pairs in the right order, ties half; where ``near`` is given, of shape
    (n_subjects, n_subjects), only of pairs for which it is true.
    """
    n_classes, aucs = decisions.shape[1], []
    for k in range(n_classes):
        values = decisions[:, k] - (decisions[:, 1 - k] if n_classes == 2 else 0.0)
        above, below = values[y == k, None], values[y != k]
        pairs = np.ones((above.size, below.size))
        if near is not None:
            pairs = near[np.ix_(y == k, y != k)].astype(float)
        inside, outside = weights[:, y == k], weights[:, y != k]
        won = (inside @ (pairs * ((above > below) + 0.5 * (above == below)))) * outside
        with np.errstate(divide="ignore", invalid="ignore"):
            aucs.append(won.sum(axis=1) / ((inside @ pairs) * outside).sum(axis=1))
    return np.asarray(np.mean(aucs, axis=0))


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """A mean of ``n`` scores of folds with its 95 % CI; the ends are NaN for a single fold."""

    mean: float
    low: float
    high: float
    standard_error: float
    n: int
    degrees_of_freedom: int


def fold_interval(scores: ArrayLike, n_subjects: float | None = None) -> MeanInterval:
    """Return the mean of a score over folds and repeats, with a 95 % CI for new subjects.

    Parameters
    ----------
    scores : array-like of shape (n_repeats, n_splits)
        The score of each fold; one row without repeats. NaN where a fold has none. To compare two
        methods, give their differences fold by fold.
    n_subjects : float, optional
        Number of subjects, for scores from 0 to 1: the interval is then Wilson's with an effective
        number of subjects, stays within 0 and 1, and is no point where all folds are perfect.

    Returns
    -------
    MeanInterval

    Notes
    -----
    Training sets share samples. Nadeau and Bengio [1]_ therefore replace ``1 / J`` in the variance
    of the mean of J scores by ``1 / J + n_test / n_train``, and k folds have
    ``n_test / n_train = 1 / (k - 1)``. Repeats split the same subjects again: they add no degrees
    of freedom, which are k - 1 for any number of them. In simulations this interval held the
    performance of the final model on new subjects, where ``J - 1`` degrees of freedom, resampling
    of fixed predictions and the influence curves of [2]_ did not (docs/guarantees.md).

    References
    ----------
    .. [1] Nadeau, Bengio, "Inference for the generalization error", Machine Learning 52, 2003.
    .. [2] LeDell, Petersen, van der Laan, "Computationally efficient confidence intervals for
       cross-validated area under the ROC curve estimates", Electron. J. Stat. 9, 2015.

    Examples
    --------
    >>> interval = fold_interval([0.7, 0.8, 0.9, 0.8, 0.7], n_subjects=50)
    >>> round(interval.mean, 2), round(interval.low, 2), round(interval.high, 2)
    (0.78, 0.59, 0.9)
    """
    folds = np.atleast_2d(np.asarray(scores, dtype=float))
    values = folds[~np.isnan(folds)]
    if folds.ndim != 2 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(
            "scores must have a row for each repeat, a column for each fold and one finite number."
        )
    n_splits = int((~np.isnan(folds)).any(axis=0).sum())
    mean = float(values.mean())
    if n_splits == 1:
        return MeanInterval(mean, np.nan, np.nan, np.nan, values.size, 0)
    error = float(np.sqrt((1 / values.size + 1 / (n_splits - 1)) * values.var(ddof=1)))
    if n_subjects is None:
        t = float(special.stdtrit(n_splits - 1, 0.975))
        low, high = mean - t * error, mean + t * error
    else:
        error, low, high = share_interval(mean, error, n_splits - 1, n_subjects)
    return MeanInterval(mean, float(low), float(high), error, values.size, n_splits - 1)


def share_interval(
    mean: float, error: float, df: float, n_subjects: float
) -> tuple[float, float, float]:
    """Return the standard error of a score from 0 to 1, at least a share's, and its 95 % CI.

    Wilson's, with the number of independent subjects that would give this standard error and a
    quantile of t.
    """
    shrunk = (mean * n_subjects + 1) / (n_subjects + 2)
    error = max(error, float(np.sqrt(shrunk * (1 - shrunk) / n_subjects)))
    n_effective = shrunk * (1 - shrunk) / error**2
    t = float(special.stdtrit(df, 0.975))
    low, high = wilson_interval(mean * n_effective, n_effective, t)
    return error, min(low, mean), max(high, mean)  # the mean itself may round out of it


def auc_by_fold(decisions: Floats, y: Codes, fold_of: Codes) -> Floats:
    """Return the AUC of the subjects of each fold, mean over the classes that occur there.

    Decisions have the shape (n_subjects, n_classes); a fold of one class has NaN. With one column
    y is a score, and the AUC the concordance.
    """
    aucs = []
    for fold in np.unique(fold_of):
        here = fold_of == fold
        if decisions.shape[1] == 1:
            aucs.append(concordance(decisions[here, 0], y[here]))
            continue
        classes, codes = np.unique(y[here], return_inverse=True)
        several = classes.size > 1
        aucs.append(mean_auc(decisions[here][:, classes], codes) if several else np.nan)
    return np.array(aucs)


def wilson_interval(hits: float, n: float, z: float = 1.959963984540054) -> tuple[float, float]:
    """Return Wilson's 95 % CI of a share of n; hits may be a mean over repetitions."""
    # SciPy's binomtest(hits, n).proportion_ci(method="wilson") takes whole numbers only.
    share, extra = hits / n, z**2 / n
    centre = (share + extra / 2) / (1 + extra)
    half = z * np.sqrt(share * (1 - share) / n + extra / (4 * n)) / (1 + extra)
    return max(float(centre - half), 0.0), min(float(centre + half), 1.0)


def diagnostic_scores(
    positive: NDArray[np.bool_],
    flagged: NDArray[np.bool_],
    prevalence: float,
    inflation: float = 1.0,
) -> dict[str, dict[str, float]]:
    """Return sensitivity, specificity and predictive values of subjects, with 95 % CIs.

    The variance of a share is that of independent subjects times ``inflation``, such as
    :data:`CROSS_VALIDATED`. Predictive values are those at the given prevalence. They follow from
    likelihood ratios, whose CIs follow from Wilson's of both shares (MOVER-R: Newcombe,
    Statistical Methods in Medical Research 25, 1774-1791, 2016). What needs a class that is not
    there is left out.
    """
    n_ill, n_well = int(positive.sum()), int((~positive).sum())
    hits, alarms = int(flagged[positive].sum()), int(flagged[~positive].sum())
    scores: dict[str, tuple[float, float, float]] = {}
    if n_ill:
        scores["sensitivity"] = hits / n_ill, *_share_limits(hits, n_ill, inflation)
    if n_well:
        limits = _share_limits(n_well - alarms, n_well, inflation)
        scores["specificity"] = 1 - alarms / n_well, *limits
    odds = prevalence / (1 - prevalence)
    if n_ill and n_well and hits + alarms:
        low, ratio, high = _ratio_of_shares(hits, n_ill, alarms, n_well, inflation)
        value, *ends = (1 - 1 / (1 + odds * of) for of in (ratio, low, high))
        scores["PPV"] = value, ends[0], ends[1]
    if n_ill and n_well and hits + alarms < n_ill + n_well:
        missed = n_ill - hits, n_ill, n_well - alarms, n_well
        low, ratio, high = _ratio_of_shares(*missed, inflation)
        value, *ends = (1 / (1 + odds * of) for of in (ratio, high, low))
        scores["NPV"] = value, ends[0], ends[1]
    names = ("mean", "low", "high")
    return {name: dict(zip(names, score, strict=True)) for name, score in scores.items()}


def _share_limits(hits: int, n: int, inflation: float) -> tuple[float, float]:
    return wilson_interval(hits / inflation, n / inflation)


def _ratio_of_shares(
    hits: int, n: int, alarms: int, m: int, inflation: float
) -> tuple[float, float, float]:
    """Return the ratio of two shares between the ends of its 95 % CI; infinite over 0."""
    p, q = hits / n, alarms / m
    p_low, p_high = _share_limits(hits, n, inflation)
    q_low, q_high = _share_limits(alarms, m, inflation)
    least, below = p_low * (2 * p - p_low), q_high * (2 * q - q_high)
    root = np.sqrt(max((p * q) ** 2 - least * below, 0.0))
    low = least / (p * q + root) if least else 0.0
    if not alarms:
        return float(low), np.inf, np.inf
    above = q_low * (2 * q - q_low)
    high = (p * q + np.sqrt(max((p * q) ** 2 - p_high * (2 * p - p_high) * above, 0.0))) / above
    return float(low), p / q, float(high)


def net_benefit(
    positive: NDArray[np.bool_],
    probability: Floats,
    threshold: float,
    prevalence: float,
    inflation: float = 1.0,
) -> dict[str, float]:
    """Return the net benefit of acting on probabilities from a threshold on, with its 95 % CI.

    ``all`` is that of acting on every subject (Vickers and Elkin, Medical Decision Making 26,
    565-574, 2006). The CI follows from Wilson's of both shares (MOVER); ``inflation`` as in
    :func:`diagnostic_scores`.
    """
    flagged, n = probability >= threshold, np.array([positive.sum(), (~positive).sum()])
    hits = np.array([flagged[positive].sum(), flagged[~positive].sum()])
    shares = hits / n
    limits = np.array([_share_limits(*of, inflation) for of in zip(hits, n, strict=True)])
    cost = threshold / (1 - threshold) * (1 - prevalence)
    (down, up), (fewer, more) = np.abs(limits - shares[:, None])
    value = prevalence * shares[0] - cost * shares[1]
    return {
        "threshold": threshold,
        "mean": float(value),
        "low": float(value - np.hypot(prevalence * down, cost * more)),
        "high": float(value + np.hypot(prevalence * up, cost * fewer)),
        "all": prevalence - cost,
    }


def holm(p_values: ArrayLike) -> Floats:
    """Adjust p-values so that the chance of any false alarm stays at the level (Holm 1979)."""
    p = np.asarray(p_values, dtype=float)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError("p_values must be a list of numbers between 0 and 1.")
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    return np.asarray(np.minimum(steps, 1)[np.argsort(order)])


#: From this share of the classes' difference on, sites and labels are called confounded.
CONFOUNDED = 0.25


def site_confounding(counts: ArrayLike) -> float:
    """Return the share of the labels' variance that sites explain, Goodman and Kruskal's tau.

    Taking out the sites' means takes out as much of what the classes differ by. ``counts`` is of
    shape (n_sites, n_classes).
    """
    table = np.asarray(counts, dtype=np.float64)
    table = table[table.sum(axis=1) > 0]
    sizes = table.sum(axis=1)
    spread = 1 - np.sum((table.sum(axis=0) / table.sum()) ** 2)
    within = sizes / table.sum() @ (1 - np.sum((table / sizes[:, None]) ** 2, axis=1))
    return float(1 - within / spread) if spread > 0 else 0.0


def describe_confounding(share: float) -> str:
    """Return a warning, or nothing where sites have their share of each class."""
    if share < CONFOUNDED:
        return ""
    return (
        f"site and label are confounded: {100 * share:.0f} % of the difference between classes "
        "lies between sites, and harmonizing removes it together with the sites' effects. Run "
        "idfsmec audit on the table, and compare with a run without harmonizing."
    )
