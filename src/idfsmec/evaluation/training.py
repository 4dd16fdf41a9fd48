"""Train a model on a table, and measure it on held-out subjects."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._parallel import count_jobs, run_tasks
from idfsmec._validation import derive_seed
from idfsmec.errors import InputError
from idfsmec.evaluation.agreement import measure_scores
from idfsmec.evaluation.clinical import (
    calibration_groups,
    check_prevalence,
    subject_groups,
    summarise_classes,
    summarise_clinical,
)
from idfsmec.evaluation.results import judge_site
from idfsmec.metrics import (
    Codes,
    Floats,
    auc_by_fold,
    balanced_accuracy,
    fold_interval,
    mean_by_subject,
    mean_decisions,
)
from idfsmec.prediction.adjuster import Corrections, correct_table, make_corrections
from idfsmec.prediction.calibration import Calibration
from idfsmec.prediction.folds import Fold, FoldUnit, make_folds, most_splits
from idfsmec.prediction.methods import find_methods
from idfsmec.prediction.model import (
    Model,
    fit_estimator,
    fit_model,
    rows_with_a_channel,
    taking_missing,
)
from idfsmec.progress import Listener, Steps
from idfsmec.selection import choose_electrodes
from idfsmec.table import FeatureTable

#: Shares of the channels that are left to the subjects held out, for what becomes of the AUC.
SHARES = (1.0, 0.75, 0.5, 0.25)


def train_model(
    table: FeatureTable,
    estimator: Any = None,
    *,
    electrodes: int | None = None,
    folds: FoldUnit = "subject",
    harmonize: bool | str = False,
    adjust: Sequence[str] = (),
    adjust_from: str | None = None,
    n_splits: int | None = None,
    n_repeats: int = 3,
    seed: int = 0,
    n_jobs: int | None = None,
    prevalence: float | None = None,
    remember_participants: bool = False,
    audit: Mapping[str, str] | None = None,
    progress: Listener | None = None,
) -> Model:
    """Fit a classifier, or a regressor of a score, to a table; measure it on held-out subjects.

    Parameters
    ----------
    table : FeatureTable
    estimator : str or classifier, optional
        The name of a method of the registry, which is tuned
        (:class:`~idfsmec.prediction.TunedPipeline`), or a classifier, as in
        :func:`idfsmec.prediction.fit_model`.
    electrodes : int, optional
        Use so many electrodes only (:func:`idfsmec.selection.choose_electrodes`). Folds choose
        them anew, each by its training subjects.
    folds : {"subject", "site"}, default="subject"
        Whether subjects are held out, or one site after the other.
    harmonize : bool or str, default=False
        Whether sites are brought to one location and scale, learned from the subjects trained on,
        or from those of the class named, such as ``"HC"``; the model keeps what was learned.
    adjust, adjust_from
        Covariates whose effect is taken out, as in :func:`idfsmec.prediction.fit_model`; folds
        learn it from the subjects trained on.
    n_splits : int, optional
        Folds that keep subjects together, in proportion to the classes. By default 10, or as many
        as the smallest class has subjects. By site there is one fold for each.
    n_repeats : int
        How often folds are drawn anew; by site once.
    seed : int
        Of folds and of channels taken away.
    n_jobs : int, optional
        Folds that are worked on at the same time, as in joblib: -1 is one per core.
    prevalence : float, optional
        How frequent the second of two classes is where the model is to be used, for predictive
        values and the decision curve; by default as in the table.
    remember_participants : bool, default=False
        As in :func:`idfsmec.prediction.fit_model`.
    audit : mapping, optional
        The verdict of an audit of the table, :attr:`idfsmec.audit.Audit.verdict`: the model keeps
        it, and its card and predictions repeat it.
    progress : callable, optional
        Called when the work begins and when a fold has ended.

    Returns
    -------
    Model
        ``performance`` has, by subject: ``metrics`` (``roc_auc`` and ``balanced_accuracy``, each
        the mean over folds and repetitions, its interval for new subjects as in
        :func:`idfsmec.metrics.fold_interval`, and ``chance``),
        ``calibration`` (probabilities against shares), ``clinical`` for two classes (sensitivity,
        specificity and predictive values, also by sex, age group and site where ``rows`` know
        them, and the decision curve), ``by_class`` for more (each against the rest, and the
        confusion matrix), ``by_share`` (AUC when so many of the channels are left to
        the subjects held out) and ``held_out`` (subjects without their names: ``left``,
        probabilities for each share of channels; ``true``, classes; ``n_splits``, the number of
        folds; ``prior``, how frequent classes are taken to be; ``calibrated``, as a prediction
        would be, by the other subjects).
        Of a score, ``metrics`` are R2 against the mean of the subjects trained on, correlations
        and the mean absolute error (``chance`` is that of this mean), of grades also weighted
        kappa and the mean AUC of the cuts between neighbours; ``calibration`` has the
        slope, and ``held_out`` the ``reach`` of prediction intervals for each share of channels.
        With folds by site also ``by_site``: for each its ``n_subjects``, ``accuracy`` by subject
        with an interval, and ``chance``, the share of the larger class.

    Raises
    ------
    InputError
        There is one class only, or one with a single subject or with fewer than ``n_splits``; the
        prevalence is no share.
    """
    check_prevalence(prevalence)
    numeric = table.target.is_numeric
    if isinstance(estimator, str):
        (method,) = find_methods([estimator])
        whole = method.is_whole
        estimator = method.build() if whole else method.pipeline(folds=folds, numeric=numeric)
    table = rows_with_a_channel(table)
    sampled = table.targets, table.subjects
    if folds not in ("subject", "site"):
        raise InputError(f"folds is {folds!r}; choose 'subject' or 'site'", argument="folds")
    if folds == "site":  # nothing is drawn, so there is one repetition
        repeats = [make_folds(*sampled, folds, sites=table.sites, numeric=numeric)]
    else:
        if n_splits is None:
            most = most_splits(*sampled, numeric=numeric)
            n_splits = min(10, max(most // 2 if numeric else most, 2))
        seeds = [derive_seed("model", seed, repeat) for repeat in range(n_repeats)]
        repeats = [make_folds(*sampled, folds, n_splits, s, numeric=numeric) for s in seeds]
    classes = np.empty(0) if numeric else table.y.unique()
    corrections = make_corrections(classes, harmonize, adjust, adjust_from)
    used = _use_electrodes(table, electrodes, corrections)
    model = fit_model(
        used,
        estimator,
        harmonize=harmonize,
        adjust=adjust,
        adjust_from=adjust_from,
        remember_participants=remember_participants,
    )
    tasks = [
        (repeat, fold, derive_seed("channels", seed, repeat))
        for repeat, splits in enumerate(repeats)
        for fold in splits
    ]
    n_columns = max(len(model.classes), 1)  # a score is one
    probabilities = np.full((len(repeats), len(SHARES), len(table), n_columns), np.nan)
    fold_of = np.zeros((len(repeats), len(table)), dtype=np.intp)
    for repeat, splits in enumerate(repeats):
        for fold, (_, test) in enumerate(splits):
            fold_of[repeat, test] = fold
    options = {"estimator": estimator, "electrodes": electrodes, "corrections": corrections}
    work, steps = (
        partial(_predict_fold, table=table, **options),
        Steps("folds", len(tasks), progress),
    )
    for position, values in run_tasks(work, tasks, n_jobs=count_jobs(n_jobs)):
        repeat, (_, test), _ = tasks[position]
        probabilities[repeat][:, test] = values
        steps.done()
    protocol = {
        "folds": folds,
        "n_splits": len(repeats[0]),
        "n_repeats": len(repeats),
        "seed": seed,
        **({"harmonize": harmonize} if harmonize else {}),
        **({"adjust": list(adjust)} if adjust else {}),
        **({"adjust_from": adjust_from} if adjust_from else {}),
        **({"electrodes": electrodes} if electrodes else {}),
    }
    by_site = folds == "site"
    performance = _measure(model, table, probabilities, fold_of, by_site, prevalence)
    performance |= _use(model, used)
    return replace(model, protocol=protocol, performance=performance, audit=dict(audit or {}))


def _use_electrodes(
    table: FeatureTable, electrodes: int | None, corrections: Corrections
) -> FeatureTable:
    """Keep the electrodes with the largest weights in a table; None keeps all."""
    if electrodes is None:
        return table
    corrected = correct_table(table, corrections) if corrections else table
    return table.select_channels(choose_electrodes(corrected, electrodes))


def _predict_fold(
    task: tuple[int, Fold, int],
    *,
    table: FeatureTable,
    estimator: Any,
    electrodes: int | None,
    corrections: Corrections,
) -> Floats:
    """Fit on one side of a fold, and predict the other with fewer and fewer channels."""
    _, (train, test), seed = task
    with warnings.catch_warnings():
        # What concerns all subjects was said when the whole table was fitted.
        warnings.simplefilter("ignore")
        seen = rows_with_a_channel(_use_electrodes(table.take(train), electrodes, corrections))
        fitted, learned = fit_estimator(estimator, seen, corrections)
        held_out = table.take(test)
        held_out = replace(held_out, X=held_out.X[seen.X.columns])
        left = (_leave_channels(held_out, share, seed) for share in SHARES)
        new = (learned.apply_to(replace(held_out, X=X)) for X in left)
        with taking_missing(estimator):
            if table.target.is_numeric:
                return np.stack([np.asarray(fitted.predict(X))[:, None] for X in new])
            return np.stack([fitted.predict_proba(X) for X in new])


def _leave_channels(table: FeatureTable, share: float, seed: int) -> pd.DataFrame:
    """Leave each subject a random share of the channels."""
    if share == 1.0:
        return table.X
    channel, channels = pd.factorize(np.array(table.column_channels))
    keep = max(round(share * channels.size), 1)
    names, member = np.unique(table.subjects.to_numpy().astype(str), return_inverse=True)
    left = np.zeros((names.size, channels.size), dtype=bool)
    for row, name in enumerate(names):
        rng = np.random.default_rng(derive_seed("left", name, seed))
        left[row, rng.permutation(channels.size)[:keep]] = True
    return table.X.where(left[member][:, channel])


def _use(model: Model, table: FeatureTable) -> dict[str, Any]:
    """Return the channels with the largest contributions, and the best features."""
    use: dict[str, Any] = {"channels": {}, "features": {}}
    if hasattr(model.estimator, "channel_votes"):
        X = model.corrections.apply_to(table)
        votes = np.abs(np.asarray(model.estimator.channel_votes(X)))
        observed, axes = ~np.isnan(votes), (0, *range(2, votes.ndim))
        counts = np.maximum(observed.sum(axis=axes), 1)
        use["channels"] = _largest(model.channels, np.nansum(votes, axis=axes) / counts)
    if hasattr(model.estimator, "scores_"):
        use["features"] = _largest(model.columns, np.asarray(model.estimator.scores_))
    return use


def _largest(names: Sequence[str], values: Floats, most: int = 20) -> dict[str, float]:
    order = np.argsort(-values, kind="stable")[:most]
    return {names[i]: float(values[i]) for i in order if values[i] > 0}


def _measure(
    model: Model,
    table: FeatureTable,
    probabilities: Floats,
    fold_of: Codes,
    by_site: bool,
    prevalence: float | None,
) -> dict[str, Any]:
    """Return the ``performance`` of a model on held-out subjects, in order of their names."""
    names = table.subjects.to_numpy().astype(str)
    _, first, member = np.unique(names, return_index=True, return_inverse=True)
    if model.score is not None:
        means = np.moveaxis(probabilities[..., 0], -1, 0)
        by_subject = np.moveaxis(mean_by_subject(means, member), 0, -1)
        true = mean_by_subject(table.targets, member)
        n_grades = len(table.target.order)
        return measure_scores(by_subject, true, fold_of[:, first], SHARES, n_grades)
    codes = np.searchsorted(model.estimator.classes_, table.y.to_numpy())
    # Means over epochs, (n_repeats, n_shares, n_subjects, n_classes).
    by_subject, y = mean_decisions(probabilities, codes, member)
    held_out = {
        "true": y.tolist(),
        "n_splits": int(fold_of.max()) + 1,
        "prior": model.prior,  # how frequent the model takes classes to be
        "shares": list(SHARES),
        "left": by_subject.mean(axis=0).round(6).tolist(),
    }
    # As predictions give them, each by the other subjects.
    calibrated = Calibration(held_out).leave_one_out()
    predicted, chance = calibrated.argmax(axis=1), 1 / len(model.classes)
    fold_of = fold_of[:, first]
    aucs = [
        _interval(
            [auc_by_fold(of, y, folds) for of, folds in zip(repeats, fold_of, strict=True)], y
        )
        for repeats in by_subject.swapaxes(0, 1)
    ]
    recalls = [
        [
            balanced_accuracy(y[folds == fold], predicted[folds == fold])
            for fold in np.unique(folds)
        ]
        for folds in fold_of
    ]
    measured: dict[str, Any] = {
        "metrics": {
            "roc_auc": {**aucs[0], "chance": 0.5},
            "balanced_accuracy": {**_interval(recalls, y), "chance": chance},
        },
        "by_share": [{"share": share, **auc} for share, auc in zip(SHARES, aucs, strict=True)],
        "calibration": calibration_groups(calibrated, y, model.classes),
        "held_out": {**held_out, "calibrated": calibrated.round(6).tolist()},
    }
    if y.max() == 1:
        measured["clinical"] = summarise_clinical(
            model.classes[1],
            y == 1,
            calibrated[:, 1],
            model.prior[1],
            subject_groups(table),
            prevalence,
        )
    else:
        measured["by_class"] = summarise_classes(
            model.classes, y, calibrated, by_subject[:, 0], fold_of
        )
    if by_site:
        sites = np.asarray(table.sites).astype(str)[first]
        measured["by_site"] = rows = []
        for site in np.unique(sites):
            here = sites == site
            accuracy = float((predicted == y)[here].mean())
            counts = np.bincount(y[here]).tolist()
            judged = judge_site(counts, int(here.sum()), accuracy)
            rows.append({"site": str(site), **judged, "accuracy": accuracy})
    return measured


def _interval(scores: Sequence[Any], y: Codes) -> dict[str, float]:
    """Return the mean of a score by repetition and fold, with its 95 % CI."""
    ci = fold_interval(np.array(scores), y.size)
    return {"mean": ci.mean, "low": ci.low, "high": ci.high}
