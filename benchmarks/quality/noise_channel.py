"""A channel of pure noise that few patients have: its rank by either channel loss.

Nineteen channels are informative to various degrees; the twentieth is noise, and 22 of 25 controls
and so many of 29 patients have it. ``python -m benchmarks noise_channel`` prints its rank among
the channels over draws.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from benchmarks._timing import markdown
from idfsmec import IDFSMEC

PATIENTS_WITH = (29, 15, 8, 4, 2, 1)
N_DRAWS = 20
_N_CONTROLS, _N_PATIENTS, _N_WITH = 25, 29, 22
_N_CHANNELS, _N_FEATURES, _N_SAMPLES = 20, 18, 8


def main(n_draws: int = N_DRAWS) -> None:
    """Print the ranks of the noise channel."""
    print(
        f"## Rank of a noise channel among {_N_CHANNELS}, {n_draws} draws: median (best, worst)\n"
    )
    rows = []
    for n_with in PATIENTS_WITH:
        cells = [f"{n_with} of {_N_PATIENTS}"]
        for loss in ("in-sample", "held-out"):
            ranks = [rank(n_with, seed, loss) for seed in range(n_draws)]
            cells.append(f"{np.median(ranks):g} ({min(ranks)}, {max(ranks)})")
        rows.append(cells)
    print(markdown(["patients who have it", "in-sample loss", "held-out loss"], rows))


def rank(n_with: int, seed: int, channel_loss: str) -> int:
    """Rank of the noise channel by its weight; 1 is the heaviest."""
    X, y, channels, people = cohort(n_with, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        # Names of people decide about folds: others in every draw.
        names = [f"{seed}-{one}" for one in people]
        selector = IDFSMEC(channels, channel_loss=channel_loss).fit(X, y, names)
    weights = selector.channel_weights_
    return int((weights > weights[-1]).sum()) + 1


def cohort(n_with: int, seed: int) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Samples, classes, channels of the columns and people."""
    rng = np.random.default_rng(seed)
    n_people = _N_CONTROLS + _N_PATIENTS
    people = np.repeat(np.arange(n_people), _N_SAMPLES)
    y = (people >= _N_CONTROLS).astype(int)
    mixing = rng.normal(size=(_N_CHANNELS, 6, _N_FEATURES))
    sources = 0.7 * rng.normal(size=(n_people, _N_CHANNELS, 6))[people]
    sources += rng.normal(size=sources.shape)
    X = np.einsum("nck,ckd->ncd", sources, mixing)
    X += rng.normal(size=X.shape)
    strength = np.linspace(0.8, 0.2, _N_CHANNELS - 1)[:, None]
    X[:, :-1] += y[:, None, None] * strength * rng.normal(size=(_N_CHANNELS - 1, _N_FEATURES))
    has = np.zeros(n_people, dtype=bool)
    has[rng.choice(_N_CONTROLS, _N_WITH, replace=False)] = True
    has[_N_CONTROLS + rng.choice(_N_PATIENTS, n_with, replace=False)] = True
    X[~has[people], -1] = np.nan
    channels = np.repeat(np.arange(_N_CHANNELS), _N_FEATURES)
    return X.reshape(y.size, -1), y, channels, people
