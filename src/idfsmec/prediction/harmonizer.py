"""SiteHarmonizer: bring the features of all sites to one location and scale, as ComBat does."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length

from idfsmec._validation import (
    Constraints,
    StrOptions,
    index_level,
    integer,
    validate_params,
)
from idfsmec.errors import ArgumentError, InputError
from idfsmec.metrics import describe_confounding, site_confounding
from idfsmec.prediction.imputer import Array, IncompleteTransformer, Indices, Mask
from idfsmec.solver.scaling import common_location, site_effects, site_moments
from idfsmec.table import FeatureTable
from idfsmec.table.columns import SITE

#: Site of all samples of a table that names no sites.
UNNAMED_SITE = "(not named)"


@dataclass(kw_only=True, eq=False, repr=False)
class SiteHarmonizer(IncompleteTransformer):
    """Bring the features of all sites to one location and one scale, as ComBat does.

    Each site shifts and stretches each feature. Both are estimated from the observed values, drawn
    towards what the site does to all features (empirical Bayes), and taken out. What covariates
    explain stays.

    Parameters
    ----------
    reference : label, optional
        Learn location and scale of every site from the samples of this class only, such as
        ``"HC"``, and apply them to all samples. Without, all samples count, and where sites differ
        in their share of patients, part of the difference between classes is taken out with the
        sites. `fit` needs `y`; `transform` never uses labels.
    empirical_bayes : bool, default=True
        Draw the shifts of a site towards their mean over features, and its stretches likewise:
        the fewer values, the more. False takes a site's own means and variances as they are.
    unseen : {"all", "keep"}, default="all"
        How to treat a site that `fit` has not seen, or of which it has seen fewer than
        `min_reference` samples of the reference class. ``"all"`` brings all its samples, without
        labels, to the location and scale of all samples of the other sites: for an unseen site
        those given to `transform`, so that the result for a sample depends on the others given
        with it. ``"keep"`` leaves it as it is.
    min_samples : int, default=10
        An unseen site with fewer samples is left as it is, with a warning.
    min_reference : int, default=20
        A site with fewer samples of the reference class is not learned from, with a warning.
    require_sites : bool, default=True
        Refuse data without sites. False leaves them as they are.

    Attributes
    ----------
    sites_ : ndarray of shape (n_sites,)
    shift_, stretch_ : ndarray of shape (n_sites, n_features)
        What each site adds to a feature, and what it multiplies deviations by, in units of
        ``scale_``. Where a site has no value of a feature, what is expected of it. 0 and 1 for a
        site that is left as it is.
    mean_, scale_ : ndarray of shape (n_features,)
        Location over all sites where covariates are 0, and standard deviation within sites.
    coef_ : ndarray of shape (n_covariates, n_features)
        Effect of the covariates, within sites.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X has string column names.

    Warns
    -----
    UserWarning
        Without a reference: a quarter or more of the difference between classes lies between
        sites (sites explain that much of the labels' variance), and harmonizing takes it out. With
        one: sites have too few samples of the reference class; each is named.

    Notes
    -----
    The model is that of Johnson, Li and Rabinovic (Biostatistics 8, 2007), as used for measures of
    the brain by Fortin et al. (NeuroImage 167, 2018). Missing values stay missing. A feature that
    does not vary within sites is left as it is. Every sample counts the same: a subject with many
    epochs counts as often.

    Sites are those given, or else the level ``"site"`` of the index of a DataFrame, which reaches
    estimators inside pipelines and ``cross_val_score``. With scikit-learn's metadata routing,
    ``set_fit_request(sites=True)`` and ``set_transform_request(sites=True)`` hand on an argument.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec.prediction import SiteHarmonizer
    >>> rng = np.random.default_rng(0)
    >>> sites = np.repeat(["Lund", "Oslo"], 50)
    >>> X = rng.normal(size=(100, 6))
    >>> X[sites == "Oslo"] = 5 + 2 * X[sites == "Oslo"]
    >>> X[::7, 0] = np.nan
    >>> clean = SiteHarmonizer().fit_transform(X, sites=sites)
    >>> lund, oslo = (np.nanmean(clean[sites == site], axis=0) for site in ("Lund", "Oslo"))
    >>> bool(np.abs(oslo - lund).max() < 0.3)  # it was 5
    True
    >>> bool(np.isnan(clean[::7, 0]).all())
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "reference": [object],
        "empirical_bayes": ["boolean"],
        "unseen": [StrOptions({"all", "keep"})],
        "min_samples": [integer(2)],
        "min_reference": [integer(2)],
        "require_sites": ["boolean"],
    }

    reference: Any = None
    empirical_bayes: bool = True
    unseen: str = "all"
    min_samples: int = 10
    min_reference: int = 20
    require_sites: bool = True

    @validate_params
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sites: ArrayLike | None = None,
        covariates: ArrayLike | None = None,
    ) -> Self:
        """Learn the shift and scale of each feature at each site.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a value is missing.
        y : array-like of shape (n_samples,), optional
            Labels. Without `reference` nothing is learned from them; they only decide whether to
            warn.
        sites : array-like of shape (n_samples,), optional
            By default the level ``"site"`` of the index of `X`.
        covariates : array-like of shape (n_samples, n_covariates), optional
            Numbers whose effect is kept, such as age, or 0 and 1 for a category. `transform` needs
            them too, so they must be known of new subjects.

        Returns
        -------
        SiteHarmonizer
        """
        values, names, numbers = self._check(X, sites, covariates, reset=True)
        self.sites_, member = np.unique(names, return_inverse=True)
        n_sites = self.sites_.size
        _refuse_collinear(member, numbers)
        learned, rows = np.ones(n_sites, dtype=bool), np.ones(len(values), dtype=bool)
        if self.reference is None:
            _warn_of_confounding(member, y)
        else:
            rows, learned = self._reference_samples(y, member)
        self.coef_ = _covariate_effects(values[rows], member[rows], numbers[rows])
        unexplained = values - numbers @ self.coef_
        self.mean_, self.scale_ = _location(unexplained[rows], member[rows], n_sites)
        self.shift_ = np.zeros((n_sites, values.shape[1]))
        self.stretch_ = np.ones_like(self.shift_)
        residuals = self._residuals(values, numbers)
        if learned.sum() > 1:  # one site has nothing to be brought to
            for site in np.flatnonzero(learned):
                effects = self._effects(residuals[(member == site) & rows])
                self.shift_[site], self.stretch_[site] = effects
        self._centre, self._spread = np.zeros(values.shape[1]), np.ones(values.shape[1])
        if self.reference is not None:
            # All classes after harmonizing: there a site without labels belongs, not to controls.
            rest = learned[member]
            harmonized = (residuals - self.shift_[member]) / self.stretch_[member]
            self._centre, self._spread = _location(harmonized[rest], member[rest], n_sites)
        if self.unseen == "all":
            for site in np.flatnonzero(~learned):
                effects = self._unlabelled_effects(residuals[member == site])
                self.shift_[site], self.stretch_[site] = effects
        return self

    def transform(
        self, X: ArrayLike, *, sites: ArrayLike | None = None, covariates: ArrayLike | None = None
    ) -> Array:
        """Remove the effects of sites.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a value is missing.
        sites : array-like of shape (n_samples,), optional
            By default the level ``"site"`` of the index of `X`.
        covariates : array-like of shape (n_samples, n_covariates), optional
            The same as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            NaN where `X` is NaN.
        """
        values, names, numbers = self._check(X, sites, covariates)
        if numbers.shape[1] != len(self.coef_):
            raise ArgumentError(
                f"covariates has {numbers.shape[1]} columns where fit had {len(self.coef_)}: give "
                "the same.",
                argument="covariates",
            )
        residuals = self._residuals(values, numbers)
        harmonized = values.copy()
        learned = self.sites_.tolist()
        for name in np.unique(names).tolist():
            rows = np.flatnonzero(names == name)
            if name in learned:
                site = learned.index(name)
                shift, stretch = self.shift_[site], self.stretch_[site]
            elif self.unseen == "keep":
                continue
            elif rows.size < self.min_samples:
                warnings.warn(
                    f"site {name} was not seen in fit and has {rows.size} samples: left "
                    f"unchanged. Give at least {self.min_samples} (min_samples) at once.",
                    UserWarning,
                    stacklevel=2,
                )
                continue
            else:
                shift, stretch = self._unlabelled_effects(residuals[rows])
            moved = (residuals[rows] - shift) / stretch
            harmonized[rows] += self.scale_ * (moved - residuals[rows])
        return harmonized

    def fit_transform(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sites: ArrayLike | None = None,
        covariates: ArrayLike | None = None,
    ) -> Array:
        """Learn the effects of sites and remove them; parameters as for `fit`."""
        fitted = self.fit(X, y, sites=sites, covariates=covariates)
        return fitted.transform(X, sites=sites, covariates=covariates)

    def _check(
        self, X: Any, sites: ArrayLike | None, covariates: ArrayLike | None, reset: bool = False
    ) -> tuple[Array, NDArray[Any], Array]:
        """Return samples as numbers, the site of each, and covariates in columns."""
        values = self._check_samples(X, reset)
        n_samples = len(values)
        names = index_level(X, SITE) if sites is None else per_sample("sites", sites, n_samples)
        if names is None:
            if self.require_sites:
                raise ArgumentError(
                    "sites is not given and X has no index level 'site': give sites, or set "
                    "require_sites=False to leave such data as they are.",
                    argument="sites",
                )
            names = np.zeros(n_samples, dtype=np.intp)
        if covariates is None:
            return values, names, np.empty((n_samples, 0))
        columns = np.asarray(covariates)
        columns = columns[:, None] if columns.ndim == 1 else columns
        checked: Array = check_array(columns, dtype=np.float64, input_name="covariates")
        if len(checked) != n_samples:
            message = f"covariates has {len(checked)} rows for {n_samples} samples."
            raise ArgumentError(message, argument="covariates")
        return values, names, checked

    def _residuals(self, values: Array, numbers: Array) -> Array:
        """Deviations from the common location in units of the scale; 0 where that is 0."""
        unit = np.where(self.scale_ > 0, self.scale_, 1.0)
        residuals = (values - self.mean_ - numbers @ self.coef_) / unit
        return np.where((self.scale_ > 0) | np.isnan(values), residuals, 0.0)

    def _effects(self, residuals: Array) -> tuple[Array, Array]:
        """Shift and stretch of a site with these samples."""
        count, mean, squares = site_moments(residuals, np.zeros(len(residuals), dtype=np.intp), 1)
        shift, variance = site_effects(count[0], mean[0], squares[0], self.empirical_bayes)
        return shift, np.sqrt(variance)

    def _unlabelled_effects(self, residuals: Array) -> tuple[Array, Array]:
        """Shift and stretch that bring samples of unknown class to those of all classes."""
        unit = np.where(self._spread > 0, self._spread, 1.0)
        shift, stretch = self._effects((residuals - self._centre) / unit)
        return self._centre * (1 - stretch) + unit * shift, stretch

    def _reference_samples(self, y: ArrayLike | None, member: Indices) -> tuple[Mask, Mask]:
        """Samples of the reference class, and sites that have enough of them; name the others."""
        if y is None:
            raise ArgumentError(
                f"reference={self.reference!r} needs y: location and scale are learned from that "
                "class.",
                argument="y",
            )
        labels = per_sample("y", y, member.size)
        rows = np.array([label == self.reference for label in labels.tolist()], dtype=bool)
        if not rows.any():
            known = ", ".join(map(repr, np.unique(labels).tolist()[:10]))
            raise ArgumentError(
                f"no sample has the label reference={self.reference!r}; the labels are {known}.",
                argument="reference",
            )
        counts = np.bincount(member[rows], minlength=self.sites_.size)
        learned = counts >= self.min_reference
        if learned.all():
            return rows, learned
        few = ", ".join(f"{self.sites_[k]} ({counts[k]})" for k in np.flatnonzero(~learned))
        what = f"fewer than {self.min_reference} (min_reference) samples of {self.reference!r}"
        if not learned.any():
            raise ArgumentError(f"every site has {what}: {few}.", argument="reference")
        done = "they are left unchanged (unseen='keep')."
        if self.unseen == "all":
            done = (
                "they are harmonized by all their samples, which also removes differences of "
                "their patients (unseen='all'); unseen='keep' leaves them unchanged."
            )
        warnings.warn(f"Sites with {what}: {few}; {done}", UserWarning, stacklevel=4)
        return rows & learned[member], learned


