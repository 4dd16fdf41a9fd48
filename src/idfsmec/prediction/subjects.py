"""Predictions of a model for new subjects, with intervals and reasons for doubt.

A subject may be unlike the training data in two ways: its factors are far from the centre of those
in training, or its values are far from what its factors say. Each deviation is in units of what is
usual for training subjects under an imputer that was learned without them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold

from idfsmec._files import check_readable
from idfsmec.errors import InputError, listing
from idfsmec.features import extract_table
from idfsmec.features.acquisition import describe_other_references
from idfsmec.features.settings import FeatureSettings
from idfsmec.prediction.adjuster import table_covariates
from idfsmec.prediction.calibration import Calibration
from idfsmec.prediction.harmonizer import describe_new_sites
from idfsmec.prediction.imputer import ChannelImputer
from idfsmec.prediction.training_data import digest_samples, find_remembered
from idfsmec.progress import Listener
from idfsmec.recordings import Recording
from idfsmec.recordings.recording import file_recording
from idfsmec.solver.scaling import FAR
from idfsmec.table import FeatureTable
from idfsmec.table.columns import channel_columns, join_column, observed_channels, split_column
from idfsmec.table.positions import standard_name

if TYPE_CHECKING:
    from idfsmec.prediction.model import Model

# A subject with a smaller share of the model's channels gets a warning.
_LEAST_SHARE = 0.3
_MOST_NAMED = 5
#: Subjects beyond the distance 1, within which so many are expected, are called unusual.
USUAL_SHARE = 0.99
#: Warning about a subject that the model was trained on.
TRAINED_ON = "in the training data, so the prediction says nothing about other participants"
# Subjects beyond this distance get no probability.
_FAR_OUTSIDE = 3.0
_N_FOLDS, _TAIL = 5, 0.7
# Factors of the signal by their decimal exponent, if the training data are in the second unit.
_UNITS = {
    -6: "volts instead of microvolts",
    -3: "millivolts instead of microvolts",
    3: "microvolts instead of millivolts",
    6: "microvolts instead of volts",
}
# A channel is in another unit if a quarter of its features say so, and four values at least do.
_LEAST_AGREEING, _LEAST_VALUES = 1 / 4, 4


@dataclass(frozen=True)
class SubjectPrediction:
    """Prediction of a model for one subject."""

    subject: str
    share_present: float = 0.0  # of the model's channels, over all epochs
    n_epochs: int = 0  # that have a channel
    # How unlike the training data it is, 1 is the end of what is usual; how many are nearer.
    distance: float = np.nan
    nearer: float = np.nan
    warnings: tuple[str, ...] = ()  # reasons not to rely on it
    is_far_outside: bool = False  # of the training data: no probability unless asked for
    # The most probable class, or the score; None if no prediction is given.
    predicted: Any = None
    grade: str = ""  # nearest to what is predicted, where grades are
    # The class that the following is about: the second of two, whichever is predicted; of more
    # classes the predicted one.
    label: Any = None
    # Calibrated on held-out subjects with as many channels, and its interval. The mean over
    # epochs without interval if the model was not measured. Of a score the ends hold the scores of
    # 95 in 100 such subjects.
    probability: float = np.nan
    low: float = np.nan
    high: float = np.nan
    probabilities: dict[Any, float] = field(default_factory=dict)  # of every class
    # What each channel adds in favour of that class, in log odds, the strongest first.
    votes: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Predictions:
    """Predictions of a model for several subjects."""

    subjects: tuple[SubjectPrediction, ...]
    notes: tuple[str, ...] = ()  # channels that the model does not know or by other names, sites
    classes: tuple[Any, ...] = ()  # of the model
    of_grades: bool = False

    @property
    def frame(self) -> pd.DataFrame:
        """One row per subject; of two classes the probability of the second."""
        classes = self.classes[1:] if len(self.classes) == 2 else self.classes
        rows = []
        for made in self.subjects:
            strongest = [f"{channel} {vote:+.2f}" for channel, vote in made.votes.items()]
            rows.append(
                {
                    "subject": made.subject,
                    "predicted": made.predicted,
                    **({"nearest grade": made.grade} if self.of_grades else {}),
                    **{f"probability of {k}": made.probabilities.get(k, np.nan) for k in classes},
                    "low": made.low,
                    "high": made.high,
                    "epochs": made.n_epochs,
                    "channels present": made.share_present,
                    "strongest channels": ", ".join(strongest[:_MOST_NAMED]),
                    "distance": made.distance,
                    "training subjects nearer": made.nearer,
                    "warnings": "; ".join(made.warnings),
                }
            )
        return pd.DataFrame(rows)


def predict_subjects(
    model: Model, table: FeatureTable, *, allow_unusual: bool = False
) -> Predictions:
    """Predict the class of each subject of a table.

    Subjects that the model was trained on get a warning, where it can know them
    (:func:`find_training_subjects`). Columns are matched by name; channels may go by any
    spelling of their standard names. Channels of the model that the table lacks are missing,
    and unknown ones are ignored. A model that harmonizes brings sites it has not seen (a table
    without sites is one) to the others' location and scale by their own samples, if at least
    ten come at once.

    Parameters
    ----------
    model : Model
    table : FeatureTable
        Its labels are not used.
    allow_unusual : bool, default=False
        Give probabilities also for subjects far outside the training data, more than three times
        as far as 99 % of the training subjects or with channels in another unit.

    Returns
    -------
    Predictions
        ``frame`` has a row per subject; ``subjects`` the same with the ``votes`` of all channels;
        ``notes`` say what was done to channels and sites. Of two classes probability and votes
        are those of the second, whichever is predicted. ``low`` and ``high`` bound how frequent
        the class is among subjects like this one, where the model was measured.

    Raises
    ------
    InputError
        The table has no channel of the model, none of its features, or lacks a covariate, such
        as age, that the model adjusts for.

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
    trained_on = _find_training_subjects(model, table, X)
    if model.harmonizer is not None:
        notes += describe_new_sites(model.harmonizer, table.sites, len(X))
    covariates = table_covariates(table, model.corrections.names)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "site ", UserWarning)  # the notes say it
        X = model.corrections.apply(X, table.sites, covariates)
    codes, names = pd.factorize(table.subjects.to_numpy())
    held_out = model.performance.get("held_out")
    calibration = Calibration(held_out) if held_out and model.score is None else None
    conditions = pd.Series([None] * len(X), dtype=object)
    if table.rows is not None and "condition" in table.rows:
        conditions = table.rows["condition"]
    subjects = []
    for code, name in enumerate(names):
        of_subject = codes == code
        prediction = _predict_subject(model, str(name), X[of_subject], calibration, allow_unusual)
        doubts = (*prediction.warnings, *_other_conditions(model, conditions[of_subject]))
        known = (TRAINED_ON,) if str(name) in trained_on else ()
        subjects.append(replace(prediction, warnings=(*known, *doubts)))
    if model.data.get("conditions") and conditions.isna().any():
        notes.append(
            f"the model was trained on {listing(model.data['conditions'])}; the condition of "
            f"{int(conditions.isna().sum())} of {len(X)} samples is not known"
        )
    if not any(subject.n_epochs for subject in subjects):
        raise InputError("No sample has a channel that the model knows with all its features.")
    notes += _other_settings(model, table)
    return Predictions(tuple(subjects), tuple(notes), tuple(model.classes), bool(model.grades))


