"""A model and how well it does on people it has not seen: the whole fit, repeated on folds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from idfsmec._columns import channel_codes, channel_columns
from idfsmec._jobs import count_jobs
from idfsmec._random import derive_seed
from idfsmec._workers import run_in_processes
from idfsmec.evaluation.chance import chance_band
from idfsmec.evaluation.folds import Fold, make_folds, most_splits
from idfsmec.evaluation.intervals import wilson_interval
from idfsmec.metrics import majority
from idfsmec.prediction.model import Model, fit_estimator, fit_model, rows_with_a_channel
from idfsmec.progress import Listener, Progress
from idfsmec.table import FeatureTable

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

#: Shares of the channels that are left to the people held out, for what becomes of the AUC.
SHARES = (1.0, 0.75, 0.5, 0.25)
LEVEL = 0.95
_RESAMPLES = 1000
_MOST_BINS, _LEAST_IN_BIN = 5, 5


def train_model(
    table: FeatureTable,
    estimator: Any = None,
    *,
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
    n_splits, n_repeats : int
        Folds that keep people together, in proportion to the classes, and how often they are
        drawn anew. Fewer folds where the smallest class has fewer people.
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
        how frequent classes are taken to be).

    Raises
    ------
    InputError
        There is one class only, or one with a single person.
    """
    table = rows_with_a_channel(table)
    n_splits = min(n_splits, max(most_splits(table.y, table.subjects), 2))
    folds = [
        (repeat, fold)
        for repeat in range(n_repeats)
        for fold in make_folds(
            table.y, table.subjects, "subject", n_splits, derive_seed("model", seed, repeat)
        )
    ]
    model = fit_model(table, estimator)
    said = _held_out(model, table, estimator, folds, seed, count_jobs(n_jobs), progress)
    protocol = {"folds": "subject", "n_splits": n_splits, "n_repeats": n_repeats, "seed": seed}
    performance = _measure(_People.of(model, table, said), seed, model.prior)
    return replace(model, protocol=protocol, performance={**performance, **_use(model, table)})


@dataclass(frozen=True)
class _People:
    """What was said about people when they were held out."""

    classes: list[Any]
    y: Codes  # (n_people,)
    said: Floats  # (n_repeats, n_shares, n_people, n_classes)

    @classmethod
    def of(cls, model: Model, table: FeatureTable, said: Floats) -> _People:
        """Average over the epochs of each person."""
        _, member = np.unique(table.subjects.to_numpy().astype(str), return_inverse=True)
        codes = np.searchsorted(model.estimator.classes_, table.y.to_numpy())
        true, _ = majority(np.eye(len(model.classes))[codes], codes, member)
        counts = np.bincount(member)
        mean = np.zeros((*said.shape[:2], counts.size, said.shape[3]))
        for sample, person in enumerate(member):
            mean[:, :, person] += said[:, :, sample] / counts[person]
        return cls(model.classes, true, mean)

    @property
    def sides(self) -> list[int]:
        """Classes that are held against the rest; of two, one is enough."""
        return [1] if len(self.classes) == 2 else list(range(len(self.classes)))

    def draw(self, rng: np.random.Generator) -> Floats:
        """How often each person is drawn, within the classes: (n_resamples, n_people)."""
        counts = np.zeros((_RESAMPLES, self.y.size))
        for code in np.unique(self.y):
            own = np.flatnonzero(self.y == code)
            counts[:, own] = rng.multinomial(own.size, np.full(own.size, 1 / own.size), _RESAMPLES)
        return counts

    def roc_auc(self, counts: Floats, share: int = 0) -> Floats:
        """Mean over repetitions and classes, for people counted so often: (n_resamples,)."""
        found = []
        for code in self.sides:
            own, rest = self.y == code, self.y != code
            wins = np.zeros((own.sum(), rest.sum()))
            for values in self.said[:, share, :, code]:
                difference = values[own][:, None] - values[rest]
                wins += (np.sign(difference) + 1) / 2 / len(self.said)
            pairs = counts[:, own].sum(axis=1) * counts[:, rest].sum(axis=1)
            found.append(((counts[:, own] @ wins) * counts[:, rest]).sum(axis=1) / pairs)
        return np.asarray(np.mean(found, axis=0))

    def balanced_accuracy(self, counts: Floats) -> Floats:
        """The same for the mean recall."""
        right = (self.said[:, 0].argmax(axis=2) == self.y).mean(axis=0)
        recalls = [
            counts[:, own] @ right[own] / counts[:, own].sum(axis=1)
            for own in (self.y == code for code in np.unique(self.y))
        ]
        return np.asarray(np.mean(recalls, axis=0))

    def guessed_auc(self, rng: np.random.Generator) -> Floats:
        """AUC when people exchange their labels: (n_resamples,)."""
        labels = rng.permuted(np.tile(self.y, (_RESAMPLES, 1)), axis=1)
        found = []
        for code in self.sides:
            ranks = rankdata(self.said[:, 0, :, code], axis=1).mean(axis=0)
            n_own = int((self.y == code).sum())
            sums = (labels == code) @ ranks - n_own * (n_own + 1) / 2
            found.append(sums / (n_own * (self.y.size - n_own)))
        return np.asarray(np.mean(found, axis=0))


