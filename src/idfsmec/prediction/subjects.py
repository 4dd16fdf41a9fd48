"""Prediction for subjects a model has not seen, with intervals and reasons for doubt."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit

from idfsmec.errors import InputError
from idfsmec.features import extract_table
from idfsmec.prediction.harmonizer import harmonize_new
from idfsmec.prediction.model import Model
from idfsmec.progress import Listener
from idfsmec.recordings import Recording
from idfsmec.recordings.reading import file_recording
from idfsmec.table import FeatureTable
from idfsmec.table.columns import channel_columns, join_column, observed_channels, split_column
from idfsmec.table.positions import standard_name

Array = NDArray[np.float64]

#: Coverage of the intervals.
LEVEL = 0.95
#: A subject with a smaller share of the model's channels gets a warning.
LEAST_SHARE = 0.3
#: A subject farther from the centre than this share of the training subjects gets a warning.
FAR_SHARE = 0.99
#: The label of recordings, which have none.
UNLABELLED = "unknown"
_MOST_NAMED = 5
_RESAMPLES, _NEWTON_STEPS = 1000, 8
# Probabilities beyond are not distinguished.
_LEAST_PROBABILITY = 0.005
# Prior precision of shift 0 and slope 1 of the calibration on held-out subjects.
_PRIOR_PRECISION = np.array([0.25, 1.0])


@dataclass(frozen=True)
class SubjectPrediction:
    """Prediction of a model for one subject.

    Attributes
    ----------
    subject : str
    predicted : object
        The most probable class; None if there is no channel to predict from.
    probability, low, high : float
        Of that class: the mean over the subject's epochs, and an interval of the frequency of the
        class among subjects with such a probability, from subjects who were held out with as many
        channels (:func:`idfsmec.evaluation.train_model`). Of a model that was not measured the
        interval is that over resampled epochs alone, and NaN for one epoch.
    probabilities : dict
        Of every class.
    epochs : tuple of float
        Probability of the predicted class in each epoch.
    share_present : float
        Share of the model's channels that is there, over all epochs.
    votes : dict
        What each channel adds in favour of the predicted class, in log odds, the strongest first;
        empty if the model cannot tell.
    distance, nearer : float
        Distance of the subject from the centre of the training subjects in the space of factors,
        and the share of them that is nearer.
    warnings : tuple of str
        Reasons not to rely on it.
    """

    subject: str
    predicted: Any = None
    probability: float = np.nan
    low: float = np.nan
    high: float = np.nan
    probabilities: dict[Any, float] = field(default_factory=dict)
    epochs: tuple[float, ...] = ()
    share_present: float = 0.0
    votes: dict[str, float] = field(default_factory=dict)
    distance: float = np.nan
    nearer: float = np.nan
    warnings: tuple[str, ...] = ()

    @property
    def strongest(self) -> str:
        """The channels with the strongest votes, with their signs."""
        first = list(self.votes.items())[:_MOST_NAMED]
        return ", ".join(f"{channel} {vote:+.2f}" for channel, vote in first)


@dataclass(frozen=True)
class Predictions:
    """Predictions of a model for several subjects.

    Attributes
    ----------
    subjects : tuple of SubjectPrediction
    notes : tuple of str
        What was done to the columns: channels that the model does not know, or that go by other
        names.
    """

    subjects: tuple[SubjectPrediction, ...]
    notes: tuple[str, ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """One row per subject."""
        classes = {label: None for one in self.subjects for label in one.probabilities}
        rows = [
            {
                "subject": one.subject,
                "predicted": one.predicted,
                "probability": one.probability,
                "low": one.low,
                "high": one.high,
                **{f"probability of {k}": one.probabilities.get(k, np.nan) for k in classes},
                "epochs": len(one.epochs),
                "channels present": one.share_present,
                "strongest channels": one.strongest,
                "distance": one.distance,
                "training subjects nearer": one.nearer,
                "warnings": "; ".join(one.warnings),
            }
            for one in self.subjects
        ]
        return pd.DataFrame(rows)


def predict_subjects(model: Model, table: FeatureTable) -> Predictions:
    """Predict the class of each subject of a table.

    Columns are matched by name; channels may go by any spelling of their standard names. Channels
    of the model that the table lacks are missing, and unknown ones are ignored. A model that
    harmonizes brings sites it has not seen (a table without sites is one) to the others' location
    and scale by their own samples, if at least ten come at once.

    Parameters
    ----------
    model : Model
    table : FeatureTable
        Its labels are not used.

    Returns
    -------
    Predictions

    Raises
    ------
    InputError
        The table has no channel of the model, or none of its features.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from idfsmec import FeatureTable
    >>> from idfsmec.prediction import fit_model, predict_subjects
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["HC", "MDD"], 40)
    >>> X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["F3__a", "Pz__a"])
    >>> X += 3 * (y == "MDD")[:, None]
    >>> model = fit_model(FeatureTable(X, y, np.arange(80) // 4))
    >>> other = pd.DataFrame({"EEG F3-LE__a": [3.1, 2.9]})
    >>> other_cap = FeatureTable(other, ["?", "?"], ["new", "new"])
    >>> predictions = predict_subjects(model, other_cap)
    >>> predictions.subjects[0].predicted, predictions.subjects[0].share_present
    ('MDD', 0.5)
    """
    X, notes = _match_columns(model, table)
    X, site_notes = harmonize_new(model.harmonizer, X, table.sites)
    codes, names = pd.factorize(table.subjects.to_numpy())
    intervals = Intervals(model.performance.get("held_out"), LEVEL)
    subjects = [
        _predict_subject(model, str(name), X[codes == code], intervals)
        for code, name in enumerate(names)
    ]
    if not any(one.epochs for one in subjects):
        raise InputError("No sample has a channel that the model knows with all its features.")
    return Predictions(tuple(subjects), (*notes, *site_notes, *_other_settings(model, table)))


def extract_subjects(
    model: Model,
    recordings: Iterable[str | PathLike[str] | Recording],
    *,
    n_jobs: int = 1,
    on_error: str = "raise",
    progress: Listener | None = None,
) -> FeatureTable:
    """Compute the features of recordings as those of the model's training data were.

    Parameters
    ----------
    model : Model
    recordings : iterable of path-like or Recording
        Files that MNE opens. A file is a subject, named like the file without its ending.
    n_jobs, on_error, progress
        As in :func:`idfsmec.features.extract_table`; recordings without any row are warned of.

    Returns
    -------
    FeatureTable
        For :func:`predict_subjects`; files have the label ``"unknown"``.
    """
    settings = model.feature_settings()
    given = list(recordings)
    stems = [Path(source).stem for source in given if not isinstance(source, Recording)]
    opened = [
        source if isinstance(source, Recording) else _recording(Path(source), stems)
        for source in given
    ]
    made = extract_table(opened, settings, n_jobs=n_jobs, on_error=on_error, progress=progress)
    for outcome in made.skipped:
        why = outcome.error or "no channel with EEG in it"
        warnings.warn(
            f"{outcome.source}: there is no prediction for it: {why}", UserWarning, stacklevel=2
        )
    return made.table


def _recording(path: Path, stems: Sequence[str]) -> Recording:
    if not path.exists():
        raise InputError(f"{path}: there is no such file.")
    name = path.stem if stems.count(path.stem) == 1 else str(path)
    return file_recording(path, name, UNLABELLED)


def _match_columns(model: Model, table: FeatureTable) -> tuple[pd.DataFrame, list[str]]:
    """Give the table's columns as the model takes them, and notes on what was done."""
    renamed = _same_positions(model.channels, table.channels)
    channels = {channel: renamed.get(channel, channel) for channel in table.channels}
    unknown = [name for name, channel in channels.items() if channel not in model.channels]
    if len(unknown) == len(channels):
        raise InputError(
            f"There is no common channel: the model has {_some(model.channels)}, "
            f"the table {_some(table.channels)}."
        )
    split = [split_column(str(column)) for column in table.X.columns]
    names = [join_column(channels[channel], feature) for channel, feature in split]
    if not set(names) & set(model.columns):
        features = dict.fromkeys(split_column(column)[1] for column in model.columns)
        raise InputError(
            f"There is no common feature: the model has {_some(features)}, the table "
            f"{_some(table.features)}."
        )
    notes = []
    if renamed:
        spelt = [f"{old} is {new}" for old, new in renamed.items()]
        notes.append(f"channels matched by their positions: {_some(spelt)}")
    if unknown:
        notes.append(f"channels that the model does not know, ignored: {_some(unknown)}")
    if absent := [channel for channel in model.channels if channel not in channels.values()]:
        notes.append(f"channels of the model that are not there: {_some(absent)}")
    return table.X.set_axis(names, axis=1).reindex(columns=list(model.columns)), notes


def _same_positions(wanted: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """Given channels that the model has under another spelling, each position once."""
    positions = {standard_name(name) or name.casefold(): name for name in wanted}
    renamed, taken = {}, set(given)
    for name in given:
        same = positions.get(standard_name(name) or name.casefold())
        if name not in wanted and same is not None and same not in taken:
            renamed[name] = same
            taken.add(same)
    return renamed


def _other_settings(model: Model, table: FeatureTable) -> list[str]:
    """Note settings of the table that differ from the model's; those not stated are trusted."""
    keys = ("sfreq", "band_pass", "epoch", "bands", "unit", "welch_window", "nsi_window")
    differ = [
        f"{key} {table.info[key]} instead of {model.settings[key]}"
        for key in keys
        if key in table.info and key in model.settings and table.info[key] != model.settings[key]
    ]
    if not differ:
        return []
    return [f"the table's features were computed otherwise than the model's: {'; '.join(differ)}"]


def _predict_subject(
    model: Model, name: str, X: pd.DataFrame, intervals: Intervals
) -> SubjectPrediction:
    _, columns = channel_columns(None, len(model.columns), model.columns)
    observed = observed_channels(X.to_numpy(dtype=np.float64), columns)
    share = float(observed.mean())
    X = X.iloc[np.flatnonzero(observed.any(axis=1))]
    if not len(X):
        return SubjectPrediction(name, warnings=("no channel of the model is there",))
    with warnings.catch_warnings():
        # Samples whose channels have no weight get the classes' shares.
        warnings.simplefilter("ignore", UserWarning)
        epochs = model.estimator.predict_proba(X)
    mean = epochs.mean(axis=0)
    best = int(mean.argmax())
    low, high = intervals.of(epochs[:, best], best, share)
    distance = float(np.median(model.distances(X)))
    distances = np.asarray(model.reference["distances"])
    doubts = []
    limit = float(np.quantile(distances, FAR_SHARE))
    if distance > limit:
        doubts.append(
            f"unlike the training data: {distance:.1f} from their centre in the space of factors, "
            f"where {FAR_SHARE:.0%} of the training subjects are within {limit:.1f}"
        )
    if share < LEAST_SHARE:
        doubts.append(f"only {share:.0%} of the model's channels are there")
    return SubjectPrediction(
        name,
        model.classes[best],
        float(mean[best]),
        low,
        high,
        dict(zip(model.classes, map(float, mean), strict=True)),
        tuple(float(probability) for probability in epochs[:, best]),
        share,
        _votes(model, X, best),
        distance,
        float((distances < distance - 1e-9).mean()),  # a training subject is not nearer itself
        tuple(doubts),
    )


def _votes(model: Model, X: pd.DataFrame, best: int) -> dict[str, float]:
    if not hasattr(model.estimator, "channel_votes"):
        return {}
    votes = np.asarray(model.estimator.channel_votes(X))
    of_class = votes[:, :, best] if votes.ndim == 3 else votes * (1.0 if best else -1.0)
    counts = np.sum(~np.isnan(of_class), axis=0)
    means = np.nansum(of_class, axis=0) / np.maximum(counts, 1)
    order = np.argsort(-np.abs(means), kind="stable")
    return {model.channels[i]: float(means[i]) for i in order if counts[i]}


def _some(names: Iterable[object]) -> str:
    listed = [str(name) for name in names]
    more = f" and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""
    return ", ".join(listed[:_MOST_NAMED]) + more


class Intervals:
    """Intervals of mean probabilities over a subject's epochs.

    With held-out subjects (``performance["held_out"]``), they are of the frequency of a class
    among subjects with such a probability: log odds are calibrated on resampled subjects who had
    as many channels, and epochs are resampled along. Without, only the epochs vary.
    """

    def __init__(self, held_out: Mapping[str, Any] | None, level: float) -> None:
        self._held_out = held_out
        self._tails = [(1 - level) / 2, (1 + level) / 2]
        self._calibrations: dict[tuple[int, int], Array] = {}

    def of(self, epochs: Array, code: int, share: float) -> tuple[float, float]:
        """Interval for epochs with these probabilities of a class and this share of channels.

        The mean itself is always in it. NaN without held-out subjects and for one epoch.
        """
        rng = np.random.default_rng(0)
        means = epochs[rng.integers(epochs.size, size=(_RESAMPLES, epochs.size))].mean(axis=1)
        if self._held_out:
            key = int(np.abs(np.array(self._held_out["shares"]) - share).argmin()), code
            if key not in self._calibrations:
                self._calibrations[key] = _resample_calibration(self._held_out, *key)
            shift, slope = self._calibrations[key].T
            means = expit(shift + slope * _log_odds(means))
        elif epochs.size < 2:
            return np.nan, np.nan
        low, high = np.quantile(means, self._tails)
        return float(min(low, epochs.mean())), float(max(high, epochs.mean()))


def _log_odds(probability: Array) -> Array:
    return np.asarray(logit(np.clip(probability, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)))


def _resample_calibration(held_out: Mapping[str, Any], share: int, code: int) -> Array:
    """Shift and slope of the log odds by logistic regression on resampled subjects: (B, 2)."""
    rng = np.random.default_rng(1)
    true, given = np.array(held_out["true"]), np.array(held_out["left"])[share][:, code]
    hit = (true == code).astype(np.float64)
    # Probabilities are meant for classes that are as frequent as the model's prior.
    weights = (np.array(held_out["prior"]) * true.size / np.bincount(true))[true]
    counts = rng.multinomial(true.size, np.full(true.size, 1 / true.size), _RESAMPLES) * weights
    design = np.column_stack([np.ones(true.size), _log_odds(given)])
    products = (design[:, :, None] * design[:, None, :]).reshape(true.size, 4)
    start = np.array([0.0, 1.0])
    coefs = np.tile(start, (_RESAMPLES, 1))
    for _ in range(_NEWTON_STEPS):
        expected = expit(coefs @ design.T)
        gradient = (counts * (hit - expected)) @ design - _PRIOR_PRECISION * (coefs - start)
        curvature = (counts * expected * (1 - expected)) @ products
        curvature = curvature.reshape(-1, 2, 2) + np.diag(_PRIOR_PRECISION)
        coefs = coefs + np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
    return np.asarray(coefs)
