"""Models: a fitted classifier with its training data's description, its file, and predictions.

A file is a ZIP archive written by skops, without pickle. Only the types of a list are read back.
Predictions for subjects come with intervals and reasons for doubt.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import warnings
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from idfsmec._files import replacing
from idfsmec._version import __version__
from idfsmec.errors import ExistingFileError, InputError
from idfsmec.features import extract_table
from idfsmec.features.settings import FeatureSettings
from idfsmec.prediction.harmonizer import (
    SiteHarmonizer,
    describe_new_sites,
    harmonize_sites,
    learn_sites,
)
from idfsmec.prediction.imputer import ChannelImputer
from idfsmec.prediction.linear import IDFSMECClassifier
from idfsmec.progress import Listener
from idfsmec.recordings import Recording
from idfsmec.recordings.recording import file_recording
from idfsmec.table import FeatureTable
from idfsmec.table.columns import channel_columns, join_column, observed_channels, split_column
from idfsmec.table.positions import standard_name

Array = NDArray[np.float64]

# Raised when earlier files can no longer be read.
_FORMAT_VERSION = 3
#: Types that a model file may hold, besides those that skops itself trusts: plain containers,
#: NumPy's arrays, scikit-learn's estimators. Whatever else a file names is refused.
TRUSTED_TYPES = (
    "idfsmec.prediction.linear.IDFSMECClassifier",
    "idfsmec.prediction.linear.View",
    "idfsmec.prediction.harmonizer.SiteHarmonizer",
    "idfsmec.prediction.imputer.ChannelImputer",
    "idfsmec.prediction.imputer.FactorModel",
    "idfsmec.prediction.pipeline.FittedMethod",
    "idfsmec.prediction.pipeline.MissingMarks",
    "idfsmec.prediction.pipeline.Preparation",
    "idfsmec.prediction.sanity.Boosting",
    "idfsmec.prediction.sanity.RidgeByCost",
    "idfsmec.solver.scaling.Scaling",
    "numpy.dtype",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.feature_selection._univariate_selection.chi2",
    "sklearn.feature_selection._univariate_selection.f_classif",
)
_ABOUT = "idfsmec.json"
_MOST_BYTES = 2**31  # unpacked; no model is as large
# What of a model is written as JSON, in readable form.
_DESCRIBED = ("columns", "settings", "data", "reference", "protocol", "performance", "versions")
_ABOUT_FIELDS = (*_DESCRIBED, "created", "audit")
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "mne", "skops")
# Entries of a table's ``info`` that name subjects or files stay out of the model.
_PERSONAL = ("recordings", "names_in_files", "parts")

# Coverage of the intervals of predictions.
_LEVEL = 0.95
# A subject with a smaller share of the model's channels gets a warning, and so does one farther
# from the centre than this share of the training subjects.
_LEAST_SHARE, _FAR_SHARE = 0.3, 0.99
_MOST_NAMED = 5
_RESAMPLES, _NEWTON_STEPS = 1000, 8
# Probabilities beyond are not distinguished.
_LEAST_PROBABILITY = 0.005
# Prior precision of shift 0 and slope 1 of the calibration on held-out subjects.
_PRIOR_PRECISION = np.array([0.25, 1.0])


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A classifier fitted to a table, with all that is needed to use it on new subjects.

    Made by :func:`fit_model`, or by :func:`idfsmec.evaluation.train_model`, which also measures
    how well it does; kept in a file by :func:`save_model`.
    """

    estimator: Any  # takes NaN where a channel is missing
    imputer: ChannelImputer  # its factors tell whether a subject is unlike all in training
    columns: tuple[str, ...]  # <channel>__<feature>, in the order that the estimator takes
    # How features were computed: the table's ``info`` without names of subjects and files.
    settings: Mapping[str, Any] = field(default_factory=dict)
    # Numbers of subjects and samples it was fitted on, and what was missing.
    data: Mapping[str, Any] = field(default_factory=dict)
    # Where the training subjects lie in the space of factors, and how far from their centre.
    reference: Mapping[str, Any] = field(default_factory=dict)
    # How it was evaluated, and the outcome; empty if it was not.
    protocol: Mapping[str, Any] = field(default_factory=dict)
    performance: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)  # of the packages in use
    created: str = ""
    harmonizer: SiteHarmonizer | None = None  # comes before anything else
    # Level, title and reason of the audit of its table; empty if it was not audited.
    audit: Mapping[str, str] = field(default_factory=dict)

    @property
    def classes(self) -> list[Any]:
        """Labels in the order of the probabilities."""
        return list(self.estimator.classes_.tolist())

    @property
    def channels(self) -> list[str]:
        """Channel names, each once, in the order of the columns."""
        return list(dict.fromkeys(split_column(column)[0] for column in self.columns))

    @property
    def prior(self) -> list[float]:
        """How frequent it takes each class to be: its ``class_prior_``, or as in training."""
        subjects = np.array(list(self.data["subjects"].values()), dtype=np.float64)
        prior = getattr(self.estimator, "class_prior_", subjects / subjects.sum())
        return [float(share) for share in prior]

    @property
    def kind(self) -> str:
        """Name of the estimator."""
        return str(getattr(self.estimator, "name", type(self.estimator).__name__))

    def __repr__(self) -> str:
        return (
            f"Model({self.kind} of {self.data.get('n_subjects', '?')} subjects; "
            f"{len(self.channels)} channels, {len(self.columns)} columns; classes "
            f"{', '.join(map(str, self.classes))})"
        )