def per_sample(argument: str, values: ArrayLike, n_samples: int) -> NDArray[Any]:
    """Return values as an array; refuse those that are not one for each sample."""
    array = np.asarray(values)
    if array.shape != (n_samples,):
        message = f"{argument} has shape {array.shape} for {n_samples} samples."
        raise ArgumentError(message, argument=argument)
    return array


def _refuse_collinear(member: Indices, covariates: Array) -> None:
    design = np.column_stack([member[:, None] == np.unique(member), covariates])
    if covariates.shape[1] and np.linalg.matrix_rank(design) < design.shape[1]:
        raise ArgumentError(
            "covariates: one of them is constant within sites, or follows from the others, so "
            "that its effect cannot be separated from theirs; leave it out.",
            argument="covariates",
        )


def _location(values: Array, member: Indices, n_sites: int) -> tuple[Array, Array]:
    """Location over all sites, each by its number of samples, and scale within sites."""
    shares = np.bincount(member, minlength=n_sites).astype(np.float64)
    return common_location(*site_moments(values, member, n_sites), shares)


def _covariate_effects(X: Array, member: Indices, covariates: Array) -> Array:
    """Least squares within sites."""
    if not covariates.shape[1]:
        return np.zeros((0, X.shape[1]))
    sites = np.unique(member)
    design = np.column_stack([member[:, None] == sites, covariates])
    return least_squares(X, design)[sites.size :]


