"""The test whether a prediction follows a fact within the groups, beside that of mlconfound.

``python -m benchmarks.quality.partial_test`` draws studies with a decision, a fact and a
diagnosis, and prints how often each test rejects at 5 %. mlconfound 0.21 asks for pygam 0.8, which
does not run with today's NumPy; install it, pygam, progressbar2 and python-utils without
dependencies (``pip install --no-deps``).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from mlconfound.stats import partial_confound_test

from benchmarks._timing import markdown
from idfsmec.audit.association import Fact, carried_facts

Draw = Callable[[np.random.Generator, np.ndarray], tuple[np.ndarray, np.ndarray]]


def _measured(reliability: float, cause: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    noise = rng.normal(size=cause.size)
    return np.sqrt(reliability) * cause + np.sqrt(1 - reliability) * noise


def _linear(rng: np.random.Generator, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    cause = 1.2 * y + rng.normal(size=y.size)
    return 0.5 * cause + rng.normal(size=y.size), cause


def _u_shaped(rng: np.random.Generator, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    cause = rng.choice([-1, 1], y.size) * (0.5 + y + 0.5 * rng.normal(size=y.size))
    return np.abs(cause) + 0.7 * rng.normal(size=y.size), cause


def _with_error(rng: np.random.Generator, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    decision, cause = _linear(rng, y)
    return decision, _measured(0.5, cause, rng)


def _harmless(rng: np.random.Generator, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return y + rng.normal(size=y.size), y + rng.normal(size=y.size)


def _skewed(rng: np.random.Generator, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    decision, fact = _harmless(rng, y)
    return decision, np.exp(1.5 * fact)


STUDIES: dict[str, Draw] = {
    "the decision follows the fact": _linear,
    "it follows both extremes of the fact": _u_shaped,
    "it follows the fact, measured with reliability 0.5": _with_error,
    "harmless fact": _harmless,
    "harmless fact, skewed": _skewed,
}


def p_values(decision: np.ndarray, fact: np.ndarray, y: np.ndarray, seed: int) -> list[float]:
    """Return the p-values of the audit's test and of mlconfound's."""
    facts = {"fact": Fact(fact[:, None], ("",))}
    (row,) = carried_facts(decision[:, None], facts, [["fact"]], y, seed=seed)
    theirs = partial_confound_test(
        y.astype(float),
        decision,
        fact,
        cat_y=True,
        num_perms=400,
        random_state=seed,
        progress=False,
        n_jobs=1,
    )
    return [row["p"], float(theirs.p)]


def main() -> None:
    """Print how often both reject."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=100)
    options = parser.parse_args()
    y, rows, started = np.arange(80) % 2, [], time.process_time()
    for name, draw in STUDIES.items():
        p = []
        for seed in range(options.studies):
            decision, fact = draw(np.random.default_rng([seed, len(name)]), y)
            p.append(p_values(decision, fact, y, seed))
        ours, theirs = np.array(p).T
        shares = [f"{np.mean(values <= 0.05):.2f}" for values in (ours, theirs)]
        rows.append([name, *shares])
    print(markdown([f"{options.studies} studies of 80", "audit", "mlconfound"], rows))
    print(f"{time.process_time() - started:.0f} s")


if __name__ == "__main__":
    main()
