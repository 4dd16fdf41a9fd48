"""Models: a fitted classifier with what is needed to use it on new subjects, and its file.

A file is a ZIP archive written by skops, without pickle. Only the types of a list are read back,
and what is read is tried before it is used.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin, clone, is_regressor
from sklearn.utils import get_tags

from idfsmec._files import null_for_nan, replacing
from idfsmec._version import __version__
from idfsmec.errors import ExistingFileError, InputError, reason_of
from idfsmec.features.acquisition import recorded_references
from idfsmec.prediction.adjuster import (
    Adjuster,
    Corrections,
    check_corrections,
    make_corrections,
    table_covariates,
)
from idfsmec.prediction.harmonizer import SiteHarmonizer
from idfsmec.prediction.imputer import ChannelImputer
from idfsmec.prediction.linear import IDFSMECClassifier, IDFSMECRegressor
from idfsmec.prediction.pipeline import (
    HarmonizedClassifier,
    HarmonizedRegressor,
    SamplesEstimator,
)
from idfsmec.prediction.subjects import learn_reference, predict_subjects
from idfsmec.prediction.training_data import (
    digest_samples,
    read_digest,
    remember_samples,
    write_digest,
)
from idfsmec.table import FeatureTable
from idfsmec.table.columns import split_column

_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "mne", "skops")
# Entries of a table's ``info`` that name subjects or files stay out of the model.
_PERSONAL = ("recordings", "names_in_files", "parts")
# Raised when earlier files can no longer be read.
_FORMAT_VERSION = 7
#: Types that a model file may hold, besides those that skops itself trusts: plain containers,
#: NumPy's arrays, scikit-learn's estimators. Whatever else a file names is refused.
TRUSTED_TYPES = (
    "idfsmec.prediction.linear.IDFSMECClassifier",
    "idfsmec.prediction.linear.IDFSMECRegressor",
    "idfsmec.prediction.adjuster.Adjuster",
    "idfsmec.prediction.adjuster.Corrections",
    "idfsmec.prediction.harmonizer.SiteHarmonizer",
    "idfsmec.prediction.imputer.ChannelImputer",
    "idfsmec.prediction.imputer.FactorModel",
    "idfsmec.prediction.pipeline.TunedPipeline",
    "idfsmec.prediction.pipeline.TunedRegressor",
    "idfsmec.prediction.ridge.BoostedScore",
    "idfsmec.prediction.ridge.LinearRidge",
    "idfsmec.prediction.sanity.Boosting",
    "idfsmec.prediction.samples.MissingMarks",
    "idfsmec.prediction.samples.Preparation",
    "idfsmec.prediction.sanity.RidgeByCost",
    "idfsmec.prediction.svm.LinearSVM",
    "idfsmec.solver.scaling.Scaling",
    "numpy.dtype",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.feature_selection._univariate_selection.chi2",
    "sklearn.feature_selection._univariate_selection.f_classif",
)
# Arrays that have infinity for constant features and channels without information.
_MAY_BE_INFINITE = ("unit", "held_out_loss_", "objective_")
_ABOUT, _SCHEMA = "idfsmec.json", "schema.json"  # ours, and that of skops
_MOST_BYTES = 2**31  # unpacked; no model is as large
# What of a model is written by skops; all else is written as JSON, in readable form.
_PARTS = ("estimator", "imputer", "harmonizer", "adjuster")
# Entries that cards and pages show.
_NEEDED = {
    "data": {"n_subjects", "n_samples", "subjects", "share_missing"},
    "protocol": {"n_splits", "n_repeats", "seed"},
    "audit": {"level", "title", "verdict"},
}


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A classifier fitted to a table, ready to predict new subjects.

    Made by :func:`fit_model`, or by :func:`idfsmec.evaluation.train_model`, which also measures
    how well it does; kept in a file by :func:`save_model`.
    """

    #: Classifier that takes NaN where a channel is missing.
    estimator: Any
    #: Its factors tell whether a subject is unlike all in training.
    imputer: ChannelImputer
    #: ``<channel>__<feature>``, in the order that the estimator takes.
    columns: tuple[str, ...]
    #: How features were computed: the table's ``info`` without names of subjects and files.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Numbers of subjects and samples it was fitted on, and what was missing.
    data: Mapping[str, Any] = field(default_factory=dict)
    #: Where the training subjects lie: centre and precision of their factors, usual distances.
    reference: Mapping[str, Any] = field(default_factory=dict)
    #: How it was evaluated; empty if it was not.
    protocol: Mapping[str, Any] = field(default_factory=dict)
    #: Scores on held-out subjects, see :func:`idfsmec.evaluation.train_model`; empty without.
    performance: Mapping[str, Any] = field(default_factory=dict)
    #: Versions of the packages in use.
    versions: Mapping[str, str] = field(default_factory=dict)
    #: Comes before anything else; None where sites are left as they are.
    harmonizer: SiteHarmonizer | None = None
    #: Comes next; None where nothing is adjusted.
    adjuster: Adjuster | None = None
    #: Level, title and reason of the audit of its table; empty if it was not audited.
    audit: Mapping[str, str] = field(default_factory=dict)
    #: Keyed hashes of the training samples, if participants are to be recognised; else empty.
    remembered: Mapping[str, Any] = field(default_factory=dict)
    #: Digest of the training table; beside the file, not in it.
    digest: str = ""

    @property
    def classes(self) -> list[Any]:
        """Labels in the order of the probabilities; none if a score is predicted."""
        return [] if self.score is not None else list(self.estimator.classes_.tolist())

    @property
    def score(self) -> str | None:
        """Name of the score that is predicted; None for classes."""
        target = self.settings.get("target") or {}
        return str(target["name"]) if target.get("kind", "classes") != "classes" else None

    @property
    def grades(self) -> tuple[str, ...]:
        """Grades that are predicted, from the lowest; none for classes or a score."""
        return tuple((self.settings.get("target") or {}).get("order") or ())

    def nearest_grade(self, score: float) -> str:
        """Return the grade that is nearest to what is predicted; nothing without grades."""
        place = int(np.clip(round(score), 0, max(len(self.grades) - 1, 0)))
        return self.grades[place] if self.grades else ""

    @cached_property
    def column_parts(self) -> list[tuple[str, str]]:
        """Channel and feature of each column."""
        return [split_column(column) for column in self.columns]

    @cached_property
    def channels(self) -> list[str]:
        """Channel names, each once, in the order of the columns."""
        return list(dict.fromkeys(channel for channel, _ in self.column_parts))

    @property
    def corrections(self) -> Corrections:
        """What is taken out of features before all else."""
        names = () if self.adjuster is None else tuple(self.adjuster.covariates_)
        return Corrections(self.harmonizer, self.adjuster, names)

    @property
    def prior(self) -> list[float]:
        """Prior of each class: its ``class_prior_``, or the shares in training."""
        if self.score is not None:
            return []
        subjects = np.array(list(self.data["subjects"].values()), dtype=np.float64)
        prior = getattr(self.estimator, "class_prior_", subjects / subjects.sum())
        return [float(share) for share in prior]

    @property
    def kind(self) -> str:
        """Name of the estimator."""
        return str(getattr(self.estimator, "name", type(self.estimator).__name__))

    def __repr__(self) -> str:
        names = map(str, self.classes)
        return (
            f"Model({self.kind} of {self.data.get('n_subjects', '?')} subjects; "
            f"{len(self.channels)} channels, {len(self.columns)} columns; "
            + (f"score {self.score})" if self.score else f"classes {', '.join(names)})")
        )