def least_squares(X: Array, design: Array, weights: Array | None = None) -> Array:
    """Regress each feature on a design where it is observed, (n_terms, n_features).

    Features with the same missing values are solved at once. Without any value, and for a term
    that is 0 in all samples, coefficients are 0.
    """
    coef = np.zeros((design.shape[1], X.shape[1]))
    root = np.ones(len(X)) if weights is None else np.sqrt(weights)
    patterns, pattern_of = np.unique(~np.isnan(X), axis=1, return_inverse=True)
    for code in range(patterns.shape[1]):
        rows, columns = np.flatnonzero(patterns[:, code]), np.flatnonzero(pattern_of == code)
        if rows.size:
            scaled = root[rows, None] * design[rows], root[rows, None] * X[np.ix_(rows, columns)]
            coef[:, columns] = np.linalg.lstsq(*scaled, rcond=None)[0]
    return coef


def _warn_of_confounding(member: Indices, y: ArrayLike | None) -> None:
    if y is None or not member.any():
        return
    labels = np.asarray(y)
    if type_of_target(labels) not in {"binary", "multiclass"} or np.unique(labels).size < 2:
        return
    check_consistent_length(member, labels)
    if message := describe_confounding(site_confounding(pd.crosstab(member, labels))):
        warnings.warn(message, UserWarning, stacklevel=4)


