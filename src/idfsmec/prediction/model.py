"""A model: what was fitted, on whom, how well it did, and how its features are made."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from idfsmec._columns import split_column
from idfsmec.errors import InputError
from idfsmec.features.settings import FeatureSettings
from idfsmec.prediction.classifier import IDFSMECClassifier
from idfsmec.prediction.harmonizer import SiteHarmonizer, harmonize_sites, learn_sites
from idfsmec.prediction.imputer import ChannelImputer
from idfsmec.table import FeatureTable

Array = NDArray[np.float64]

_PACKAGES = ("idfsmec", "numpy", "scipy", "scikit-learn", "pandas", "mne", "skops")
# Of a table's ``info``, what names people or files stays out of the model.
_PERSONAL = ("recordings", "names_in_files", "parts")


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A classifier fitted to a table, with all that is needed to use it on new people.

    Made by :func:`fit_model`, or by :func:`idfsmec.evaluation.train_model`, which also measures
    how well it does; kept in a file by :func:`save_model`.

    Parameters
    ----------
    estimator : classifier
        Fitted; takes NaN where a channel is missing.
    completer : ChannelImputer
        Fitted on the same samples: its factors tell whether somebody is unlike all of them.
    columns : tuple of str
        ``<channel>__<feature>``, in the order in which the estimator takes them.
    settings : mapping
        How features were computed: the table's ``info`` without names of people and files.
    data : mapping
        On whom it was fitted: numbers of people and samples, what was missing.
    reference : mapping
        Where the training people lie in the space of factors, and how far from their centre.
    protocol, performance : mapping
        How it was evaluated, and the outcome; empty if it was not.
    versions : mapping
        Of the packages it was fitted with.
    created : str
        When it was fitted.
    harmonizer : SiteHarmonizer, optional
        What brings sites to one location and scale before anything else sees the features.
    """

    estimator: Any
    completer: ChannelImputer
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
        people = np.array(list(self.data["people"].values()), dtype=np.float64)
        given = getattr(self.estimator, "class_prior_", people / people.sum())
        return [float(one) for one in given]

    @property
    def kind(self) -> str:
        """What the estimator is called."""
        return str(getattr(self.estimator, "name", type(self.estimator).__name__))

    def __repr__(self) -> str:
        return (
            f"Model({self.kind} of {self.data.get('n_people', '?')} people; {len(self.channels)} "
            f"channels, {len(self.columns)} columns; classes {', '.join(map(str, self.classes))})"
        )

    def feature_settings(self) -> FeatureSettings:
        """How to compute the features of a recording as those of the training data.

        Raises
        ------
        InputError
            The table was made elsewhere, or has columns that no registered feature gives.
        """
        return FeatureSettings.from_dict(
            self.settings, columns=[split_column(column)[1] for column in self.columns]
        )

    def distances(self, X: pd.DataFrame) -> Array:
        """How far each sample is from the training samples' centre in the space of factors."""
        away = self.completer.factors(X) - np.asarray(self.reference["centre"])
        precision = np.asarray(self.reference["precision"])
        return np.sqrt(np.maximum(np.einsum("nq,qr,nr->n", away, precision, away), 0.0))


def fit_model(table: FeatureTable, estimator: Any = None, *, harmonize: bool = False) -> Model:
    """Fit a classifier to all people of a table.

    Parameters
    ----------
    table : FeatureTable
    estimator : classifier, optional
        With ``predict_proba``, takes a DataFrame with NaN where channels are missing; by default
        :class:`IDFSMECClassifier`. If it is to be kept in a file, it has to be made of
        scikit-learn's and this package's parts.
    harmonize : bool, default=False
        Whether sites are brought to one location and scale first, by a :class:`SiteHarmonizer`
        that the model keeps. :func:`predict_people` says what becomes of people of other sites.

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
    Model(IDFSMECClassifier of 20 people; 2 channels, 3 columns; classes HC, MDD)
    """
    table = rows_with_a_channel(table)
    if table.y.nunique() < 2:
        raise InputError(f"all samples have the label {table.y.iloc[0]!r}: there is no choice.")
    fitted, harmonizer = fit_estimator(estimator, table, harmonize=harmonize)
    X = harmonize_sites(harmonizer, table.X, table.sites)
    completer = ChannelImputer().fit(X)
    model = Model(
        fitted,
        completer,
        tuple(str(column) for column in table.X.columns),
        settings={key: value for key, value in table.info.items() if key not in _PERSONAL},
        data=_describe(table),
        versions=_versions(),
        created=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        reference=_place(completer.factors(X)),
        harmonizer=harmonizer,
    )
    away = pd.Series(model.distances(X)).groupby(table.subjects.to_numpy()).median()
    reference = {**model.reference, "distances": sorted(float(one) for one in away)}
    object.__setattr__(model, "reference", reference)
    return model


def fit_estimator(
    estimator: Any, table: FeatureTable, *, harmonize: bool = False
) -> tuple[Any, SiteHarmonizer | None]:
    """Fit a fresh copy; inner folds keep people together where the estimator can.

    Samples are harmonized first, if that is asked for, and what has learned the sites is given
    too. An estimator with a parameter ``harmonize`` sees them as they are: it has folds of its
    own, inside which to learn the sites.
    """
    fresh = IDFSMECClassifier() if estimator is None else clone(estimator)
    harmonizer = learn_sites(table) if harmonize else None
    X, given = harmonize_sites(harmonizer, table.X, table.sites), {}
    if harmonize and "harmonize" in fresh.get_params():
        X = table.X
        fresh.set_params(harmonize=True)
    if has_fit_parameter(fresh, "groups"):
        given["groups"] = table.subjects
    if has_fit_parameter(fresh, "sites") and table.sites is not None:
        given["sites"] = table.sites
    fitted = fresh.fit(X, table.y.to_numpy(), **given)
    # Of a search, what it ended with.
    return getattr(fitted, "best_estimator_", fitted), harmonizer


def rows_with_a_channel(table: FeatureTable) -> FeatureTable:
    """Leave out samples without any channel: they say nothing about anybody."""
    there = np.asarray(table.observed.to_numpy().any(axis=1))
    if not there.any():
        raise InputError("no sample has any channel.")
    return table if there.all() else table.take(there)


def _describe(table: FeatureTable) -> dict[str, Any]:
    people = table.subjects.groupby(table.y).nunique()
    observed = table.observed
    by_person = observed.groupby(table.subjects.to_numpy()).mean()
    return {
        "n_samples": len(table),
        "n_people": int(table.subjects.nunique()),
        "people": {str(label): int(count) for label, count in people.items()},
        "samples": {str(label): int((table.y == label).sum()) for label in people.index},
        "share_missing": float(1.0 - observed.to_numpy().mean()),
        "channel_shares": {str(name): float(share) for name, share in observed.mean().items()},
        "least_present": float(by_person.mean(axis=1).min()),
    }


def _place(factors: Array) -> dict[str, Any]:
    """Centre and precision of the training samples' factors."""
    if factors.shape[1] == 0:
        return {"centre": [], "precision": np.zeros((0, 0)).tolist()}
    covariance = np.atleast_2d(np.cov(factors, rowvar=False))
    floor = 1e-6 * max(float(np.trace(covariance)), 1e-12)
    precision = np.linalg.pinv(covariance + floor * np.eye(len(covariance)), hermitian=True)
    return {"centre": factors.mean(axis=0).tolist(), "precision": precision.tolist()}


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