def _held_out(
    model: Model,
    table: FeatureTable,
    estimator: Any,
    folds: Sequence[tuple[int, Fold]],
    seed: int,
    n_jobs: int,
    progress: Listener | None,
) -> Floats:
    """Probabilities of (n_repeats, n_shares, n_samples, n_classes)."""
    n_repeats = folds[-1][0] + 1
    said = np.full((n_repeats, len(SHARES), len(table), len(model.classes)), np.nan)
    tasks = (
        (table, estimator, fold, derive_seed("channels", seed, repeat)) for repeat, fold in folds
    )
    work = run_in_processes(_one_fold, tasks, n_jobs, ordered=True, share_from="1M")
    if progress:
        progress(Progress("folds", 0, len(folds)))
    for done, ((repeat, (_, test)), values) in enumerate(zip(folds, work, strict=True), 1):
        said[repeat][:, test] = values
        if progress:
            progress(Progress("folds", done, len(folds)))
    return said


def _one_fold(table: FeatureTable, estimator: Any, fold: Fold, seed: int) -> Floats:
    train, test = fold
    with warnings.catch_warnings():
        # What concerns all people was said when the whole table was fitted.
        warnings.simplefilter("ignore")
        fitted = fit_estimator(estimator, table.take(train))
        held_out = table.take(test)
        return np.stack([fitted.predict_proba(_leave(held_out, share, seed)) for share in SHARES])


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


def _measure(people: _People, seed: int, prior: list[float]) -> dict[str, Any]:
    rng = np.random.default_rng(derive_seed("people", seed))
    draws, once = people.draw(rng), np.ones((1, people.y.size))
    by_share = []
    for place, share in enumerate(SHARES):
        measured = _with_interval(people.roc_auc(once, place), people.roc_auc(draws, place))
        by_share.append({"share": share, **measured})
    low, high = _interval(people.guessed_auc(rng))
    counts = np.bincount(people.y).tolist()
    band = chance_band(counts, metric="balanced_accuracy", level=LEVEL)
    metrics = {
        "roc_auc": {
            **_with_interval(people.roc_auc(once), people.roc_auc(draws)),
            "chance": 0.5,
            "chance_low": low,
            "chance_high": high,
        },
        "balanced_accuracy": {
            **_with_interval(people.balanced_accuracy(once), people.balanced_accuracy(draws)),
            "chance": band.chance,
            "chance_low": band.low,
            "chance_high": band.high,
        },
    }
    mean = people.said[:, 0].mean(axis=0)
    return {
        "level": LEVEL,
        "metrics": metrics,
        "by_share": by_share,
        "calibration": _calibration(people, mean),
        "held_out": {
            "true": people.y.tolist(),
            "prior": prior,
            "shares": list(SHARES),
            "left": people.said.mean(axis=0).round(6).tolist(),
        },
    }


def _interval(values: Floats) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _with_interval(value: Floats, drawn: Floats) -> dict[str, float]:
    low, high = _interval(drawn)
    return {"mean": float(value[0]), "low": low, "high": high}


def _calibration(people: _People, mean: Floats) -> dict[str, Any]:
    """Of two classes the probability of the second; of more, that of the predicted one."""
    if len(people.classes) == 2:
        label, given, hit = str(people.classes[1]), mean[:, 1], people.y == 1
    else:
        label, given, hit = None, mean.max(axis=1), mean.argmax(axis=1) == people.y
    n_bins = int(np.clip(given.size // _LEAST_IN_BIN, 1, _MOST_BINS))
    bins = []
    for rows in np.array_split(np.argsort(given, kind="stable"), n_bins):
        low, high = wilson_interval(int(hit[rows].sum()), rows.size, LEVEL)
        bins.append(
            {
                "predicted": float(given[rows].mean()),
                "observed": float(hit[rows].mean()),
                "low": low,
                "high": high,
                "n": int(rows.size),
            }
        )
    brier = float(np.mean((given - hit) ** 2))
    return {"class": label, "bins": bins, "brier": brier}


def _use(model: Model, table: FeatureTable) -> dict[str, Any]:
    """Channels that speak loudest over all people, and features with the largest scores."""
    found: dict[str, Any] = {"channels": {}, "features": {}}
    if hasattr(model.estimator, "channel_votes"):
        votes = np.abs(np.asarray(model.estimator.channel_votes(table.X)))
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