def reference_class(name: bool | str, classes: Iterable[Any], argument: str = "harmonize") -> Any:
    """Return the class that an argument names, or None where it is True: all count."""
    if not isinstance(name, str):
        return None
    by_name = {str(label): label for label in classes}
    if name not in by_name:
        every = "True" if argument == "harmonize" else "none"
        raise InputError(
            f"{argument} is {name!r}, and the classes are {', '.join(sorted(by_name))}: name one "
            f"of them, or give {every} to learn from all samples",
            argument=argument,
        )
    return by_name[name]


def check_sites(table: FeatureTable) -> None:
    """Refuse to harmonize a table without two sites."""
    if table.sites is None or table.sites.nunique() < 2:
        sites = "no column 'site'" if table.sites is None else "only one site"
        raise InputError(
            f"to harmonize sites there must be at least two, and the table has {sites}; name the "
            "hospital of each recording in the manifest's column 'site', or do not harmonize",
            argument="harmonize",
        )


def describe_new_sites(
    harmonizer: SiteHarmonizer, sites: pd.Series | None, n_samples: int
) -> list[str]:
    """Return notes on how samples of new sites are harmonized."""
    notes = []
    if sites is None:
        notes.append("no sites are given: all participants count as those of one new site")
    names, counts = np.unique(_names_of(sites, n_samples), return_counts=True)
    for name, count in zip(names.tolist(), counts.tolist(), strict=True):
        if name in harmonizer.sites_.tolist():
            continue
        treated = (
            f"is brought to the location and scale of the others by its own {count} samples; if "
            "its participants are all of one class, the effect of the class is removed"
        )
        if count < harmonizer.min_samples:
            treated = (
                f"is left unchanged: it has {count} samples, and {harmonizer.min_samples} are "
                "needed to bring it to the location and scale of the others"
            )
        site = "the new site" if name == UNNAMED_SITE else f"site {name}, not in training,"
        notes.append(f"{site} {treated}")
    return notes


def _names_of(sites: pd.Series | None, n_samples: int) -> NDArray[np.str_]:
    if sites is None:
        return np.full(n_samples, UNNAMED_SITE)
    return sites.astype(str).to_numpy(dtype=str)
