"""Who beats whom, fronts of those that nobody left beats, and who survives a generation."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray


def beats(
    first: NDArray[np.float64], second: NDArray[np.float64], margin: float
) -> NDArray[np.bool_]:
    """Whether each row of `first` beats each row of `second`, shape (len(first), len(second)).

    It does if its first objective is lower by `margin` at least, or if no objective is higher
    and one is lower. Beating implies a first objective that is not higher, so there are no
    cycles.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.array([[0.1, 0.9]]), np.array([[0.3, 0.1]])
    >>> beats(a, b, 0.2).item(), beats(a, b, 0.5).item()
    (True, False)
    """
    left, right = first[:, None, :], second[None, :, :]
    pareto = (left <= right).all(axis=2) & (left < right).any(axis=2)
    # A hair of tolerance: 0.1 + 0.2 must count as 0.3.
    return pareto | (left[..., 0] + margin <= right[..., 0] + 1e-12)


def beaten_by_any(
    candidates: NDArray[np.float64], rivals: NDArray[np.float64], margin: float
) -> NDArray[np.bool_]:
    """Whether some rival beats the candidate."""
    return np.logical_or.reduce(beats(rivals, candidates, margin), axis=0)


def fronts(objectives: NDArray[np.float64], margin: float) -> list[NDArray[np.intp]]:
    """Sort into fronts: members of a front are beaten only by members of earlier ones.

    Examples
    --------
    >>> import numpy as np
    >>> [front.tolist() for front in fronts(np.array([[0.0, 1.0], [0.1, 0.5], [0.2, 2.0]]), 9.0)]
    [[0, 1], [2]]
    """
    dominance = beats(objectives, objectives, margin)
    np.fill_diagonal(dominance, False)
    left = np.arange(objectives.shape[0])
    sorted_fronts = []
    while left.size:
        beaten = dominance[np.ix_(left, left)].any(axis=0)
        sorted_fronts.append(left[~beaten])
        left = left[beaten]
    return sorted_fronts


class ReferenceSurvival:
    """Keep whole fronts, then fill up so that all reference directions are served.

    Parameters
    ----------
    n_divisions : int
        Of the Das-Dennis directions in three objectives.
    margin : float
        See :func:`beats`.
    rng : RandomState
        Settles which of equally crowded directions is served.
    """

    def __init__(self, n_divisions: int, margin: float, rng: np.random.RandomState) -> None:
        from pymoo.algorithms.moo.nsga3 import HyperplaneNormalization
        from pymoo.util.ref_dirs import get_reference_directions

        self.directions = get_reference_directions("das-dennis", 3, n_partitions=n_divisions)
        self._normalisation = HyperplaneNormalization(3)
        self._margin = margin
        self._rng = rng

    def choose(self, objectives: NDArray[np.float64], n_survive: int) -> NDArray[np.intp]:
        """Indices of the survivors, best fronts first."""
        from pymoo.algorithms.moo.nsga3 import associate_to_niches, calc_niche_count, niching

        sorted_fronts = fronts(objectives, self._margin)
        with warnings.catch_warnings():  # pymoo changes the global filters here
            self._normalisation.update(objectives, nds=sorted_fronts[0])
        niche, distance, _ = associate_to_niches(
            objectives,
            self.directions,
            self._normalisation.ideal_point,
            self._normalisation.nadir_point,
        )
        sure = np.array([], dtype=np.intp)
        for front in sorted_fronts:
            if sure.size + front.size > n_survive:
                break
            sure = np.concatenate([sure, front])
        n_left = n_survive - sure.size
        if n_left == 0:
            return sure
        chosen = niching(
            front,
            n_left,
            calc_niche_count(len(self.directions), niche[sure]),
            niche[front],
            distance[front],
            random_state=self._rng,
        )
        return np.concatenate([sure, front[chosen]])
