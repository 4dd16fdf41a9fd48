"""PS-NSGA: a genetic search for small subsets on which nearest neighbours err little."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state, gen_batches

from idfsmec._validation import Constraints, integer
from idfsmec.selection.base import CompleteSelector
from idfsmec.selection.baselines.filters import DiscreteFeatures, discretize
from idfsmec.solver.scaling import Scaling

Array = NDArray[np.float64]
Masks = NDArray[np.bool_]
Indices = NDArray[np.intp]

_N_FOLDS, _RETRIES = 10, 3
# Divisions of the reference directions (406 directions), and the difference in error that decides
# whatever the other objectives are.
_DIVISIONS, _CLEAR = 27, 0.2
_OR_CROSSOVER, _MUTATED_SHARE, _STEEPNESS = 0.1, 0.1, 5.0
_DISTANCES_PER_CHUNK = 2**20
# Squared distances and errors closer than this are ties, digits of overlaps beyond it rounding.
_TIE, _DIGITS = 1e-12, 12


@dataclass(eq=False, repr=False, kw_only=True)
class PSNSGA(CompleteSelector):
    """Problem-specific non-dominated sorting genetic algorithm.

    Subsets of features evolve towards a low balanced error of the nearest-neighbour rule, few
    features and well separated classes. A clearly lower error (by 0.2) beats everything else.
    Needs the extra ``wrapper`` (pymoo).

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        How many of the ranked features to keep: a number (all, if there are fewer) or a
        fraction. The search itself chooses its own number: see ``subset_``.
    population_size : int or None, default=None
        Subsets per generation. None: a twentieth of the number of features, at least 20 and at
        most 300.
    n_generations : int, default=70
        Generations.
    max_samples : int or None, default=None
        Of more samples, so many are drawn to evaluate subsets on, as many of each class as its
        share of all: time grows with their square. None: all.
    random_state : int, RandomState instance or None, default=None
        For folds, first population and variation.
    n_jobs : int or None, default=None
        Threads, as in joblib; -1 uses all cores. The result is the same for any number.

    Attributes
    ----------
    scores_, ranking_, support_ : ndarray of shape (n_features,)
        From 1 (ranked first) in equal steps to 1 / n_features; ranks, 1 is best: by the share of
        best subsets that hold the feature, then by mutual information with the classes, constant
        features last; and the mask of the features that are kept.
    subset_ : ndarray of shape (n_features,)
        The subset of the first front with the least error, then the fewest features.
    subset_objectives_ : ndarray of shape (3,)
        Its balanced error, share of features and class overlap.
    front_, front_objectives_ : ndarray of shape (n_subsets, n_features), (n_subsets, 3)
        The subsets of the first front, and their objectives.
    front_share_ : ndarray of shape (n_features,)
        Share of the first front's subsets that hold the feature.
    n_evaluations_ : int
        Different subsets that were evaluated; one that turns up again costs nothing.

    References
    ----------
    Y. Zhou, W. Zhang, J. Kang, X. Zhang, X. Wang, "A problem-specific non-dominated sorting
    genetic algorithm for supervised feature selection", Information Sciences 547,
    841-859, 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> selector = PSNSGA(n_features_to_select=5, n_generations=10, random_state=0).fit(X, y)
    >>> bool(selector.subset_objectives_[0] < 0.1)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "population_size": [integer(2), None],
        "n_generations": [integer(0)],
        "max_samples": [integer(2), None],
    }

    population_size: int | None = None
    n_generations: int = 70
    max_samples: int | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None

    def _rank(self, X: Array, y: Indices) -> None:
        rng = check_random_state(self.random_state)
        constant = Scaling.learn(X).constant
        scaled = (X - X.min(axis=0)) / np.where(constant, 1, np.ptp(X, axis=0))
        drawn = np.arange(y.size)
        if self.max_samples is not None and y.size > self.max_samples:
            # The same share of each class, and of each one at least.
            shuffled, sizes = _shuffle_by_class(y, rng), np.bincount(y)
            before = np.concatenate([np.arange(size) / size for size in sizes])
            first = np.argsort(before, kind="stable")[: max(self.max_samples, sizes.size)]
            drawn = np.sort(shuffled[first])
        folds = np.empty(drawn.size, dtype=np.intp)
        folds[_shuffle_by_class(y[drawn], rng)] = np.arange(drawn.size) % _N_FOLDS
        fitness = _SubsetFitness(scaled[drawn], y[drawn], folds, self.n_jobs)
        population, objectives = self._evolve(fitness, rng)

        first = _fronts(objectives)[0]
        self.front_, self.front_objectives_ = population[first], objectives[first]
        best = np.lexsort([self.front_objectives_[:, 1], self.front_objectives_[:, 0]])[0]
        self.subset_, self.subset_objectives_ = self.front_[best], self.front_objectives_[best]
        self.front_share_ = self.front_.mean(axis=0)
        self.n_evaluations_ = len(fitness.known)
        relevance = DiscreteFeatures(discretize(X), y).relevance
        self._set_order(np.lexsort([-relevance.round(12), -self.front_share_, constant]))

    def _evolve(self, fitness: _SubsetFitness, rng: np.random.RandomState) -> tuple[Masks, Array]:
        """Return the last population and its objectives."""
        survivors = _survival(rng)
        size = self.population_size or max(20, min(round(fitness.n_features / 20), 300))
        population = rng.random_sample((size, fitness.n_features)) < 0.5
        objectives = fitness(population)
        for _ in range(self.n_generations):
            last_front = objectives[_fronts(objectives)[-1]]
            crossed = _cross(population, rng)
            children = np.array([_mutate(child, rng) for child in crossed])
            values = fitness(children)
            for _ in range(_RETRIES):  # a child that the last front beats is mutated anew
                beaten = np.flatnonzero(_beats(last_front, values).any(axis=0))
                if not beaten.size:
                    break
                children[beaten] = [_mutate(child, rng) for child in crossed[beaten]]
                values[beaten] = fitness(children[beaten])
            everyone = np.concatenate([population, children])
            values = np.concatenate([objectives, values])
            surviving = survivors(values, _fronts(values), size)
            population, objectives = everyone[surviving], values[surviving]
        return population, objectives