def fit_model(
    table: FeatureTable, estimator: Any = None, *, harmonize: bool | str = False
) -> Model:
    """Fit a classifier to all subjects of a table.

    Parameters
    ----------
    table : FeatureTable
    estimator : classifier, optional
        With ``predict_proba``, takes a DataFrame with NaN where channels are missing; by default
        :class:`IDFSMECClassifier`. If it is to be kept in a file, it has to be made of
        scikit-learn's and this package's parts.
    harmonize : bool or str, default=False
        Whether sites are brought to one location and scale first, by a :class:`SiteHarmonizer`
        that the model keeps: True learns them from all samples, the name of a class, such as
        ``"HC"``, from the samples of that class only. :func:`predict_subjects` says how it treated
        subjects of other sites.

    Returns
    -------
    Model
        Without ``protocol`` and ``performance``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from idfsmec import FeatureTable
    >>> from idfsmec.prediction import fit_model
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["HC", "MDD"], 20)
    >>> X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["F3__a", "F3__b", "Pz__a"])
    >>> X["F3__a"] += 2 * (y == "MDD")
    >>> fit_model(FeatureTable(X, y, np.arange(40) // 2))
    Model(IDFSMECClassifier of 20 subjects; 2 channels, 3 columns; classes HC, MDD)
    """
    table = rows_with_a_channel(table)
    if table.y.nunique() < 2:
        raise InputError(f"all samples have the label {table.y.iloc[0]!r}: there is no choice.")
    fitted, harmonizer = fit_estimator(estimator, table, harmonize=harmonize)
    X = harmonize_sites(harmonizer, table.X, table.sites)
    imputer = ChannelImputer().fit(X)
    reference = _locate(imputer.factors(X))
    distances = pd.Series(_distances(imputer, X, reference))
    distances = distances.groupby(table.subjects.to_numpy()).median().sort_values()
    own_versions = {"python": platform.python_version(), "idfsmec": __version__}
    return Model(
        fitted,
        imputer,
        tuple(map(str, table.X.columns)),
        settings={key: value for key, value in table.info.items() if key not in _PERSONAL},
        data=_describe(table),
        reference={**reference, "distances": distances.tolist()},
        versions={name: version(name) for name in _PACKAGES} | own_versions,
        created=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        harmonizer=harmonizer,
    )


def fit_estimator(
    estimator: Any, table: FeatureTable, *, harmonize: bool | str = False
) -> tuple[Any, SiteHarmonizer | None]:
    """Fit a fresh copy on harmonized samples; also return the harmonizer.

    Inner folds keep subjects together where the estimator can. One with a parameter ``harmonize``
    sees samples as they are: it learns the sites inside its own folds.
    """
    fresh = IDFSMECClassifier() if estimator is None else clone(estimator)
    harmonizer = learn_sites(table, harmonize) if harmonize else None
    X, extra = harmonize_sites(harmonizer, table.X, table.sites), {}
    if harmonize and "harmonize" in fresh.get_params():
        X = table.X
        fresh.set_params(harmonize=harmonize)
    if has_fit_parameter(fresh, "groups"):
        extra["groups"] = table.subjects
    if has_fit_parameter(fresh, "sites") and table.sites is not None:
        extra["sites"] = table.sites
    fitted = fresh.fit(X, table.y.to_numpy(), **extra)
    # A search is replaced by the estimator it chose.
    return getattr(fitted, "best_estimator_", fitted), harmonizer


