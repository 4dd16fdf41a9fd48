"""PS-NSGA: a genetic search for small subsets on which nearest neighbours err little."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from idfsmec._jobs import one_blas_thread
from idfsmec._parameters import N_JOBS, Constraints, integer, number
from idfsmec.selection._base import CompleteSelector, constant_features
from idfsmec.selection.rivals._fronts import ReferenceSurvival, beaten_by_any, fronts
from idfsmec.selection.rivals.mutual_information import PairInformation, discretize
from idfsmec.selection.rivals.subset_fitness import (
    SubsetFitness,
    draw_by_class,
    stratified_folds,
)

_N_FOLDS = 10
_OR_CROSSOVER = 0.1
_MUTATED_SHARE = 0.1
_RETRIES = 3
_REPORT_EVERY = 10


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
    n_divisions : int, default=27
        Divisions of the reference directions; 27 gives 406 directions.
    clear_margin : float, default=0.2
        Difference in error that decides regardless of the other objectives.
    max_samples : int or None, default=None
        Of more samples, so many are drawn to judge subsets by, as many of each class as its share
        of all: time grows with their square. None: all.
    random_state : int, RandomState instance or None, default=None
        For folds, first population and variation.
    n_jobs : int or None, default=None
        Threads that evaluate the subsets, as in joblib; -1 uses all cores. The result is the
        same for any number.
    verbose : int, default=0
        1 prints a line every tenth generation, 2 every generation: subsets evaluated so far, and
        the least error and the fewest features with it.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        From 1 (ranked first) in equal steps to 1 / n_features.
    ranking_ : ndarray of shape (n_features,)
        By the share of best subsets that hold the feature, then by mutual information with the
        classes; constant features come last.
    support_ : ndarray of shape (n_features,)
        Mask of the features that are kept.
    subset_ : ndarray of shape (n_features,)
        The subset of the first front with the least error, then the fewest features.
    subset_objectives_ : ndarray of shape (3,)
        Its balanced error, share of features and class overlap.
    front_ : ndarray of shape (n_subsets, n_features)
        The subsets of the first front.
    front_objectives_ : ndarray of shape (n_subsets, 3)
        Their objectives.
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
        "n_divisions": [integer(1)],
        "clear_margin": [number(0, closed="left")],
        "max_samples": [integer(2), None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        n_features_to_select: int | float = 20,
        population_size: int | None = None,
        n_generations: int = 70,
        n_divisions: int = 27,
        clear_margin: float = 0.2,
        max_samples: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.population_size = population_size
        self.n_generations = n_generations
        self.n_divisions = n_divisions
        self.clear_margin = clear_margin
        self.max_samples = max_samples
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _rank(self, X: NDArray[np.float64], y: NDArray[np.intp]) -> None:
        _require_pymoo()
        rng = check_random_state(self.random_state)
        extent = np.ptp(X, axis=0)
        constant = constant_features(X)
        scaled = (X - X.min(axis=0)) / np.where(constant, 1, extent)
        some = np.arange(y.size)
        if self.max_samples is not None and y.size > self.max_samples:
            some = draw_by_class(y, self.max_samples, rng)
        folds = stratified_folds(y[some], _N_FOLDS, rng)
        fitness = SubsetFitness(scaled[some], y[some], folds, effective_n_jobs(self.n_jobs))
        with one_blas_thread():
            population, objectives = self._evolve(fitness, rng)

        first = fronts(objectives, self.clear_margin)[0]
        self.front_, self.front_objectives_ = population[first], objectives[first]
        best = np.lexsort([self.front_objectives_[:, 1], self.front_objectives_[:, 0]])[0]
        self.subset_, self.subset_objectives_ = self.front_[best], self.front_objectives_[best]
        self.front_share_ = self.front_.mean(axis=0)
        self.n_evaluations_ = fitness.n_evaluations
        relevance = PairInformation(discretize(X), y).relevance
        self._set_order(np.lexsort([-relevance.round(12), -self.front_share_, constant]))

    def _evolve(
        self, fitness: SubsetFitness, rng: np.random.RandomState
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return the last population and its objectives."""
        n_features = fitness.n_features
        size = self.population_size
        if size is None:
            size = max(20, min(round(n_features / 20), 300))
        survival = ReferenceSurvival(self.n_divisions, self.clear_margin, rng)
        population = rng.random_sample((size, n_features)) < 0.5
        objectives = fitness(population)
        fitness.count(population)
        for generation in range(1, self.n_generations + 1):
            offspring, found = self._offspring(population, objectives, fitness, rng)
            everyone = np.concatenate([population, offspring])
            values = np.concatenate([objectives, found])
            survivors = survival.choose(values, size)
            population, objectives = everyone[survivors], values[survivors]
            self._report(generation, population, objectives, fitness)
        return population, objectives

    def _report(
        self,
        generation: int,
        population: NDArray[np.bool_],
        objectives: NDArray[np.float64],
        fitness: SubsetFitness,
    ) -> None:
        """Print where the search stands, as often as ``verbose`` asks."""
        last = generation == self.n_generations
        if self.verbose < 1 or (self.verbose == 1 and generation % _REPORT_EVERY and not last):
            return
        best = np.lexsort([objectives[:, 1], objectives[:, 0]])[0]
        print(
            f"[PSNSGA] generation {generation}/{self.n_generations}, "
            f"{fitness.n_evaluations} subsets evaluated, least error {objectives[best, 0]:.3f} "
            f"with {int(population[best].sum())} features",
            flush=True,
        )

    def _offspring(
        self,
        population: NDArray[np.bool_],
        objectives: NDArray[np.float64],
        fitness: SubsetFitness,
        rng: np.random.RandomState,
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """One child per member; a child the last front beats is mutated anew, thrice at most.

        Separation takes the longest, so that a generation is measured in one go: who is beaten
        follows from bounds, or is guessed and looked up when all are known. If a guess was
        wrong, the same is done again, by what is known then.
        """
        last_front = objectives[fronts(objectives, self.clear_margin)[-1]]
        crossed = cross(population, rng)
        state = rng.get_state()
        while True:
            rng.set_state(state)
            children, asked, said = self._mutants(crossed, last_front, fitness, rng)
            sure = said & beaten_by_any(fitness.bounds(asked), last_front, self.clear_margin)
            fitness(np.concatenate([children, asked[~sure]]))
            found = beaten_by_any(fitness(asked[~sure]), last_front, self.clear_margin)
            if np.array_equal(found, said[~sure]):
                fitness.count(np.concatenate([children, asked]))
                return children, fitness(children)

    def _mutants(
        self,
        crossed: NDArray[np.bool_],
        last_front: NDArray[np.float64],
        fitness: SubsetFitness,
        rng: np.random.RandomState,
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """Children by what is likely, and of whom it was asked and said that they are beaten."""
        children = np.array([mutate(child, rng) for child in crossed])
        new, asked, said = np.arange(len(children)), [children[:0]], [np.zeros(0, dtype=bool)]
        for _ in range(_RETRIES):
            likely = fitness.likely(children[new])
            beaten = beaten_by_any(likely, last_front, self.clear_margin)
            asked.append(children[new])
            said.append(beaten)
            new = new[beaten]
            if not new.size:
                break
            children[new] = [mutate(child, rng) for child in crossed[new]]
        return children, np.concatenate(asked), np.concatenate(said)


def cross(population: NDArray[np.bool_], rng: np.random.RandomState) -> NDArray[np.bool_]:
    """Each member takes a random half of its bits from another, or (seldom) joins it."""
    size, n_features = population.shape
    other = population[(np.arange(size) + rng.randint(1, size, size)) % size]
    half = rng.random_sample(population.shape).argsort(axis=1) < n_features // 2
    joined = rng.random_sample((size, 1)) < _OR_CROSSOVER
    return np.where(joined, population | other, np.where(half, other, population))


def mutate(child: NDArray[np.bool_], rng: np.random.RandomState) -> NDArray[np.bool_]:
    """Clear some ones or set as many zeros, by a coin."""
    ones, zeros = np.flatnonzero(child), np.flatnonzero(~child)
    n_flips = int(np.ceil(_MUTATED_SHARE * min(ones.size, zeros.size)))
    pool = ones if rng.random_sample() < 0.5 else zeros
    mutated = child.copy()
    mutated[rng.permutation(pool)[:n_flips]] ^= True
    return mutated


def _require_pymoo() -> None:
    """Say how to install pymoo if it is missing."""
    try:
        import pymoo  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "PSNSGA needs pymoo, which is not installed: pip install 'idfsmec[wrapper]'."
        ) from error
