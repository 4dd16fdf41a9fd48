"""A model: a fitted classifier with its training data's description, and the file it is kept in.

A file is a ZIP archive written by skops, without pickle. Only the types of a list are read back.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from idfsmec._files import replacing
from idfsmec._version import __version__
from idfsmec.errors import ExistingFileError, InputError
from idfsmec.features.settings import FeatureSettings
from idfsmec.prediction.harmonizer import SiteHarmonizer, harmonize_sites, learn_sites
from idfsmec.prediction.imputer import ChannelImputer
from idfsmec.prediction.linear import IDFSMECClassifier
from idfsmec.table import FeatureTable
from idfsmec.table.columns import split_column

Array = NDArray[np.float64]

#: How the files of models end.
ENDING = ".skops"
#: Raised when earlier files can no longer be read.
FORMAT_VERSION = 3
#: Types that a model file may hold, besides those that skops itself trusts: plain containers,
#: NumPy's arrays, scikit-learn's estimators. Whatever else a file names is refused.
TRUSTED_TYPES = (
    "idfsmec.prediction.linear.IDFSMECClassifier",
    "idfsmec.prediction.linear.View",
    "idfsmec.prediction.harmonizer.SiteHarmonizer",
    "idfsmec.prediction.imputer.ChannelImputer",
    "idfsmec.prediction.imputer.FactorModel",
    "idfsmec.prediction.imputer.ScalpSplines",
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
_ABOUT_FIELDS = (
    "columns",
    "settings",
    "data",
    "reference",
    "protocol",
    "performance",
    "versions",
    "created",
)
_PACKAGES = ("idfsmec", "numpy", "scipy", "scikit-learn", "pandas", "mne", "skops")
# Entries of a table's ``info`` that name subjects or files stay out of the model.
_PERSONAL = ("recordings", "names_in_files", "parts")


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A classifier fitted to a table, with all that is needed to use it on new subjects.

    Made by :func:`fit_model`, or by :func:`idfsmec.evaluation.train_model`, which also measures
    how well it does; kept in a file by :func:`save_model`.

    Parameters
    ----------
    estimator : classifier
        Fitted; takes NaN where a channel is missing.
    imputer : ChannelImputer
        Fitted on the same samples: its factors tell whether a subject is unlike all of them.
    columns : tuple of str
        ``<channel>__<feature>``, in the order in which the estimator takes them.
    settings : mapping
        How features were computed: the table's ``info`` without names of subjects and files.
    data : mapping
        Numbers of subjects and samples it was fitted on, and what was missing.
    reference : mapping
        Where the training subjects lie in the space of factors, and how far from their centre.
    protocol, performance : mapping
        How it was evaluated, and the outcome; empty if it was not.
    versions : mapping
        Of the packages it was fitted with.
    created : str
        When it was fitted.
    harmonizer : SiteHarmonizer, optional
        Brings sites to one location and scale before anything else sees the features.
    """

    estimator: Any
    imputer: ChannelImputer
    columns: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    reference: Mapping[str, Any] = field(default_factory=dict)
    protocol: Mapping[str, Any] = field(default_factory=dict)
    performance: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    created: str = ""
    harmonizer: SiteHarmonizer | None = None

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

    def feature_settings(self) -> FeatureSettings:
        """Settings that compute the features of a recording as those of the training data.

        Raises
        ------
        InputError
            The table was made elsewhere, or has columns that no registered feature gives.
        """
        return FeatureSettings.from_dict(
            self.settings, columns=[split_column(column)[1] for column in self.columns]
        )

    def distances(self, X: pd.DataFrame) -> Array:
        """Distance of each sample from the training samples' centre in the space of factors."""
        return _distances(self.imputer.factors(X), self.reference)