def rows_with_a_channel(table: FeatureTable) -> FeatureTable:
    """Leave out samples without any channel."""
    there = np.asarray(table.observed.to_numpy().any(axis=1))
    if not there.any():
        raise InputError("no sample has any channel.")
    return table if there.all() else table.take(there)


def _describe(table: FeatureTable) -> dict[str, Any]:
    subjects = table.subjects.groupby(table.y).nunique()
    observed = table.observed
    by_subject = observed.groupby(table.subjects.to_numpy()).mean()
    return {
        "n_samples": len(table),
        "n_subjects": int(table.subjects.nunique()),
        "subjects": {str(label): int(count) for label, count in subjects.items()},
        "samples": {str(label): int((table.y == label).sum()) for label in subjects.index},
        "share_missing": float(1.0 - observed.to_numpy().mean()),
        "channel_shares": {str(name): float(share) for name, share in observed.mean().items()},
        "least_present": float(by_subject.mean(axis=1).min()),
        "conditions": table.conditions,
    }


def _locate(factors: Array) -> dict[str, Any]:
    """Centre and precision of the training samples' factors."""
    covariance = np.atleast_2d(np.cov(factors, rowvar=False))
    floor = 1e-6 * max(float(np.trace(covariance)), 1e-12)
    precision = np.linalg.pinv(covariance + floor * np.eye(len(covariance)), hermitian=True)
    return {"centre": factors.mean(axis=0).tolist(), "precision": precision.tolist()}


def _distances(imputer: ChannelImputer, X: pd.DataFrame, reference: Mapping[str, Any]) -> Array:
    """Distance of each sample from the training samples' centre in the space of factors."""
    away = imputer.factors(X) - np.asarray(reference["centre"])
    squares = np.einsum("nq,qr,nr->n", away, np.asarray(reference["precision"]), away)
    return np.sqrt(np.maximum(squares, 0.0))


def save_model(model: Model, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a model to a file, without pickle.

    The file is written by :mod:`skops.io`, a ZIP archive of arrays and a description of how they
    belong together; ``idfsmec.json`` in it has the rest in readable form.

    Parameters
    ----------
    model : Model
    path : path-like
        Ends in ``.skops``.
    overwrite : bool
        Whether to replace an existing file.

    Returns
    -------
    Path

    Raises
    ------
    ExistingFileError
    InputError
        The name ends otherwise, or the estimator has parts that :func:`load_model` would refuse.
    """
    from skops import io as skops_io

    path = Path(path)
    if path.suffix.lower() != ".skops":
        raise InputError(f"{path}: a model's name ends in .skops.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file.")
    if path.exists() and not overwrite:
        raise ExistingFileError(path)
    parts = {"estimator": model.estimator, "imputer": model.imputer}
    if model.harmonizer is not None:
        parts["harmonizer"] = model.harmonizer
    content = skops_io.dumps(parts, compression=zipfile.ZIP_DEFLATED)
    if foreign := _foreign_types(content):
        raise InputError(
            f"{path}: a model file cannot hold {', '.join(foreign)}: it would not be trusted when "
            "it is read. Use parts of scikit-learn and idfsmec."
        )
    about = {"format": _FORMAT_VERSION, "idfsmec": __version__, "classes": model.classes}
    about |= {name: getattr(model, name) for name in _ABOUT_FIELDS}
    about["checksum"] = _checksum(content, about)
    with replacing(path) as (beside,):
        beside.write_bytes(content)
        with zipfile.ZipFile(beside, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_ABOUT, json.dumps(about, indent=1, allow_nan=False))
    return path


def load_model(path: str | PathLike[str]) -> Model:
    """Read a model that :func:`save_model` wrote.

    Nothing in the file is run, and only :data:`TRUSTED_TYPES` and what skops trusts is made from
    it, whoever wrote it. The checksum detects damage, not malice: use only models from a source
    you trust.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    Model

    Raises
    ------
    InputError
        It is no model, is damaged, comes from another version, or names other types.
    """
    from skops import io as skops_io

    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such model file.")
    content = path.read_bytes()
    try:
        about = _read_about(path, content)
        if foreign := _foreign_types(content):
            raise InputError(
                f"{path}: refused, for it holds {', '.join(foreign)}, which no model of idfsmec "
                "does. Use only models from a source you trust."
            )
        parts = skops_io.loads(content, trusted=list(TRUSTED_TYPES))
        described = {name: about[name] for name in _ABOUT_FIELDS if name in about}
        model = Model(**{"harmonizer": None, **parts, **described})
        _check_parts(model, about["classes"])
    except InputError:
        raise
    except Exception as error:  # whatever a changed description leads to
        raise InputError(f"{path}: the model file is damaged ({_line(error)}).") from error
    return replace(model, columns=tuple(model.columns))


def _read_about(path: Path, content: bytes) -> dict[str, Any]:
    """Read the description without making anything, and refuse what cannot be used."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > _MOST_BYTES:
                raise InputError(f"{path}: the model file is too large to be one.")
            about = json.loads(archive.read(_ABOUT))
        made_with, number = str(about["idfsmec"]), about["format"]
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path}: this is no model file of idfsmec ({_line(error)}).") from error
    if number != _FORMAT_VERSION or made_with.split(".")[:2] != __version__.split(".")[:2]:
        raise InputError(
            f"{path}: the model was made by idfsmec {made_with}, this is {__version__} (model "
            f"format {number} and {_FORMAT_VERSION}). Train it again, or use that version."
        )
    if about.pop("checksum") != _checksum(content, about):
        raise InputError(
            f"{path}: the model file was changed or damaged (its checksum does not fit). Copy it "
            "again from where it came."
        )
    return dict(about)


