"""Models: a fitted classifier with what is needed to use it on new subjects."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from idfsmec._version import __version__
from idfsmec.errors import InputError
from idfsmec.prediction.harmonizer import SiteHarmonizer, harmonize_sites, learn_sites
from idfsmec.prediction.imputer import ChannelImputer
from idfsmec.prediction.linear import IDFSMECClassifier
from idfsmec.prediction.pipeline import fit_with_groups
from idfsmec.prediction.unusual import learn_reference
from idfsmec.table import FeatureTable
from idfsmec.table.columns import split_column

_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "mne", "skops")
# Entries of a table's ``info`` that name subjects or files stay out of the model.
_PERSONAL = ("recordings", "names_in_files", "parts")


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
    # Where the training subjects lie: see :mod:`idfsmec.prediction.unusual`.
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
    own_versions = {"python": platform.python_version(), "idfsmec": __version__}
    return Model(
        fitted,
        imputer,
        tuple(map(str, table.X.columns)),
        settings={key: value for key, value in table.info.items() if key not in _PERSONAL},
        data=_describe(table),
        reference=learn_reference(imputer, X, table.subjects),
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
    if has_fit_parameter(fresh, "sites") and table.sites is not None:
        extra["sites"] = table.sites
    fitted = fit_with_groups(fresh, X, table.y.to_numpy(), table.subjects, **extra)
    # A search is replaced by the estimator it chose.
    fitted = getattr(fitted, "best_estimator_", fitted)
    if not hasattr(fitted, "predict_proba"):
        raise InputError(
            f"{type(fitted).__name__} has no predict_proba, which a model needs; wrap it in "
            "scikit-learn's CalibratedClassifierCV",
            argument="estimator",
        )
    return fitted, harmonizer


def rows_with_a_channel(table: FeatureTable) -> FeatureTable:
    """Leave out samples without any channel."""
    there = np.asarray(table.observed.to_numpy().any(axis=1))
    if not there.any():
        raise InputError("no sample has any channel.")
    return table if there.all() else table.take(there)


def _describe(table: FeatureTable) -> dict[str, Any]:
    subjects = table.subjects.groupby(table.y).nunique()
    observed = table.observed
    return {
        "n_samples": len(table),
        "n_subjects": int(table.subjects.nunique()),
        "subjects": {str(label): int(count) for label, count in subjects.items()},
        "share_missing": float(1.0 - observed.to_numpy().mean()),
        "conditions": table.conditions,
    }
