"""Adjuster: take out of features what age, sex and other covariates explain."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone

from idfsmec._validation import (
    Constraints,
    SequenceOf,
    group_names,
    validate_params,
    warn_without_groups,
)
from idfsmec.errors import ArgumentError, InputError, listing
from idfsmec.metrics import Floats
from idfsmec.prediction.harmonizer import (
    UNNAMED_SITE,
    SiteHarmonizer,
    check_sites,
    least_squares,
    reference_class,
)
from idfsmec.prediction.imputer import Array, IncompleteTransformer
from idfsmec.table import FeatureTable

# Knots of a spline, as quantiles (Harrell, Regression Modeling Strategies, 2015, table 2.3).
_KNOTS = (0.05, 0.35, 0.65, 0.95)
_SPLINE = ":spline"


@dataclass(kw_only=True, eq=False, repr=False)
class Adjuster(IncompleteTransformer):
    """Take out of features what covariates such as age and sex explain.

    Each feature is regressed on the covariates by least squares, and what the covariates predict
    is taken out: a sample then has the features that a participant with average covariates would
    have. Only the effect that the regression describes is taken out, and only as far as the
    covariates are measured without error.

    Parameters
    ----------
    reference : label, optional
        Learn the effects from the samples of this class only, such as ``"HC"``. Without, all
        samples count, and where the classes differ in a covariate, part of the difference between
        classes is taken out with it. `fit` needs `y`; `transform` never uses labels.
    splines : bool or sequence of str, default=False
        Numbers whose effect is a natural cubic spline with four knots, True for all, or their
        names; the effect of the others is linear.
    require_covariates : bool, default=True
        Refuse data without covariates. False leaves them as they are.

    Attributes
    ----------
    coef_ : ndarray of shape (n_terms, n_features)
        Effects of the terms: a number or the three terms of its spline, and a term for each but
        the first category of a text.
    mean_ : ndarray of shape (n_features,)
        Expected features at the average covariates.
    terms_ : list of str
    covariates_ : dict
        Knots of each number (none if its effect is linear), and categories of each text.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X has string column names.

    Notes
    -----
    Without `splines` and `reference`, `transform` gives the residuals of a linear regression of
    each feature, as julearn's ConfoundRemover does, plus ``mean_``. A feature that is observed in
    no more samples than there are terms is left as it is. Missing values stay missing.

    With scikit-learn's metadata routing, ``set_fit_request(covariates=True)`` and
    ``set_transform_request(covariates=True)`` hand on the covariates.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from idfsmec.prediction import Adjuster
    >>> rng = np.random.default_rng(0)
    >>> known = pd.DataFrame({"age": rng.uniform(20, 60, 80), "sex": np.tile(["f", "m"], 40)})
    >>> X = rng.normal(size=(80, 2)) + 0.1 * known[["age"]].to_numpy()
    >>> adjusted = Adjuster().fit_transform(X, covariates=known, groups=np.arange(80))
    >>> bool(abs(np.corrcoef(adjusted[:, 0], known["age"])[0, 1]) < 1e-10)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "reference": [object],
        "splines": ["boolean", SequenceOf(str)],
        "require_covariates": ["boolean"],
    }

    reference: Any = None
    splines: bool | Sequence[str] = False
    require_covariates: bool = True

    @validate_params
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        covariates: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the effects of covariates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a value is missing.
        y : array-like of shape (n_samples,), optional
            Labels; only with `reference`.
        covariates : DataFrame or array-like of shape (n_samples, n_covariates)
            Numbers, and texts as categories.
        groups : array-like of shape (n_samples,), optional
            Subject of every sample; each subject counts once. By default an index of X named
            "subject"; without it every sample is a subject of its own, with a warning.

        Returns
        -------
        Adjuster
        """
        values = self._check_samples(X, reset=True)
        known = self.check_covariates(covariates, len(values))
        rows = np.ones(len(values), dtype=bool)
        if self.reference is not None:
            if y is None:
                raise ArgumentError(f"reference={self.reference!r} needs y", argument="y")
            rows = np.array([label == self.reference for label in np.asarray(y).tolist()])
            if not rows.any():
                raise ArgumentError(
                    f"no sample has the label reference={self.reference!r}", argument="reference"
                )
        subjects = group_names(X, groups)
        if subjects is None:
            warn_without_groups("Adjuster", stacklevel=4)
        weights = _subject_weights(subjects, len(values))
        self.learn_terms(known, weights)
        design = np.column_stack([np.ones(len(values)), self.terms(known)])[rows]
        coef = least_squares(values[rows], design, weights[rows])
        few = (~np.isnan(values[rows])).sum(axis=0) <= design.shape[1]
        self.mean_, self.coef_ = coef[0], np.where(few, 0.0, coef[1:])
        return self

    def transform(self, X: ArrayLike, *, covariates: ArrayLike | None = None) -> Array:
        """Take out the effects of covariates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        covariates : DataFrame or array-like of shape (n_samples, n_covariates)
            The same as in `fit`. An unknown category counts as the average of the others, with a
            warning.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            NaN where `X` is NaN.
        """
        values = self._check_samples(X)
        terms = self.terms(self.check_covariates(covariates, len(values)))
        return np.asarray(values - terms @ self.coef_)

    def fit_transform(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        covariates: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Array:
        """Learn the effects of covariates and take them out; parameters as for `fit`."""
        fitted = self.fit(X, y, covariates=covariates, groups=groups)
        return fitted.transform(X, covariates=covariates)

    def check_covariates(self, covariates: Any, n_samples: int) -> pd.DataFrame:
        """Return covariates with their names; numbers are finite and nothing is missing."""
        if covariates is None:
            if self.require_covariates:
                raise ArgumentError(
                    "covariates is not given: there is nothing to adjust for",
                    argument="covariates",
                )
            return pd.DataFrame(index=range(n_samples))
        known = pd.DataFrame(covariates)
        known = known.set_axis([str(name) for name in known.columns], axis=1).infer_objects()
        if len(known) != n_samples:
            raise ArgumentError(
                f"covariates has {len(known)} rows for {n_samples} samples", argument="covariates"
            )
        for name in known:
            column = known[name]
            is_number = pd.api.types.is_numeric_dtype(column)
            if column.isna().any() or (is_number and not np.isfinite(column).all()):
                raise ArgumentError(f"{name} is missing or infinite", argument="covariates")
        return known

    def example(self, n_samples: int) -> pd.DataFrame:
        """Return covariates such as those in fit, for a trial."""
        first = {
            name: learned[0] if isinstance(learned, list) else 0.0
            for name, learned in self.covariates_.items()
        }
        return pd.DataFrame([first] * n_samples)

    def learn_terms(self, known: pd.DataFrame, weights: Floats) -> None:
        """Learn the knots of splines, the categories of texts, and the means of all terms."""
        named = [] if isinstance(self.splines, bool) else list(self.splines)
        if unknown := [name for name in named if name not in known.columns]:
            raise ArgumentError(
                f"splines names {unknown[0]!r}, and the covariates are {listing(known.columns)}",
                argument="splines",
            )
        self.covariates_: dict[str, Any] = {}
        self.terms_: list[str] = []
        for name in map(str, known.columns):
            column = known[name]
            if not pd.api.types.is_numeric_dtype(column):
                self.covariates_[name] = sorted(column.astype(str).unique().tolist())
                self.terms_ += [f"{name} {category}" for category in self.covariates_[name][1:]]
                continue
            knots: list[float] = []
            if self.splines is True or name in named:
                knots = np.unique(np.quantile(column.to_numpy(dtype=float), _KNOTS)).tolist()
                if len(knots) < len(_KNOTS):
                    raise ArgumentError(
                        f"{name} has too few different values for a spline", argument="splines"
                    )
            self.covariates_[name] = np.array(knots)
            self.terms_ += [name, *(f"{name} (spline {i + 1})" for i in range(len(knots) - 2))]
        self._centre = np.zeros(len(self.terms_))
        self._centre = np.average(self.terms(known), axis=0, weights=weights)

    def terms(self, known: pd.DataFrame) -> Floats:
        """Return the terms of the regression less their means; 0 for an unknown category."""
        if (names := list(known.columns)) != (fitted := list(self.covariates_)):
            raise ArgumentError(
                f"covariates are {listing(names)} where fit had {listing(fitted)}",
                argument="covariates",
            )
        columns: list[Floats] = []
        for place, (name, learned) in enumerate(self.covariates_.items()):
            column = known.iloc[:, place]
            if not isinstance(learned, list):
                if not pd.api.types.is_numeric_dtype(column):
                    message = f"{name} is a text where fit had numbers"
                    raise ArgumentError(message, argument="covariates")
                number = column.to_numpy(dtype=np.float64)
                columns += [number, *_spline_terms(number, learned)]
                continue
            texts = column.astype(str).to_numpy(dtype=str)
            seen = np.isin(texts, learned)
            if not seen.all():
                warnings.warn(
                    f"{name} {listing(sorted(set(texts[~seen])))} was not seen in fit, and counts "
                    "as the average of the others.",
                    UserWarning,
                    stacklevel=3,
                )
            columns += [np.where(seen, texts == category, np.nan) for category in learned[1:]]
        terms = np.column_stack([np.empty((len(known), 0)), *columns])
        return np.asarray(np.nan_to_num(terms - self._centre))


def _spline_terms(x: Floats, knots: Floats) -> list[Floats]:
    """Return the terms of a natural cubic spline beside the linear one; linear beyond the knots.

    With knots t_1 to t_k, term j is d_j(x) - d_(k-1)(x), where d_j(x) =
    ((x - t_j)+^3 - (x - t_k)+^3) / (t_k - t_j), in units of the range of the knots.
    """
    if not len(knots):
        return []
    x, t = (x - knots[0]) / (knots[-1] - knots[0]), (knots - knots[0]) / (knots[-1] - knots[0])
    end = np.maximum(x - t[-1], 0.0) ** 3
    parts = [(np.maximum(x - knot, 0.0) ** 3 - end) / (t[-1] - knot) for knot in t[:-1]]
    return [part - parts[-1] for part in parts[:-1]]


def _subject_weights(groups: Any, n_samples: int) -> Floats:
    """Weigh samples so that each subject counts once."""
    if groups is None:
        return np.ones(n_samples)
    _, member, counts = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    return np.asarray(1 / counts[member])


@dataclass(frozen=True)
class Corrections:
    """What is taken out of features before all else: effects of sites, then of covariates.

    Unfitted, or fitted to training samples. What covariates explain survives the harmonizer.
    """

    harmonizer: SiteHarmonizer | None = None
    adjuster: Adjuster | None = None
    names: tuple[str, ...] = ()  # of the covariates of a table

    def __bool__(self) -> bool:
        return self.harmonizer is not None or self.adjuster is not None

    @property
    def needs_labels(self) -> bool:
        """Whether effects are learned from one class."""
        steps = (self.harmonizer, self.adjuster)
        return any(step is not None and step.reference is not None for step in steps)

    def fit(
        self,
        X: pd.DataFrame,
        y: Any,
        sites: Any = None,
        covariates: Any = None,
        groups: Any = None,
        warn: bool = False,
    ) -> tuple[Corrections, pd.DataFrame]:
        """Return fitted copies, and the corrected training samples.

        Whether sites are confounded with labels is a matter of the whole table: ``warn`` there.
        """
        harmonizer, adjuster, known = self.harmonizer, self.adjuster, covariates
        if adjuster is not None:
            adjuster = clone(adjuster)
            covariates = adjuster.check_covariates(covariates, len(X))
            adjuster.learn_terms(covariates, _subject_weights(groups, len(X)))
            known = adjuster.terms(covariates)
        if harmonizer is not None:
            if sites is None:
                raise InputError("to harmonize sites the table needs a column 'site'")
            labels = y if warn or harmonizer.reference is not None else None
            harmonizer = clone(harmonizer).fit(X, labels, sites=sites, covariates=known)
            X = _like(X, harmonizer.transform(X, sites=sites, covariates=known))
        if adjuster is not None:
            rows = np.arange(len(X)) if groups is None else groups
            adjuster.fit(X, y, covariates=covariates, groups=rows)
            X = _like(X, adjuster.transform(X, covariates=covariates))
        return Corrections(harmonizer, adjuster, self.names), X

    def apply(self, X: pd.DataFrame, sites: Any = None, covariates: Any = None) -> pd.DataFrame:
        """Correct samples; without sites all are of one unseen site."""
        known = covariates
        if self.adjuster is not None:
            covariates = self.adjuster.check_covariates(covariates, len(X))
            known = self.adjuster.terms(covariates)
        if self.harmonizer is not None:
            sites = (
                np.full(len(X), UNNAMED_SITE) if sites is None else np.asarray(sites, dtype=str)
            )
            X = _like(X, self.harmonizer.transform(X, sites=sites, covariates=known))
        if self.adjuster is not None:
            X = _like(X, self.adjuster.transform(X, covariates=covariates))
        return X

    def apply_to(self, table: FeatureTable) -> pd.DataFrame:
        """Return the corrected samples of a table."""
        return self.apply(table.X, table.sites, table_covariates(table, self.names))


def _like(X: pd.DataFrame, values: Floats) -> pd.DataFrame:
    return pd.DataFrame(values, index=X.index, columns=X.columns)


def make_corrections(
    classes: Iterable[Any],
    harmonize: bool | str = False,
    adjust: Sequence[str] = (),
    adjust_from: str | None = None,
) -> Corrections:
    """Return what an evaluation takes out: effects of sites, of covariates, or nothing.

    ``age:spline`` is a covariate with a spline. The adjuster learns from all samples, or from
    those of the class that ``adjust_from`` names.
    """
    classes = list(classes)
    harmonizer = adjuster = None
    if harmonize:
        harmonizer = SiteHarmonizer(reference=reference_class(harmonize, classes))
    if adjust:
        reference = reference_class(adjust_from or True, classes, "adjust_from")
        splines = [name.removesuffix(_SPLINE) for name in adjust if name.endswith(_SPLINE)]
        adjuster = Adjuster(reference=reference, splines=splines or False)
    elif adjust_from:
        raise InputError("adjust_from needs adjust: name covariates", argument="adjust_from")
    return Corrections(harmonizer, adjuster, covariate_names(adjust))


def covariate_names(adjust: Iterable[str]) -> tuple[str, ...]:
    """Return the names of covariates without what says how they are adjusted for."""
    return tuple(name.removesuffix(_SPLINE) for name in adjust)


def check_corrections(table: FeatureTable, corrections: Corrections) -> None:
    """Refuse a table without what corrections need."""
    if corrections.harmonizer is not None:
        check_sites(table)
    table_covariates(table, corrections.names)


def correct_table(table: FeatureTable, corrections: Corrections) -> FeatureTable:
    """Correct a table by all of its samples: for a ranking, not for a test."""
    check_corrections(table, corrections)
    known = table_covariates(table, corrections.names)
    sites = None if table.sites is None else table.sites.astype(str).to_numpy(dtype=str)
    y, subjects = table.y.to_numpy(), table.subjects.to_numpy()
    _, X = corrections.fit(table.X, y, sites, known, subjects, warn=True)
    return replace(table, X=X)


def table_covariates(table: FeatureTable, names: Iterable[str]) -> pd.DataFrame | None:
    """Return covariates of a table's rows: numbers where all of a column are, else texts."""
    names = list(names)
    if not names:
        return None
    rows = pd.DataFrame() if table.rows is None else table.rows
    if absent := [name for name in names if name not in rows]:
        columns = [str(name) for name in rows]
        raise InputError(
            f"to adjust for {listing(names)} the table needs a column {absent[0]}, and beside "
            f"features it has {listing(columns) or 'none'}",
            argument="adjust",
        )
    known = rows[names].reset_index(drop=True)
    for name in names:
        unknown = known[name].isna() | (known[name].astype(str).str.strip() == "")
        if unknown.any():
            subjects = table.subjects.astype(str).to_numpy()[unknown.to_numpy()]
            raise InputError(
                f"to adjust for {name} it must be known of all participants, and it is missing "
                f"for {listing(dict.fromkeys(subjects))}; fill it in, or leave them out",
                argument="adjust",
            )
        with suppress(ValueError, TypeError):
            known[name] = pd.to_numeric(known[name])
    return known