def file_checksum(path: str | PathLike[str]) -> str:
    """SHA-256 of a file, as ``sha256sum`` prints it."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _foreign_types(content: bytes) -> list[str]:
    from skops import io as skops_io

    return sorted(set(skops_io.get_untrusted_types(data=content)) - set(TRUSTED_TYPES))


def _check_parts(model: Model, classes: Sequence[Any]) -> None:
    if not isinstance(model.imputer, ChannelImputer):
        raise TypeError("it has no imputer")
    if not isinstance(model.harmonizer, SiteHarmonizer | None):
        raise TypeError("its harmonizer is none")
    if model.harmonizer is not None and model.harmonizer.n_features_in_ != len(model.columns):
        raise ValueError("its harmonizer has other columns")
    if model.classes != list(classes):
        raise ValueError("its classes are not those of its description")
    if model.estimator.n_features_in_ != len(model.columns):
        raise ValueError("its columns are not those of its description")


def _checksum(content: bytes, about: Mapping[str, Any]) -> str:
    """Hash the members of the archive, in any order and however packed, and the description."""
    digest = hashlib.sha256()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in sorted(set(archive.namelist()) - {_ABOUT}):
            digest.update(f"{name}\n".encode())
            digest.update(hashlib.sha256(archive.read(name)).digest())
    digest.update(json.dumps(about, sort_keys=True, allow_nan=False).encode())
    return digest.hexdigest()


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


@dataclass(frozen=True)
class SubjectPrediction:
    """Prediction of a model for one subject."""

    subject: str
    predicted: Any = None  # the most probable class; None if there is no channel
    # Of that class: the mean over the subject's epochs, and an interval of the frequency of the
    # class among held-out subjects with such a probability and as many channels. Of a model that
    # was not measured it is that over resampled epochs alone, and NaN for one epoch.
    probability: float = np.nan
    low: float = np.nan
    high: float = np.nan
    probabilities: dict[Any, float] = field(default_factory=dict)  # of every class
    epochs: tuple[float, ...] = ()  # probability of the predicted class in each epoch
    share_present: float = 0.0  # of the model's channels, over all epochs
    # What each channel adds in favour of the predicted class, in log odds, the strongest first.
    votes: dict[str, float] = field(default_factory=dict)
    # From the centre of the training subjects in the space of factors; how many are nearer.
    distance: float = np.nan
    nearer: float = np.nan
    warnings: tuple[str, ...] = ()  # reasons not to rely on it


@dataclass(frozen=True)
class Predictions:
    """Predictions of a model for several subjects."""

    subjects: tuple[SubjectPrediction, ...]
    notes: tuple[str, ...] = ()  # channels that the model does not know or by other names, sites

    @property
    def frame(self) -> pd.DataFrame:
        """One row per subject."""
        classes = {label: None for subject in self.subjects for label in subject.probabilities}
        rows = []
        for made in self.subjects:
            strongest = [f"{channel} {vote:+.2f}" for channel, vote in made.votes.items()]
            rows.append(
                {
                    "subject": made.subject,
                    "predicted": made.predicted,
                    "probability": made.probability,
                    "low": made.low,
                    "high": made.high,
                    **{f"probability of {k}": made.probabilities.get(k, np.nan) for k in classes},
                    "epochs": len(made.epochs),
                    "channels present": made.share_present,
                    "strongest channels": ", ".join(strongest[:_MOST_NAMED]),
                    "distance": made.distance,
                    "training subjects nearer": made.nearer,
                    "warnings": "; ".join(made.warnings),
                }
            )
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
        ``frame`` has a row per subject; ``subjects`` the same with the probability of each epoch
        and the ``votes`` of channels; ``notes`` say what was done to channels and sites. ``low``
        and ``high`` bound how frequent the class is among subjects with such a probability.

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
    if model.harmonizer is not None:
        notes += describe_new_sites(model.harmonizer, table.sites, len(X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the notes say it
            X = harmonize_sites(model.harmonizer, X, table.sites)
    codes, names = pd.factorize(table.subjects.to_numpy())
    intervals = Intervals(model.performance.get("held_out"), _LEVEL)
    conditions = pd.Series([None] * len(X), dtype=object)
    if table.rows is not None and "condition" in table.rows:
        conditions = table.rows["condition"]
    subjects = []
    for code, name in enumerate(names):
        prediction = _predict_subject(model, str(name), X[codes == code], intervals)
        doubt = _other_condition(model, conditions.to_numpy()[codes == code])
        doubts = (*prediction.warnings, *([doubt] if doubt else []))
        subjects.append(replace(prediction, warnings=doubts))
    if model.data.get("conditions") and conditions.isna().any():
        notes.append(
            f"the model was trained on {_some(model.data['conditions'])}; the condition of "
            f"{int(conditions.isna().sum())} of {len(X)} samples is not known"
        )
    if not any(subject.epochs for subject in subjects):
        raise InputError("No sample has a channel that the model knows with all its features.")
    return Predictions(tuple(subjects), (*notes, *_other_settings(model, table)))


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

    Raises
    ------
    InputError
        The table was made elsewhere, or has columns that no registered feature gives.
    """
    features = [split_column(column)[1] for column in model.columns]
    settings = FeatureSettings.from_dict(model.settings, columns=features)
    sources = [r if isinstance(r, Recording) else Path(r) for r in recordings]
    stems = [source.stem for source in sources if isinstance(source, Path)]
    opened = []
    for source in sources:
        if isinstance(source, Recording):
            opened.append(source)
            continue
        if not source.exists():
            raise InputError(f"{source}: there is no such file.")
        name = source.stem if stems.count(source.stem) == 1 else str(source)
        opened.append(file_recording(source, name, "unknown"))
    made = extract_table(opened, settings, n_jobs=n_jobs, on_error=on_error, progress=progress)
    for outcome in made.skipped:
        why = outcome.error or "; ".join(["no channel with EEG in it", *outcome.notes])
        message = f"{outcome.source}: there is no prediction for it: {why}"
        warnings.warn(message, UserWarning, stacklevel=2)
    return made.table


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
    absent = [channel for channel in model.channels if channel not in channels.values()]
    notes = {
        "channels matched by their positions": [f"{a} is {b}" for a, b in renamed.items()],
        "channels that the model does not know, ignored": unknown,
        "channels of the model that are not there": absent,
    }
    X = table.X.set_axis(names, axis=1).reindex(columns=list(model.columns))
    return X, [f"{what}: {_some(which)}" for what, which in notes.items() if which]


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