def find_training_subjects(model: Model, table: FeatureTable) -> list[str]:
    """Return the subjects of a table that the model is known to be trained on.

    All subjects of the training table as a whole are known by its digest, which
    :func:`~idfsmec.prediction.save_model` writes beside the model; single ones by a model that
    remembers them. Labels, names and the order of samples do not matter.

    Parameters
    ----------
    model : Model
    table : FeatureTable

    Returns
    -------
    list of str
        None are named where the model cannot know: without its digest, subjects of another table
        made of the same recordings.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from idfsmec import FeatureTable
    >>> from idfsmec.evaluation import train_model
    >>> from idfsmec.prediction import find_training_subjects
    >>> y = np.tile(["HC", "MDD"], 15)
    >>> X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=["F3__a", "Pz__a"])
    >>> table = FeatureTable(X, y, [f"s{number:02d}" for number in range(30)])
    >>> model = train_model(table, n_repeats=1, remember_participants=True)
    >>> find_training_subjects(model, table.take(np.arange(2)))
    ['s00', 's01']
    """
    return sorted(_find_training_subjects(model, table, _match_columns(model, table)[0]))


def _find_training_subjects(model: Model, table: FeatureTable, X: pd.DataFrame) -> set[str]:
    names, rows = table.subjects.astype(str).to_numpy(), np.ones(len(X), dtype=bool)
    if table.rows is not None and table.conditions and model.data.get("conditions"):
        rows = table.rows["condition"].isin(model.data["conditions"]).to_numpy()
    if model.digest and digest_samples(X[rows]) == model.digest:
        return set(names[rows])
    return find_remembered(X, names, model.remembered)


