"""A model and how well it does on people it has not seen: the whole fit, repeated on folds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec._columns import channel_codes, channel_columns
from idfsmec._jobs import count_jobs
from idfsmec._random import derive_seed
from idfsmec._workers import run_in_processes
from idfsmec.errors import InputError
from idfsmec.evaluation.folds import Fold, make_folds, most_splits
from idfsmec.evaluation.performance import SHARES, HeldOutPeople, measure
from idfsmec.evaluation.protocol import Folds
from idfsmec.prediction.harmonizer import harmonize_sites
from idfsmec.prediction.model import Model, fit_estimator, fit_model, rows_with_a_channel
from idfsmec.progress import Listener, Progress
from idfsmec.table import FeatureTable

Floats = NDArray[np.float64]


def train_model(
    table: FeatureTable,
    estimator: Any = None,
    *,
    folds: Folds = "subject",
    harmonize: bool = False,
    n_splits: int = 5,
    n_repeats: int = 3,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Listener | None = None,
) -> Model:
    """Fit a classifier to all people of a table, and measure it on people held out.

    Parameters
    ----------
    table : FeatureTable
    estimator : classifier, optional
        As in :func:`idfsmec.prediction.fit_model`.
    folds : {"subject", "site"}, default="subject"
        Whether people are held out, or one site after the other.
    harmonize : bool, default=False
        Whether sites are brought to one location and scale, learned from the people trained on;
        the model keeps what was learned.
    n_splits, n_repeats : int
        Folds that keep people together, in proportion to the classes, and how often they are
        drawn anew. Fewer folds where the smallest class has fewer people. By site there is one
        fold for each, once.
    seed : int
        Of folds, resampled people and channels taken away.
    n_jobs : int
        Folds that are worked on at the same time.
    progress : callable, optional
        Called when the work begins and when a fold has ended.

    Returns
    -------
    Model
        ``performance`` has, by person: ``metrics`` (``roc_auc`` and ``balanced_accuracy``, each
        the mean over repetitions, its interval over resampled people, and the band of guessing),
        ``calibration`` (out-of-fold probabilities against shares), ``by_share`` (AUC when so many
        of the channels are left to the people held out) and ``held_out`` (people without their
        names: ``left``, probabilities for each share of channels; ``true``, classes; ``prior``,
        how frequent classes are taken to be). With folds by site also ``by_site``: for each its
        ``n_subjects``, ``accuracy`` by person with an interval, and the band of guessing.

    Raises
    ------
    InputError
        There is one class only, or one with a single person.
    """
    table = rows_with_a_channel(table)
    splits = _splits(table, folds, n_splits, n_repeats, seed)
    n_repeats = splits[-1][0] + 1
    model = fit_model(table, estimator, harmonize=harmonize)
    parts = table, estimator, harmonize
    said = _held_out(model, parts, splits, seed, count_jobs(n_jobs), progress)
    protocol = {
        "folds": folds,
        "n_splits": len(splits) // n_repeats,
        "n_repeats": n_repeats,
        "seed": seed,
        **({"harmonize": True} if harmonize else {}),
    }
    people = HeldOutPeople.of(model, table, said, folds)
    performance = measure(people, seed, model.prior)
    return replace(model, protocol=protocol, performance={**performance, **_use(model, table)})


def _splits(
    table: FeatureTable, folds: Folds, n_splits: int, n_repeats: int, seed: int
) -> list[tuple[int, Fold]]:
    """Folds with the number of the repetition; by site nothing is drawn, so there is one."""
    if folds not in ("subject", "site"):
        raise InputError(f"folds is {folds!r}; choose 'subject' or 'site'", argument="folds")
    if folds == "site":
        return [(0, one) for one in make_folds(table.y, table.subjects, folds, sites=table.sites)]
    n_splits = min(n_splits, max(most_splits(table.y, table.subjects), 2))
    return [
        (repeat, fold)
        for repeat in range(n_repeats)
        for fold in make_folds(
            table.y, table.subjects, folds, n_splits, derive_seed("model", seed, repeat)
        )
    ]


def _held_out(
    model: Model,
    parts: tuple[FeatureTable, Any, bool],
    folds: Sequence[tuple[int, Fold]],
    seed: int,
    n_jobs: int,
    progress: Listener | None,
) -> Floats:
    """Probabilities of (n_repeats, n_shares, n_samples, n_classes)."""
    n_repeats, table = folds[-1][0] + 1, parts[0]
    said = np.full((n_repeats, len(SHARES), len(table), len(model.classes)), np.nan)
    tasks = ((*parts, fold, derive_seed("channels", seed, repeat)) for repeat, fold in folds)
    work = run_in_processes(_one_fold, tasks, n_jobs, ordered=True, share_from="1M")
    if progress:
        progress(Progress("folds", 0, len(folds)))
    for done, ((repeat, (_, test)), values) in enumerate(zip(folds, work, strict=True), 1):
        said[repeat][:, test] = values
        if progress:
            progress(Progress("folds", done, len(folds)))
    return said


def _one_fold(
    table: FeatureTable, estimator: Any, harmonize: bool, fold: Fold, seed: int
) -> Floats:
    train, test = fold
    with warnings.catch_warnings():
        # What concerns all people was said when the whole table was fitted.
        warnings.simplefilter("ignore")
        fitted, known = fit_estimator(estimator, table.take(train), harmonize=harmonize)
        held_out = table.take(test)
        left = (_leave(held_out, share, seed) for share in SHARES)
        seen = (harmonize_sites(known, X, held_out.sites) for X in left)
        return np.stack([fitted.predict_proba(X) for X in seen])


def _leave(table: FeatureTable, share: float, seed: int) -> Any:
    """Leave each person a random share of the channels."""
    if share == 1.0:
        return table.X
    _, columns = channel_columns(table.column_channels, table.X.shape[1], None)
    channel = channel_codes(columns)
    n_channels = int(channel.max()) + 1
    keep = max(round(share * n_channels), 1)
    people, member = np.unique(table.subjects.to_numpy().astype(str), return_inverse=True)
    left = np.zeros((people.size, n_channels), dtype=bool)
    for place, person in enumerate(people):
        rng = np.random.default_rng(derive_seed("left", person, seed))
        left[place, rng.permutation(n_channels)[:keep]] = True
    return table.X.where(left[member][:, channel])


def _use(model: Model, table: FeatureTable) -> dict[str, Any]:
    """Channels that speak loudest over all people, and features with the largest scores."""
    found: dict[str, Any] = {"channels": {}, "features": {}}
    if hasattr(model.estimator, "channel_votes"):
        X = harmonize_sites(model.harmonizer, table.X, table.sites)
        votes = np.abs(np.asarray(model.estimator.channel_votes(X)))
        heard = ~np.isnan(votes)
        axes = (0, *range(2, votes.ndim))
        loud = np.where(heard, votes, 0.0).sum(axis=axes) / np.maximum(heard.sum(axis=axes), 1)
        found["channels"] = _largest(model.channels, loud)
    if hasattr(model.estimator, "scores_"):
        found["features"] = _largest(model.columns, np.asarray(model.estimator.scores_))
    return found


def _largest(names: Sequence[str], values: Floats, most: int = 20) -> dict[str, float]:
    order = np.argsort(-values, kind="stable")[:most]
    return {names[i]: float(values[i]) for i in order if values[i] > 0}