def _other_condition(model: Model, conditions: Iterable[Any]) -> str:
    """Name conditions of a subject's samples that the model was not trained on."""
    trained = model.data.get("conditions") or []
    others = sorted({str(name) for name in conditions if not pd.isna(name)} - set(trained))
    if not (trained and others):
        return ""
    return f"the model was trained on {_some(trained)}, and this is {_some(others)}"


def _some(names: Iterable[object]) -> str:
    listed = [str(name) for name in names]
    more = f" and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""
    return ", ".join(listed[:_MOST_NAMED]) + more


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
    distance = float(np.median(_distances(model.imputer, X, model.reference)))
    distances = np.asarray(model.reference["distances"])
    limit, doubts = float(np.quantile(distances, _FAR_SHARE)), []
    if distance > limit:
        doubts.append(
            f"unlike the training data: {distance:.1f} from their centre in the space of factors, "
            f"where {_FAR_SHARE:.0%} of the training subjects are within {limit:.1f}"
        )
    if share < _LEAST_SHARE:
        doubts.append(f"only {share:.0%} of the model's channels are there")
    return SubjectPrediction(
        name,
        model.classes[best],
        float(mean[best]),
        low,
        high,
        dict(zip(model.classes, mean.tolist(), strict=True)),
        tuple(epochs[:, best].tolist()),
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
