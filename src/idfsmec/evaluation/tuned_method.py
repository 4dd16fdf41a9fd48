"""A method of the registry as one classifier of tables with gaps, tuned by folds of people."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from threadpoolctl import threadpool_limits

from idfsmec._parameters import (
    CheckedEstimator,
    Constraints,
    StrOptions,
    checks_parameters,
    integer,
)
from idfsmec.errors import InputError
from idfsmec.evaluation.experiments import with_parts
from idfsmec.evaluation.fold_data import load_whole
from idfsmec.evaluation.harmonizing import learn_sites as learn_codes
from idfsmec.evaluation.method import Method
from idfsmec.evaluation.methods import find_methods
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.scoring import Choice, choose
from idfsmec.evaluation.tables import TableArrays
from idfsmec.metrics import mean_decisions
from idfsmec.prediction.harmonizer import harmonize_sites, learn_sites
from idfsmec.prediction.method import FittedMethod, GapMarks, calibrate
from idfsmec.solver import Scaling
from idfsmec.table import FeatureTable

Array = NDArray[np.float64]
Codes = NDArray[np.intp]


class TunedMethod(ClassifierMixin, CheckedEstimator):
    """Filler, selector and classifier of a method, tuned by inner folds as in the evaluation.

    Parameters
    ----------
    method : str or Method, default="IDFS-MEC"
    filler, classifier : str, optional
        In place of the method's own.
    montage : str, optional
        Where channels are, for fillers that ask.
    seed : int, default=0
        Of inner folds, and of methods with a chance of their own.
    folds : {"subject", "site"}, default="subject"
        Inner folds: of people, or one site after the other, where two can be held out.
    harmonize : bool, default=False
        Whether sites are brought to one location and scale, in inner folds by their training
        samples. ``best_estimator_`` takes samples that have been, by ``harmonizer_``.

    Attributes
    ----------
    best_estimator_ : FittedMethod
        What was learned, without anything that only training needs.
    best_params_ : dict
        ``n_features``, the classifier's ``C`` and the selector's setting.
    classes_ : ndarray of shape (n_classes,)
    harmonizer_ : SiteHarmonizer or None

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["HC", "MDD"], 20)
    >>> X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["F3__a", "F3__b", "Pz__a"])
    >>> X["F3__a"] += 3 * (y == "MDD")
    >>> tuned = TunedMethod("ANOVA F", classifier="ridge").fit(X, y)
    >>> tuned.best_estimator_.name
    'ANOVA F, filled by completion, ridge, 3 features'
    >>> tuned.score(X, y) > 0.8
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "method": [str, Method],
        "filler": [str, None],
        "classifier": [str, None],
        "montage": [str, None],
        "seed": [integer(0)],
        "folds": [StrOptions({"subject", "site"})],
        "harmonize": ["boolean"],
    }

    def __init__(
        self,
        method: str | Method = "IDFS-MEC",
        *,
        filler: str | None = None,
        classifier: str | None = None,
        montage: str | None = None,
        seed: int = 0,
        folds: str = "subject",
        harmonize: bool = False,
    ) -> None:
        self.method = method
        self.filler = filler
        self.classifier = classifier
        self.montage = montage
        self.seed = seed
        self.folds = folds
        self.harmonize = harmonize

    @checks_parameters
    def fit(self, X: pd.DataFrame, y: Any, groups: Any = None, sites: Any = None) -> Self:
        """Tune on inner folds of people, fit on all, calibrate on held-out ones.

        Parameters
        ----------
        X : DataFrame
            Columns ``<channel>__<feature>``, NaN where a channel is missing.
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            Subjects.
        sites : array-like of shape (n_samples,), optional
            Where samples were recorded; needed by folds by site, and to harmonize.
        """
        people = np.arange(len(X)) if groups is None else np.asarray(groups)
        where = None if sites is None else pd.Series(np.asarray(sites))
        info = {} if self.montage is None else {"montage": self.montage}
        method = self.parts()
        given = pd.Series(np.asarray(y)), pd.Series(people)
        table = FeatureTable(X.reset_index(drop=True), *given, info, sites=where)
        arrays = TableArrays.of("table", table, method.filling.needs_positions)
        if method.filling.needs_positions and not arrays.has_positions:
            raise InputError(
                f"the filler {method.filling.name!r} needs to know where channels are on the head",
                argument="filler",
            )
        self.classes_ = np.asarray(arrays.classes)
        self.harmonizer_ = learn_sites(table) if self.harmonize else None
        if self.folds == "site" and where is None:
            raise InputError("folds by site need sites", argument="sites")
        protocol = Protocol().with_changes(folds=self.folds, harmonize=self.harmonize)
        with threadpool_limits(1):
            data = load_whole(arrays, protocol, self.seed)
            chosen = choose(method, data, protocol, self.seed)
            fitted = self._fit(method, arrays, np.arange(len(X)), chosen.ranks, chosen)
            slope, offsets = self._calibrate(method, arrays, chosen)
        self.best_estimator_ = replace(fitted, slope=slope, offsets=offsets)
        self.best_params_ = {"n_features": chosen.k, "C": chosen.C, **chosen.setting}
        return self

    def parts(self) -> Method:
        """Give the method with the filler and classifier that were asked for."""
        (method,) = with_parts(find_methods([self.method]), self.filler, self.classifier)
        if method.classifying.model is None:
            raise InputError(
                f"the classifier {method.classifying.name!r} has no model that could be kept",
                argument="classifier",
            )
        return method

    def _fit(
        self, method: Method, table: TableArrays, rows: Codes, ranks: Codes, chosen: Choice
    ) -> FittedMethod:
        classifier, filler = method.classifying, method.filling
        table = self._alike(table, rows)
        scaling = Scaling.learn(table.X[rows])
        values, columns = scaling.apply(table.X[rows]), np.flatnonzero(ranks <= chosen.k)
        marked, filling = filler.marks_gaps and not classifier.takes_gaps, None
        if not classifier.takes_gaps and not marked:
            about = (table.channel_of, table.feature_of, table.positions)
            filling = filler.build(*about).fit(values)
            values = np.asarray(filling.transform(values))
        values, marks = values[:, columns], None
        if marked:
            marks = GapMarks.learn(values)
            values = marks.add(values)
        channels = np.unique(table.channel_of[columns], return_inverse=True)[1]
        make: Any = classifier.model
        model = make(
            C=chosen.C, class_weight="balanced", random_state=self.seed, channels=channels
        )
        extra = {"groups": table.people[rows]} if "groups" in classifier.takes else {}
        how = f"filled by {filler.name}" if filling is not None or marked else "gaps as they are"
        return FittedMethod(
            name=f"{method.name}, {how}, {classifier.name}, {columns.size} features",
            classes_=np.asarray(table.classes),
            scaling=scaling,
            filler=filling,
            marks=marks,
            columns_=columns,
            scores_=np.where(ranks <= chosen.k, chosen.k + 1.0 - ranks, 0.0),
            classifier=model.fit(values, table.y[rows], **extra),
            channel_of=table.channel_of,
            slope=classifier.slope,
            offsets=np.zeros(len(table.classes)),
        )

    def _calibrate(
        self, method: Method, table: TableArrays, chosen: Choice
    ) -> tuple[float, Array]:
        """Slope and offsets from decisions on people held out, each person once."""
        said = np.zeros((len(table.y), table.n_classes))
        for held_out, ranks in zip(chosen.held_out, chosen.inner_ranks, strict=True):
            train = np.setdiff1d(np.arange(len(table.y)), held_out)
            fitted = self._fit(method, table, train, ranks, chosen)
            said[held_out] = fitted.decisions(self._alike(table, train).X[held_out])
        # A site with one class alone is held out of no inner fold.
        asked = np.sort(np.concatenate(chosen.held_out))
        mean, codes = mean_decisions(said[asked], table.y[asked], table.subjects[asked])
        weights = codes.size / (table.n_classes * np.bincount(codes, minlength=table.n_classes))
        return calibrate(mean, codes, weights[codes], method.classifying.slope)

    def _alike(self, table: TableArrays, rows: Codes) -> TableArrays:
        """The table with its sites alike, if that was asked for, as learned from some rows."""
        if not self.harmonize:
            return table
        known = learn_codes(table, table.X[rows], rows)
        return replace(table, X=known.transform(table.X, sites=table.sites))

    def predict_proba(self, X: Any, sites: Any = None) -> Array:
        """Probability of each class, (n_samples, n_classes)."""
        if self.harmonizer_ is not None:
            where = None if sites is None else pd.Series(np.asarray(sites))
            X = harmonize_sites(self.harmonizer_, X, where)
        return self.best_estimator_.predict_proba(X)

    def predict(self, X: Any, sites: Any = None) -> NDArray:
        """Most probable class of each sample."""
        return np.asarray(self.classes_[self.predict_proba(X, sites).argmax(axis=1)])
