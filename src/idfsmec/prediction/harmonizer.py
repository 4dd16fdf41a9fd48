"""SiteHarmonizer: take out what hospitals add to features, learned from samples with gaps."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags, check_array
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from idfsmec._entanglement import entanglement, say_entanglement
from idfsmec._parameters import (
    CheckedEstimator,
    Constraints,
    StrOptions,
    checks_parameters,
    integer,
)
from idfsmec._table_checks import SITE
from idfsmec.errors import ArgumentError
from idfsmec.solver.sites import SiteModel, site_effects

Array = NDArray[np.float64]


class SiteHarmonizer(OneToOneFeatureMixin, TransformerMixin, CheckedEstimator):
    """Bring the features of all sites to one location and one scale, as ComBat does.

    Each site shifts and stretches each feature. Both are estimated from the values that were
    observed, drawn towards what the site does to all features (empirical Bayes), and taken out.
    What covariates explain stays.

    Parameters
    ----------
    empirical_bayes : bool, default=True
        Draw the shifts of a site towards their mean over features, and its stretches likewise:
        the fewer values, the more. False takes a site's own means and variances as they are.
    unseen : {"own", "nothing"}, default="own"
        What becomes of samples of a site that `fit` has not seen. ``"own"`` estimates the site's
        effects from the samples given to `transform`, without labels, so that what a sample
        becomes depends on who comes with it. ``"nothing"`` leaves them as they are.
    min_own : int, default=10
        An unseen site with fewer samples is left as it is, with a warning.
    require_sites : bool, default=True
        Refuse data without sites. False leaves them as they are.

    Attributes
    ----------
    sites_ : ndarray of shape (n_sites,)
    shift_, stretch_ : ndarray of shape (n_sites, n_features)
        What each site adds to a feature, and what it multiplies deviations by, in units of
        ``scale_``. Where a site has no value of a feature, what is expected of it.
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
        A quarter or more of the difference between classes lies between sites (sites explain
        that much of the labels' variance): harmonizing takes it out with what sites do.

    Notes
    -----
    The model is that of Johnson, Li and Rabinovic (Biostatistics 8, 2007), as used for measures of
    the brain by Fortin et al. (NeuroImage 167, 2018). Missing values stay missing. A feature that
    does not vary within sites is left as it is. Every sample counts the same: a person with many
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
        "empirical_bayes": ["boolean"],
        "unseen": [StrOptions({"own", "nothing"})],
        "min_own": [integer(2)],
        "require_sites": ["boolean"],
    }

    def __init__(
        self,
        *,
        empirical_bayes: bool = True,
        unseen: str = "own",
        min_own: int = 10,
        require_sites: bool = True,
    ) -> None:
        self.empirical_bayes = empirical_bayes
        self.unseen = unseen
        self.min_own = min_own
        self.require_sites = require_sites

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @checks_parameters
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sites: ArrayLike | None = None,
        covariates: ArrayLike | None = None,
    ) -> Self:
        """Learn what each site does to each feature.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where a value is missing.
        y : array-like of shape (n_samples,), optional
            Labels. Nothing is learned from them; they only tell whether to warn.
        sites : array-like of shape (n_samples,), optional
            By default the level ``"site"`` of the index of `X`.
        covariates : array-like of shape (n_samples, n_covariates), optional
            Numbers whose effect is kept, such as age, or 0 and 1 for a category. `transform` needs
            them too, so they must be known of new people.

        Returns
        -------
        SiteHarmonizer
        """
        values = np.asarray(
            validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        )
        names = self._sites(X, sites, len(values))
        self.sites_, member = np.unique(names, return_inverse=True)
        _warn_if_entangled(member, y)
        extra = _covariates(covariates, len(values))
        if extra.shape[1]:
            _refuse_collinear(member, extra)
        model = SiteModel.learn(values, member, extra)
        residuals = model.standardise(values, extra)
        effects = [
            site_effects(residuals[member == site], self.empirical_bayes)
            for site in range(self.sites_.size)
        ]
        self.shift_ = np.array([shift for shift, _ in effects])
        self.stretch_ = np.sqrt([variance for _, variance in effects])
        self.mean_, self.scale_, self.coef_ = model
        return self

    def transform(
        self,
        X: ArrayLike,
        *,
        sites: ArrayLike | None = None,
        covariates: ArrayLike | None = None,
    ) -> Array:
        """Take out what sites do.

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
        check_is_fitted(self)
        values = np.asarray(
            validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        )
        names = self._sites(X, sites, len(values))
        extra = _covariates(covariates, len(values))
        if extra.shape[1] != len(self.coef_):
            raise ArgumentError(
                f"covariates has {extra.shape[1]} columns where fit had {len(self.coef_)}: give "
                "the same.",
                argument="covariates",
            )
        model = SiteModel(self.mean_, self.scale_, self.coef_)
        residuals = model.standardise(values, extra)
        clean = values.copy()
        known = {name: place for place, name in enumerate(self.sites_.tolist())}
        for name in np.unique(names).tolist():
            rows = np.flatnonzero(names == name)
            effects = self._effects(known.get(name), residuals[rows], name)
            if effects is not None:
                moved = (residuals[rows] - effects[0]) / effects[1]
                clean[rows] += self.scale_ * (moved - residuals[rows])
        return clean

    def fit_transform(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sites: ArrayLike | None = None,
        covariates: ArrayLike | None = None,
    ) -> Array:
        """Learn from samples and take out of them what sites do.

        Parameters
        ----------
        X, y, sites, covariates
            As for `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        fitted = self.fit(X, y, sites=sites, covariates=covariates)
        return fitted.transform(X, sites=sites, covariates=covariates)

    def _effects(
        self, place: int | None, residuals: Array, name: object
    ) -> tuple[Array, Array] | None:
        """Shift and stretch of a site, or None if it is left as it is."""
        if self.sites_.size == 1 and place is not None:
            return None  # one site has nothing to be brought to
        if place is not None:
            return self.shift_[place], self.stretch_[place]
        if self.unseen == "nothing":
            return None
        if len(residuals) < self.min_own:
            warnings.warn(
                f"site {name} was not seen in fit and has {len(residuals)} samples: left as it "
                f"is. Give at least {self.min_own} (min_own) at once.",
                UserWarning,
                stacklevel=3,
            )
            return None
        shift, variance = site_effects(residuals, self.empirical_bayes)
        return shift, np.sqrt(variance)

    def _sites(self, X: Any, sites: ArrayLike | None, n_samples: int) -> NDArray:
        if sites is not None:
            names = np.asarray(sites)
            if names.shape != (n_samples,):
                raise ArgumentError(
                    f"sites has shape {names.shape} for {n_samples} samples.", argument="sites"
                )
            return names
        index = getattr(X, "index", None)
        if SITE in (getattr(index, "names", None) or ()):
            return np.asarray(X.index.get_level_values(SITE))
        if self.require_sites:
            raise ArgumentError(
                "sites is not given and X has no index level 'site': give sites, or set "
                "require_sites=False to leave such data as they are.",
                argument="sites",
            )
        return np.zeros(n_samples, dtype=np.intp)


def _covariates(covariates: ArrayLike | None, n_samples: int) -> Array:
    if covariates is None:
        return np.empty((n_samples, 0))
    given = np.asarray(covariates)
    columns = given[:, None] if given.ndim == 1 else given
    checked: Array = check_array(columns, dtype=np.float64, input_name="covariates")
    if len(checked) != n_samples:
        raise ArgumentError(
            f"covariates has {len(checked)} rows for {n_samples} samples.", argument="covariates"
        )
    return checked


def _refuse_collinear(member: NDArray[np.intp], covariates: Array) -> None:
    design = np.column_stack([member[:, None] == np.unique(member), covariates])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise ArgumentError(
            "covariates: one of them is constant within sites, or follows from the others, so "
            "that its effect cannot be told from theirs; leave it out.",
            argument="covariates",
        )


def _warn_if_entangled(member: NDArray[np.intp], y: ArrayLike | None) -> None:
    if y is None or not member.any():
        return
    labels = np.asarray(y)
    if type_of_target(labels) not in {"binary", "multiclass"} or np.unique(labels).size < 2:
        return
    check_consistent_length(member, labels)
    if said := say_entanglement(entanglement(member, labels)):
        warnings.warn(said, UserWarning, stacklevel=4)