def extract_subjects(
    model: Model,
    recordings: Iterable[str | PathLike[str] | Recording],
    *,
    n_jobs: int | None = None,
    on_error: str = "raise",
    progress: Listener | None = None,
) -> FeatureTable:
    """Compute the features of recordings with the settings of the model.

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

    Raises
    ------
    InputError
        The table was made elsewhere, or has columns that no registered feature gives.
    """
    features = [feature for _, feature in model.column_parts]
    settings = FeatureSettings.from_dict(model.settings, columns=features)
    sources = [r if isinstance(r, Recording) else Path(r) for r in recordings]
    stems = [source.stem for source in sources if isinstance(source, Path)]
    opened = []
    for source in sources:
        if isinstance(source, Recording):
            opened.append(source)
            continue
        check_readable(source)
        if not source.exists():
            raise InputError(f"{source}: there is no such file.")
        name = source.stem if stems.count(source.stem) == 1 else str(source)
        opened.append(file_recording(source, name, "unknown"))
    made = extract_table(opened, settings, n_jobs=n_jobs, on_error=on_error, progress=progress)
    for outcome in made.skipped:
        why = outcome.error or "; ".join(["no channel with EEG in it", *outcome.notes])
        message = f"{outcome.source}: no prediction: {why}"
        warnings.warn(message, UserWarning, stacklevel=2)
    return made.table


def _match_columns(model: Model, table: FeatureTable) -> tuple[pd.DataFrame, list[str]]:
    """Give the table's columns as the model takes them, and notes on what was done."""
    renamed = _same_positions(model.channels, table.channels)
    channels = {channel: renamed.get(channel, channel) for channel in table.channels}
    unknown = [name for name, channel in channels.items() if channel not in model.channels]
    if len(unknown) == len(channels):
        raise InputError(
            f"There is no common channel: the model has {listing(model.channels)}, "
            f"the table {listing(table.channels)}."
        )
    split = [split_column(str(column)) for column in table.X.columns]
    names = [join_column(channels[channel], feature) for channel, feature in split]
    if not set(names) & set(model.columns):
        features = dict.fromkeys(feature for _, feature in model.column_parts)
        raise InputError(
            f"There is no common feature: the model has {listing(features)}, the table "
            f"{listing(table.features)}."
        )
    absent = [channel for channel in model.channels if channel not in channels.values()]
    lacking = [
        column
        for column, (channel, _) in zip(model.columns, model.column_parts, strict=True)
        if column not in names and channel not in absent
    ]
    notes = {
        "channels matched by their positions": [f"{a} is {b}" for a, b in renamed.items()],
        "channels that the model does not know, ignored": unknown,
        "channels of the model that are missing": absent,
        "missing columns, whose channels count as missing": lacking,
    }
    X = table.X.set_axis(names, axis=1).reindex(columns=list(model.columns))
    return X, [f"{what}: {listing(which)}" for what, which in notes.items() if which]