_ABOUT_FIELDS = [each.name for each in fields(Model) if each.name not in (*_PARTS, "digest")]


def fit_model(
    table: FeatureTable,
    estimator: Any = None,
    *,
    harmonize: bool | str = False,
    adjust: Sequence[str] = (),
    adjust_from: str | None = None,
    remember_participants: bool = False,
) -> Model:
    """Fit a classifier, or with a score a regressor, to all subjects of a table.

    Parameters
    ----------
    table : FeatureTable
    estimator : classifier or regressor, optional
        With ``predict_proba`` (for a score ``predict``), takes a DataFrame with NaN where channels
        are missing; by default :class:`IDFSMECClassifier` or :class:`IDFSMECRegressor`. If it is
        to be kept in a file, it has to be made of scikit-learn's and this package's parts.
    harmonize : bool or str, default=False
        Whether sites are brought to one location and scale first, by a :class:`SiteHarmonizer`
        that the model keeps: True learns them from all samples, the name of a class, such as
        ``"HC"``, from the samples of that class only. :func:`predict_subjects` says how it treated
        subjects of other sites.
    adjust : sequence of str, default=()
        Columns of the table's rows whose effect is taken out by an :class:`Adjuster` that the
        model keeps, such as ``["age", "sex"]``; ``"age:spline"`` has a spline. New subjects need
        them, too.
    adjust_from : str, optional
        Learn these effects from the samples of this class only, such as ``"HC"``.
    remember_participants : bool, default=False
        Keep hashes of samples in the model, rounded and keyed, so that it recognises participants
        it was trained on. Whoever has a participant's values can then test the same.

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
        raise InputError(
            f"all samples have the label {table.y.iloc[0]!r}: a classifier needs two classes."
        )
    numeric = table.target.is_numeric
    classes = np.empty(0) if numeric else table.y.unique()
    wanted = make_corrections(classes, harmonize, adjust, adjust_from)
    fitted, corrections = fit_estimator(estimator, table, wanted)
    X = corrections.apply_to(table)
    imputer = ChannelImputer().fit(X)
    subjects = table.subjects.groupby(table.y).nunique()
    own_versions = {"python": platform.python_version(), "idfsmec": __version__}
    return Model(
        fitted,
        imputer,
        tuple(map(str, table.X.columns)),
        settings={key: value for key, value in table.info.items() if key not in _PERSONAL},
        data={
            "n_samples": len(table),
            "n_subjects": int(table.subjects.nunique()),
            "subjects": {}
            if numeric
            else {str(label): int(count) for label, count in subjects.items()},
            **({"score": _describe_score(table.scores)} if numeric else {}),
            "share_missing": float(1.0 - table.observed.to_numpy().mean()),
            "conditions": table.conditions,
            "references": sorted(recorded_references(table.info)),
        },
        reference=learn_reference(imputer, X, table.subjects),
        versions={name: version(name) for name in _PACKAGES} | own_versions,
        harmonizer=corrections.harmonizer,
        adjuster=corrections.adjuster,
        remembered=remember_samples(table.X, table.subjects) if remember_participants else {},
        digest=digest_samples(table.X),
    )


def _describe_score(scores: pd.Series) -> dict[str, float]:
    """Return mean, standard deviation and range of the score over participants."""
    means = scores.groupby(level=0).mean()
    known = {"mean": means.mean(), "sd": means.std(), "low": means.min(), "high": means.max()}
    return {name: float(value) for name, value in known.items()}


def fit_estimator(
    estimator: Any, table: FeatureTable, corrections: Corrections
) -> tuple[Any, Corrections]:
    """Fit a fresh copy; also return the corrections, whose samples the fitted estimator takes.

    Inner folds keep subjects together where the estimator can, and correct by their own samples.
    """
    check_corrections(table, corrections)
    numeric = table.target.is_numeric
    usual = IDFSMECRegressor() if numeric else IDFSMECClassifier()
    fresh = usual if estimator is None else clone(estimator)
    if is_regressor(fresh) != numeric:
        wanted = "regressor" if numeric else "classifier"
        raise InputError(
            f"{type(fresh).__name__} is no {wanted}, which the target of the table needs",
            argument="estimator",
        )
    whole: Any = fresh
    if not isinstance(fresh, SamplesEstimator):
        whole = HarmonizedRegressor(fresh) if numeric else HarmonizedClassifier(fresh)
    whole.set_params(harmonizer=corrections.harmonizer, adjuster=corrections.adjuster)
    known = table_covariates(table, corrections.names)
    with taking_missing(fresh):
        whole.fit(table.X, table.targets, table.subjects, table.sites, known)
    fitted = whole.for_prediction()
    if not numeric and not hasattr(fitted, "predict_proba"):
        raise InputError(
            f"{type(fitted).__name__} has no predict_proba, which a model needs; wrap it in "
            "scikit-learn's CalibratedClassifierCV",
            argument="estimator",
        )
    return fitted, Corrections(whole.harmonizer_, whole.adjuster_, corrections.names)


@contextmanager
def taking_missing(estimator: Any) -> Iterator[None]:
    """Say what to do where an estimator does not take NaN."""
    try:
        yield
    except ValueError as error:
        if isinstance(error, InputError) or "NaN" not in str(error):
            raise
        raise InputError(
            f"{type(estimator).__name__} does not take NaN, which stands for missing channels: "
            "put an imputer before it, sklearn.pipeline.make_pipeline(ChannelImputer(), ...)"
        ) from error


def rows_with_a_channel(table: FeatureTable) -> FeatureTable:
    """Leave out samples without any channel."""
    there = np.asarray(table.observed.to_numpy().any(axis=1))
    if not there.any():
        raise InputError("no sample has any channel.")
    return table if there.all() else table.take(there)


def save_model(model: Model, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a model to a file, without pickle.

    The file is written by :mod:`skops.io`, a ZIP archive of arrays and a description of how they
    belong together; ``idfsmec.json`` in it has the rest in readable form. A digest of the training
    table is written beside it, as ``model.skops.training.json``, by which that table is recognised
    while the file is there; it is not part of the model.

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
    parts = {name: getattr(model, name) for name in _PARTS}
    parts = {name: part for name, part in parts.items() if part is not None}
    content = _same_bytes(skops_io.dumps(parts, compression=zipfile.ZIP_STORED))
    if foreign := _foreign_types(content):
        raise InputError(
            f"{path}: a model file cannot hold {', '.join(foreign)}: it would not be trusted when "
            "it is read. Use parts of scikit-learn and idfsmec."
        )
    description = {"format": _FORMAT_VERSION, "idfsmec": __version__, "classes": model.classes}
    description |= {name: getattr(model, name) for name in _ABOUT_FIELDS}
    description["performance"] = null_for_nan(model.performance)
    checksum = description["checksum"] = _checksum(content, description)
    with replacing(path) as (beside,):
        beside.write_bytes(content)
        with zipfile.ZipFile(beside, "a") as archive:
            text = json.dumps(description, indent=1, allow_nan=False)
            archive.writestr(_member(_ABOUT), text)
    if model.digest:
        write_digest(path, checksum, model.digest)
    return path


def _member(name: str) -> zipfile.ZipInfo:
    """Describe a member of the archive without the time at which it was written."""
    member = zipfile.ZipInfo(name)  # of 1980
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o600 << 16
    return member


def _same_bytes(content: bytes) -> bytes:
    """Write what skops wrote so that equal models have equal bytes.

    skops names objects and members of the archive by their addresses; here they are numbered in
    the order in which its description names them.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members.pop(_SCHEMA))
    names: dict[str, str] = {}
    numbers: dict[int, int] = {}

    def renamed(part: Any) -> Any:
        if isinstance(part, list):
            return [renamed(each) for each in part]
        if not isinstance(part, dict):
            return part
        part = {key: renamed(value) for key, value in part.items()}
        if isinstance(part.get("__id__"), int):
            part["__id__"] = numbers.setdefault(part["__id__"], len(numbers) + 1)
        if (name := part.get("file")) in members:
            part["file"] = names.setdefault(name, f"{len(names) + 1:04d}{Path(name).suffix}")
        return part

    schema = renamed(schema)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, new in names.items():
            archive.writestr(_member(new), members[name])
        archive.writestr(_member(_SCHEMA), json.dumps(schema, indent=2))
    return file.getvalue()