def fit_model(
    table: FeatureTable,
    estimator: Any = None,
    *,
    harmonize: bool | str = False,
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
    factors = imputer.factors(X)
    reference = _locate(factors)
    away = pd.Series(_distances(factors, reference)).groupby(table.subjects.to_numpy()).median()
    return Model(
        fitted,
        imputer,
        tuple(str(column) for column in table.X.columns),
        settings={key: value for key, value in table.info.items() if key not in _PERSONAL},
        data=_describe(table),
        versions=_versions(),
        created=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        reference={**reference, "distances": sorted(float(distance) for distance in away)},
        harmonizer=harmonizer,
    )


def fit_estimator(
    estimator: Any, table: FeatureTable, *, harmonize: bool | str = False
) -> tuple[Any, SiteHarmonizer | None]:
    """Fit a fresh copy; inner folds keep subjects together where the estimator can.

    Samples are harmonized first, if that is asked for, and the harmonizer is returned too. An
    estimator with a parameter ``harmonize`` sees them as they are: it learns the sites inside its
    own folds.
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
    }


def _locate(factors: Array) -> dict[str, Any]:
    """Centre and precision of the training samples' factors."""
    if factors.shape[1] == 0:
        return {"centre": [], "precision": np.zeros((0, 0)).tolist()}
    covariance = np.atleast_2d(np.cov(factors, rowvar=False))
    floor = 1e-6 * max(float(np.trace(covariance)), 1e-12)
    precision = np.linalg.pinv(covariance + floor * np.eye(len(covariance)), hermitian=True)
    return {"centre": factors.mean(axis=0).tolist(), "precision": precision.tolist()}


def _distances(factors: Array, reference: Mapping[str, Any]) -> Array:
    away, precision = factors - np.asarray(reference["centre"]), np.asarray(reference["precision"])
    return np.sqrt(np.maximum(np.einsum("nq,qr,nr->n", away, precision, away), 0.0))


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


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

    path = check_model_path(path, overwrite=overwrite)
    parts = {"estimator": model.estimator, "imputer": model.imputer}
    if model.harmonizer is not None:
        parts["harmonizer"] = model.harmonizer
    content = skops_io.dumps(parts, compression=zipfile.ZIP_DEFLATED)
    if foreign := _foreign_types(content):
        raise InputError(
            f"{path}: a model file cannot hold {', '.join(foreign)}: it would not be trusted when "
            "it is read. Use parts of scikit-learn and idfsmec."
        )
    about = {
        "format": FORMAT_VERSION,
        "idfsmec": __version__,
        "classes": model.classes,
        **{name: getattr(model, name) for name in _ABOUT_FIELDS},
    }
    about["checksum"] = _checksum(content, about)
    with replacing(path) as (beside,):
        beside.write_bytes(content)
        with zipfile.ZipFile(beside, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_ABOUT, json.dumps(about, indent=1, allow_nan=False))
    return path


def check_model_path(path: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Refuse a name for a model before the work begins."""
    path = Path(path)
    if path.suffix.lower() != ENDING:
        raise InputError(f"{path}: a model's name ends in {ENDING}.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file.")
    if path.exists() and not overwrite:
        raise ExistingFileError(path)
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
    about = _read_about(path, content)
    try:
        if foreign := _foreign_types(content):
            raise InputError(
                f"{path}: refused, for it holds {', '.join(foreign)}, which no model of idfsmec "
                "does. Use only models from a source you trust."
            )
        parts = skops_io.loads(content, trusted=list(TRUSTED_TYPES))
        model = Model(
            parts["estimator"],
            parts["imputer"],
            **{name: about[name] for name in _ABOUT_FIELDS if name != "columns"},
            columns=tuple(about["columns"]),
            harmonizer=parts.get("harmonizer"),
        )
        _check_parts(model, about["classes"])
    except InputError:
        raise
    except Exception as error:  # whatever a changed description leads to
        raise InputError(f"{path}: the model file is damaged ({_line(error)}).") from error
    return model


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
    if number != FORMAT_VERSION or _minor(made_with) != _minor(__version__):
        raise InputError(
            f"{path}: the model was made by idfsmec {made_with}, this is {__version__} (model "
            f"format {number} and {FORMAT_VERSION}). Train it again, or use that version."
        )
    try:
        whole = about.pop("checksum") == _checksum(content, about)
    except Exception as error:
        raise InputError(f"{path}: the model file is damaged ({_line(error)}).") from error
    if not whole:
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


def _minor(text: str) -> tuple[str, ...]:
    return tuple(text.split(".")[:2])


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
