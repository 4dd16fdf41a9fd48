"""Small tables with facts about their recordings, for the tests of the audit."""

import numpy as np
import pandas as pd

from idfsmec import FeatureTable

COLUMNS = [f"{channel}__{name}" for channel in ("F3", "Cz", "O2") for name in ("a", "b", "c")]


def audited(
    n_subjects=32,
    n_samples=4,
    *,
    illness=0.0,
    device=0.0,
    seed=0,
    facts=True,
    labels=("HC", "MDD"),
):
    """Subjects whose features hold an illness and a device; it shows in the line noise too.

    ``device`` is the share of subjects whose device follows their label; 0 for by chance.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n_subjects) % len(labels)
    typical = rng.random(n_subjects) < device
    own = np.where(typical, y % 2, rng.integers(0, 2, n_subjects))
    trait = rng.normal(size=(n_subjects, len(COLUMNS)))
    trait[:, 0] += illness * y
    trait[:, 3] += 3.0 * own if device else 0.0
    X = np.repeat(trait, n_samples, axis=0) + 0.3 * rng.normal(size=(n_subjects * n_samples, 9))
    names = [f"s{i:02d}" for i in range(n_subjects)]
    kept = [
        {
            "recording": f"r{i}",
            "subject": names[i],
            "rows": n_samples,
            "facts": {
                "n_channels": 3,
                "sfreq": 250.0,
                "line_amplitude": float(10 ** (own[i] + 0.1 * rng.normal())),
                "drift": float(rng.lognormal()),
                "gaps": {"detected: flat": float(rng.random())},
                "format": "edf",
            },
        }
        for i in range(n_subjects)
    ]
    return FeatureTable(
        pd.DataFrame(X, columns=COLUMNS),
        pd.Series(np.array(labels)[np.repeat(y, n_samples)]),
        pd.Series(np.repeat(names, n_samples)),
        {"recordings": kept} if facts else {},
    )