class _SubsetFitness:
    """Three objectives of feature subsets, each to be minimised, remembered once computed.

    Balanced error of the nearest neighbour over fixed folds; share of features in the subset; mean
    distance to the farthest sample of the same class against that to the nearest of another.
    """

    def __init__(self, X: Array, y: Indices, folds: Indices, n_jobs: int | None) -> None:
        # Of samples that are equally near the first counts, in the order of folds and rows.
        order = np.argsort(folds, kind="stable")
        self._X, self._y, self._folds = X[order], y[order], folds[order]
        self._n_jobs, self.n_features = n_jobs, X.shape[1]
        self.known: dict[bytes, tuple[float, float, float]] = {}

    def __call__(self, masks: Masks) -> Array:
        """Give the objectives of each mask, shape (n_masks, 3)."""
        keys = [mask.tobytes() for mask in masks]
        new = {key: mask for key, mask in zip(keys, masks, strict=True) if key not in self.known}
        values = Parallel(n_jobs=self._n_jobs, prefer="threads")(
            delayed(self._evaluate)(mask) for mask in new.values()
        )
        self.known.update(zip(new, values, strict=True))
        return np.array([self.known[key] for key in keys])

    def _evaluate(self, mask: NDArray[np.bool_]) -> tuple[float, float, float]:
        if not mask.any():
            return 1.0, 1.0, 1.0
        X, y = self._X[:, mask], self._y
        correct, within, between = np.empty((3, y.size))
        for rows in gen_batches(y.size, max(1, _DISTANCES_PER_CHUNK // y.size)):
            squared = cdist(X[rows], X, "sqeuclidean")
            squared[self._folds[rows, None] == self._folds] = np.inf
            nearest = squared <= squared.min(axis=1, keepdims=True) + _TIE
            correct[rows] = y[nearest.argmax(axis=1)] == y[rows]
            distance = cdist(X[rows], X, "cityblock") / X.shape[1]
            same = y[rows, None] == y
            within[rows] = np.where(same, distance, 0.0).max(axis=1)
            between[rows] = np.where(same, np.inf, distance).min(axis=1)
        error = 1 - np.mean(np.bincount(y, correct) / np.bincount(y))
        overlap = 1 / (1 + np.exp(-_STEEPNESS * (within.mean() - between.mean())))
        return float(error), X.shape[1] / self.n_features, round(float(overlap), _DIGITS)


def _shuffle_by_class(y: Indices, rng: np.random.RandomState) -> Indices:
    """Shuffle samples, classes one after the other."""
    shuffled = rng.permutation(y.size)
    return shuffled[np.argsort(y[shuffled], kind="stable")]


def _cross(population: Masks, rng: np.random.RandomState) -> Masks:
    """Give each member a random half of the bits of another, or (seldom) all its ones."""
    size, n_features = population.shape
    other = population[(np.arange(size) + rng.randint(1, size, size)) % size]
    half = rng.random_sample(population.shape).argsort(axis=1) < n_features // 2
    joined = rng.random_sample((size, 1)) < _OR_CROSSOVER
    return np.where(joined, population | other, np.where(half, other, population))


def _mutate(child: NDArray[np.bool_], rng: np.random.RandomState) -> NDArray[np.bool_]:
    """Clear some ones or set as many zeros, by a coin."""
    ones, zeros = np.flatnonzero(child), np.flatnonzero(~child)
    n_flips = int(np.ceil(_MUTATED_SHARE * min(ones.size, zeros.size)))
    pool = ones if rng.random_sample() < 0.5 else zeros
    mutated = child.copy()
    mutated[rng.permutation(pool)[:n_flips]] ^= True
    return mutated


def _beats(first: Array, second: Array) -> NDArray[np.bool_]:
    """Whether each row of `first` is clearly better in error, or in no way worse and not equal."""
    left, right = first[:, None, :], second[None, :, :]
    pareto = (left <= right).all(axis=2) & (left < right).any(axis=2)
    return pareto | (left[..., 0] + _CLEAR <= right[..., 0] + _TIE)


def _fronts(objectives: Array) -> list[Indices]:
    """Sort into fronts: members of a front are beaten only by members of earlier ones."""
    dominance = _beats(objectives, objectives)
    np.fill_diagonal(dominance, False)
    left, fronts = np.arange(len(objectives)), []
    while left.size:
        beaten = dominance[np.ix_(left, left)].any(axis=0)
        fronts.append(left[~beaten])
        left = left[beaten]
    return fronts


def _survival(rng: np.random.RandomState) -> Callable[[Array, list[Indices], int], Indices]:
    """Give NSGA-III's survival: from objectives, fronts and a number to those who survive."""
    try:
        from pymoo.algorithms.moo import nsga3
        from pymoo.util.ref_dirs import get_reference_directions
    except ImportError as error:
        raise ImportError(
            "PSNSGA needs pymoo, which is not installed: pip install 'idfsmec[wrapper]'."
        ) from error
    directions = get_reference_directions("das-dennis", 3, n_partitions=_DIVISIONS)
    scale = nsga3.HyperplaneNormalization(3)

    def survivors(objectives: Array, fronts: list[Indices], size: int) -> Indices:
        """Keep whole fronts, then fill up so that all reference directions are served."""
        with warnings.catch_warnings():  # pymoo changes the global filters here
            scale.update(objectives, nds=fronts[0])
        niche, distance, _ = nsga3.associate_to_niches(
            objectives, directions, scale.ideal_point, scale.nadir_point
        )
        n_whole = int(np.searchsorted(np.cumsum([front.size for front in fronts]), size, "right"))
        whole = np.concatenate([np.arange(0), *fronts[:n_whole]])
        if whole.size == size:
            return whole
        last, counts = fronts[n_whole], nsga3.calc_niche_count(len(directions), niche[whole])
        chosen = nsga3.niching(
            last, size - whole.size, counts, niche[last], distance[last], random_state=rng
        )
        return np.concatenate([whole, last[chosen]])

    return survivors