def _nan_for_null(value: Any) -> Any:
    """Turn back what :func:`idfsmec._files.null_for_nan` wrote; infinity comes back as NaN."""
    if isinstance(value, dict):
        return {key: _nan_for_null(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_nan_for_null(part) for part in value]
    return np.nan if value is None else value


def check_model_path(path: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Refuse a file that :func:`save_model` could not write, before the work."""
    path = Path(path)
    if path.suffix.lower() != ".skops":
        raise InputError(f"{path}: a model's name ends in .skops.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file.")
    if path.exists() and not overwrite:
        raise ExistingFileError(path)
    if (year := time.localtime().tm_year) < 1980:
        raise InputError(
            f"{path}: a model file cannot be dated {year}, before 1980; set the computer's clock."
        )
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
        description, digest = _read_about(path, content)
        if foreign := _foreign_types(content):
            raise InputError(
                f"{path}: refused, because it holds {', '.join(foreign)}, which no model of "
                "idfsmec has. Use only models from a source you trust."
            )
        parts = skops_io.loads(content, trusted=list(TRUSTED_TYPES))
        _refuse_nan(parts)
        _check_description(description)
        described = {name: description[name] for name in _ABOUT_FIELDS}
        described["performance"] = _nan_for_null(described["performance"])
        described |= {"columns": tuple(description["columns"]), "digest": digest}
        model = Model(**parts, **described)
        if model.classes != description["classes"]:
            raise ValueError("its classes are not those of its description")
        _try(model)
    except Exception as error:  # whatever a changed description leads to
        if isinstance(error, InputError) and str(error).startswith(str(path)):
            raise
        raise InputError(
            f"{path}: the model file is damaged ({reason_of(error)[:200]})."
        ) from error
    return model


def _read_about(path: Path, content: bytes) -> tuple[dict[str, Any], str]:
    """Read the description, and the digest of the table, and refuse what cannot be used."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > _MOST_BYTES:
                raise InputError(f"{path}: the model file is too large to be one.")
            if len(set(archive.namelist())) < len(archive.namelist()):
                raise InputError(f"{path}: the model file has two entries of one name.")
            description = json.loads(archive.read(_ABOUT))
        made_with, number = str(description["idfsmec"]), description["format"]
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{path}: this is no model file of idfsmec ({reason_of(error)[:200]})."
        ) from error
    if number != _FORMAT_VERSION or made_with.split(".")[:2] != __version__.split(".")[:2]:
        raise InputError(
            f"{path}: the model was made by idfsmec {made_with}, this is {__version__} (model "
            f"format {number} and {_FORMAT_VERSION}). Train it again, or use that version."
        )
    checksum = description.pop("checksum")
    if checksum != _checksum(content, description):
        raise InputError(
            f"{path}: the model file was changed or damaged (its checksum does not match). Copy "
            "it again from its source."
        )
    return dict(description), read_digest(path, checksum)


def _foreign_types(content: bytes) -> list[str]:
    from skops import io as skops_io

    return sorted(set(skops_io.get_untrusted_types(data=content)) - set(TRUSTED_TYPES))


def _check_description(description: Mapping[str, Any]) -> None:
    """Refuse a description that lacks what cards and pages show, or has nothing in its place."""
    for name in _ABOUT_FIELDS:
        kind = {"columns": list}.get(name, dict)
        if not isinstance(description[name], kind):
            raise TypeError(f"{name} is {description[name]!r}")
        if name not in ("settings", "performance"):
            _refuse_null(name, description[name])
    for name in ("columns", "classes"):
        if len(set(description[name])) < len(description[name]):
            raise ValueError(f"{name} has an entry twice")
    for name, keys in _NEEDED.items():
        if (absent := keys - set(description[name])) and (description[name] or name == "data"):
            raise KeyError(f"{name} has no {sorted(absent)[0]}")


def _refuse_null(name: str, value: Any) -> None:
    if value is None:
        raise ValueError(f"{name} is null")
    nested = dict(enumerate(value)) if isinstance(value, list) else value
    for key, part in nested.items() if isinstance(nested, dict) else ():
        _refuse_null(f"{name}: {key}", part)


def _refuse_nan(part: Any, name: str = "") -> None:
    """Refuse NaN and infinity in arrays of this package and of classifiers that take no NaN."""
    if isinstance(part, np.ndarray) and part.dtype.kind == "f":
        if np.isnan(part).any() or (np.isinf(part).any() and name not in _MAY_BE_INFINITE):
            raise ValueError(f"{name} holds NaN or infinity")
    elif isinstance(part, dict):
        for key, nested in part.items():
            _refuse_nan(nested, key)
    elif isinstance(part, list | tuple):
        for nested in part:
            _refuse_nan(nested, name)
    elif type(part).__module__.startswith("idfsmec.") or (
        isinstance(part, ClassifierMixin) and not get_tags(part).input_tags.allow_nan
    ):
        _refuse_nan(vars(part))


def _try(model: Model) -> None:
    """Predict the mean of the training data, at each known site: numbers must come out."""
    sites = None if model.harmonizer is None else pd.Series(model.harmonizer.sites_)
    n = 1 if sites is None else len(sites)
    values = np.tile(np.nan_to_num(model.imputer.mean_, nan=np.inf), (n, 1))
    X, names = pd.DataFrame(values, columns=list(model.columns)), pd.Series(range(n)).astype(str)
    rows = None if model.adjuster is None else model.adjuster.example(n)
    probe = FeatureTable(X, names, names, sites=sites, rows=rows)
    for subject in predict_subjects(model, probe, allow_unusual=True).subjects:
        numbers = [subject.distance, *subject.probabilities.values(), *subject.votes.values()]
        numbers += [] if model.score is None else [subject.predicted]
        if not np.isfinite(numbers).all():
            raise ValueError("it gives no numbers")


def _checksum(content: bytes, description: Mapping[str, Any]) -> str:
    """Hash the members of the archive, in any order and however packed, and the description."""
    digest = hashlib.sha256()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in sorted(set(archive.namelist()) - {_ABOUT}):
            digest.update(f"{name}\n".encode())
            digest.update(hashlib.sha256(archive.read(name)).digest())
    digest.update(json.dumps(description, sort_keys=True, allow_nan=False).encode())
    return digest.hexdigest()