def _same_positions(wanted: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Those channels that the model has under another spelling, each position once."""
    positions = {standard_name(name) or name.casefold(): name for name in wanted}
    renamed, taken = {}, set(names)
    for name in names:
        same = positions.get(standard_name(name) or name.casefold())
        if name not in wanted and same is not None and same not in taken:
            renamed[name] = same
            taken.add(same)
    return renamed


def _other_settings(model: Model, table: FeatureTable) -> list[str]:
    """Note settings of the table that differ from the model's; those not stated are trusted."""
    keys = (
        *("sfreq", "band_pass", "epoch", "bands", "unit", "reference"),
        *("welch_window", "nsi_window"),
    )
    differ = [
        f"{key} {table.info[key]} instead of {model.settings[key]}"
        for key in keys
        if key in table.info and key in model.settings and table.info[key] != model.settings[key]
    ]
    note = "the table's features were computed differently from the model's"
    of_references = describe_other_references(model.data.get("references", ()), table.info)
    return [f"{note}: {'; '.join(differ)}"] * bool(differ) + [of_references] * bool(of_references)


def _other_conditions(model: Model, conditions: pd.Series) -> list[str]:
    """Name conditions of a subject's samples that the model was not trained on."""
    trained = model.data.get("conditions") or []
    new_conditions = sorted(set(conditions.dropna().astype(str)) - set(trained))
    note = f"the model was trained on {listing(trained)}, but this is {listing(new_conditions)}"
    return [note] if trained and new_conditions else []


def _predict_subject(
    model: Model, name: str, X: pd.DataFrame, calibration: Calibration | None, allow_unusual: bool
) -> SubjectPrediction:
    _, columns = channel_columns(None, len(model.columns), model.columns)
    observed = observed_channels(X.to_numpy(dtype=np.float64), columns)
    X = X.iloc[np.flatnonzero(observed.any(axis=1))]
    if not len(X):
        return SubjectPrediction(name, warnings=("no channel of the model is present",))
    share, doubts = float(observed.mean()), []
    deviations = _of_subject(*_deviations(model.imputer, X, model.reference))
    distance = float(np.max(deviations / np.asarray(model.reference["units"])))
    nearer = float((np.asarray(model.reference["distances"]) < distance).mean())
    if distance > 1:
        doubts.append(
            f"unlike the training data: {distance:.1f} times as far from them as "
            f"{USUAL_SHARE:.0%} of the training participants"
        )
    unit, channels = _find_other_unit(model, X)
    if unit:
        doubts.append(f"{listing(channels)}: apparently in {unit}")
    is_far_outside = bool(unit) or distance > _FAR_OUTSIDE
    suppressed = is_far_outside and not allow_unusual
    if suppressed:
        doubts.append("far outside the training data: no prediction without --allow-unusual")
    if share < _LEAST_SHARE:
        doubts.append(f"only {share:.0%} of the model's channels are present")
    subject = SubjectPrediction(
        name, share, len(X), distance, nearer, tuple(doubts), is_far_outside
    )
    if suppressed:
        return subject
    with warnings.catch_warnings():
        # Samples whose channels have no weight get the classes' shares.
        warnings.simplefilter("ignore", UserWarning)
        if model.score is not None:
            score = float(np.mean(model.estimator.predict(X)))
            reach = _reach(model, share)
            votes = _votes(model, X, 0)
            subject = replace(subject, low=score - reach, high=score + reach, votes=votes)
            return replace(subject, predicted=score, grade=model.nearest_grade(score))
        epochs = np.asarray(model.estimator.predict_proba(X))
    probabilities, low, high = epochs.mean(axis=0), np.nan, np.nan
    if calibration is not None:
        probabilities, low, high = calibration.apply(epochs, share)
    best = stated = int(probabilities.argmax())
    if len(model.classes) == 2:
        low, high = (low, high) if best else (1 - high, 1 - low)
        stated = 1
    return replace(
        subject,
        predicted=model.classes[best],
        label=model.classes[stated],
        probability=float(probabilities[stated]),
        low=low,
        high=high,
        probabilities=dict(zip(model.classes, probabilities.tolist(), strict=True)),
        votes=_votes(model, X, stated),
    )


def _reach(model: Model, share: float) -> float:
    """Return the reach of the interval of a score, as of subjects with about as many channels."""
    held_out = model.performance.get("held_out")
    if not held_out:
        return float("nan")
    # Subjects held out were left a share of the channels that they had.
    left = (1 - model.data["share_missing"]) * np.asarray(held_out["shares"])
    return float(held_out["reach"][int(np.abs(left - share).argmin())])


def _votes(model: Model, X: pd.DataFrame, code: int) -> dict[str, float]:
    if not hasattr(model.estimator, "channel_votes"):
        return {}
    votes = np.asarray(model.estimator.channel_votes(X))
    of_class = votes[:, :, code] if votes.ndim == 3 else votes
    counts = np.sum(~np.isnan(of_class), axis=0)
    means = np.nansum(of_class, axis=0) / np.maximum(counts, 1)
    order = np.argsort(-np.abs(means), kind="stable")
    return {model.channels[i]: float(means[i]) for i in order if counts[i]}


def learn_reference(imputer: ChannelImputer, X: pd.DataFrame, subjects: Any) -> dict[str, Any]:
    """Describe where training subjects lie: a distance of 1 is the end of what is usual."""
    subjects = np.asarray(subjects)
    n_folds = min(_N_FOLDS, np.unique(subjects).size)
    rows = np.arange(len(X))
    folds = GroupKFold(n_folds).split(X, groups=subjects) if n_folds > 1 else [(rows, rows)]
    deviations = []
    for train, test in folds:
        fitted = ChannelImputer().fit(X.iloc[train])
        located = _locate(fitted.factors(X.iloc[train]))
        squares, residuals = _deviations(fitted, X.iloc[test], located)
        for subject in np.unique(subjects[test]):
            own = subjects[test] == subject
            deviations.append(_of_subject(squares[own], residuals[own]))
    units = np.maximum(np.median(deviations, axis=0), 1e-12)
    distances = np.sort((np.array(deviations) / units).max(axis=1))
    # Few subjects say little about the last per cent: the upper third says how tails fall off
    # (Weissman, Journal of the American Statistical Association 73, 812-815, 1978).
    start = np.quantile(distances, _TAIL)
    fall = np.log(np.maximum(distances / start, 1)).mean() / (1 - _TAIL)
    limit = float(start * ((1 - _TAIL) / (1 - USUAL_SHARE)) ** fall)
    return {
        **_locate(imputer.factors(X)),
        "units": (limit * units).tolist(),
        "distances": (distances / limit).tolist(),
    }


def _locate(factors: NDArray[np.float64]) -> dict[str, Any]:
    """Centre and precision of the training samples' factors."""
    covariance = np.atleast_2d(np.cov(factors, rowvar=False))
    floor = 1e-6 * max(float(np.trace(covariance)), 1e-12)
    precision = np.linalg.pinv(covariance + floor * np.eye(len(covariance)), hermitian=True)
    return {"centre": factors.mean(axis=0).tolist(), "precision": precision.tolist()}


def _deviations(
    imputer: ChannelImputer, X: pd.DataFrame, reference: Mapping[str, Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Squared distances of samples' factors from the centre, and of values from their factors."""
    factors = imputer.factors(X)
    away = factors - np.asarray(reference["centre"])
    precision = np.reshape(reference["precision"], 2 * away.shape[1:])  # there may be no factor
    squares = np.einsum("nq,qr,nr->n", away, precision, away)
    expected = factors @ imputer.model_.loadings.T
    # Beyond 6 standard deviations, where predictions see no difference, logarithms count.
    with np.errstate(over="ignore"):
        values = imputer.model_.scaling.apply(X.to_numpy(dtype=np.float64))
    size = np.minimum(np.abs(values), 1e300)
    beyond = np.log1p(np.maximum(size - FAR, 0.0))
    residuals = np.sign(values) * (np.minimum(size, FAR) + beyond) - expected
    return squares, residuals**2 / imputer.model_.noise


def _of_subject(
    squares: NDArray[np.float64], residuals: NDArray[np.float64]
) -> tuple[float, float]:
    """Distances of all samples of a subject."""
    middle = np.maximum(np.median(squares), 0.0)
    return float(np.sqrt(middle)), float(np.sqrt(np.nanmean(residuals)))


def _find_other_unit(model: Model, X: pd.DataFrame) -> tuple[str, list[str]]:
    """Name the unit that some channels of a subject seem to be in, and these channels.

    Signals in volts in place of microvolts are a million times too small: so are their amplitudes,
    powers are by the square of that, and logarithms are shifted.
    """
    imputer = model.imputer
    typical = np.sqrt(imputer.mean_**2 + imputer.scale_**2)
    with np.errstate(divide="ignore", over="ignore"):
        sizes = np.log10(X.abs().median().to_numpy() / np.where(typical > 0, typical, np.nan))
        shifts = (X.median().to_numpy() - imputer.mean_) / np.log(10)
    channels, features = zip(*model.column_parts, strict=True)
    exponents = np.where(np.abs(sizes) > 9, sizes / 2, sizes)  # squares, by their size
    for row, feature in enumerate(features):
        if "ratio" in feature:
            continue
        if feature.startswith(("log_variance", "log_ap")):
            exponents[row] = shifts[row] / 2
        elif feature.startswith("de_"):
            exponents[row] = shifts[row]
        elif feature == "variance" or feature.startswith("ap_"):
            exponents[row] = sizes[row] / 2
    codes, names = pd.factorize(np.array(channels))
    for exponent, unit in _UNITS.items():
        agree = np.bincount(codes, weights=np.abs(exponents - exponent) < 1)
        named = agree / np.bincount(codes) >= _LEAST_AGREEING
        if agree[named].sum() >= _LEAST_VALUES:
            return unit, [str(name) for name in names[named]]
    return "", []
